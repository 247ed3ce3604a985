"""A biLM as work for the loop: its batches, its loss, its validation, the state it carries.

training.batches, training.objective  ->  training.bilm_trainable  ->  training.loop
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from math import ceil

import numpy as np
import torch
from torch import Tensor

from polyseme.errors import DataError
from polyseme.model.bilm import BiLM
from polyseme.model.fast.paired import PairDropout, PairState, zero_pair_state
from polyseme.model.softmax import AnySoftmax, SampledWords, Softmax, draw_sample
from polyseme.text.corpus.prepared import Corpus, sentence_starts
from polyseme.training.batches import Batches, RowBatches, SentenceBatches, TrainingBatch
from polyseme.training.distributed import Ranks
from polyseme.training.loop import Metrics
from polyseme.training.objective import BatchPerplexity, BilmObjective, perplexity_of
from polyseme.training.settings import PretrainSettings

SMALL_VOCABULARY = 2_000  # up to here the full softmax costs less than it brings
VALID_BATCH = 64  # sentences, or rows at most
VALID_ROW = 500  # tokens: rows begin from zero state, which they do not meet again
VALID_UNROLL = 64  # tokens of a row in a batch


class BilmTrainable:
    """Implements `loop.Work` for pretraining."""

    def __init__(
        self, network: BiLM, softmax: AnySoftmax, corpus: Corpus, config: PretrainSettings, ranks: Ranks
    ) -> None:
        train = config.train
        dropout = PairDropout(train.dropout, train.variational, train.weight_drop)
        self.module = BilmObjective(network, softmax, corpus, dropout).to(ranks.device)
        self._shared = ranks.wrap(self.module)
        self._config, self._corpus, self._ranks = config, corpus, ranks
        self._batches = make_batches(corpus, config, ranks)
        self._valid = valid_batches(corpus, self._batches.carried, ranks)
        self._samples = samples_wanted(config, softmax)
        self._state: PairState | None = None

    def count(self, epoch: int) -> int:
        """How many batches the epoch has."""
        return self._batches.count(epoch)

    def count_total_tokens(self) -> int:
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
            self._state = zero_pair_state(self.module.network, self._batches.rows)
        low = self._config.train.precision == "bf16"
        with torch.autocast(self._ranks.device.type, torch.bfloat16) if low else nullcontext():
            loss, after = self._shared(batch, self._state, sample)
        if self._batches.carried:
            self._state = [(output.detach(), memory.detach()) for output, memory in after]
        return loss, batch.tokens

    def _draw(self, step: int) -> SampledWords:
        generator = torch.Generator().manual_seed(self._config.train.seed * 1_000_003 + step)
        sample = draw_sample(len(self._corpus.vocab), self._samples, generator)
        return SampledWords(sample.words.to(self._ranks.device), sample.draws)

    def apart(self) -> AbstractContextManager[None]:
        """Where gradients stay with this process: more batches of the step follow."""
        return self._ranks.apart(self._shared)

    def begin_epoch(self) -> None:
        """State does not go on from the end of the text to its begin."""
        self._state = None

    def evaluate(self, *, final: bool) -> Metrics:
        """Perplexity of the held-out text, of a part of it on the way; read as the text is in training."""
        carried = self._valid.carried
        found = self._reduced(self.module.perplexity(self._valid_batches(final), carried=carried))
        return {
            "score": found.mean,
            "forward": found.forward,
            "backward": found.backward,
            "mean": found.mean,
            "unknown": self._corpus.report.valid_unknown,
            "targets": found.targets,
        }

    def _valid_batches(self, final: bool) -> Iterator[TrainingBatch]:
        """All of the held-out text, or as much as the settings allow: rows from their begin, or a spread."""
        count = self._valid.count(0)
        numbers = np.arange(count)
        if not final:
            share = self._config.train.valid_tokens / max(1, len(self._corpus.valid))
            wanted = max(1, min(count, round(share * count)))
            spread = np.linspace(0, count - 1, wanted).round().astype(int)
            numbers = numbers[:wanted] if self._valid.carried else spread
        return (self._valid.batch(0, int(number)) for number in numbers)

    def _reduced(self, own: BatchPerplexity) -> BatchPerplexity:
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
            f"{number}.{part}": tensor.cpu().contiguous()
            for number, pair in enumerate(states)
            for part, tensor in zip(("output", "memory"), pair, strict=True)
        }

    def carry(self, parts: list[dict[str, Tensor]]) -> None:
        """Go on from the LSTM states of a checkpoint; rows are dealt anew to another number of processes."""
        ranks = self._ranks
        whole = {name: _interleave([part[name] for part in parts]) for name in parts[0]}
        mine = {name: rows[:, ranks.rank :: ranks.world] for name, rows in whole.items()}
        if any(rows.shape[1] != self._batches.rows for rows in mine.values()):
            mine = {}  # resumed by force with another train.batch: its rows begin anew
        tensors = {name: rows.contiguous().to(ranks.device) for name, rows in mine.items()}
        layers = len(tensors) // 2
        states = [(tensors[f"{number}.output"], tensors[f"{number}.memory"]) for number in range(layers)]
        self._state = states or None


def _interleave(parts: list[Tensor]) -> Tensor:
    """Rows 0, N, 2N …, rows 1, N + 1 … of N processes (each (2, rows, …)) in their own order."""
    whole = parts[0].new_empty(2, sum(part.shape[1] for part in parts), *parts[0].shape[2:])
    for rank, part in enumerate(parts):
        whole[:, rank :: len(parts)] = part
    return whole


def make_batches(corpus: Corpus, config: PretrainSettings, ranks: Ranks) -> Batches:
    """The batches that the settings ask for; rows that the text cannot fill are left out."""
    train, stream = config.train, corpus.train
    starts = np.append(sentence_starts(stream, corpus.begin), len(stream))
    if train.order == "sentences":
        return SentenceBatches(stream, starts, train.batch, train.seed, ranks.rank, ranks.world)
    rows = min(train.batch, (len(stream) - 1) // 2)
    if rows < ranks.world:
        raise DataError(f"The text is too short for {ranks.world} processes: use fewer, or more text.")
    ends = (corpus.begin, corpus.end)
    return RowBatches(stream, starts, *ends, rows, train.unroll, ranks.rank, ranks.world)


def valid_batches(corpus: Corpus, carried: bool, ranks: Ranks) -> Batches:
    """The held-out text in its own order, in some rows with `carried` state or sentence by sentence.

    A text that is too short for a row of each process is read sentence by sentence, too.
    """
    stream = corpus.valid
    starts = np.append(sentence_starts(stream, corpus.begin), len(stream))
    rows = max(1, min(VALID_BATCH, len(stream) // VALID_ROW))
    if not carried or rows < ranks.world:
        return SentenceBatches(stream, starts, VALID_BATCH, 0, ranks.rank, ranks.world, shuffled=False)
    return RowBatches(stream, starts, corpus.begin, corpus.end, rows, VALID_UNROLL, ranks.rank, ranks.world)


def samples_wanted(config: PretrainSettings, softmax: AnySoftmax) -> int:
    """How many words a step samples; 0 means that the whole vocabulary is scored."""
    kind, samples = config.softmax.kind, config.softmax.samples
    if not isinstance(softmax, Softmax) or kind in ("full", "adaptive"):
        return 0
    wanted = samples if isinstance(samples, int) else max(1, round(samples * softmax.n_words))
    if wanted >= softmax.n_words or (kind == "auto" and softmax.n_words <= SMALL_VOCABULARY):
        return 0
    return wanted
