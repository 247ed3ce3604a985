"""Results of the library as values for JSON: tokens, usages, scores, substitutes.

text.segment, search, language  ->  server.http.json_values  ->  server.verbs
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from polyseme.language import GeneratedText, SentenceScore, Substitutes
from polyseme.language.substitutes import RankedSubstitutes
from polyseme.search.index import Usage
from polyseme.text.segment import Token

JsonObject = dict[str, Any]
Value = TypeVar("Value")


def tokens_to_json(sentences: Sequence[Sequence[Token]]) -> list[JsonObject]:
    """Tokens with their offsets and the number of their sentence."""
    return [
        {"text": token.text, "start": token.start, "end": token.end, "sentence": number}
        for number, sentence in enumerate(sentences)
        for token in sentence
    ]


def usage_to_json(usage: Usage, *, cosine: bool = False) -> JsonObject:
    """A usage with its sentence and location; only the file name of its document, not the server's path."""
    values = {
        "number": usage.number,
        "word": usage.word,
        "sentence": usage.sentence,
        "start": usage.start,
        "stop": usage.stop,
        "document": Path(usage.document).name,
        "line": usage.line,
        "title": usage.title,
    }
    return values | ({"cosine": usage.cosine} if cosine else {})


def score_to_json(score: SentenceScore) -> JsonObject:
    """Log probabilities of a sentence and its tokens."""
    forward, backward, mean = score.totals
    return {
        "tokens": score.tokens,
        "forward": forward,
        "backward": backward,
        "mean": mean,
        "token_scores": score.mean[: len(score.tokens)].tolist(),
        "unknown": score.unknown.tolist(),
    }


def substitutes_to_json(substitutes: Substitutes) -> JsonObject:
    """Substitutes by each of the three rankings, with probabilities."""

    def ranking_to_json(ranked: RankedSubstitutes) -> JsonObject:
        best = [{"word": word.word, "probability": math.exp(word.log_prob)} for word in ranked.best]
        return {"best": best, "rank": ranked.rank}

    rankings = {
        name: ranking_to_json(getattr(substitutes, name)) for name in ("forward", "backward", "joint")
    }
    return {"tokens": substitutes.tokens, "position": substitutes.position, **rankings}


def generated_to_json(generated: GeneratedText) -> JsonObject:
    """A continued text."""
    return {
        "text": generated.text,
        "tokens": generated.tokens,
        "log_probs": generated.log_probs,
        "ended": generated.ended,
    }


def key_by_file_name(by_path: Mapping[str, Value]) -> dict[str, Value]:
    """Replace paths as keys by file names; the second file of a name gets a number."""
    by_name: dict[str, Value] = {}
    for path, value in by_path.items():
        name, number = Path(path).name, 1
        while name in by_name:
            number += 1
            name = f"{Path(path).name} ({number})"
        by_name[name] = value
    return by_name
