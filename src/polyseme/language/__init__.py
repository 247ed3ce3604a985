"""The biLM as a language model: how likely is a text, which word fits, how does it go on.

    embedder  ->  language  ->  training, server, api

    scoring      log probability of every token, in both directions
    perplexity   the same summed up, per file
    nbest        re-ranking the lists of a recogniser or a translator
    substitutes  which words fit a marked place
    generation   new text, word by word
    joining      tokens to readable text

A sentence is <S> w1 … wn </S>. The forward half of the top layer at a token predicts the next token, the
backward half the one before; words outside the vocabulary are predicted as its unknown word.
"""

from __future__ import annotations

from polyseme.language.detokenize import join
from polyseme.language.generation import GeneratedText, generate
from polyseme.language.perplexity import Evaluation, Perplexity, evaluate, perplexity
from polyseme.language.reranking import Hypothesis, RankedHypothesis, read_nbest, rerank
from polyseme.language.scoring import SentenceScore, score, score_stream
from polyseme.language.substitutes import (
    RankedSubstitutes,
    Substitute,
    Substitutes,
    find_substitutes_at,
    substitutes,
)

__all__ = [
    "Evaluation",
    "GeneratedText",
    "Hypothesis",
    "Perplexity",
    "RankedHypothesis",
    "RankedSubstitutes",
    "SentenceScore",
    "Substitute",
    "Substitutes",
    "evaluate",
    "find_substitutes_at",
    "generate",
    "join",
    "perplexity",
    "read_nbest",
    "rerank",
    "score",
    "score_stream",
    "substitutes",
]
