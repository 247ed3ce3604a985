"""One function per verb: what Python, the command line and the server call.

    everything above  ->  api  ->  cli, server, scripts

Paths or open objects in, files or plain values out. Nothing is printed here.
"""

from __future__ import annotations

from polyseme.api.books import BookResult, book, characters
from polyseme.api.concordances import collocates, concordance, passage
from polyseme.api.embedding import EmbedResult, embed
from polyseme.api.exporting import ExportResult, export
from polyseme.api.indexing import index
from polyseme.api.installation import DoctorReport, InstallationCheck, doctor
from polyseme.api.language import evaluate, generate, rerank, score, substitutes
from polyseme.api.meanings import (
    change,
    describe_rare_words,
    disambiguate,
    map_usages,
    senses,
    timeline,
)
from polyseme.api.models import cache, convert, info, sample
from polyseme.api.neighbours import NeighbourGroup, nearest, plan_similarity, similarity
from polyseme.api.pretraining import pretrain
from polyseme.api.sources import open_source
from polyseme.api.summaries import summarise
from polyseme.api.tasks import (
    PredictionPlan,
    count_examples,
    describe_prediction,
    plan_prediction,
    predict,
    probe,
    train,
)
from polyseme.search.similarity import SimilarityPlan

__all__ = [
    "BookResult",
    "DoctorReport",
    "EmbedResult",
    "ExportResult",
    "InstallationCheck",
    "NeighbourGroup",
    "PredictionPlan",
    "SimilarityPlan",
    "book",
    "cache",
    "change",
    "characters",
    "collocates",
    "concordance",
    "convert",
    "count_examples",
    "describe_prediction",
    "describe_rare_words",
    "disambiguate",
    "doctor",
    "embed",
    "evaluate",
    "export",
    "generate",
    "index",
    "info",
    "map_usages",
    "nearest",
    "open_source",
    "passage",
    "plan_prediction",
    "plan_similarity",
    "predict",
    "pretrain",
    "probe",
    "rerank",
    "sample",
    "score",
    "senses",
    "similarity",
    "substitutes",
    "summarise",
    "timeline",
    "train",
]
