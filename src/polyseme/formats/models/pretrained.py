"""A whole model in memory: what every reader returns and every writer takes.

    formats.models.native, formats.models.hdf5, formats.models.manylangs
        ->  formats.models.pretrained  ->  elmo

Readers name tensors as we do; `assemble` checks them against the config and builds the network around them
without initialising or copying anything.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.config import ModelSettings
from polyseme.errors import FormatError
from polyseme.io.progress import ByteProgress, OnProgress, ignore_progress
from polyseme.model.bilm import BiLM
from polyseme.model.fast.weight_versions import WeightSnapshot
from polyseme.model.recurrent import RecurrentCell, RecurrentStack
from polyseme.model.sentence_pooling import SentencePooling
from polyseme.model.softmax import AdaptiveSoftmax, AnySoftmax, Softmax
from polyseme.model.tokens import CharCnn, TokenEncoder, make_word_table
from polyseme.text.chars import Alphabet
from polyseme.text.segment import WordList
from polyseme.text.vocab import Vocab

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LARGEST = 1e15  # weight of a model that works: sums of products of larger ones are infinite


class OpenedFile(NamedTuple):
    """The file a model was opened from, to open it again in another process."""

    reopen: Callable[[str, str | None, str, str], Pretrained]  # path, options, precision, fingerprint
    path: str
    options: str | None
    precision: str
    weights: WeightSnapshot  # the weights as they were read


@dataclass(frozen=True)
class Pretrained:
    """A biLM with everything needed to run it.

    It pickles as the path it was opened from if nothing has changed since, and by value otherwise.
    """

    config: ModelSettings
    network: BiLM
    alphabet: Alphabet | None  # characters to ids; None for models of word ids alone
    vocab: Vocab | None  # the words of the word table and of the softmax
    softmax: AnySoftmax | None = None
    origin: Mapping[str, str] = field(default_factory=dict)  # for the model card
    pooling: SentencePooling | None = field(default=None, repr=False)  # of `pool="sentence"`
    opened: OpenedFile | None = field(default=None, repr=False)
    word_list: WordList | None = field(default=None, repr=False)  # words its segmentation knows
    _fingerprints: dict[str, WeightSnapshot] = field(
        default_factory=dict, init=False, repr=False
    )  # at most one

    def __reduce__(self) -> tuple[Callable[..., Pretrained], tuple[Any, ...]]:
        """Pickle as a path, or by value if the weights or the precision have changed since they were read."""
        opened = self.opened
        if opened and self._is_as_opened():
            return opened.reopen, (opened.path, opened.options, opened.precision, self.fingerprint())
        return _rebuild, (self.config, self.network, *self._get_texts(), self.softmax, self.pooling)

    def __copy__(self) -> Self:
        """Copy the frame; the weights are shared."""
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Pretrained:
        """Copy the weights."""
        network, softmax = deepcopy((self.network, self.softmax), memo)
        return _rebuild(self.config, network, *self._get_texts(), softmax, self.pooling)

    def _get_texts(self) -> tuple[Alphabet | None, Vocab | None, WordList | None, Mapping[str, str]]:
        return self.alphabet, self.vocab, self.word_list, self.origin

    def to(self, device: torch.device) -> Pretrained:
        """Move the weights to `device`, in place; the result still pickles as its path if this one did."""
        opened = self.opened if self._is_as_opened() else None
        self.network.to(device)
        self.network.memory_mapped = False
        if self.softmax is not None:
            self.softmax.to(device)
        return replace(self, opened=opened and opened._replace(weights=WeightSnapshot(self.weights())))

    @property
    def path(self) -> str | None:
        """The path or bundled name it was opened from; None if there is none, or the weights have changed."""
        return self.opened.path if self.opened and self._is_as_opened() else None

    def _is_as_opened(self) -> bool:
        """Whether the weights and the precision are those of the file that the model was opened from."""
        opened = self.opened
        return (
            opened is not None
            and opened.precision == self.network.precision
            and opened.weights.matches(self.weights())
        )

    def weights(self) -> list[Tensor]:
        """All parameters, the softmax's included."""
        return [*self.network.parameters(), *(self.softmax.parameters() if self.softmax else ())]

    def fingerprint(self) -> str:
        """Hash everything that decides the vectors: settings, weights, vocabulary. Computed once."""
        weights = list(self.network.parameters())
        for known, snapshot in self._fingerprints.items():
            if snapshot.matches(weights):
                return known
        fingerprint = self._hash_weights()
        self._fingerprints.clear()
        self._fingerprints[fingerprint] = WeightSnapshot(weights)
        return fingerprint

    def _hash_weights(self) -> str:
        """SHA-256 of settings, weights without the softmax, and the words of a word table."""
        hashed = hashlib.sha256(self.config.model_dump_json().encode())
        for name, weight in sorted(self.tensors().items()):
            if not name.startswith("softmax."):
                hashed.update(f"{name} {tuple(weight.shape)}".encode())
                hashed.update(weight.detach().float().cpu().contiguous().numpy().data)
        if self.config.words is not None and self.vocab is not None:
            hashed.update("\n".join(self.vocab.words).encode())
        if self.word_list is not None:
            hashed.update("\n".join(self.word_list.lines()).encode())
        return hashed.hexdigest()

    def token_ids(self, tokens: Sequence[str]) -> tuple[Tensor | None, Tensor | None]:
        """Character ids (N + 2, C) and word ids (N + 2,) of <S>, </S> and `tokens`; None if not read.

        A model that reads both looks up a word as it was truncated for its characters.
        """
        chars = words = None
        if self.config.chars is not None and self.alphabet is not None:
            rows = np.concatenate([self.alphabet.boundaries(), self.alphabet.encode(tokens)])
            chars = torch.from_numpy(rows).to(self.network.device)
            if self.config.words is not None:
                tokens = [token[: self.config.chars.max_chars - 2] for token in tokens]
        if self.config.words is not None and self.vocab is not None:
            ids = self.vocab.ids([self.vocab.begin, self.vocab.end, *tokens])
            words = torch.from_numpy(ids).to(self.network.device)
        return chars, words

    def tensors(self) -> dict[str, Tensor]:
        """All weights by our own names, the softmax's included, as fp32."""
        weights = dict(self.network.state_dict())
        for path, module in self.network.quantisable_modules().items():
            weights |= {f"{path}.{name}": weight.dequantise() for name, weight in module.quantised.items()}
        if self.softmax is not None:
            weights |= {f"softmax.{name}": value for name, value in self.softmax.state_dict().items()}
        return weights


def _rebuild(
    config: ModelSettings,
    network: BiLM,
    alphabet: Alphabet | None,
    vocab: Vocab | None,
    word_list: WordList | None,
    origin: Mapping[str, str],
    softmax: AnySoftmax | None,
    pooling: SentencePooling | None,
) -> Pretrained:
    """A model with copied weights, which are not memory-mapped."""
    network.memory_mapped = False
    return Pretrained(config, network, alphabet, vocab, softmax, origin, pooling, word_list=word_list)


def build_network(config: ModelSettings, *, n_chars: int, n_words: int, padding: int) -> BiLM:
    """A biLM of the shape of `config`; `model.init.initialise` gives a new one its weights.

    n_chars includes the row of sentence padding, n_words does not; `padding` fills up the ids of a word.
    """
    chars = words = None
    if config.chars is not None:
        chars = CharCnn(
            n_chars,
            config.chars.dim,
            config.chars.filters,
            activation=config.chars.activation,
            highways=config.chars.highways,
            padding=padding,
        )
    if config.words is not None:
        words = make_word_table(n_words, config.words.dim, trained=config.words.trained)
    outputs = config.recurrent.outputs
    tokens = TokenEncoder(chars=chars, words=words, outputs=outputs, project=config.projects_tokens)
    return BiLM(tokens, _stack(config), _stack(config))


def _stack(config: ModelSettings) -> RecurrentStack:
    recurrent = config.recurrent
    cells = [
        RecurrentCell(
            recurrent.cell,
            recurrent.outputs,
            recurrent.cells,
            recurrent.outputs,
            project=recurrent.projects,
            cell_clip=recurrent.cell_clip,
            output_clip=recurrent.output_clip,
            forget_bias=recurrent.forget_bias,
            candidate_bias=recurrent.candidate_bias,
        )
        for _ in range(recurrent.layers)
    ]
    return RecurrentStack(cells, residual=recurrent.residual)


def assemble(
    config: ModelSettings,
    tensors: Mapping[str, Tensor],
    *,
    alphabet: Alphabet | None,
    vocab: Vocab | None,
    origin: Mapping[str, str],
    source: str,
    word_list: WordList | None = None,
) -> Pretrained:
    """Build a Pretrained around `tensors`.

    Raises:
        FormatError: Names missing, unexpected and misshapen tensors.

    """
    chars = tensors.get("tokens.chars.embedding.weight")
    words = tensors.get("tokens.words.weight")
    network, softmax = _make_empty_modules(config, tensors, alphabet.padding if alphabet else 0, source)
    weights = {name: value for name, value in tensors.items() if not name.startswith("softmax.")}
    _fill(network, weights, source)
    if softmax is not None:
        _fill(softmax, {name[8:]: tensors[name] for name in tensors if name.startswith("softmax.")}, source)
    if chars is not None and alphabet is not None and len(chars) < alphabet.size:
        raise FormatError(
            f"{source}: {len(chars)} rows of characters, but the alphabet needs {alphabet.size}."
        )
    _check_words(words, softmax, vocab, source)
    network.eval()
    return Pretrained(config, network, alphabet, vocab, softmax, dict(origin), word_list=word_list)


def check_weights(
    tensors: Mapping[str, Tensor], source: str, progress: OnProgress = ignore_progress
) -> dict[str, Tensor]:
    """`tensors` as float32; an error for other types, and for values that are not finite or overflow."""
    checked = ByteProgress(progress, "reading", sum(values.nbytes for values in tensors.values()))
    for name, values in tensors.items():
        if values.dtype not in FLOATS or values.is_meta:
            raise FormatError(f"{source}: {name} is {values.dtype}, expected floating-point numbers.")
        low, high = (float(bound) for bound in values.aminmax()) if values.numel() else (0.0, 0.0)  # or NaN
        if not (math.isfinite(low) and math.isfinite(high)):
            raise FormatError(f"{source}: {name} contains NaN or infinite weights. The model is broken.")
        if max(-low, high) > LARGEST:
            largest = max(-low, high)
            raise FormatError(f"{source}: {name} has weights up to {largest:.1g}. The model is broken.")
        checked.add(values.nbytes)
    return {name: values.detach().float() for name, values in tensors.items()}


def _make_empty_modules(
    config: ModelSettings, tensors: Mapping[str, Tensor], padding: int, source: str
) -> tuple[BiLM, AnySoftmax | None]:
    """The network and the softmax for `tensors`, on the meta device, without memory."""
    rows = {name: values.shape[0] if values.ndim else 0 for name, values in tensors.items()}
    try:
        with torch.device("meta"):
            network = build_network(
                config,
                n_chars=max(rows.get("tokens.chars.embedding.weight", 1), 1),
                n_words=max(rows.get("tokens.words.weight", 1), 1) - 1,
                padding=padding,
            )
            return network, _make_empty_softmax(config, rows, network)
    except (
        RuntimeError,
        OverflowError,
        TypeError,
        ValueError,
        IndexError,
    ):  # how torch says that a number is too large
        raise FormatError(f"{source}: the config has impossible sizes.") from None


def _make_empty_softmax(config: ModelSettings, rows: Mapping[str, int], network: BiLM) -> AnySoftmax | None:
    """The softmax that the names of the tensors imply: its own rows, those of the word table, or clusters."""
    size = config.recurrent.outputs
    if "softmax.clusters.head.weight" in rows:
        tails = sorted(
            name for name in rows if name.startswith("softmax.clusters.tail.") and name.endswith(".1.weight")
        )
        cutoffs = list(
            accumulate([rows["softmax.clusters.head.weight"] - len(tails), *(rows[name] for name in tails)])
        )
        return AdaptiveSoftmax(cutoffs[-1], size, cutoffs[:-1])
    if "softmax.weight" in rows:
        return Softmax(rows["softmax.weight"], size)
    if "softmax.bias" in rows:
        table = network.tokens.words
        fits = table is not None and table.embedding_dim == size  # else rows of its own are missing
        return Softmax(rows["softmax.bias"], size, tied=table if fits else None)
    return None


def _fill(module: nn.Module, weights: Mapping[str, Tensor], source: str) -> None:
    """Assign `weights` to a module made on the meta device."""
    expected = module.state_dict()
    problems = [f"{name} is missing" for name in expected if name not in weights]
    problems += [f"{name} is not part of this model" for name in weights if name not in expected]
    problems += [
        f"{name} is {tuple(weights[name].shape)}, the config requires {tuple(expected[name].shape)}"
        for name in expected
        if name in weights and weights[name].shape != expected[name].shape
    ]
    if problems:
        more = f" (and {len(problems) - 5} more)" if len(problems) > 5 else ""
        raise FormatError(
            f"{source}: {'; '.join(problems[:5])}{more}. Are config and weights of the same model?"
        )
    trained = {name: parameter.requires_grad for name, parameter in module.named_parameters()}
    module.load_state_dict(weights, assign=True)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(trained[name])


def _check_words(words: Tensor | None, softmax: AnySoftmax | None, vocab: Vocab | None, source: str) -> None:
    """Check that the vocabulary has a word for each row of the word table and of the softmax."""
    if words is not None and vocab is None:
        raise FormatError(
            f"{source}: the model has a word table but no vocabulary. Copy vocab.txt into its folder."
        )
    counts = {"word table": len(words) - 1 if words is not None else None}
    counts["softmax"] = softmax.n_words if softmax is not None else None
    for name, count in counts.items():
        if vocab is not None and count is not None and count != len(vocab):
            raise FormatError(
                f"{source}: the {name} has {count} rows, but the vocabulary {len(vocab)} words. "
                "Is it the vocabulary of this model?"
            )
