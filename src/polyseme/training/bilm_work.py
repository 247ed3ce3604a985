"""A biLM as work for the loop: its batches, its loss, its validation, the state it carries.

training.batches, training.objective  ->  training.bilm_work  ->  training.loop
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from math import ceil

import numpy as np
import torch
from torch import Tensor

from polyseme.errors import DataError
from polyseme.model.bilm import BiLM
from polyseme.model.paired import Dropout, PairState, start_pairs
from polyseme.model.softmax import AnySoftmax, Sample, Softmax, draw_sample
from polyseme.text.corpus import Corpus, sentence_starts
from polyseme.training.batches import Batch, Batches, RowBatches, SentenceBatches
from polyseme.training.distributed import Ranks
from polyseme.training.loop import Metrics
from polyseme.training.objective import BilmObjective, Perplexity, perplexity_of
from polyseme.training.settings import PretrainConfig

SMALL_VOCABULARY = 2_000  # up to here the full softmax costs less than it brings
VALID_BATCH = 64  # sentences


class BilmWork:
    """Implements `loop.Work` for pretraining."""

    def __init__(
        self, network: BiLM, softmax: AnySoftmax, corpus: Corpus, config: PretrainConfig, ranks: Ranks
    ) -> None:
        train = config.train
        dropout = Dropout(train.dropout, train.variational, train.weight_drop)
        self.module = BilmObjective(network, softmax, corpus, dropout)
        self._shared = ranks.wrap(self.module)
        self._config, self._corpus, self._ranks = config, corpus, ranks
        self._batches = make_batches(corpus, config, ranks)
        self._valid = _sentences(corpus.valid, corpus.begin, VALID_BATCH, ranks)
        self._samples = samples_wanted(config, softmax)
        self._state: PairState | None = None

    def count(self, epoch: int) -> int:
        """How many batches the epoch has."""
        return self._batches.count(epoch)

    def total_tokens(self) -> int:
        """How many tokens the settings ask for."""
        train = self._config.train
        if train.tokens is not None:
            return train.tokens
        if train.order == "rows":
            return ceil(train.epochs * len(self._corpus.train))
        report = self._corpus.report
        return ceil(train.epochs * (report.tokens + report.sentences))

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        """The loss of a batch; sampled words are the same for all processes."""
        batch = self._batches.batch(epoch, number)
        sample = self._draw(step) if self._samples else None
        if self._batches.carried and self._state is None:
            self._state = start_pairs(self.module.network, self._batches.rows)
        low = self._config.train.precision == "bf16"
        with torch.autocast("cpu", torch.bfloat16) if low else nullcontext():
            loss, after = self._shared(batch, self._state, sample)
        if self._batches.carried:
            self._state = [(output.detach(), memory.detach()) for output, memory in after]
        return loss, batch.tokens

    def _draw(self, step: int) -> Sample:
        generator = torch.Generator().manual_seed(self._config.train.seed * 1_000_003 + step)
        return draw_sample(len(self._corpus.vocab), self._samples, generator)

    def begin_epoch(self) -> None:
        """State does not go on from the end of the text to its begin."""
        self._state = None

    def evaluate(self, *, final: bool) -> Metrics:
        """Perplexity of the held-out text, of a part of it on the way."""
        found = self._reduced(self.module.perplexity(self._valid_batches(final)))
        return {
            "score": found.mean,
            "forward": found.forward,
            "backward": found.backward,
            "mean": found.mean,
            "unknown": self._corpus.report.valid_unknown,
            "targets": found.targets,
        }

    def _valid_batches(self, final: bool) -> Iterator[Batch]:
        """All held-out sentences, or as many batches as the settings allow, spread over the text."""
        count = self._valid.count(0)
        numbers = np.arange(count)
        if not final:
            share = self._config.train.valid_tokens / max(1, len(self._corpus.valid))
            wanted = max(1, min(count, round(share * count)))
            numbers = np.linspace(0, count - 1, wanted).round().astype(int)
        return (self._valid.batch(0, int(number)) for number in numbers)

    def _reduced(self, own: Perplexity) -> Perplexity:
        """The perplexity over the parts of all processes."""
        if self._ranks.world == 1:
            return own
        count = self._ranks.sum(own.targets)
        logs = [np.log(value) * own.targets for value in (own.forward, own.backward)]
        forward, backward = (self._ranks.sum(float(value)) / count for value in logs)
        return perplexity_of(forward, backward, int(count))

    def carried(self) -> dict[str, Tensor]:
        """The LSTM states by layer."""
        states = self._state or []
        return {
            f"{number}.{part}": tensor.contiguous()
            for number, pair in enumerate(states)
            for part, tensor in zip(("output", "memory"), pair, strict=True)
        }

    def carry(self, tensors: dict[str, Tensor]) -> None:
        """Go on from the LSTM states of a checkpoint."""
        layers = len(tensors) // 2
        states = [(tensors[f"{number}.output"], tensors[f"{number}.memory"]) for number in range(layers)]
        self._state = states or None


def make_batches(corpus: Corpus, config: PretrainConfig, ranks: Ranks) -> Batches:
    """The batches that the settings ask for; rows that the text cannot fill are left out."""
    train = config.train
    if train.order == "sentences":
        starts = sentence_starts(corpus.train, corpus.begin)
        return SentenceBatches(
            corpus.train,
            np.append(starts, len(corpus.train)),
            train.batch,
            train.seed,
            ranks.rank,
            ranks.world,
        )
    rows = min(train.batch, (len(corpus.train) - 1) // 2)
    if rows < ranks.world:
        raise DataError(f"The text is too short for {ranks.world} processes: use fewer, or more text.")
    return RowBatches(corpus.train, corpus.begin, corpus.end, rows, train.unroll, ranks.rank, ranks.world)


def _sentences(stream: np.ndarray, begin: int, sentences: int, ranks: Ranks) -> SentenceBatches:
    """The sentences of a stream in their own order, for validation."""
    starts = np.append(sentence_starts(stream, begin), len(stream))
    return SentenceBatches(stream, starts, sentences, 0, ranks.rank, ranks.world, shuffled=False)


def samples_wanted(config: PretrainConfig, softmax: AnySoftmax) -> int:
    """How many words a step samples; 0 means that the whole vocabulary is scored."""
    kind, samples = config.softmax.kind, config.softmax.samples
    if not isinstance(softmax, Softmax) or kind in ("full", "adaptive"):
        return 0
    wanted = samples if isinstance(samples, int) else max(1, round(samples * softmax.n_words))
    if wanted >= softmax.n_words or (kind == "auto" and softmax.n_words <= SMALL_VOCABULARY):
        return 0
    return wanted
