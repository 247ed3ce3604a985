"""ELMo as a layer of a PyTorch model: tokens or character ids in, mixed vectors out.

    formats, model.mix  ->  layer  ->  tasks, and the users' own networks

B sentences, T tokens, C characters, H = both directions.
`batch_to_ids` and `ElmoLayer` take the place of AllenNLP's `batch_to_ids` and `Elmo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from polyseme.elmo import Elmo, load
from polyseme.errors import UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.model.bilm import BiLM
from polyseme.model.fast.packing import BiState
from polyseme.model.mix import Mix
from polyseme.text.chars import ByteAlphabet
from polyseme.text.validate import list_token_lists


class Representations(NamedTuple):
    """What an ElmoLayer gives: a tensor (B, T, H) for each mix, and which tokens are real (B, T)."""

    vectors: list[Tensor]
    mask: Tensor


class ElmoLayer(nn.Module):
    """A biLM, frozen or fine-tuned, under one or several mixes."""

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
        """Put `model` (loaded, or a path) under `mixes` mixtures; see `model.mix.Mix` for their options.

        fine_tune: the biLM's own weights are trained too, on a copy; otherwise they are shared, and stay.
        keep_boundaries: the vectors of <S> and </S> stay in the output.
        stateful: state is carried from batch to batch, row by row, until `reset()` or a change between
            training and evaluation.
        """
        super().__init__()
        if isinstance(model, str | Path):
            model = load(model)
        self.pretrained = model.model if isinstance(model, Elmo) else model
        self.network = _own(self.pretrained.network, fine_tune)
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
        )
        self._state: BiState | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out a network that only shares the weights of the model, which are copied or pickled once."""
        state = self.__dict__.copy()
        if self._shares_weights():
            state["_modules"] = {name: m for name, m in self._modules.items() if name != "network"}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        if "network" not in self._modules:
            mixes = self._modules.pop("mixes")
            self.network = _own(self.pretrained.network, fine_tune=False)
            self._modules["mixes"] = mixes  # the order of the state dict

    def _shares_weights(self) -> bool:
        """Whether the network is still the model's own, not moved, converted or trained."""
        mine, theirs = self.network.parameters(), self.pretrained.network.parameters()
        return not self.fine_tune and all(
            a.data_ptr() == b.data_ptr() and a.dtype == b.dtype for a, b in zip(mine, theirs, strict=True)
        )

    @property
    def size(self) -> int:
        """H: values in a vector."""
        return self.pretrained.config.size

    def reset(self) -> None:
        """Forget the state that `stateful=True` carries."""
        self._state = None

    def train(self, mode: bool = True) -> Self:
        """Turn to training, or to evaluation; state does not leak from one into the other."""
        if mode != self.training:
            self.reset()
        return super().train(mode)

    def batch_to_ids(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Character ids (B, T, C) of token lists, for `forward`; rows of zeros are padding."""
        alphabet = self.pretrained.alphabet
        if alphabet is None or self.pretrained.config.words is not None:
            raise UsageError("This model reads word ids too: give its layer token lists, not character ids.")
        return _pad([torch.from_numpy(alphabet.encode(tokens)) for tokens in _checked(sentences)])

    def forward(self, sentences: Tensor | Sequence[Sequence[str]]) -> Representations:
        """Mixed vectors of a batch.

        The layer computes in the precision of its own weights, under `torch.autocast`, too: the vectors have
        the dtype of the weights, float32 unless the layer was converted.

        Args:
            sentences: Token lists, or character ids (B, T, C) from `batch_to_ids`.

        Returns:
            A tensor (B, T, H) for each mix, and a mask (B, T) of the real tokens.

        Raises:
            UsageError: If `sentences` is neither, or under `torch.jit.trace`, which would freeze the lengths
                of the traced batch.

        """
        if torch._C._is_tracing():  # torch.jit.is_tracing, which is untyped
            raise UsageError(
                "ElmoLayer cannot be traced: torch.jit.trace would keep the sentence lengths of this batch "
                "for all others. Call the layer as it is, and trace what follows it."
            )
        kind = self.network.device.type
        if not torch.is_autocast_enabled(kind):
            return self._forward(sentences)
        with torch.autocast(kind, enabled=False):
            return self._forward(sentences)

    def _forward(self, sentences: Tensor | Sequence[Sequence[str]]) -> Representations:
        chars, words, lengths = (
            self._from_ids(sentences)
            if isinstance(sentences, Tensor)
            else self._from_tokens(_checked(sentences))
        )
        with torch.set_grad_enabled(self.fine_tune and torch.is_grad_enabled()):
            if not torch.is_grad_enabled():
                self.network.pack()
            layers, after = self.network(chars, words, lengths, self._carried())
        if self.stateful:
            self._state = BiState(*([(a.detach(), b.detach()) for a, b in half] for half in after))
        return self._mix(layers, lengths)

    def _carried(self) -> BiState | None:
        """The state of the batch before, where the weights are now and as precise as they are."""
        if self._state is None:
            return None
        like = next(self.network.parameters())
        return BiState(*([(a.to(like), b.to(like)) for a, b in half] for half in self._state))

    def _mix(self, layers: Tensor, lengths: Tensor) -> Representations:
        """(L, B, T, H) with boundaries to the mixes; as in AllenNLP the layer norm sees the boundaries."""
        times = torch.arange(layers.shape[2], device=layers.device)
        mask = times < lengths[:, None]
        vectors = [mix(layers, mask) for mix in self.mixes]
        if not self.keep_boundaries:
            mask = (times < lengths[:, None] - 2)[:, : max(layers.shape[2] - 2, 0)]
            vectors = [mixed[:, 1:-1] for mixed in vectors]
        return Representations([mixed * mask[..., None] for mixed in vectors], mask)

    def _from_tokens(self, sentences: list[list[str]]) -> tuple[Tensor | None, Tensor | None, Tensor]:
        """Ids of every token with its boundaries; a sentence without tokens has none."""
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

    def _from_ids(self, ids: Tensor) -> tuple[Tensor, None, Tensor]:
        """Put the rows of <S> and </S> around character ids (B, T, C)."""
        alphabet = self.pretrained.alphabet
        if alphabet is None or self.pretrained.config.words is not None:
            raise UsageError("This model reads word ids too: give its layer token lists, not character ids.")
        if ids.ndim != 3 or ids.shape[2] != alphabet.max_chars:
            raise UsageError(
                f"The ids are {tuple(ids.shape)}, expected (sentences, tokens, {alphabet.max_chars}). "
                "Make them with the layer's own batch_to_ids."
            )
        ids = ids.to(self.network.device)
        boundaries = torch.from_numpy(alphabet.boundaries()).to(ids)
        tokens = (ids != 0).any(dim=2).sum(dim=1)  # (B,)
        framed = ids.new_zeros(ids.shape[0], ids.shape[1] + 2, ids.shape[2])
        framed[:, 1:-1] = ids
        filled = (tokens > 0).nonzero().flatten()
        framed[filled, 0] = boundaries[0]
        framed[filled, tokens[filled] + 1] = boundaries[1]
        return framed, None, torch.where(tokens > 0, tokens + 2, 0)


def batch_to_ids(sentences: Sequence[Sequence[str]], max_chars: int = 50) -> Tensor:
    """Token lists to the character ids (B, T, C) of the published models; rows of zeros are padding."""
    alphabet = ByteAlphabet(max_chars)
    return _pad([torch.from_numpy(alphabet.encode(tokens)) for tokens in _checked(sentences)])


def _checked(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    token_lists = list_token_lists(sentences)
    if not token_lists:
        raise UsageError("There is no sentence in the batch.")
    return token_lists


def _own(network: BiLM, fine_tune: bool) -> BiLM:
    """The layer's own network: a copy to train, or one that shares the weights of `network`, frozen."""
    if fine_tune:
        own = deepcopy(network)
        own.memory_mapped = False
        for module in own.quantisable_modules().values():
            module.dequantise()  # now: an optimiser must find the weights that will be trained
        return own
    shared = {id(values): nn.Parameter(values.detach(), False) for values in network.parameters()}
    return deepcopy(network, shared)  # deepcopy takes what is in its memo instead of copying it


def _begin_end(rows: Tensor) -> Tensor:
    """Rows [<S>, </S>, tokens…] in reading order: <S>, tokens…, </S>."""
    return torch.cat([rows[:1], rows[2:], rows[1:2]])


def _pad(sentences: list[Tensor]) -> Tensor:
    """Sentences of ids, padded with zeros to the longest: (B, T) or (B, T, C)."""
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True)
