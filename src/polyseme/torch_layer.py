"""ELMo as a layer of a PyTorch model: tokens or character ids in, mixed vectors out.

    formats, elmo, model.mix  ->  torch_layer  ->  tasks, and the networks of users

`batch_to_ids` and `ElmoLayer` take the place of AllenNLP's `batch_to_ids` and `Elmo`.

The biLM is opaque to torch.compile and torch.export: its Python loop over time steps and its C library cannot
be traced. With character ids a frozen layer is one operator, `polyseme::frozen_layers`, whose shapes the
compiler knows; otherwise the layer runs outside of the compiled graph.

B sentences, T tokens, C characters, H = both directions, L layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from polyseme.elmo import Elmo, load
from polyseme.errors import UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.model.bilm import BiLM
from polyseme.model.fast.packing import BiState
from polyseme.model.mix import Mix
from polyseme.text.chars import Alphabet, ByteAlphabet
from polyseme.text.validate import list_token_lists

_keys = count()
_layers_by_key: WeakValueDictionary[int, ElmoLayer] = WeakValueDictionary()  # for `frozen_layers`


class Representations(NamedTuple):
    """The output of an ElmoLayer: a tensor (B, T, H) for each mix, and a mask (B, T) of the real tokens."""

    vectors: list[Tensor]
    mask: Tensor


class ElmoLayer(nn.Module):
    """A biLM, frozen or fine-tuned, under one or several mixes.

    The layer computes in the precision of its weights, under `torch.autocast` too. It can be copied, pickled
    and moved to another device. `torch.compile` keeps the biLM out of its graphs; give the layer character
    ids there, since token lists make it run the whole network uncompiled. `torch.export` works with
    character ids for a frozen layer, and the result runs in this process. `torch.func` works with a frozen
    layer. `torch.jit` is refused. A frozen layer shares the weights of its model until others are loaded.

    Args:
        model: A loaded model, or a path as for `polyseme.load`.
        mixes: Number of mixes, each with its own weights.
        dropout: Dropout on the mixed vectors, in training.
        layer_norm: Normalise each layer over the batch before mixing.
        by_direction: One weight per layer and direction.
        top_only: No mix: the top layer times a trained gamma.
        weights: Initial weights of the layers, before the softmax; zeros by default.
        gamma: Initial scale of the mix.
        trained_mix: Whether weights and gamma are trained.
        fine_tune: Whether the biLM is trained too, on a copy; otherwise its weights are shared and frozen.
        keep_boundaries: Keep the vectors of <S> and </S> in the output.
        stateful: Carry state from batch to batch, row by row, until `reset()` or a switch between training
            and evaluation.

    Example:
        >>> layer = polyseme.ElmoLayer("en")
        >>> vectors, mask = layer([["The", "bank", "failed", "."], ["Hello"]])
        >>> vectors[0].shape
        torch.Size([2, 4, 384])

    """

    def __init__(
        self,
        model: Elmo | Pretrained | str | Path,
        *,
        mixes: int = 1,
        dropout: float = 0.5,
        layer_norm: bool = False,
        by_direction: bool = False,
        top_only: bool = False,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        trained_mix: bool = True,
        fine_tune: bool = False,
        keep_boundaries: bool = False,
        stateful: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Elmo | Pretrained):
            model = load(model)
        self.pretrained = model.model if isinstance(model, Elmo) else model
        self.network = _copy_network(self.pretrained.network, fine_tune)
        self.fine_tune, self.keep_boundaries, self.stateful = fine_tune, keep_boundaries, stateful
        self.mixes = nn.ModuleList(
            Mix(
                self.pretrained.config.layers,
                by_direction=by_direction,
                top_only=top_only,
                layer_norm=layer_norm,
                weights=weights,
                gamma=gamma,
                trained=trained_mix,
                dropout=dropout,
            )
            for _ in range(mixes)
        ).to(self.network.device)
        self._state: BiState | None = None
        self.register_load_state_dict_pre_hook(_copy_shared_weights)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_share_equal_weights)  # type: ignore[no-untyped-call]
        self._register()

    def _register(self) -> None:
        """Take a key under which `frozen_layers` finds this layer."""
        self._key = next(_keys)
        _layers_by_key[self._key] = self

    def __prepare_scriptable__(self) -> None:
        """Refuse `torch.jit.script`, which calls this on every module."""
        raise UsageError(
            "ElmoLayer cannot be scripted: torch.jit cannot compile the biLM. Call the layer as it is, and "
            "script the modules that follow it."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out a network that only shares the weights of the model, which are copied or pickled once."""
        state = self.__dict__.copy()
        if self._has_shared_weights():
            state["_modules"] = {name: m for name, m in self._modules.items() if name != "network"}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if "network" not in self._modules:
            mixes = self._modules.pop("mixes")
            self.network = _copy_network(self.pretrained.network, fine_tune=False)
            self._modules["mixes"] = mixes  # the order of the state dict
        self._register()

    def _has_shared_weights(self) -> bool:
        """Whether the network still uses the model's memory: not moved, converted or trained."""
        parameters, originals = self.network.parameters(), self.pretrained.network.parameters()
        pairs = zip(parameters, originals, strict=True)
        return not self.fine_tune and all(
            a.data_ptr() == b.data_ptr() and a.dtype == b.dtype for a, b in pairs
        )

    @property
    def size(self) -> int:
        """H, the number of values in a vector."""
        return self.pretrained.config.size

    def reset(self) -> None:
        """Clear the state that `stateful=True` carries."""
        self._state = None

    def train(self, mode: bool = True) -> Self:
        """Switch to training or evaluation, which clears the carried state.

        Args:
            mode: True for training, False for evaluation.

        Returns:
            This layer.

        """
        if mode != self.training:
            self.reset()
        return super().train(mode)

    def batch_to_ids(self, sentences: Iterable[Iterable[str]]) -> Tensor:
        """Convert token lists to character ids (B, T, C) for `forward`; rows of zeros are padding.

        Args:
            sentences: An ordered iterable of token lists.

        Returns:
            The ids, with the character limit and encoding of the layer's model.

        Raises:
            UsageError: If the model has a word table, or `sentences` holds anything but token lists.

        """
        alphabet = self._require_alphabet()
        return _pad([torch.from_numpy(alphabet.encode(tokens)) for tokens in _check_batch(sentences)])

    def _require_alphabet(self) -> Alphabet:
        alphabet = self.pretrained.alphabet
        if alphabet is None or self.pretrained.config.words is not None:
            raise UsageError("This model reads word ids too: give its layer token lists, not character ids.")
        return alphabet

    def forward(self, sentences: Tensor | Iterable[Iterable[str]]) -> Representations:
        """Compute the mixed vectors of a batch.

        Args:
            sentences: Token lists, or character ids (B, T, C) from `batch_to_ids`.

        Returns:
            A tensor (B, T, H) for each mix, and a mask (B, T) of the real tokens. The vectors have the dtype
            of the weights, float32 unless the layer was converted.

        Raises:
            UsageError: If `sentences` is neither, or under `torch.jit.trace`, which would freeze the lengths
                of the traced batch.

        """
        if torch.compiler.is_exporting() and (self._is_stateful() or not isinstance(sentences, Tensor)):
            raise UsageError(
                "Only a frozen ElmoLayer without state can be exported, with character ids from "
                "`batch_to_ids` as its input."
            )
        if torch.compiler.is_compiling() and isinstance(sentences, Tensor) and not self._is_stateful():
            self._check_ids(sentences)
            return self._mix(*frozen_layers(sentences, None, None, self._key))
        return self._forward_uncompiled(sentences)  # type: ignore[no-any-return]

    def _is_stateful(self) -> bool:
        """Whether a call changes more than its result: weights that are trained, or a carried state."""
        return self.fine_tune or self.stateful

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _forward_uncompiled(self, sentences: Tensor | Iterable[Iterable[str]]) -> Representations:
        if torch._C._is_tracing():  # torch.jit.is_tracing, which is untyped
            raise UsageError(
                "ElmoLayer cannot be traced: torch.jit.trace would keep the sentence lengths of this batch "
                "for all others. Call the layer as it is, and trace what follows it."
            )
        if torch._C._functorch.peek_interpreter_stack() is not None:  # torch.func.grad, vmap, jvp, …
            return self._transform(sentences)
        kind = self.network.device.type
        if not torch.is_autocast_enabled(kind):
            return self._mix(*self.compute_layers(sentences))
        with torch.autocast(kind, enabled=False):
            return self._mix(*self.compute_layers(sentences))

    def _transform(self, sentences: Tensor | Iterable[Iterable[str]]) -> Representations:
        """`forward` inside a transform of `torch.func`, which wraps tensors; the biLM gets them unwrapped."""
        if self._is_stateful():
            raise UsageError(
                "torch.func works with a frozen ElmoLayer without state. Train this one with `backward()`."
            )
        if isinstance(sentences, Tensor):
            self._check_ids(sentences)
            return self._mix(*frozen_layers(sentences, None, None, self._key))
        return self._mix(*frozen_layers(*self._read_tokens(_check_batch(sentences)), self._key))

    def compute_layers(self, sentences: Tensor | Iterable[Iterable[str]]) -> tuple[Tensor, Tensor]:
        """Run the biLM on a batch, as `forward` does before the mixes.

        Args:
            sentences: As in `forward`.

        Returns:
            All layers (L, B, T, H) with <S> and </S>, zero behind each sentence, and the lengths (B,).

        """
        return self._run_network(
            *(
                self._read_ids(sentences)
                if isinstance(sentences, Tensor)
                else self._read_tokens(_check_batch(sentences))
            )
        )

    def _run_network(
        self, chars: Tensor | None, words: Tensor | None, lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The layers for ids (B, T, C) and (B, T) with <S> and </S>."""
        with torch.set_grad_enabled(self.fine_tune and torch.is_grad_enabled()):
            if not torch.is_grad_enabled():
                self.network.pack()
            layers, after = self.network(chars, words, lengths, self._get_carried())
        if self.stateful:
            self._state = BiState(*([(a.detach(), b.detach()) for a, b in half] for half in after))
        return layers, lengths

    def _get_carried(self) -> BiState | None:
        """The state of the previous batch, with the device and dtype of the weights."""
        if self._state is None:
            return None
        like = next(self.network.parameters())
        return BiState(*([(a.to(like), b.to(like)) for a, b in half] for half in self._state))

    def _mix(self, layers: Tensor, lengths: Tensor) -> Representations:
        """Mix (L, B, T, H) with boundaries; as in AllenNLP, the layer norm includes the boundaries."""
        times = torch.arange(layers.shape[2], device=layers.device)
        mask = times < lengths[:, None]
        vectors = [mix(layers, mask) for mix in self.mixes]
        if not self.keep_boundaries:
            mask = (times < lengths[:, None] - 2)[:, : max(layers.shape[2] - 2, 0)]
            vectors = [mixed[:, 1:-1] for mixed in vectors]
        return Representations([mixed * mask[..., None] for mixed in vectors], mask)

    def _read_tokens(self, sentences: list[list[str]]) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Ids of all tokens in <S> … </S>; a sentence without tokens has none."""
        ids = [self.pretrained.token_ids(tokens) for tokens in sentences]
        lengths = [len(tokens) + 2 if tokens else 0 for tokens in sentences]
        chars, words = (
            None
            if part[0] is None
            else _pad([_begin_end(rows)[:n] for rows, n in zip(part, lengths, strict=True)])
            for part in zip(*ids, strict=True)
        )
        device = self.network.device
        return (
            None if chars is None else chars.to(device),
            None if words is None else words.to(device),
            torch.tensor(lengths, device=device),
        )

    def _read_ids(self, ids: Tensor) -> tuple[Tensor, None, Tensor]:
        """Add the rows of <S> and </S> to character ids (B, T, C)."""
        alphabet = self._check_ids(ids)
        ids = ids.to(self.network.device)
        boundaries = torch.from_numpy(alphabet.boundaries()).to(ids)
        tokens = (ids != 0).any(dim=2).sum(dim=1)  # (B,)
        framed = ids.new_zeros(ids.shape[0], ids.shape[1] + 2, ids.shape[2])
        framed[:, 1:-1] = ids
        filled = (tokens > 0).nonzero().flatten()
        framed[filled, 0] = boundaries[0]
        framed[filled, tokens[filled] + 1] = boundaries[1]
        return framed, None, torch.where(tokens > 0, tokens + 2, 0)

    def _check_ids(self, ids: Tensor) -> Alphabet:
        """Refuse ids that are not of this model's shape (B, T, C)."""
        alphabet = self._require_alphabet()
        if ids.ndim != 3 or ids.shape[2] != alphabet.max_chars:
            raise UsageError(
                f"The ids are {tuple(ids.shape)}, expected (sentences, tokens, {alphabet.max_chars}). "
                "Make them with `batch_to_ids` of the layer."
            )
        return alphabet


@torch.library.custom_op("polyseme::frozen_layers", mutates_args=())
def frozen_layers(
    chars: Tensor | None, words: Tensor | None, lengths: Tensor | None, key: int
) -> tuple[Tensor, Tensor]:
    """Run the frozen biLM of the layer `key`, opaque to the compiler and to transforms.

    Takes character ids (B, T, C) as of `batch_to_ids`; or, with their lengths, ids with <S> and </S>.
    Returns the layers (L, B, T, H) and the lengths (B,), with boundaries.
    """
    layer = _layers_by_key.get(key)
    if layer is None:
        raise UsageError(
            "This graph was exported from an ElmoLayer that is not in this process: build the layer and "
            "export it again."
        )
    with torch.autocast(layer.network.device.type, enabled=False):
        if lengths is None and chars is not None:
            chars, words, lengths = layer._read_ids(chars)
        assert lengths is not None  # noqa: S101  # the callers make sure
        layers, lengths = layer._run_network(chars, words, lengths)
        return layers, lengths.clone()  # an operator must not return its argument


@frozen_layers.register_fake
def _(chars: Tensor | None, words: Tensor | None, lengths: Tensor | None, key: int) -> tuple[Tensor, Tensor]:
    layer = _layers_by_key[key]
    ids = chars if chars is not None else words
    assert ids is not None  # noqa: S101  # the callers make sure
    batch, width = ids.shape[0], ids.shape[1] + (2 if lengths is None else 0)
    config, weight = layer.pretrained.config, next(layer.network.parameters())
    shape = config.layers, batch, width, config.size
    return (
        ids.new_empty(shape, dtype=weight.dtype, device=weight.device),
        ids.new_empty(batch, dtype=torch.long, device=weight.device),
    )


def batch_to_ids(sentences: Iterable[Iterable[str]], max_chars: int = 50) -> Tensor:
    """Convert token lists to the character ids of the published models.

    Args:
        sentences: An ordered iterable of token lists.
        max_chars: C, the bytes per token, with the marks around it.

    Returns:
        Ids (B, T, C); rows of zeros are padding.

    Raises:
        UsageError: If `sentences` is empty or holds anything but token lists.

    Example:
        >>> batch_to_ids([["The", "bank"], ["Hello"]]).shape
        torch.Size([2, 2, 50])

    """
    alphabet = ByteAlphabet(max_chars)
    return _pad([torch.from_numpy(alphabet.encode(tokens)) for tokens in _check_batch(sentences)])


def _check_batch(sentences: Iterable[Iterable[str]]) -> list[list[str]]:
    token_lists = list_token_lists(sentences)
    if not token_lists:
        raise UsageError("There is no sentence in the batch.")
    return token_lists


def _copy_network(network: BiLM, fine_tune: bool) -> BiLM:
    """A copy to train, or one that shares the weights of `network`, frozen."""
    if fine_tune:
        copy = deepcopy(network)
        copy.memory_mapped = False
        for module in copy.quantisable_modules().values():
            module.dequantise()  # now: an optimiser must find the weights that will be trained
        return copy
    shared = {id(values): nn.Parameter(values.detach(), False) for values in network.parameters()}
    return deepcopy(network, shared)  # deepcopy takes what is in its memo instead of copying it


def _copy_shared_weights(layer: ElmoLayer, *_: Any) -> None:
    """Before weights are loaded into a layer: copy those that it shares with a model, which keeps its own."""
    if layer._has_shared_weights():
        layer.network = deepcopy(layer.network)


def _share_equal_weights(layer: ElmoLayer, _: Any) -> None:
    """After weights were loaded into a frozen layer: share them again if they are those of the model."""
    shared = layer.pretrained.network
    pairs = zip(layer.network.parameters(), shared.parameters(), strict=True)
    if not layer.fine_tune and all(
        a.dtype == b.dtype and a.device == b.device and torch.equal(a, b) for a, b in pairs
    ):
        layer.network = _copy_network(shared, fine_tune=False)


def _begin_end(rows: Tensor) -> Tensor:
    """Rows [<S>, </S>, tokens…] in reading order: <S>, tokens…, </S>."""
    return torch.cat([rows[:1], rows[2:], rows[1:2]])


def _pad(sentences: list[Tensor]) -> Tensor:
    """Sentences of ids, padded with zeros to the longest: (B, T) or (B, T, C)."""
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True)
