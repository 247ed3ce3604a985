"""Perplexity of text: forward, backward and mean, in all and per file.

    text.segment.stream, language.scoring  ->  language.perplexity  ->  api

Perplexity is exp(mean negative log likelihood) over the targets of one direction, or of both for the mean.
Targets are all tokens and one mark (<S> or </S>) per sentence. Unknown words count as the vocabulary's
unknown word, which is easy to predict if there are many, so the perplexity of the known targets is reported
as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from math import exp, inf, nan
from typing import Any

from polyseme.elmo import Elmo
from polyseme.errors import DataError
from polyseme.io.html import Cell, format_table, render_table
from polyseme.language.scoring import SentenceScore, require_predictor, score_sentences, score_stream
from polyseme.text.reading import Line, ReadingProgress


@dataclass(frozen=True)
class LogLikelihood:
    """Sums of log probabilities over some targets.

    Attributes:
        targets: How many targets each direction has.
        forward: Sum of the forward log probabilities.
        backward: Sum of the backward log probabilities.

    """

    targets: int = 0
    forward: float = 0.0
    backward: float = 0.0

    def __add__(self, addend: LogLikelihood) -> LogLikelihood:
        return LogLikelihood(
            self.targets + addend.targets, self.forward + addend.forward, self.backward + addend.backward
        )

    @property
    def perplexities(self) -> dict[str, float]:
        """Perplexity forward, backward and mean; nan without targets."""
        sums = {"forward": self.forward, "backward": self.backward}
        sums["mean"] = (self.forward + self.backward) / 2
        return {name: _compute_perplexity(value, self.targets) for name, value in sums.items()}


@dataclass(frozen=True, repr=False)
class Perplexity:
    """Counts of a text, and how well a model predicts it.

    Attributes:
        sentences: How many sentences.
        words: How many tokens, without <S> and </S>.
        unknown: How many tokens are outside the vocabulary.
        all: Log likelihood of all targets.
        known: Log likelihood without the unknown words.

    """

    sentences: int = 0
    words: int = 0
    unknown: int = 0
    all: LogLikelihood = field(default_factory=LogLikelihood)
    known: LogLikelihood = field(default_factory=LogLikelihood)

    @property
    def targets(self) -> int:
        """How many predictions each direction made: the words, and one mark per sentence."""
        return self.all.targets

    @property
    def unknown_rate(self) -> float:
        """The share of words outside the vocabulary."""
        return self.unknown / self.words if self.words else nan

    @property
    def forward(self) -> float:
        """Perplexity of each token given what is left of it."""
        return self.all.perplexities["forward"]

    @property
    def backward(self) -> float:
        """Perplexity of each token given what is right of it."""
        return self.all.perplexities["backward"]

    @property
    def mean(self) -> float:
        """Perplexity over the predictions of both directions."""
        return self.all.perplexities["mean"]

    def __add__(self, addend: Perplexity) -> Perplexity:
        return Perplexity(
            self.sentences + addend.sentences,
            self.words + addend.words,
            self.unknown + addend.unknown,
            self.all + addend.all,
            self.known + addend.known,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "perplexity": self.all.perplexities,
            "perplexity_of_known_words": self.known.perplexities,
            "sentences": self.sentences,
            "words": self.words,
            "targets": self.targets,
            "unknown": self.unknown,
            "unknown_rate": self.unknown_rate,
        }

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {
            "forward": self.forward,
            "backward": self.backward,
            "mean": self.mean,
            "known words": self.known.perplexities["mean"],
            "sentences": self.sentences,
            "words": self.words,
            "unknown": f"{self.unknown_rate:.2%}",
        }

    def __repr__(self) -> str:
        values = f"forward {self.forward:.2f}, backward {self.backward:.2f}, mean {self.mean:.2f}"
        return f"Perplexity({values}, {self.words:,} words, {self.unknown_rate:.2%} unknown)"

    def _repr_html_(self) -> str:
        row = self.as_row()
        return render_table(list(row), [list(row.values())], caption="Perplexity")


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The perplexity of a text.

    Attributes:
        total: Of all of it.
        files: Of each file.

    """

    total: Perplexity
    files: dict[str, Perplexity]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return self.total.as_dict() | {"files": {name: part.as_dict() for name, part in self.files.items()}}

    def __repr__(self) -> str:
        columns, rows = self._make_table()
        return format_table(columns, rows, caption="Perplexity")

    def _repr_html_(self) -> str:
        columns, rows = self._make_table()
        return render_table(columns, rows, caption="Perplexity")

    def _make_table(self) -> tuple[list[str], list[list[Cell]]]:
        """The total, and each file if there are several."""
        parts = {"all": self.total} | (self.files if len(self.files) > 1 else {})
        return [*self.total.as_row(), "text"], [
            [*part.as_row().values(), name] for name, part in parts.items()
        ]


def evaluate(
    elmo: Elmo,
    lines: Iterable[Line],
    *,
    segment: str | None = None,
    stateful: bool = False,
    reading: ReadingProgress | None = None,
) -> Evaluation:
    """Measure the perplexity of lines of text, in all and per file. Files without words are left out.

    Args:
        elmo: A model with a softmax.
        lines: Lines of files, as `text.reading.read_lines` yields them.
        segment: How to split text into sentences and tokens; as the model was trained if None.
        stateful: Carry the state from sentence to sentence of a file.
        reading: Receives progress.

    Raises:
        UsageError: The model has no softmax.
        DataError: There are no words at all.

    Example:
        >>> evaluate(elmo, read_lines("valid.txt")).total.mean

    """
    require_predictor(elmo)
    lines = lines if reading is None else reading.count_lines(lines)
    total = Perplexity()
    files: dict[str, Perplexity] = {}
    last_source = ""
    with elmo.track_counts() as counts:
        for source, source_lines in groupby(lines, key=lambda line: line.source):
            sentences = elmo.segment_lines(source_lines, segment)
            scores = score_sentences(elmo, _drop_empty(sentences), counts, stateful=stateful)
            part = _sum_scores(scores, reading)
            last_source = source
            if part.words:
                files[source] = part
                total += part
    if not files:
        raise DataError(f"{last_source or 'The text'}: no words in it, so there is no perplexity.")
    return Evaluation(total, files)


def measure_perplexity(elmo: Elmo, sentences: Iterable[list[str]], *, stateful: bool = False) -> Perplexity:
    """Measure the perplexity of token lists in constant memory; empty ones are left out.

    Args:
        elmo: A model with a softmax.
        sentences: Token lists.
        stateful: Carry the state from sentence to sentence.

    Raises:
        UsageError: The model has no softmax.

    """
    return _sum_scores(score_stream(elmo, _drop_empty(sentences), stateful=stateful))


def _sum_scores(scores: Iterable[SentenceScore], reading: ReadingProgress | None = None) -> Perplexity:
    total = Perplexity()
    for score in scores:
        total += _convert_score(score)
        if reading is not None:
            reading.add_tokens(len(score.tokens))
    return total


def _drop_empty(sentences: Iterable[list[str]]) -> Iterator[list[str]]:
    return (sentence for sentence in sentences if sentence)


def _convert_score(score: SentenceScore) -> Perplexity:
    words = len(score.tokens)
    unknown = int(score.unknown.sum())
    forward, backward, _ = score.totals
    known = LogLikelihood(
        words + 1 - unknown,
        forward - float(score.forward[:-1][score.unknown].sum()),
        backward - float(score.backward[:-1][score.unknown].sum()),
    )
    return Perplexity(1, words, unknown, LogLikelihood(words + 1, forward, backward), known)


def _compute_perplexity(log_likelihood: float, targets: int) -> float:
    if not targets:
        return nan
    try:
        return exp(-log_likelihood / targets)
    except OverflowError:
        return inf
