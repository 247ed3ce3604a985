"""The biLM as a language model: how likely is a text, which word fits, how does it continue.

    elmo  ->  language  ->  tasks, server, api

    scoring      log probability of every token, in both directions
    perplexity   the same, summed up per file
    reranking    n-best lists of a speech recognizer or translator
    substitutes  words that fit a position
    generation   new text, word by word
    detokenize   tokens to readable text

A sentence is <S> w1 … wn </S>. The forward half of the top layer at a token predicts the next token, the
backward half the one before. Words outside the vocabulary are predicted as its unknown word.
"""

from __future__ import annotations

from polyseme.language.detokenize import join_tokens
from polyseme.language.generation import GeneratedText, generate
from polyseme.language.perplexity import Evaluation, Perplexity, evaluate, measure_perplexity
from polyseme.language.reranking import Hypothesis, RankedHypothesis, read_nbest, rerank
from polyseme.language.scoring import SentenceScore, score, score_stream
from polyseme.language.substitutes import (
    RankedSubstitutes,
    Substitute,
    Substitutes,
    find_substitutes,
    find_substitutes_at,
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
    "find_substitutes",
    "find_substitutes_at",
    "generate",
    "join_tokens",
    "measure_perplexity",
    "read_nbest",
    "rerank",
    "score",
    "score_stream",
]
