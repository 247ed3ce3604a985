"""Sentences in, arrays out: the public interface of a loaded model.

    formats  ->  elmo  ->  torch_layer, language, word_vectors, tasks, search, server, api

B sentences, T tokens incl. <S> and </S>, D one direction, H = 2D, L layers.
What must not change: the same text gives the same vectors whatever the batch, the order or the
other sentences, to float tolerance, unless the call is stateful.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.choices import Direction, Pool
from polyseme.config import ModelSettings
from polyseme.errors import UsageError
from polyseme.formats.models.card import CardMetadata
from polyseme.formats.models.hub import push
from polyseme.formats.models.open import locate_model, open_pretrained
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import check_precision, choose_precision, save_pretrained
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.io.html import render_table
from polyseme.io.progress import (
    OnProgress,
    ProgressOption,
    TokenProgress,
    ignore_progress,
    open_progress,
)
from polyseme.model.device import resolve_device
from polyseme.model.fast.kernels.unpacking import can_unpack, unpack_sentences
from polyseme.model.fast.packing import BatchOutput, BiState, move_state
from polyseme.model.named_outputs import JOIN_METHODS, JoinMethod, join_context, pad_for_tf_hub
from polyseme.model.output import SENTENCE, Layer, OutputSpec, resolve_output
from polyseme.model.sentence_pooling import SentencePooling, fit_directions, weigh_words
from polyseme.text.length_batches import batch_by_length
from polyseme.text.reading import Line
from polyseme.text.segment import Token, WordList, split_sentences, token_texts, tokenize
from polyseme.text.segment.stream import segment_lines, segment_unit
from polyseme.text.static_vectors import StaticVectors, read_vectors
from polyseme.text.validate import Sentences, check_text, list_sentences
from polyseme.text.vocab import Vocab
from polyseme.token_cache import BYTES as CACHE_BYTES
from polyseme.token_cache import TokenCache, number_tokens

Array = NDArray[np.float32]
BATCH_TOKENS = 4096  # tokens of a batch, padding included
CHUNK = 2  # batches of sentences that are sorted by length together: few, so that progress shows

logger = logging.getLogger(__name__)


@dataclass
class Counts:
    """What a model has read, in one call or since it was loaded."""

    sentences: int = 0
    tokens: int = 0
    truncated: int = 0  # tokens longer than the model's character limit
    missing: int = 0  # tokens without a static vector, in `features`


class TokenBatch(NamedTuple):
    """Sentences that run together: their numbers and their tokens."""

    numbers: list[int]
    sentences: list[list[str]]


class EncodedBatch(NamedTuple):
    """Sentences that run together, as token vectors: what the stacks read."""

    vectors: Tensor  # (U, D) of the distinct tokens
    positions: Tensor  # (B, T) rows of `vectors`
    lengths: Tensor  # (B,) with <S> and </S>


class EmbeddingPlan(NamedTuple):
    """What `Elmo.embed` computes: the sentences as tokens, and which vectors of them."""

    sentences: list[list[str]]
    spec: OutputSpec

    @property
    def tokens(self) -> int:
        """How many tokens the sentences have."""
        return sum(map(len, self.sentences))


class Elmo:
    """A loaded model, made by `polyseme.load`.

    It can be pickled and copied, and used in forked processes. Several threads may call it at once, except
    with `stateful=True`.

    Attributes:
        model: The network with its vocabulary and settings.
        batch_tokens: Size of a batch in tokens, padding included.
        counts: What the model has read since it was loaded.
        cache: The token vectors that are computed once per word.

    Example:
        >>> elmo = polyseme.load("en")
        >>> river, money = elmo.embed(["He sat on the river bank .", "The bank failed ."])
        >>> river.shape
        (7, 384)

    """

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
        self._warned = False  # of truncated tokens, once

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: all but the cache. See `Pretrained` for how the model pickles."""
        return {
            "model": self.model,
            "batch_tokens": self.batch_tokens,
            "cache_bytes": self.cache.max_bytes,
            "state": self._state and move_state(self._state, torch.device("cpu")),
            "device": str(self.device),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]  # a new cache, new counts
            state["model"], batch_tokens=state["batch_tokens"], cache_bytes=state["cache_bytes"]
        )
        self.to(torch.device(state["device"]))
        self._state = state["state"] and move_state(state["state"], self.device)

    def __sklearn_clone__(self) -> Self:
        """Share the model when scikit-learn clones an estimator that holds it: nothing here is fitted."""
        return self

    @property
    def config(self) -> ModelSettings:
        """The model's settings."""
        return self.model.config

    @property
    def word_list(self) -> WordList | None:
        """Words that its segmentation knows in addition to jieba's dictionary (words.txt of the model)."""
        return self.model.word_list

    @property
    def path(self) -> str | None:
        """The path or bundled name it was loaded from; None if there is none, or the weights have changed."""
        return self.model.path

    @property
    def device(self) -> torch.device:
        """Where the weights are and the vectors are computed."""
        return self.model.network.device

    def to(self, device: str | torch.device) -> Self:
        """Move the weights to another device, in place.

        Vectors are computed there and returned as numpy arrays. On other devices than the CPU, bf16 and int8
        weights are computed as fp32.

        Args:
            device: "auto" (a CUDA GPU if there is one), "cpu", "cuda", "cuda:N", "mps", or a `torch.device`.

        Returns:
            This model.

        Raises:
            UsageError: If this machine has no such device.

        Example:
            >>> elmo = polyseme.load("en").to("cuda")

        """
        resolved = resolve_device(device)
        if resolved != self.device:
            self.model = self.model.to(resolved)
            self.cache = TokenCache(self.model, self.cache.max_bytes)
            self._state = self._state and move_state(self._state, resolved)
        return self

    def __repr__(self) -> str:
        device = "" if self.device.type == "cpu" else f", {str(self.device)!r}"
        return (
            f"Elmo({self.config.layers} layers, {self.config.size} values, {self.config.segment!r}{device})"
        )

    def _repr_html_(self) -> str:
        chars, vocab = self.config.chars, self.model.vocab
        rows = [
            ("layers", self.config.layers),
            ("values per vector", self.config.size),
            ("segmentation", self.config.segment),
            ("word list", f"{len(self.word_list.entries):,} words" if self.word_list else None),
            ("characters per token", chars.longest if chars else None),
            ("vocabulary", f"{len(vocab):,} words" if vocab else None),
            ("predicts words", "no" if self.model.softmax is None else "yes"),
            ("precision", self.model.network.precision),
            ("device", str(self.device)),
        ]
        return render_table(["Elmo", ""], [row for row in rows if row[1] is not None])

    def tokenize(self, text: str, segment: str | None = None) -> list[Token]:
        """Split one sentence into tokens with their offsets, `text[start:end] == token.text`.

        Args:
            text: The sentence.
            segment: How to split: "split", "en", "zh", "zh-char", "letters" or "auto"; as the model was
                trained if None.

        Returns:
            The tokens, in order.

        Raises:
            UsageError: If there is no such segmentation.

        Example:
            >>> [token.text for token in elmo.tokenize("It's late.", "en")]
            ['It', "'s", 'late', '.']

        """
        return tokenize(check_text(text), self.choose_segment(segment), self.word_list)

    def token_texts(self, text: str, segment: str | None = None) -> list[str]:
        """Split one sentence into tokens without offsets, which is faster than `tokenize`.

        Args:
            text: The sentence.
            segment: As in `tokenize`.

        Returns:
            The texts of the tokens, in order.

        """
        return token_texts(check_text(text), self.choose_segment(segment), self.word_list)

    def split_sentences(self, text: str, segment: str | None = None) -> list[list[Token]]:
        """Split a longer text into sentences of tokens with their offsets.

        Args:
            text: The text.
            segment: As in `tokenize`.

        Returns:
            The tokens of each sentence; no sentence is empty.

        """
        return split_sentences(check_text(text), self.choose_segment(segment), self.word_list)

    def segment_lines(self, lines: Iterable[Line], segment: str | None = None) -> Iterator[list[str]]:
        """Segment lines of files into sentences.

        Args:
            lines: The lines, from `text.reading.read_lines`.
            segment: As in `tokenize`.

        Returns:
            An iterator over sentences as lists of token texts.

        """
        return segment_lines(lines, self.choose_segment(segment), self.word_list)

    def segment_unit(self, text: str, segment: str | None = None) -> list[list[str]]:
        """Segment a line or paragraph into sentences.

        Args:
            text: The line or paragraph.
            segment: As in `tokenize`.

        Returns:
            The sentences as lists of token texts; with "split" always one, which may be empty.

        """
        return segment_unit(text, self.choose_segment(segment), self.word_list)

    def choose_segment(self, segment: str | None) -> str:
        """Return the segmentation to use.

        Args:
            segment: What a caller passed.

        Returns:
            `segment`, or the segmentation the model was trained with if that is None.

        """
        return self.config.segment if segment is None else segment

    def save(
        self, path: str | Path, *, to: str | None = None, precision: str | None = None, force: bool = False
    ) -> None:
        """Write the model to disk, completely or not at all.

        Args:
            path: The folder to write, or a file that ends in .hdf5 or .onnx.
            to: "native" for a Polyseme folder, "hdf5" for bilm-tf, AllenNLP and simple_elmo, "onnx" for
                onnxruntime; None decides by the ending of `path`.
            precision: "fp32", "bf16" or "int8" for the large weights; None keeps the precision the model was
                loaded with, so that the folder gives the same vectors. hdf5 and onnx always hold fp32.
            force: Overwrite an existing model.

        Raises:
            UsageError: If `path` exists and `force` is not set, or the format cannot hold the model.

        Example:
            >>> elmo.save("my-elmo")
            >>> elmo.save("my-elmo-int8", precision="int8")

        """
        save_pretrained(self.model, path, to=to, precision=precision, force=force)

    @staticmethod
    def from_pretrained(
        path: str | Path,
        *,
        revision: str | None = None,
        cache_dir: str | Path | None = None,
        local_files_only: bool = False,
        **options: Any,
    ) -> Elmo:
        """Load a model, with the names of arguments that Hugging Face libraries use; see `polyseme.load`.

        Args:
            path: As in `polyseme.load`: a folder, a bundled model, or "user/repository" of the Hub.
            revision: As in `polyseme.load`.
            cache_dir: `cache` of `polyseme.load`.
            local_files_only: `offline` of `polyseme.load`.
            options: Other arguments of `polyseme.load`.

        Returns:
            The loaded model.

        Example:
            >>> elmo = polyseme.Elmo.from_pretrained("en", precision="int8")

        """
        return load(path, revision=revision, cache=cache_dir, offline=local_files_only, **options)

    def save_pretrained(self, path: str | Path, *, force: bool = False) -> None:
        """Write a folder that `from_pretrained` and `polyseme.load` read; the same as `save`.

        Args:
            path: The folder to write.
            force: Overwrite an existing model.

        Raises:
            UsageError: If `path` exists and `force` is not set.

        """
        self.save(path, to="native", force=force)

    def push_to_hub(
        self,
        repository: str,
        *,
        revision: str | None = None,
        private: bool | None = None,
        message: str = "Upload model",
        precision: str | None = None,
        license: str | None = None,  # noqa: A002  # its name on the Hub
        language: str | Sequence[str] | None = None,
        tags: Sequence[str] = (),
        replace_card: bool = False,
    ) -> str:
        """Write the model to the Hugging Face Hub as one commit: the folder of `save`, with a model card.

        Word vectors beside the model are written, too. Files of an earlier model are removed if this one
        lacks them. Log in with `hf auth login` or HF_TOKEN.

        Args:
            repository: "user/repository"; it is created if it does not exist.
            revision: A branch, which is created if it does not exist; None is the main one.
            private: Whether a new repository is private; None is the setting of the account.
            message: Message of the commit.
            precision: As in `save`.
            license: For the card: an identifier such as "apache-2.0".
            language: For the card: codes such as "en"; None for those of the model's segmentation.
            tags: For the card, in addition to the usual ones.
            replace_card: Replace the card of the repository; otherwise one that exists stays as it is.

        Returns:
            The address of the commit.

        Raises:
            UsageError: If `repository` is no such name, nobody is logged in, or the Hub refuses.
            MissingExtraError: If huggingface_hub is not installed.

        Example:
            >>> elmo.push_to_hub("user/my-elmo", license="apache-2.0", tags=["novels"])

        """
        tables = False
        if precision is None:
            precision, tables = choose_precision(self.model)
        words = None if self.path is None else locate_model(self.path) / WORDS_FILE
        return push(
            self.model,
            repository,
            revision=revision,
            private=private,
            message=message,
            precision=check_precision(precision),
            tables=tables,
            card=CardMetadata(license=license, language=language, tags=tuple(tags)),
            replace_card=replace_card,
            words=words.read_bytes() if words is not None and words.is_file() else None,
        )

    @overload
    def embed(  # type: ignore[overload-overlap]  # a string is an iterable of strings too
        self,
        sentences: str,
        *,
        layer: Layer = ...,
        pool: Pool | None = ...,
        direction: Direction = ...,
        stateful: bool = ...,
        segment: str | None = ...,
        progress: ProgressOption = ...,
    ) -> Array: ...

    @overload
    def embed(
        self,
        sentences: Iterable[str] | Iterable[Iterable[str]],
        *,
        layer: Layer = ...,
        pool: Pool,
        direction: Direction = ...,
        stateful: bool = ...,
        segment: str | None = ...,
        progress: ProgressOption = ...,
    ) -> Array: ...

    @overload
    def embed(
        self,
        sentences: Iterable[str] | Iterable[Iterable[str]],
        *,
        layer: Layer = ...,
        pool: None = ...,
        direction: Direction = ...,
        stateful: bool = ...,
        segment: str | None = ...,
        progress: ProgressOption = ...,
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
        progress: ProgressOption = None,
    ) -> Array | list[Array]:
        """Compute contextual vectors of sentences.

        Args:
            sentences: One string (one sentence, one result), or any ordered iterable of strings or token
                lists: a list, a generator, a numpy array, a pandas or polars Series.
            layer: "mean", "top", a number from 0 (the token layer), weights, (weights, gamma), "concat" (all
                layers joined to one vector of L times H values) or "all" (an axis of layers).
            pool: None for every token, or "mean", "max", "first", "last" or "sum" over the tokens, "concat"
                for mean, maximum and minimum joined, which suit classifiers (three times as many values),
                or "sentence" for comparing sentences: rare words weigh more, what all sentences have in
                common weighs less (see `fit_sentences`).
            direction: "both", or the "forward" or "backward" half of each vector.
            stateful: Run the call as one batch in the given order, as the published programs do; each row
                starts from the state that the same row left in the previous call, until `reset()`.
            segment: How to split strings into tokens; as the model was trained if None.
            progress: None shows a bar on a terminal or in a notebook if there is more than one batch, True
                always, False never; a function receives every `ProgressEvent`.

        Returns:
            For a string one float32 array: (tokens, H), (L, tokens, H) with `layer="all"`, without the token
            axis with `pool`. Otherwise a list of such arrays, or one array (N, H) with `pool`.

        Raises:
            UsageError: If an argument is invalid or an element is no sentence; the message has its position.

        Example:
            >>> elmo.embed("The bank failed .").shape
            (4, 384)
            >>> elmo.embed(frame["text"], pool="mean").shape  # a pandas column of 1,000 rows
            (1000, 384)

        """
        plan = self.plan_embedding(sentences, layer=layer, pool=pool, direction=direction, segment=segment)
        shown = False if progress is None and plan.tokens <= self.batch_tokens else progress
        with open_progress(shown) as on_progress, self.track_counts() as counts:
            results = self.embed_tokens(
                plan.sentences, plan.spec, counts, stateful=stateful, on_progress=on_progress
            )
        if isinstance(sentences, str):
            return results[0]
        if pool is None:
            return results
        if not results:
            return np.empty((0, *plan.spec.empty(self.config.layers, self.config.size).shape), np.float32)
        return np.stack(results)

    def plan_embedding(
        self,
        sentences: Sentences,
        *,
        layer: Layer = "mean",
        pool: Pool | None = None,
        direction: Direction = "both",
        segment: str | None = None,
    ) -> EmbeddingPlan:
        """Check and segment the arguments of `embed` without computing anything.

        A server computes the plans of several requests together.

        Args:
            sentences: As in `embed`.
            layer: As in `embed`.
            pool: As in `embed`.
            direction: As in `embed`.
            segment: As in `embed`.

        Returns:
            The sentences as tokens, and which vectors to compute.

        Raises:
            UsageError: As in `embed`.

        """
        spec = resolve_output(layer, pool, direction, self.config.layers)
        return EmbeddingPlan(self.token_lists(sentences, segment), spec)

    def embed_tokens(
        self,
        tokens: list[list[str]],
        spec: OutputSpec,
        counts: Counts,
        *,
        stateful: bool = False,
        batch_tokens: int | None = None,
        on_progress: OnProgress = ignore_progress,
    ) -> list[Array]:
        """Compute the vectors of checked token lists and add what was read to `counts`.

        For callers that embed in several parts; see `track_counts`.

        Args:
            tokens: The token lists, from `plan_embedding` or `token_lists`.
            spec: Which vectors to compute.
            counts: The counts of the call.
            stateful: As in `embed`.
            batch_tokens: Size of a batch; None is that of this model.
            on_progress: Receives an event after each batch.

        Returns:
            The vectors of each sentence.

        """
        results: list[Array] = [np.empty(0, np.float32)] * len(tokens)
        batches = (
            [TokenBatch(list(range(len(tokens))), tokens)] if stateful else self.batches(tokens, batch_tokens)
        )
        if spec.pool == SENTENCE:
            self._require_pooling()  # refuses a model that has none, before anything is computed
        counter = TokenProgress(on_progress, "embedding", tokens)
        for batch in batches:
            for number, vectors in zip(batch.numbers, self._embed_batch(batch, spec, stateful), strict=True):
                results[number] = vectors
            counter.add(batch.sentences)
        self.add_counts(tokens, counts)
        return results

    @torch.inference_mode()
    def embed_into(self, out: Tensor, tokens: list[list[str]], spec: OutputSpec, counts: Counts) -> None:
        """Write the vectors of all tokens to the rows of a tensor, rounded to its dtype.

        As `embed_tokens`, without one array per sentence.

        Args:
            out: The tensor (tokens, H) to write to.
            tokens: The token lists.
            spec: Which vectors to compute: one layer or mix, of both directions.
            counts: The counts of the call.

        """
        ends = [0, *accumulate(map(len, tokens))]
        for batch in self.batches(tokens):
            output = self.run_batch(batch.sentences)
            first, last = torch.tensor(
                [(ends[number], ends[number + 1]) for number in batch.numbers], device="cpu"
            ).T
            rows = first[:, None] + torch.arange(
                -1, output.width - 1, device="cpu"
            )  # <S> stands before the first
            rows[(rows < first[:, None]) | (rows >= last[:, None])] = -1
            spec.write_rows(out, rows.flatten(), output)
        self.add_counts(tokens, counts)

    def reset(self) -> None:
        """Clear the state that `stateful=True` carries from call to call."""
        self._state = None

    def outputs(self, sentences: Sentences, segment: str | None = None) -> dict[str, NDArray[np.generic]]:
        """Compute the outputs of TF-Hub's ELMo module, padded with zeros to the longest sentence.

        Args:
            sentences: As in `embed`.
            segment: As in `embed`.

        Returns:
            `word_emb` (B, T, D); `lstm_outputs1`, `lstm_outputs2`, … (B, T, H); `elmo` (B, T, H), the mean of
            the layers; `default` (B, H), its mean over the tokens; `sequence_len` (B,).

        """
        layers = self.embed(self.token_lists(sentences, segment), layer="all")
        return pad_for_tf_hub(layers, self.config.layers, self.config.size)

    def features(
        self,
        sentences: Sentences,
        method: JoinMethod = "mix",
        static: StaticVectors | str | Path | None = None,
        segment: str | None = None,
    ) -> Array | list[Array]:
        """Join a static vector x of each token with its contextual vectors.

        Args:
            sentences: As in `embed`.
            method: "top" is [x; top layer], "concat" [x; every recurrent layer], "mix" [x; mean of layers].
            static: Where x comes from: None for the model's token layer (D values), `polyseme.read_vectors`,
                or the path of a word2vec, GloVe or fastText file. A missing word gets zeros.
            segment: As in `embed`.

        Returns:
            One array (tokens, values) for a string, a list of them otherwise.

        Raises:
            UsageError: If `method` or `static` is invalid.

        Example:
            >>> elmo.features("The bank failed .", "concat", "glove.txt").shape
            (4, 612)

        """
        if method not in JOIN_METHODS:
            raise UsageError(f"method is {method!r}, expected top, concat or mix.")
        tokens = self.token_lists(sentences, segment)
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
            joined.append(join_context(x, layers, method))
        return joined[0] if isinstance(sentences, str) else joined

    def token_lists(self, sentences: Sentences, segment: str | None) -> list[list[str]]:
        """Return sentences as token lists: strings are segmented, token lists checked.

        Args:
            sentences: As in `embed`; one string is one sentence.
            segment: As in `embed`.

        Returns:
            One list of tokens per sentence.

        Raises:
            UsageError: If an element is no sentence; the message has its position.

        """
        self.token_texts("", segment)  # refuses an unknown segmentation, even if there is no string
        return [
            self.token_texts(sentence, segment) if isinstance(sentence, str) else sentence
            for sentence in list_sentences([sentences] if isinstance(sentences, str) else sentences)
        ]

    def batches(self, sentences: list[list[str]], batch_tokens: int | None = None) -> Iterator[TokenBatch]:
        """Group sentences of similar length, longest first.

        Args:
            sentences: The token lists.
            batch_tokens: The size of a batch, padding included; None is that of this model.

        Returns:
            An iterator over batches, each with the numbers of its sentences.

        """
        lengths = [len(sentence) + 2 for sentence in sentences]  # with <S> and </S>
        for numbers in batch_by_length(lengths, max_tokens=batch_tokens or self.batch_tokens):
            yield TokenBatch(numbers, [sentences[number] for number in numbers])

    @torch.inference_mode()
    def _embed_batch(self, batch: TokenBatch, spec: OutputSpec, stateful: bool) -> list[Array]:
        """The selected vectors of each sentence of a batch, each in its own memory."""
        output = self.run_batch(batch.sentences, self._state if stateful else None)
        if stateful:
            self._state = output.final_state()
        return self.select_vectors(batch.sentences, output, spec)

    @torch.inference_mode()
    def select_vectors(
        self, sentences: Sequence[Sequence[str]], output: BatchOutput, spec: OutputSpec
    ) -> list[Array]:
        """Select the vectors of each sentence from the output of a batch, each in its own memory.

        Args:
            sentences: The token lists of the batch.
            output: What `run_batch` returned for them.
            spec: Which vectors to select.

        Returns:
            One array per sentence.

        """
        if spec.direction == "both" and not (spec.context or spec.joined) and can_unpack(output):
            arrays = unpack_sentences(output, [*map(len, sentences)], spec.weights)
            if spec.pool is None:
                return arrays
            return [spec.pool_tokens(torch.from_numpy(array)).clone().numpy() for array in arrays]
        empty = spec.empty(self.config.layers, self.config.size)
        results = []
        for sentence, vectors in zip(sentences, spec.select(output).cpu(), strict=True):
            tokens = vectors[..., 1 : len(sentence) + 1, :]
            if not sentence:
                result = empty
            elif spec.pool == SENTENCE:
                result = self._require_pooling().pool(tokens, self._look_up_words(sentence))
            else:
                result = spec.pool_tokens(tokens)
            results.append(result.clone().numpy())
        return results

    @torch.inference_mode()
    def compute_layers(
        self, sentences: Sequence[Sequence[str]], state: BiState | None = None, *, frame_empty: bool = False
    ) -> tuple[Tensor, BiState]:
        """Run token lists as one batch and return all layers (L, B, T, H), <S> and </S> included.

        Args:
            sentences: The token lists.
            state: Where both directions start, as returned by an earlier call; None is zero.
            frame_empty: Read a sentence without tokens as <S> </S>, instead of not at all.

        Returns:
            The layers, on the device of the model, and the state after the batch.

        """
        output = self.run_batch(sentences, state, frame_empty=frame_empty)
        return output.layers(), output.final_state()

    @torch.inference_mode()
    def run_batch(
        self, sentences: Sequence[Sequence[str]], state: BiState | None = None, *, frame_empty: bool = False
    ) -> BatchOutput:
        """Run token lists as one batch.

        Args:
            sentences: As in `compute_layers`.
            state: As in `compute_layers`.
            frame_empty: As in `compute_layers`.

        Returns:
            The output, still packed: layers and state are assembled when they are needed.

        """
        return self.run_encoded(self.encode_batch(sentences, frame_empty=frame_empty), state)

    @torch.inference_mode()
    def encode_batch(self, sentences: Sequence[Sequence[str]], *, frame_empty: bool = False) -> EncodedBatch:
        """Look up or compute the token vectors of a batch: the first half of `run_batch`.

        Args:
            sentences: As in `compute_layers`.
            frame_empty: As in `compute_layers`.

        Returns:
            The vectors of the distinct tokens, and where they occur.

        """
        batch = number_tokens(sentences, frame_empty=frame_empty)
        self.model.network.pack()  # once: the weights of a loaded model are final
        return EncodedBatch(self.cache.vectors(batch.tokens), batch.positions, batch.lengths)

    @torch.inference_mode()
    def run_encoded(self, batch: EncodedBatch, state: BiState | None = None) -> BatchOutput:
        """Run the stacks on a batch of token vectors: the second half of `run_batch`.

        Args:
            batch: What `encode_batch` returned.
            state: As in `compute_layers`.

        Returns:
            The output, still packed.

        """
        return self.model.network.run_stacks(*batch, state)

    def fit_sentences(self, sentences: Sentences, segment: str | None = None) -> Self:
        """Fit `pool="sentence"` to sentences of the kind that will be compared.

        Pretraining does this on its own text, and `en` and `zh` come fitted. `save` keeps it with the model.

        Args:
            sentences: As in `embed`; some thousands are enough.
            segment: As in `embed`.

        Returns:
            This model.

        Raises:
            UsageError: If the model has no vocabulary, or there are fewer than two sentences.

        Example:
            >>> elmo.fit_sentences(frame["text"]).embed("The bank failed .", pool="sentence").shape
            (384,)

        """
        tokens = [sentence for sentence in self.token_lists(sentences, segment) if sentence]
        if len(tokens) < 2:
            raise UsageError(f"{len(tokens)} sentences with tokens, expected 2 or more.")
        vocab = self._require_vocab()
        ids = np.concatenate([vocab.ids(sentence) for sentence in tokens])
        counts = np.bincount(ids, minlength=len(vocab) + 1)[1:]
        return self.fit_pooling(tokens, torch.from_numpy(counts))

    def fit_pooling(self, tokens: list[list[str]], counts: Tensor) -> Self:
        """Fit `pool="sentence"` to token lists.

        Args:
            tokens: The token lists, two or more.
            counts: (V,) how often each word of the vocabulary occurs.

        Returns:
            This model.

        Raises:
            UsageError: If the model has no vocabulary.

        """
        vocab = self._require_vocab()
        weights = weigh_words(counts, vocab.id(vocab.unknown) - 1)
        size = self.config.layers * self.config.size
        shift = torch.zeros(size, dtype=torch.float32, device="cpu")
        plain = SentencePooling(weights, shift, shift.new_zeros(size, self.config.size))
        spec = resolve_output("concat", None, "both", self.config.layers)
        averages = shift.new_empty(len(tokens), size)
        for batch in self.batches(tokens):
            for number, vectors in zip(batch.numbers, self._embed_batch(batch, spec, False), strict=True):
                averages[number] = plain.average(
                    torch.from_numpy(vectors), self._look_up_words(tokens[number])
                )
        pooling = SentencePooling(weights, *fit_directions(averages, self.config.size))
        self.model = replace(self.model, pooling=pooling, opened=None)
        self.cache = TokenCache(self.model, self.cache.max_bytes)
        return self

    def _require_vocab(self) -> Vocab:
        if self.model.vocab is None:
            raise UsageError("This model has no vocabulary, so pool='sentence' cannot weigh its words.")
        return self.model.vocab

    def _look_up_words(self, sentence: Sequence[str]) -> Tensor:
        return torch.from_numpy(self._require_vocab().ids(sentence))

    def _require_pooling(self) -> SentencePooling:
        """How sentences are pooled.

        Raises:
            UsageError: If that was never fitted.

        """
        if self.model.pooling is None:
            raise UsageError(
                "pool is 'sentence', but this model was never fitted for it. Fit it with "
                "`elmo.fit_sentences(sentences)`, or use pool='mean'."
            )
        return self.model.pooling

    def weigh_tokens(self, tokens: Sequence[str]) -> Array:
        """Weigh the tokens of a sentence: rare words weigh more, if the model knows which are rare.

        Args:
            tokens: The tokens of one sentence.

        Returns:
            The weights (T,); all 1 if the model was not fitted for `pool="sentence"`.

        """
        if self.model.pooling is None or not tokens:
            return np.ones(len(tokens), np.float32)
        weights: Array = self.model.pooling.weights[self._look_up_words(tokens) - 1].cpu().numpy()
        return weights

    def add_counts(self, sentences: list[list[str]], counts: Counts) -> None:
        """Add sentences that were read to the counts of the model and of a call.

        Args:
            sentences: The token lists.
            counts: The counts of the call.

        """
        tokens = [token for sentence in sentences for token in sentence]
        truncated = self.model.alphabet.count_truncated(tokens) if self.model.alphabet else 0
        for total in (self.counts, counts):
            total.sentences += len(sentences)
            total.tokens += len(tokens)
            total.truncated += truncated

    @contextmanager
    def track_counts(self) -> Iterator[Counts]:
        """Count what one call reads; when it ends, warn of truncated tokens, once per model.

        Returns:
            A context manager that gives the counts of the call.

        """
        counts = Counts()
        try:
            yield counts
        finally:
            if counts.truncated and self.config.chars and not self._warned:
                self._warned = True
                logger.warning(
                    "%d of %d tokens are longer than %s and were truncated. This warning is shown once; "
                    "`Elmo.counts` has the total.",
                    counts.truncated,
                    counts.tokens,
                    self.config.chars.longest,
                )


def load(
    path: str | Path,
    options: str | Path | None = None,
    *,
    precision: str | None = None,
    device: str | torch.device = "cpu",
    batch_tokens: int = BATCH_TOKENS,
    cache_bytes: int = CACHE_BYTES,
    revision: str | None = None,
    cache: str | Path | None = None,
    offline: bool = False,
) -> Elmo:
    """Load any ELMo model.

    Args:
        path: A Polyseme, ELMoForManyLangs or NLPL folder, a zip of one, an .hdf5 file, the name of a bundled
            model, or that of a repository of the Hugging Face Hub: "user/repository", if there is no such
            path, or "user/repository@revision".
        options: The options.json of an .hdf5 file, if it is in another folder or has an unusual name.
        precision: "fp32" is exact; "int8" is the fastest with the C library; "bf16" saves memory, and is
            faster on CPUs with AVX-512 BF16; "auto" is the fastest on this CPU that keeps a cosine of 0.999;
            None is the precision of the folder, fp32 unless saved otherwise.
        device: Where to compute: "cpu", "cuda", "cuda:N", "mps", or "auto" for a CUDA GPU if there is one.
            No GPU was available to test on: the tests run on a simulated device that refuses implicit copies.
        batch_tokens: Size of a batch in tokens, padding included.
        cache_bytes: Memory for token vectors, each computed once.
        revision: Branch, tag or commit of a repository; None is its main branch.
        cache: Folder for what is fetched from the Hub; None is the cache of huggingface_hub.
        offline: Take a repository from the cache only, without asking the Hub.

    Returns:
        The loaded model.

    Raises:
        FormatError: If `path` holds no model that can be read, or cannot be fetched.
        UsageError: If an argument is invalid or this machine has no such device.
        MissingExtraError: If `path` names a repository and huggingface_hub is not installed.

    Example:
        >>> elmo = polyseme.load("en")
        >>> elmo.embed("The bank failed .").shape
        (4, 384)

    """
    resolved = resolve_device(device)
    model = open_pretrained(
        path, options, precision=precision, revision=revision, cache=cache, offline=offline
    )
    return Elmo(model, batch_tokens=batch_tokens, cache_bytes=cache_bytes).to(resolved)


def check_loaded(model: object, name: str) -> None:
    """Refuse what is not a loaded model.

    Raises:
        UsageError: If it is anything else, such as a path.

    """
    if not isinstance(model, Elmo):
        raise UsageError(f"{name} is of type {type(model).__name__}, expected what polyseme.load returns.")


def ensure_loaded(
    model: Elmo | str | Path,
    batch_tokens: int = BATCH_TOKENS,
    options: str | Path | None = None,
    precision: str | None = None,
    device: str | torch.device = "cpu",
) -> Elmo:
    """Return the model itself, or load it from a path."""
    if isinstance(model, Elmo):
        return model
    return load(model, options, precision=precision, device=device, batch_tokens=batch_tokens)
