"""Which layer, direction and pooling to return: the arguments of `embed`, checked once, then applied.

    model.fast.packing  ->  model.output  ->  elmo, search, server

B sentences, T tokens, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import get_args

import torch
from torch import Tensor

from polyseme.choices import Direction
from polyseme.errors import UsageError
from polyseme.model.fast.packing import BatchOutput

Layer = str | int | Sequence[float] | tuple[Sequence[float], float]

POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda vectors: vectors.mean(dim=-2),
    "max": lambda vectors: vectors.amax(dim=-2),
    "first": lambda vectors: vectors[..., 0, :],
    "last": lambda vectors: vectors[..., -1, :],
    "sum": lambda vectors: vectors.sum(dim=-2),
    "concat": lambda vectors: torch.cat(
        [vectors.mean(dim=-2), vectors.amax(dim=-2), vectors.amin(dim=-2)], dim=-1
    ),
}
JOINED_POOLS = 3  # times as many values has "concat": mean, maximum and minimum
SENTENCE = "sentence"  # a pooling that knows the words and is fitted; it is given all layers, joined
DIRECTIONS = get_args(Direction)


@dataclass(frozen=True)
class OutputSpec:
    """Which vectors to return for each token.

    Attributes:
        weights: Weight of each layer, gamma included; None returns all layers, unmixed.
        joined: Without weights: join the layers to one long vector, layer 0 first, instead of an axis L.
        direction: One of DIRECTIONS.
        pool: One of POOLS, SENTENCE (see `model.sentence_pooling`), or None for every token.
        context: Return the forward state before each token and the backward state behind it, instead of its
            own: what the model predicts the token from.

    """

    weights: tuple[float, ...] | None
    direction: str
    pool: str | None
    context: bool = False
    joined: bool = False

    @property
    def layer(self) -> str | tuple[float, ...]:
        """The layer as `resolve_output` takes it: "all", "concat" or weights."""
        return self.weights or ("concat" if self.joined else "all")

    def count_layers(self, n_layers: int) -> int:
        """How many times H values a token or a pooled sentence gets, in a model of `n_layers`."""
        if self.pool == SENTENCE:
            return 1
        return (n_layers if self.weights is None else 1) * (JOINED_POOLS if self.pool == "concat" else 1)

    def select(self, output: BatchOutput) -> Tensor:
        """Select (B, T, H), (B, L, T, H) for all layers, or (B, T, LH) joined; half of it for one direction.

        T includes <S> and </S>; with `context`, their own rows are zero.
        """
        vectors = output.layers().transpose(0, 1) if self.weights is None else output.unpack_mix(self.mix)
        if self.direction != "both":
            vectors = vectors.unflatten(-1, (2, -1))[..., DIRECTIONS.index(self.direction) - 1, :]
        vectors = _shift_to_context(vectors) if self.context else vectors
        return vectors.transpose(1, 2).flatten(2) if self.joined else vectors

    def write_rows(self, out: Tensor, rows: Tensor, output: BatchOutput) -> None:
        """Write the vectors of both directions to `out` (M, H): the token at index p to row `rows[p]`."""
        output.write_rows(out, rows, self.mix, (1, -1) if self.context else (0, 0))

    def require_weights(self, noun: str = "token") -> tuple[float, ...]:
        """Return the weights of the layers; refuse "all" and "concat": a `what` has one vector, of H values.

        Raises:
            UsageError: If the layers are not mixed.

        """
        if self.weights is None:
            raise UsageError(
                f"layer is {self.layer!r}, but a {noun} has one vector of one layer's size: "
                "choose top, mean, a number or weights."
            )
        return self.weights

    def mix(self, layers: Sequence[Tensor]) -> Tensor:
        """Return the weighted sum of L layers of the same shape.

        Layer by layer, not as a matrix product, whose rounding depends on the shape.
        """
        used = [
            (layer, weight) for layer, weight in zip(layers, self.require_weights(), strict=True) if weight
        ]
        if len(used) == 1 and used[0][1] == 1.0:
            return used[0][0]
        total = torch.zeros_like(layers[0])
        for layer, weight in used:
            total += layer * weight
        return total

    def pool_tokens(self, vectors: Tensor) -> Tensor:
        """Pool (…, tokens, H) of one sentence to (…, H), or 3H for "concat"; `pool=None` keeps all.

        A sentence without tokens gives zeros.
        """
        if self.pool is None:
            return vectors
        if vectors.shape[-2] == 0:
            vectors = vectors.new_zeros(*vectors.shape[:-2], 1, vectors.shape[-1])
        return POOLS[self.pool](vectors)

    def empty(self, n_layers: int, size: int) -> Tensor:
        """Return the result for a sentence without tokens, in a model of `n_layers` and `size` values."""
        half = size if self.direction == "both" else size // 2
        if self.pool == SENTENCE:
            return _empty_vectors(size)
        if self.joined:
            return self.pool_tokens(_empty_vectors(0, n_layers * half))
        return self.pool_tokens(_empty_vectors(*((n_layers,) if self.weights is None else ()), 0, half))


def _empty_vectors(*shape: int) -> Tensor:
    """Zeros, on the CPU as fp32 whatever torch's defaults are."""
    return torch.zeros(shape, dtype=torch.float32, device="cpu")


def _shift_to_context(vectors: Tensor) -> Tensor:
    """(…, T, H) -> (…, T, H): the forward half of the token before, the backward half of the one behind."""
    shifted, half = torch.zeros_like(vectors), vectors.shape[-1] // 2
    shifted[..., 1:, :half] = vectors[..., :-1, :half]
    shifted[..., :-1, half:] = vectors[..., 1:, half:]
    return shifted


def resolve_output(
    layer: Layer, pool: str | None, direction: str, n_layers: int, *, context: bool = False
) -> OutputSpec:
    """Check the arguments of `embed` against a model of `n_layers`; `context` as in `OutputSpec`.

    Raises:
        UsageError: If an argument is unknown or does not fit the model.

    """
    if direction not in DIRECTIONS:
        raise UsageError(f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}.")
    if pool is not None and pool not in (*POOLS, SENTENCE):
        names = ", ".join((*POOLS, SENTENCE))
        raise UsageError(f"pool is {pool!r}, expected one of {names}, or None for every token.")
    if pool == SENTENCE:
        if not isinstance(layer, str) or layer != "mean" or direction != "both":
            raise UsageError(
                "pool is 'sentence', which chooses the layers and directions: leave layer and direction out."
            )
        return OutputSpec(None, direction, pool, context, joined=True)
    is_joined = isinstance(layer, str) and layer == "concat"
    return OutputSpec(_resolve_weights(layer, n_layers), direction, pool, context, is_joined)


def _resolve_weights(layer: Layer, n_layers: int) -> tuple[float, ...] | None:
    """The weight of each layer, gamma included, or None for all layers unmixed."""
    if isinstance(layer, str):
        if layer in ("all", "concat"):
            return None
        if layer == "mean":
            return (1.0 / n_layers,) * n_layers
        if layer == "top":
            return _weigh_one_layer(n_layers - 1, n_layers)
        raise UsageError(
            f"layer is {layer!r}, expected mean, top, concat, all, a number from 0 to {n_layers - 1}, "
            f"or {n_layers} weights."
        )
    if isinstance(layer, Integral) and not isinstance(layer, bool):  # numpy's numbers too
        if not 0 <= layer < n_layers:
            raise UsageError(f"layer is {layer}, the model has layers 0 to {n_layers - 1}.")
        return _weigh_one_layer(int(layer), n_layers)
    return _parse_mixture(layer, n_layers)


def _weigh_one_layer(number: int, n_layers: int) -> tuple[float, ...]:
    return tuple(float(layer == number) for layer in range(n_layers))


def _parse_mixture(layer: object, n_layers: int) -> tuple[float, ...]:
    """`[w, w, w]` or `([w, w, w], gamma)` to gamma * w, the weights taken as they are."""
    weights, gamma = layer, 1.0
    if isinstance(layer, tuple) and len(layer) == 2 and not isinstance(layer[0], Real):
        weights, gamma = layer
    try:
        mixture = tuple(float(gamma) * float(weight) for weight in weights)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise UsageError(
            f"layer is {layer!r:.60}, expected weights as numbers, or (weights, gamma)."
        ) from None
    if len(mixture) != n_layers:
        raise UsageError(f"layer has {len(mixture)} weights, the model has {n_layers} layers.")
    if not all(map(isfinite, mixture)):
        raise UsageError(f"layer is {layer!r:.60}, expected finite weights.")
    return mixture
