"""Text to perplexity: forward, backward and mean, for all of it and for each file.

    text.segment.stream, language.scoring  ->  language.perplexity  ->  training, api

Perplexity is exp(mean negative log likelihood) over the targets of one direction, or of both for the mean.
Targets are all tokens and one mark a sentence. Unknown words count as the vocabulary's unknown word, which
is easy to predict where there are many: so the perplexity of the known targets alone stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from math import exp, inf, nan
from typing import Any

from polyseme.elmo import Elmo
from polyseme.errors import DataError
from polyseme.language.scoring import SentenceScore, predictor, score_sentences, score_stream
from polyseme.text.reading import Line, ReadingProgress
from polyseme.text.segment.stream import sentences_of_lines


@dataclass(frozen=True)
class Sums:
    """Log likelihood of one kind of targets, summed up."""

    targets: int = 0  # of one direction
    forward: float = 0.0
    backward: float = 0.0

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        return Sums(
            self.targets + other.targets, self.forward + other.forward, self.backward + other.backward
        )

    @property
    def perplexities(self) -> dict[str, float]:
        """Forward, backward and mean; nan without any target."""
        sums = {"forward": self.forward, "backward": self.backward}
        sums["mean"] = (self.forward + self.backward) / 2
        return {name: _perplexity(value, self.targets) for name, value in sums.items()}


@dataclass(frozen=True)
class Perplexity:
    """What was counted, and how well it was predicted."""

    sentences: int = 0
    words: int = 0  # tokens without the marks
    unknown: int = 0  # words outside the vocabulary
    all: Sums = field(default_factory=Sums)
    known: Sums = field(default_factory=Sums)  # without the unknown words

    @property
    def targets(self) -> int:
        """How many predictions of each direction were counted: the words, and one mark a sentence."""
        return self.all.targets

    @property
    def unknown_rate(self) -> float:
        """The share of words outside the vocabulary."""
        return self.unknown / self.words if self.words else nan

    @property
    def forward(self) -> float:
        """Perplexity of each token given what stands left of it."""
        return self.all.perplexities["forward"]

    @property
    def backward(self) -> float:
        """Perplexity of each token given what stands right of it."""
        return self.all.perplexities["backward"]

    @property
    def mean(self) -> float:
        """Perplexity over the predictions of both directions."""
        return self.all.perplexities["mean"]

    def plus(self, other: Perplexity) -> Perplexity:
        """Both texts together."""
        return Perplexity(
            self.sentences + other.sentences,
            self.words + other.words,
            self.unknown + other.unknown,
            self.all.plus(other.all),
            self.known.plus(other.known),
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "perplexity": self.all.perplexities,
            "perplexity_of_known_words": self.known.perplexities,
            "sentences": self.sentences,
            "words": self.words,
            "targets": self.targets,
            "unknown": self.unknown,
            "unknown_rate": self.unknown_rate,
        }


@dataclass(frozen=True)
class Evaluation:
    """The perplexity of a text, and of each of its files."""

    total: Perplexity
    files: dict[str, Perplexity]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return self.total.as_dict() | {"files": {name: part.as_dict() for name, part in self.files.items()}}


def evaluate(
    elmo: Elmo,
    lines: Iterable[Line],
    *,
    segment: str | None = None,
    stateful: bool = False,
    reading: ReadingProgress | None = None,
) -> Evaluation:
    """Perplexity of `lines` (see `text.reading.read_lines`), cut into sentences as the model was trained.

    stateful: state is carried from sentence to sentence of a file. `reading` reports progress.
    A file without words is left out.
    """
    predictor(elmo)
    lines = lines if reading is None else reading.count_lines(lines)
    total = Perplexity()
    files: dict[str, Perplexity] = {}
    seen = ""
    with elmo.track_counts() as counts:
        for source, run in groupby(lines, key=lambda line: line.source):
            found = sentences_of_lines(run, elmo.config.segment if segment is None else segment)
            part = _summed(score_sentences(elmo, _filled(found), counts, stateful=stateful), reading)
            seen = source
            if part.words:
                files[source] = part
                total = total.plus(part)
    if not files:
        raise DataError(f"{seen or 'The text'}: no words in it, so there is no perplexity. Check the file.")
    return Evaluation(total, files)


def perplexity(elmo: Elmo, sentences: Iterable[list[str]], *, stateful: bool = False) -> Perplexity:
    """Perplexity of token lists, in constant memory; those without tokens are left out."""
    return _summed(score_stream(elmo, _filled(sentences), stateful=stateful))


def _summed(scores: Iterable[SentenceScore], reading: ReadingProgress | None = None) -> Perplexity:
    total = Perplexity()
    for scored in scores:
        total = total.plus(_of_sentence(scored))
        if reading is not None:
            reading.add_tokens(len(scored.tokens))
    return total


def _filled(sentences: Iterable[list[str]]) -> Iterator[list[str]]:
    return (sentence for sentence in sentences if sentence)


def _of_sentence(scored: SentenceScore) -> Perplexity:
    words = len(scored.tokens)
    unknown = int(scored.unknown.sum())
    forward, backward, _ = scored.totals
    known = Sums(
        words + 1 - unknown,
        forward - float(scored.forward[:-1][scored.unknown].sum()),
        backward - float(scored.backward[:-1][scored.unknown].sum()),
    )
    return Perplexity(1, words, unknown, Sums(words + 1, forward, backward), known)


def _perplexity(log_likelihood: float, targets: int) -> float:
    if not targets:
        return nan
    try:
        return exp(-log_likelihood / targets)
    except OverflowError:
        return inf
