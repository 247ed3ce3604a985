"""Sentences in, arrays out: the public door to a loaded model.

    formats  ->  embedder  ->  language, words, tasks, search, server, api

B sentences, T tokens incl. <S> and </S>, D one direction, H = 2D, L layers.
What must not change: the same text gives the same vectors whatever the batch, the order or the
neighbours, to float tolerance, unless state is asked for.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, chain, count
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.config import ModelConfig
from polyseme.errors import UsageError
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.model.fast.packing import BatchOutput, BiState
from polyseme.model.output import Direction, Layer, OutputSpec, Pool, resolve_output
from polyseme.text.length_batches import batch_by_length
from polyseme.text.segment import Token, sentences, tokenize, words
from polyseme.text.static_vectors import StaticVectors, read_vectors
from polyseme.text.validate import checked_list, checked_text, checked_tokens
from polyseme.token_cache import BYTES as CACHE_BYTES
from polyseme.token_cache import TokenCache

Array = NDArray[np.float32]
Sentences = str | Sequence[str] | Sequence[Sequence[str]]
BATCH_TOKENS = 4096  # tokens of a batch, padding included
CHUNK = 2  # batches of sentences that are sorted by length together: few, so that progress shows

logger = logging.getLogger(__name__)


@dataclass
class Counts:
    """What a model has been given, in one call or since it was loaded."""

    sentences: int = 0
    tokens: int = 0
    truncated: int = 0  # tokens longer than the model's character limit
    missing: int = 0  # tokens without a static vector, in `features`


class TokenBatch(NamedTuple):
    """Sentences that run together: their numbers and their tokens."""

    numbers: list[int]
    sentences: list[list[str]]


class Elmo:
    """A loaded model. `polyseme.load(path)` makes one."""

    def __init__(
        self, model: Pretrained, *, batch_tokens: int = BATCH_TOKENS, cache_bytes: int = CACHE_BYTES
    ) -> None:
        if batch_tokens < 1:
            raise UsageError(f"batch_tokens is {batch_tokens}, expected 1 or more.")
        self.model = model
        self.batch_tokens = batch_tokens
        self.counts = Counts()
        self.cache = TokenCache(model, cache_bytes)
        self._state: BiState | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: all but the cache. See `Pretrained` for how the model pickles."""
        return {
            "model": self.model,
            "batch_tokens": self.batch_tokens,
            "cache_bytes": self.cache.max_bytes,
            "state": self._state,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]  # a new cache, new counts
            state["model"], batch_tokens=state["batch_tokens"], cache_bytes=state["cache_bytes"]
        )
        self._state = state["state"]

    @property
    def config(self) -> ModelConfig:
        """The model's settings."""
        return self.model.config

    def __repr__(self) -> str:
        return f"Elmo({self.config.layers} layers, {self.config.size} values, {self.config.segment!r})"

    def tokenize(self, text: str, segment: str | None = None) -> list[Token]:
        """`text` as one sentence: its tokens with their places, text[start:end] == token.text."""
        return tokenize(checked_text(text), self.config.segment if segment is None else segment)

    def token_texts(self, text: str, segment: str | None = None) -> list[str]:
        """`text` as one sentence: its tokens without their places, which is quicker."""
        return words(checked_text(text), self.config.segment if segment is None else segment)

    def split_sentences(self, text: str, segment: str | None = None) -> list[list[Token]]:
        """A longer `text` cut into sentences of tokens with their places."""
        return sentences(checked_text(text), self.config.segment if segment is None else segment)

    def save(
        self, path: str | Path, *, to: str = "native", precision: str | None = None, force: bool = False
    ) -> None:
        """Write the model: a Polyseme folder, or hdf5 for bilm-tf, AllenNLP and simple_elmo.

        precision: "fp32", "bf16" or "int8" for the large weights; None keeps the precision the model was
            loaded with, so that the folder gives the same vectors. hdf5 always holds fp32.
        """
        save_pretrained(self.model, Path(path), to=to, precision=precision, force=force)

    @overload
    def embed(  # type: ignore[overload-overlap]  # a string is a sequence of strings too
        self,
        sentences: str,
        *,
        layer: Layer = ...,
        pool: Pool | None = ...,
        direction: Direction = ...,
        stateful: bool = ...,
        segment: str | None = ...,
    ) -> Array: ...

    @overload
    def embed(
        self,
        sentences: Sequence[str] | Sequence[Sequence[str]],
        *,
        layer: Layer = ...,
        pool: Pool,
        direction: Direction = ...,
        stateful: bool = ...,
        segment: str | None = ...,
    ) -> Array: ...

    @overload
    def embed(
        self,
        sentences: Sequence[str] | Sequence[Sequence[str]],
        *,
        layer: Layer = ...,
        pool: None = ...,
        direction: Direction = ...,
        stateful: bool = ...,
        segment: str | None = ...,
    ) -> list[Array]: ...

    def embed(
        self,
        sentences: Sentences,
        *,
        layer: Layer = "mean",
        pool: Pool | None = None,
        direction: Direction = "both",
        stateful: bool = False,
        segment: str | None = None,
    ) -> Array | list[Array]:
        """Contextual vectors of `sentences`.

        sentences: one string (one sentence, one result), a list of strings, or a list of token lists.
        layer: "mean", "top", "all", a number from 0 (the token layer), weights, or (weights, gamma).
        pool: None for every token, or "mean", "max", "first", "last", "sum" over the real tokens.
        direction: "both", or the "forward" or "backward" half.
        stateful: as the published programs: the call is one batch in the given order, and each row
            goes on from the state that the row left behind in the call before, until `reset()`.
        segment: how strings are cut into tokens; None means as the model was trained.

        A string gives one float32 array: (tokens, H), (L, tokens, H) for "all", without the tokens'
        axis for `pool`. A list gives a list of such arrays, or one array (N, H) with `pool`.
        """
        spec = resolve_output(layer, pool, direction, self.config.layers)
        tokens = self.token_lists([sentences] if isinstance(sentences, str) else sentences, segment)
        with self.track_counts() as counts:
            results = self.embed_tokens(tokens, spec, counts, stateful=stateful)
        if isinstance(sentences, str):
            return results[0]
        if pool is None:
            return results
        if not results:
            return np.empty((0, *spec.empty(self.config.layers, self.config.size).shape), np.float32)
        return np.stack(results)

    def embed_tokens(
        self,
        tokens: list[list[str]],
        spec: OutputSpec,
        counts: Counts,
        *,
        stateful: bool = False,
        batch_tokens: int | None = None,
    ) -> list[Array]:
        """The chosen vectors of token lists, as a part of the call whose `counts` these are."""
        results: list[Array] = [np.empty(0, np.float32)] * len(tokens)
        batches = (
            [TokenBatch(list(range(len(tokens))), tokens)] if stateful else self.batches(tokens, batch_tokens)
        )
        for batch in batches:
            for number, vectors in zip(batch.numbers, self._run(batch, spec, stateful), strict=True):
                results[number] = vectors
        self.add_counts(tokens, counts)
        return results

    @torch.inference_mode()
    def embed_into(self, out: Tensor, tokens: list[list[str]], spec: OutputSpec, counts: Counts) -> None:
        """The chosen vectors of all tokens into the rows of `out` (tokens, H), rounded to its type.

        As `vectors`, without an array of its own for each sentence.
        """
        ends = [0, *accumulate(map(len, tokens))]
        for batch in self.batches(tokens):
            found = self.run_batch(batch.sentences)
            first, last = torch.tensor([(ends[number], ends[number + 1]) for number in batch.numbers]).T
            rows = first[:, None] + torch.arange(-1, found.width - 1)  # <S> stands before the first
            rows[(rows < first[:, None]) | (rows >= last[:, None])] = -1
            spec.write_rows(out, rows.flatten(), found)
        self.add_counts(tokens, counts)

    def reset(self) -> None:
        """Forget the state that `stateful=True` carries from call to call."""
        self._state = None

    def outputs(self, sentences: Sentences, segment: str | None = None) -> dict[str, NDArray[np.generic]]:
        """The outputs of TF-Hub's ELMo module, padded with zeros to the longest sentence.

        word_emb (B, T, D); lstm_outputs1, lstm_outputs2, … (B, T, H); elmo (B, T, H), the mean of the
        layers; default (B, H), its mean over the real tokens; sequence_len (B,).
        """
        several = [sentences] if isinstance(sentences, str) else sentences
        layers = self.embed(several, layer="all", segment=segment)
        lengths = np.array([array.shape[1] for array in layers], np.int64)
        padded = np.zeros(
            (self.config.layers, len(layers), max(lengths, default=0), self.config.size), np.float32
        )
        for number, array in enumerate(layers):
            padded[:, number, : array.shape[1]] = array
        elmo = padded.mean(axis=0)
        outputs: dict[str, NDArray[np.generic]] = {"word_emb": padded[0, ..., : self.config.size // 2]}
        outputs |= {f"lstm_outputs{number}": padded[number] for number in range(1, self.config.layers)}
        outputs |= {"elmo": elmo, "default": elmo.sum(axis=1) / np.maximum(lengths, 1)[:, None]}
        outputs["default"] = outputs["default"].astype(np.float32)
        return outputs | {"sequence_len": lengths}

    def features(
        self,
        sentences: Sentences,
        method: Literal["top", "concat", "mix"] = "mix",
        static: StaticVectors | str | Path | None = None,
        segment: str | None = None,
    ) -> Array | list[Array]:
        """A static vector x of each token joined with its context: the three classic ways.

        "top": [x; top layer], "concat": [x; every recurrent layer], "mix": [x; mean of all layers].
        x is the model's own token layer (m values, an ELMo vector has 2m), or the vector of `static`,
        which may be the path of a word2vec, GloVe or fastText file; a missing word gets zeros.
        """
        if method not in ("top", "concat", "mix"):
            raise UsageError(f"method is {method!r}, expected top, concat or mix.")
        several = [sentences] if isinstance(sentences, str) else sentences
        tokens = self.token_lists(several, segment)
        if isinstance(static, str | Path):
            static = read_vectors(static, only={token for sentence in tokens for token in sentence})
        if not isinstance(static, StaticVectors | None):
            raise UsageError(
                f"static is of type {type(static).__name__}, expected the path of a vector file, or what "
                "polyseme.read_vectors gives."
            )
        joined: list[Array] = []
        for sentence, layers in zip(tokens, self.embed(tokens, layer="all"), strict=True):
            if static is None:
                x = layers[0, :, : self.config.size // 2]
            else:
                x, missing = static.lookup(sentence)
                self.counts.missing += missing
            context = {"top": layers[-1:], "concat": layers[1:], "mix": layers.mean(axis=0, keepdims=True)}
            joined.append(np.concatenate([x, *context[method]], axis=1))
        return joined[0] if isinstance(sentences, str) else joined

    def token_lists(
        self, sentences: Sequence[str] | Sequence[Sequence[str]], segment: str | None
    ) -> list[list[str]]:
        """Token lists of all `sentences`; strings are segmented, token lists checked."""
        self.token_texts("", segment)  # refuses an unknown segmentation, also where there is no string to cut
        return [
            self.token_texts(sentence, segment)
            if isinstance(sentence, str)
            else checked_tokens(sentence, number)
            for number, sentence in enumerate(checked_list(sentences))
        ]

    def batches(self, sentences: list[list[str]], batch_tokens: int | None = None) -> Iterator[TokenBatch]:
        """Sentences of like length together, longest first, each batch within the token budget."""
        lengths = [len(sentence) + 2 for sentence in sentences]  # with <S> and </S>
        for numbers in batch_by_length(lengths, max_tokens=batch_tokens or self.batch_tokens):
            yield TokenBatch(numbers, [sentences[number] for number in numbers])

    @torch.inference_mode()
    def _run(self, batch: TokenBatch, spec: OutputSpec, stateful: bool) -> list[Array]:
        """The chosen vectors of each sentence of a batch."""
        found = self.run_batch(batch.sentences, self._state if stateful else None)
        if stateful:
            self._state = found.final_state()
        return self._slices(spec.select(found), batch.sentences, spec)

    @torch.inference_mode()
    def compute_layers(
        self, sentences: Sequence[Sequence[str]], state: BiState | None = None, *, frame_empty: bool = False
    ) -> tuple[Tensor, BiState]:
        """Token lists as one batch to all layers (L, B, T, H), <S> and </S> included, and the state after."""
        found = self.run_batch(sentences, state, frame_empty=frame_empty)
        return found.layers(), found.final_state()

    @torch.inference_mode()
    def run_batch(
        self, sentences: Sequence[Sequence[str]], state: BiState | None = None, *, frame_empty: bool = False
    ) -> BatchOutput:
        """Token lists as one batch through the model; layers and state are put together when asked for.

        A sentence without tokens is not read at all, or as <S> </S> with `frame_empty`.
        """
        index: defaultdict[str, int] = defaultdict(count(2).__next__)  # 0 is <S>, 1 is </S>
        rows = [list(map(index.__getitem__, tokens)) for tokens in sentences]
        framed = [[0, *row, 1] if row or frame_empty else [] for row in rows]
        lengths = torch.tensor([len(row) for row in framed], dtype=torch.long)
        width = max(map(len, framed), default=0)
        places = torch.zeros(len(rows), width, dtype=torch.long)
        places[torch.arange(width) < lengths[:, None]] = torch.tensor([*chain(*framed)], dtype=torch.long)
        network = self.model.network
        network.pack()  # once: the weights of a loaded model are final
        return network.run_stacks(self.cache.vectors(list(index)), places, lengths, state)

    def _slices(self, chosen: Tensor, sentences: list[list[str]], spec: OutputSpec) -> list[Array]:
        """Cut the real tokens of each sentence out of a batch, as arrays of their own."""
        empty = spec.empty(self.config.layers, self.config.size)
        results = []
        for sentence, vectors in zip(sentences, chosen, strict=True):
            tokens = spec.pool_tokens(vectors[..., 1 : len(sentence) + 1, :]) if sentence else empty
            results.append(tokens.clone().numpy())
        return results

    def add_counts(self, sentences: list[list[str]], call: Counts) -> None:
        """Add sentences that were read to the counts of the model and of the `call`."""
        tokens = [token for sentence in sentences for token in sentence]
        cut = self.model.alphabet.count_cut(tokens) if self.model.alphabet else 0
        for counts in (self.counts, call):
            counts.sentences += len(sentences)
            counts.tokens += len(tokens)
            counts.truncated += cut

    @contextmanager
    def track_counts(self) -> Iterator[Counts]:
        """The counts of one call; at its end it is said, once, if tokens were longer than the model reads."""
        counts = Counts()
        try:
            yield counts
        finally:
            if counts.truncated and self.config.chars:
                logger.warning(
                    "%d of %d tokens are longer than %s and were cut: the model reads no more of a word.",
                    counts.truncated,
                    counts.tokens,
                    self.config.chars.longest,
                )


def load(
    path: str | Path,
    options: str | Path | None = None,
    *,
    precision: str | None = None,
    batch_tokens: int = BATCH_TOKENS,
    cache_bytes: int = CACHE_BYTES,
) -> Elmo:
    """Load any ELMo: a folder of ours, ELMoForManyLangs' or NLPL's, a zip of one, or an .hdf5 file.

    options: the options.json of an .hdf5 file, where it does not lie beside it under its usual name.
    precision: "fp32" is exact, "bf16" and "int8" are quicker with the native part, "auto" is the narrowest of
        them that keeps a cosine of 0.999; None is that of the folder, fp32 for all but those saved otherwise.
    cache_bytes: memory for the vectors of words before any context, each computed once.
    """
    model = open_pretrained(path, options, precision=precision)
    return Elmo(model, batch_tokens=batch_tokens, cache_bytes=cache_bytes)
