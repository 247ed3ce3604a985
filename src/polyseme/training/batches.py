"""Make training batches from a stream of types, for both directions, ordered by the seed and the epoch.

    text.corpus.prepared  ->  training.batches  ->  training.objective

A batch is packed (see model.recurrent): types to read and types to predict, both directions, (2, N). It is
addressed by its epoch and its number, so a run can resume anywhere.

rows       the stream in B contiguous rows, T tokens of each per batch, state carried from batch to batch;
           the backward direction reads each sentence from its end, but the sentences in the same order, as in
           the published models: a batch has the same words in both directions, and each is encoded once
sentences  each sentence from zero state, together with others of similar length
With several processes (ranks) each takes its rows or sentences of the same global batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Types = NDArray[np.int64]
POOL = 64  # sentences are sorted by length within this many batches


class TrainingBatch(NamedTuple):
    """What both directions read and predict."""

    inputs: Types  # (2, N)
    targets: Types  # (2, N)
    keep: NDArray[np.bool_] | None  # (2, N): targets that count; None: all
    sizes: list[int]  # sentences or rows at each time step
    weight: float  # what the summed loss is divided by: targets of the global batch per process
    tokens: int  # tokens of the global batch


class Batches(Protocol):
    """Batches of a corpus, by epoch and number."""

    @property
    def carried(self) -> bool:
        """Whether state is carried from batch to batch."""

    @property
    def rows(self) -> int:
        """Rows of this process, whose state is carried."""

    def count_batches(self, epoch: int) -> int:
        """The number of batches of an epoch."""

    def make_batch(self, epoch: int, number: int) -> TrainingBatch:
        """Make one batch."""


@dataclass(frozen=True)
class RowBatches:
    """Batches of contiguous rows, with carried state."""

    stream: NDArray[np.uint32]
    starts: Types  # (sentences + 1,) start of each sentence, and the end of the stream
    begin: int
    end: int
    all_rows: int
    unroll: int
    rank: int = 0
    world: int = 1
    carried: bool = True

    @property
    def rows(self) -> int:
        """Rows of this process."""
        return len(range(self.rank, self.all_rows, self.world))

    def _count_predictions(self) -> int:
        """Predictions in a row."""
        return (len(self.stream) - 1) // self.all_rows

    def count_batches(self, epoch: int) -> int:
        """The number of batches of an epoch; the last one may be shorter."""
        return -(-self._count_predictions() // self.unroll)

    def make_batch(self, epoch: int, number: int) -> TrainingBatch:
        """Make a batch of the next tokens of every row, and of the same rows with each sentence reversed."""
        length = self._count_predictions()
        first = number * self.unroll
        steps = np.arange(first, min(first + self.unroll, length) + 1)[:, None]  # (T + 1, 1)
        positions = steps + (np.arange(self.rank, self.all_rows, self.world) * length)[None]  # (T + 1, B)
        both = np.stack([self.stream[positions], self.stream[self._mirror_positions(positions)]]).astype(
            np.int64
        )
        inputs, targets = both[:, :-1], both[:, 1:]
        # The begin mark after the end of a sentence is not predicted.
        keep = np.stack([targets[0] != self.begin, targets[1] != self.end])
        steps_read, rows = inputs.shape[1:]
        tokens = steps_read * self.all_rows
        return TrainingBatch(
            inputs.reshape(2, -1),
            targets.reshape(2, -1),
            keep.reshape(2, -1),
            [rows] * steps_read,
            2 * tokens / self.world,
            tokens,
        )

    def _mirror_positions(self, positions: Types) -> Types:
        """Positions in the stream after every sentence is reversed."""
        sentence = np.searchsorted(self.starts, positions, side="right") - 1
        return self.starts[sentence] + self.starts[sentence + 1] - 1 - positions


@dataclass
class SentenceBatches:
    """Batches of sentences of similar length, each from zero state."""

    stream: NDArray[np.uint32]
    starts: Types  # (sentences + 1,) start of each sentence, and the end of the stream
    sentences: int  # sentences of mean length per batch; the limit is in tokens
    seed: int = 0
    rank: int = 0
    world: int = 1
    shuffled: bool = True
    carried: bool = False
    _planned: tuple[int, Types, Types] | None = field(default=None, init=False, repr=False)

    @property
    def rows(self) -> int:
        """No state is carried."""
        return 0

    def count_batches(self, epoch: int) -> int:
        """The number of batches of an epoch."""
        return len(self._plan(epoch)[1]) - 1

    def _plan(self, epoch: int) -> tuple[Types, Types]:
        """The sentences in the order of the epoch, and where in it each batch begins."""
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, *self._make_plan(epoch))
        return self._planned[1], self._planned[2]

    def _make_plan(self, epoch: int) -> tuple[Types, Types]:
        random = np.random.default_rng([self.seed, epoch])
        lengths = np.diff(self.starts) - 1
        count = len(lengths)
        order = random.permutation(count) if self.shuffled else np.arange(count)
        budget = max(1.0, self.sentences * float(lengths.mean())) if count else 1.0
        pool = max(1, POOL * self.sentences)
        sorted_pools = [
            part[np.argsort(-lengths[part], kind="stable")]
            for part in (order[start : start + pool] for start in range(0, count, pool))
        ]
        order = np.concatenate(sorted_pools) if sorted_pools else order
        bounds = _split_by_tokens(lengths[order], budget)
        if not self.shuffled:
            return order, bounds
        mixed = random.permutation(len(bounds) - 1)
        parts = [order[bounds[number] : bounds[number + 1]] for number in mixed]
        return np.concatenate(parts), np.concatenate([[0], np.cumsum([len(part) for part in parts])])

    def make_batch(self, epoch: int, number: int) -> TrainingBatch:
        """Make a packed batch of sentences, longest first."""
        order, bounds = self._plan(epoch)
        chosen = order[bounds[number] : bounds[number + 1]]
        lengths = self.starts[chosen + 1] - self.starts[chosen] - 1  # predictions
        total = int(lengths.sum())
        numbers = chosen[self.rank :: self.world]
        keep = None
        if len(numbers) == 0:  # fewer sentences than processes: read one, count no target
            numbers, lengths = chosen[:1], lengths[:1]
            keep = np.zeros((2, int(lengths.sum())), bool)
        else:
            lengths = lengths[self.rank :: self.world]
        falling = np.argsort(-lengths, kind="stable")
        numbers, lengths = numbers[falling], lengths[falling]
        running = lengths > np.arange(lengths[0] if len(lengths) else 0)[:, None]  # (T, B)
        time, row = running.nonzero()
        forward = self.starts[numbers[row]] + time
        backward = self.starts[numbers[row]] + lengths[row] - time
        inputs = np.stack([self.stream[forward], self.stream[backward]]).astype(np.int64)
        targets = np.stack([self.stream[forward + 1], self.stream[backward - 1]]).astype(np.int64)
        sizes = running.sum(axis=1).tolist()
        return TrainingBatch(inputs, targets, keep, sizes, 2 * total / self.world, total)


def _split_by_tokens(lengths: Types, budget: float) -> Types:
    """Bounds of runs whose lengths add up to at most `budget`; a longer sentence is a run by itself."""
    bounds = [0]
    size = 0.0
    for number, length in enumerate(lengths.tolist()):
        if size and size + length > budget:
            bounds.append(number)
            size = 0.0
        size += length
    bounds.append(len(lengths))
    return np.array(sorted(set(bounds)), np.int64)
