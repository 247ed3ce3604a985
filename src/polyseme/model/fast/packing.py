"""Packed batches: sentences without padding, and the outputs of both stacks for them.

    model.bilm  ->  model.fast.packing  ->  model.output, elmo

The outputs stay packed until a caller needs layers or state. An index needs one layer out of three and no
state, so that the rest is never unpacked.

B sentences, T tokens incl. <S> and </S>, N tokens without padding, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.model.recurrent import State

MixFunction = Callable[[Sequence[Tensor]], Tensor]  # mixes the L layers of a direction, of the same shape


class BiState(NamedTuple):
    """State of both stacks, one pair per layer, with one row per sentence."""

    forward: list[State]
    backward: list[State]


def pad_state(state: BiState, padding: BiState) -> BiState:
    """Append to `state` the rows of `padding` beyond its own."""
    return BiState(
        *(
            [
                (torch.cat([a[0], b[0][len(a[0]) :]]), torch.cat([a[1], b[1][len(a[1]) :]]))
                for a, b in zip(layers, paddings, strict=True)
            ]
            for layers, paddings in zip(state, padding, strict=True)
        )
    )


def move_state(state: BiState, device: torch.device) -> BiState:
    """The same state on another device."""
    return BiState(
        *([(output.to(device), memory.to(device)) for output, memory in layers] for layers in state)
    )


class PackedBatch(NamedTuple):
    """How the tokens of a batch are packed: time-major, longest sentence first."""

    sizes: list[int]  # sentences that are still running at each time step
    forward: Tensor  # (N,) index in the flattened (B, T) of each packed row, in forward order
    backward: Tensor  # (N,) the same in backward order
    order: Tensor  # (B,) the sentences by falling length

    def rows(self, direction: int) -> Tensor:
        """`forward` for direction 0, `backward` for 1."""
        return (self.forward, self.backward)[direction]

    def to(self, device: torch.device) -> PackedBatch:
        """The same indices on another device."""
        return PackedBatch(
            self.sizes, self.forward.to(device), self.backward.to(device), self.order.to(device)
        )


def pack_batch(lengths: Tensor, width: int, part: int = 0, parts: int = 1) -> PackedBatch:
    """Pack sentences of `lengths` (B,) in rows of `width` tokens.

    With several `parts`, of similar lengths, pack the sentences of one of them.
    """
    order = torch.argsort(lengths, descending=True, stable=True)[part::parts]
    falling = lengths[order]
    longest = int(falling[0]) if len(falling) else 0
    if longest > width:
        raise ValueError(f"a sentence of {longest} tokens does not fit a row of {width}")
    times = torch.arange(longest, device=lengths.device)
    if len(order) == len(lengths) == 1:  # a shortcut, since interactive use has one sentence
        return PackedBatch([1] * longest, times, times.flip(0), order)
    running = falling > times[:, None]  # (T, B)
    time, rank = running.nonzero(as_tuple=True)
    row = order[rank] * width
    return PackedBatch(
        sizes=running.sum(dim=1).tolist(),
        forward=row + time,
        backward=row + falling[rank] - 1 - time,
        order=order,
    )


class DirectionOutput(NamedTuple):
    """The output of one stack for a part of a batch."""

    direction: int  # 0 is forward, 1 backward
    packed: PackedBatch
    layers: list[Tensor]  # L tensors (N, D), the token layer first
    final_state: list[State]

    @property
    def rows(self) -> Tensor:
        """The index of each packed row in the flattened batch."""
        return self.packed.rows(self.direction)


@dataclass(frozen=True)
class BatchOutput:
    """The output for a batch of `sentences` in rows of `width` tokens: forward parts first, then backward."""

    sentences: int
    width: int
    parts: Sequence[DirectionOutput]
    initial_state: BiState | None  # one row per sentence, or more

    def layers(self) -> Tensor:
        """All layers (L, B, T, H), zero behind the end of a sentence."""
        return self._unpack([part.layers for part in self.parts])

    def unpack_mix(self, mix: MixFunction) -> Tensor:
        """One layer (B, T, H), zero behind the end of a sentence."""
        return self._unpack([[mix(part.layers)] for part in self.parts])[0]

    def _unpack(self, packed: Sequence[Sequence[Tensor]]) -> Tensor:
        first = packed[0][0]
        size, count = first.shape[1], self.sentences * self.width
        unpacked = first.new_zeros(len(packed[0]), count, 2 * size)
        for part, layers in zip(self.parts, packed, strict=True):
            for number, layer in enumerate(layers):
                unpacked[number, part.rows, part.direction * size : (part.direction + 1) * size] = layer
        return unpacked.view(len(unpacked), self.sentences, self.width, 2 * size)

    def write_rows(
        self, out: Tensor, rows: Tensor, mix: MixFunction, shifts: tuple[int, int] = (0, 0)
    ) -> None:
        """Write one layer to `out` (M, H), rounded to its dtype: the token at flat index p to row `rows[p]`.

        Args:
            out: Where to write; may be on another device.
            rows: (B * T,) row of each token; -1 for those to skip, such as <S>, </S> and padding.
            mix: Mixes the layers.
            shifts: How many tokens further on the forward and the backward half belong. What is shifted over
                the end of its sentence falls on <S> or </S>.

        """
        size = out.shape[1] // 2
        for part in self.parts:
            targets = rows.roll(-shifts[part.direction]).to(part.rows.device)[part.rows]
            used = (targets >= 0).nonzero()[:, 0]
            columns = slice(part.direction * size, (part.direction + 1) * size)
            out[:, columns].index_copy_(0, targets[used].to(out.device), mix(part.layers)[used].to(out))

    def final_state(self) -> BiState:
        """The state after the last token; sentences of length 0 and rows beyond the batch keep theirs."""
        halves = []
        for direction in (0, 1):
            parts = [part for part in self.parts if part.direction == direction]
            states = _join([part.final_state for part in parts])
            if self.sentences > 1:
                states = select_state_rows(
                    states, torch.argsort(torch.cat([part.packed.order for part in parts]))
                )
            halves.append(states)
        state = BiState(*halves)
        return pad_state(state, self.initial_state) if self.initial_state else state


def select_state_rows(states: list[State], order: Tensor) -> list[State]:
    """Select rows of the state of every layer."""
    return [(output[order], memory[order]) for output, memory in states]


def _join(parts: list[list[State]]) -> list[State]:
    """Concatenate the rows of several parts, layer by layer."""
    if len(parts) == 1:
        return parts[0]
    return [
        (torch.cat([output for output, _ in layer]), torch.cat([memory for _, memory in layer]))
        for layer in zip(*parts, strict=True)
    ]
