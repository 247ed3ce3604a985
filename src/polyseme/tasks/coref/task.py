"""Coreference as a task: reading, scores, pages.

tasks.data.clusters, tasks.coref.network, tasks.coref.scores  ->  tasks.coref.task  ->  tasks.table
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from polyseme.errors import DataError, UsageError
from polyseme.tasks.coref.example import CorefDocument, CorefPrediction
from polyseme.tasks.coref.network import CorefNetwork
from polyseme.tasks.coref.page import render_page
from polyseme.tasks.coref.scores import score_clusters
from polyseme.tasks.coref.settings import CorefSettings
from polyseme.tasks.data.clusters import read_clusters
from polyseme.tasks.data.sources import Source
from polyseme.tasks.examples import Segmenter, TokenizedText, name_source
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import TaskSettings


@dataclass(frozen=True)
class Coref:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "coref"
    settings_type: ClassVar[type[TaskSettings]] = CorefSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "file"
    sample_question: ClassVar[str] = '"Anna met Thomas. She liked him."'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl", "characters", "html")
    decode_batch: ClassVar[int] = 1
    labels: ClassVar[tuple[str, ...]] = ()

    settings: CorefSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[CorefDocument]:
        """CoNLL-2012, CorefUD, JSON lines, or records."""
        data = self.settings.data
        documents = []
        for location, name, sentences, labelled_clusters, speakers in read_clusters(
            source, data.format, labelled=labelled
        ):
            least = 1 if data.singletons else 2
            clusters = tuple(tuple(cluster) for cluster in labelled_clusters or () if len(cluster) >= least)
            pieces = [
                (TokenizedText(tuple(piece)), speaker)
                for sentence, speaker in zip(sentences, speakers, strict=True)
                for piece in _split(sentence, data.max_tokens)
            ]
            texts, their_speakers = tuple(text for text, _ in pieces), tuple(speaker for _, speaker in pieces)
            documents.append(
                CorefDocument(
                    location, name, texts, None if labelled_clusters is None else clusters, their_speakers
                )
            )
        return documents

    def learn(self, examples: Sequence[CorefDocument]) -> Coref:
        """Nothing is learned but weights; there must be links to learn from."""
        if not any(len(cluster) > 1 for example in examples for cluster in example.clusters or ()):
            raise DataError(
                f"{name_source(examples)}: no cluster has two mentions. There is nothing to learn from."
            )
        return self

    def check(self, examples: Sequence[CorefDocument]) -> None:
        """Any clusters may occur."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> CorefDocument:
        """A raw text, or its sentences as lists of tokens."""
        size = self.settings.data.max_tokens
        if isinstance(question, str):
            texts = tuple(
                TokenizedText(
                    tuple(token.text for token in piece),
                    question,
                    tuple((token.start, token.end) for token in piece),
                )
                for sentence in segmenter.sentences(question)
                for piece in _split(sentence, size)
            )
            return CorefDocument(location, location, texts or (TokenizedText(()),))
        if not isinstance(question, list | tuple) or not all(
            isinstance(sentence, list | tuple) and all(isinstance(token, str) and token for token in sentence)
            for sentence in question
        ):
            raise UsageError(
                f"{location}: a document is a string, or a list of sentences, each a list of tokens, "
                f"not {question!r:.60}."
            )
        tokens = tuple(
            TokenizedText(tuple(piece)) for sentence in question for piece in _split(sentence, size)
        )
        return CorefDocument(location, location, tokens or (TokenizedText(()),))

    def count_labels(self, example: CorefDocument) -> Mapping[str, int]:
        """Nothing: clusters have no labels, so any document may be held out."""
        return {}

    def build_network(self, featurizer: Featurizer, examples: Sequence[CorefDocument]) -> CorefNetwork:
        """The untrained network."""
        return CorefNetwork(featurizer, self.settings)

    def score(self, examples: Sequence[CorefDocument], predictions: Sequence[CorefPrediction]) -> Scores:
        """The CoNLL mean of MUC, B-cubed and CEAF-phi4, and LEA."""
        labels = [[frozenset(cluster) for cluster in example.clusters or ()] for example in examples]
        predicted = [
            [frozenset((m.start, m.stop) for m in cluster.mentions) for cluster in prediction.clusters]
            for prediction in predictions
        ]
        return score_clusters(labels, predicted)

    def format(self, prediction: CorefPrediction, output_format: str) -> str:
        """A page; or a line for each cluster of several mentions: name, count, most frequent texts."""
        if output_format == "html":
            return render_page(prediction)
        lines = []
        for cluster in prediction.clusters:
            if len(cluster.mentions) > 1:
                forms = Counter(" ".join(mention.text.split()) for mention in cluster.mentions).most_common(8)
                shown = ", ".join(f"{text} {count}" for text, count in forms)
                lines.append(f"{' '.join(cluster.name.split())}\t{len(cluster.mentions)}\t{shown}")
        return "\n".join([*lines, ""])


def _split(sentence: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """Yield the pieces of a sentence that is longer than `size` tokens."""
    for start in range(0, len(sentence), size):
        yield sentence[start : start + size]
