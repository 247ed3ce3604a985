"""Long texts in overlapping windows, answers as spans of tokens, and words that question and text share.

    tasks.answers.example  ->  tasks.answers.windows  ->  tasks.answers.network

W windows, T tokens of a window, Q tokens of a question.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from polyseme.search.passages import is_telling, list_stems
from polyseme.tasks.answers.example import AnswersExample
from polyseme.tasks.examples import Offsets, Tokens

SHARED_FEATURES = 3  # of each token: see `describe_shared`


class Window(NamedTuple):
    """The tokens of a text from `start` to `stop`, read for a question."""

    example: AnswersExample
    start: int
    stop: int
    question: Tokens
    labels: tuple[tuple[int, int], ...] = ()  # spans of answers, counted in the window; none: no answer

    @property
    def tokens(self) -> Tokens:
        """The tokens of the window."""
        return self.example.text.tokens[self.start : self.stop]


def split_windows(example: AnswersExample, size: int, overlap: int) -> Iterator[Window]:
    """Yield the windows of a text; all have `size` tokens, unless the text is shorter."""
    total, spans = len(example.text.tokens), label_spans(example)
    start = 0
    while True:
        stop = min(start + size, total)
        start = max(0, stop - size)  # the last window is as long as the others
        labels = tuple((a - start, b - start) for a, b in spans if start <= a and b <= stop)
        yield Window(example, start, stop, example.question.tokens, labels)
        if stop == total:
            return
        start = stop - overlap


def label_spans(example: AnswersExample) -> list[tuple[int, int]]:
    """The labelled answers as spans of tokens: all tokens that an answer touches."""
    spans = {
        span
        for answer in example.answers or ()
        for offsets in answer.spans
        if (span := _find_tokens(example.text.offsets, offsets)) is not None
    }
    return sorted(spans)


def _find_tokens(tokens: Sequence[Offsets], offsets: Offsets) -> tuple[int, int] | None:
    start = bisect_right(tokens, offsets[0], key=lambda token: token[1])
    stop = bisect_left(tokens, offsets[1], key=lambda token: token[0])
    return (start, stop) if start < stop else None


def describe_shared(tokens: Sequence[str], others: Collection[str]) -> list[tuple[float, float, float]]:
    """For each token: whether the other text has it; the same for content words and numbers; for stems.

    Words of four letters or more have the same stem if they begin with the same four; Chinese words if they
    have a character in common.
    """
    lowered = {token.lower() for token in others}
    stems = {stem for token in lowered if is_telling(token) for stem in list_stems(token)}
    values = []
    for token in map(str.lower, tokens):
        content = is_telling(token)
        has_stem = content and any(stem in stems for stem in list_stems(token))
        values.append((float(token in lowered), float(content and token in lowered), float(has_stem)))
    return values
