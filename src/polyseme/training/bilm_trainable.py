"""A biLM as a `Trainable` of the loop: its batches, loss, validation and carried state.

training.batches, training.objective  ->  training.bilm_trainable  ->  training.loop
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from math import ceil

import numpy as np
import torch
from torch import Tensor
from torch.profiler import record_function

from polyseme.errors import DataError
from polyseme.model.bilm import BiLM
from polyseme.model.fast.kernels import native
from polyseme.model.fast.paired import PairDropout, PairState, zero_pair_state
from polyseme.model.softmax import AnySoftmax, SampledWords, Softmax, draw_sample
from polyseme.text.corpus.prepared import Corpus, find_sentence_starts
from polyseme.training.batches import Batches, RowBatches, SentenceBatches, TrainingBatch
from polyseme.training.distributed import Ranks
from polyseme.training.loop import Metrics
from polyseme.training.objective import BatchPerplexity, BilmObjective, compute_perplexity
from polyseme.training.settings import PretrainSettings

SMALL_VOCABULARY = 2_000  # up to this size softmax.kind=auto uses the full softmax
VALID_BATCH = 64  # sentences per batch, or the maximum number of rows
VALID_ROW = 500  # minimum tokens per row, since every row starts from zero state
VALID_UNROLL = 64  # tokens of a row per batch


class BilmTrainable:
    """Implements `loop.Trainable` for pretraining."""

    def __init__(
        self, network: BiLM, softmax: AnySoftmax, corpus: Corpus, config: PretrainSettings, ranks: Ranks
    ) -> None:
        train = config.train
        dropout = PairDropout(train.dropout, train.variational, train.weight_drop)
        self.module = BilmObjective(network, softmax, corpus, dropout).to(ranks.device)
        self._shared = ranks.wrap(self.module)
        self._config, self._corpus, self._ranks = config, corpus, ranks
        self._batches = make_train_batches(corpus, config, ranks)
        self._valid = make_valid_batches(corpus, self._batches.carried, ranks)
        self._samples = count_samples(config, softmax)
        self._state: PairState | None = None

    @property
    def runs_in_c(self) -> bool:
        """Whether the C library does most of a step on all cores: it knows LSTMs, on the CPU."""
        lstms = self._config.model.recurrent.cell == "lstm"
        return self._ranks.device.type == "cpu" and lstms and native.is_available()

    def count_batches(self, epoch: int) -> int:
        """The number of batches of an epoch."""
        return self._batches.count_batches(epoch)

    def count_total_tokens(self) -> int:
        """The number of tokens to train on, by the settings."""
        train = self._config.train
        if train.tokens is not None:
            return train.tokens
        report = self._corpus.report
        passed = len(self._corpus.train) if train.order == "rows" else report.tokens + report.sentences
        return max(train.min_tokens, ceil(train.epochs * passed))

    def loss(self, epoch: int, number: int, step: int) -> tuple[Tensor, int]:
        """Compute the loss of a batch; all processes sample the same words."""
        with record_function("polyseme: batch"):
            batch = self._batches.make_batch(epoch, number)
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

    def no_sync(self) -> AbstractContextManager[None]:
        """Keep gradients in this process while more batches of the same step follow."""
        return self._ranks.no_sync(self._shared)

    def begin_epoch(self) -> None:
        """Reset the state: the end of the text does not continue at its start."""
        self._state = None

    def evaluate(self, *, final: bool) -> Metrics:
        """Compute the perplexity of the held-out text, or of a part of it; of a larger one if `final`."""
        carried = self._valid.carried
        perplexity = self._reduce(self.module.perplexity(self._iterate_valid_batches(final), carried=carried))
        return {
            "score": perplexity.mean,
            "forward": perplexity.forward,
            "backward": perplexity.backward,
            "mean": perplexity.mean,
            "unknown": self._corpus.report.valid_unknown,
            "targets": perplexity.targets,
        }

    def _iterate_valid_batches(self, final: bool) -> Iterator[TrainingBatch]:
        """Batches of the held-out text, or of a part: the start of all rows, or a spread of sentences."""
        train, count = self._config.train, self._valid.count_batches(0)
        share = (train.last_valid_tokens if final else train.valid_tokens) / max(1, len(self._corpus.valid))
        wanted = max(1, min(count, round(share * count)))
        spread = np.linspace(0, count - 1, wanted).round().astype(int)
        numbers = np.arange(wanted) if self._valid.carried else spread
        return (self._valid.make_batch(0, int(number)) for number in numbers)

    def _reduce(self, local: BatchPerplexity) -> BatchPerplexity:
        """Combine the perplexities of all processes."""
        if self._ranks.world == 1:
            return local
        count = self._ranks.sum(local.targets)
        logs = [np.log(value) * local.targets for value in (local.forward, local.backward)]
        forward, backward = (self._ranks.sum(float(value)) / count for value in logs)
        return compute_perplexity(forward, backward, int(count))

    def carried_state(self) -> dict[str, Tensor]:
        """The LSTM states by layer."""
        states = self._state or []
        return {
            f"{number}.{part}": tensor.cpu().contiguous()
            for number, pair in enumerate(states)
            for part, tensor in zip(("output", "memory"), pair, strict=True)
        }

    def restore_carried_state(self, parts: list[dict[str, Tensor]]) -> None:
        """Restore the LSTM states of a checkpoint, also for another number of processes."""
        ranks = self._ranks
        self._check_carried(parts)
        whole = {name: _interleave([part[name] for part in parts]) for name in parts[0]}
        rows_of_rank = {name: rows[:, ranks.rank :: ranks.world] for name, rows in whole.items()}
        if any(rows.shape[1] != self._batches.rows for rows in rows_of_rank.values()):
            rows_of_rank = {}  # resumed with `force=True` and another train.batch: rows start from zero state
        tensors = {name: rows.contiguous().to(ranks.device) for name, rows in rows_of_rank.items()}
        layers = len(tensors) // 2
        states = [(tensors[f"{number}.output"], tensors[f"{number}.memory"]) for number in range(layers)]
        self._state = states or None

    def _check_carried(self, parts: list[dict[str, Tensor]]) -> None:
        """Refuse states of another model, or values that are not finite."""
        recurrent = self._config.model.recurrent
        sizes = {"output": recurrent.outputs, "memory": recurrent.cells}
        names = {f"{layer}.{part}": size for layer in range(recurrent.layers) for part, size in sizes.items()}
        for rank, part in enumerate(parts):
            fits = not part or part.keys() == names.keys()
            for name, values in part.items():
                fits &= values.ndim == 3 and len(values) == 2 and values.shape[2] == names.get(name)
                fits &= values.dtype == torch.float32 and bool(torch.isfinite(values).all())
            if not fits or part.keys() != parts[0].keys():
                raise ValueError(f"the carried state of process {rank} does not fit the model")


def _interleave(parts: list[Tensor]) -> Tensor:
    """Join the rows of N processes (rows 0, N, 2N …; rows 1, N + 1 …), each (2, rows, …), in order."""
    whole = parts[0].new_empty(2, sum(part.shape[1] for part in parts), *parts[0].shape[2:])
    for rank, part in enumerate(parts):
        whole[:, rank :: len(parts)] = part
    return whole


def make_train_batches(corpus: Corpus, config: PretrainSettings, ranks: Ranks) -> Batches:
    """Make the training batches; rows that the text cannot fill are left out."""
    train, stream = config.train, corpus.train
    starts = np.append(find_sentence_starts(stream, corpus.begin), len(stream))
    if train.order == "sentences":
        return SentenceBatches(stream, starts, train.batch, train.seed, ranks.rank, ranks.world)
    rows = min(train.batch, (len(stream) - 1) // 2)
    if rows < ranks.world:
        raise DataError(f"The text is too short for {ranks.world} processes. Use fewer, or more text.")
    ends = (corpus.begin, corpus.end)
    return RowBatches(stream, starts, *ends, rows, train.unroll, ranks.rank, ranks.world)


def make_valid_batches(corpus: Corpus, carried: bool, ranks: Ranks) -> Batches:
    """Make batches of the held-out text in its order: rows with `carried` state, or single sentences.

    A text too short for one row per process is read by sentences, too.
    """
    stream = corpus.valid
    starts = np.append(find_sentence_starts(stream, corpus.begin), len(stream))
    rows = max(1, min(VALID_BATCH, len(stream) // VALID_ROW))
    if not carried or rows < ranks.world:
        return SentenceBatches(stream, starts, VALID_BATCH, 0, ranks.rank, ranks.world, shuffled=False)
    return RowBatches(stream, starts, corpus.begin, corpus.end, rows, VALID_UNROLL, ranks.rank, ranks.world)


def count_samples(config: PretrainSettings, softmax: AnySoftmax) -> int:
    """The number of words a step samples; 0: the softmax is over the whole vocabulary."""
    kind, samples = config.softmax.kind, config.softmax.samples
    if not isinstance(softmax, Softmax) or kind in ("full", "adaptive"):
        return 0
    wanted = samples if isinstance(samples, int) else max(1, round(samples * softmax.n_words))
    if wanted >= softmax.n_words or (kind == "auto" and softmax.n_words <= SMALL_VOCABULARY):
        return 0
    return wanted
