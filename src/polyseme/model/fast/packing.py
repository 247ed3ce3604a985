"""What both stacks gave for a batch, still packed: put together as far as it is asked for.

    model.bilm  ->  model.fast.packing  ->  model.output, embedder

B sentences, T tokens incl. <S> and </S>, N of them that are no padding, D one direction, H = 2D, L layers.
An index keeps one layer out of three and no state: what is never put together costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from polyseme.model.recurrent import State

MixFunction = Callable[[Sequence[Tensor]], Tensor]  # the L layers of a half to one, all of the same shape


class BiState(NamedTuple):
    """State of both stacks, a pair a layer, rows in the order of the sentences."""

    forward: list[State]
    backward: list[State]


def pad_state(upper: BiState, under: BiState) -> BiState:
    """The rows of `upper`, then those of `under` beyond them."""
    return BiState(
        *(
            [
                (torch.cat([a[0], b[0][len(a[0]) :]]), torch.cat([a[1], b[1][len(a[1]) :]]))
                for a, b in zip(uppers, unders, strict=True)
            ]
            for uppers, unders in zip(upper, under, strict=True)
        )
    )


def move_state(state: BiState, device: torch.device) -> BiState:
    """The same state on another device."""
    return BiState(
        *([(output.to(device), memory.to(device)) for output, memory in layers] for layers in state)
    )


class PackedBatch(NamedTuple):
    """Where the tokens of a batch stand when its sentences are packed, longest first."""

    sizes: list[int]  # how many sentences still run at each time step
    forward: Tensor  # (N,) place in the flattened (B, T) of each packed row, reading forward
    backward: Tensor  # (N,) the same, reading backward
    order: Tensor  # (B,) the sentences by falling length

    def rows(self, half: int) -> Tensor:
        """`forward` for half 0, `backward` for 1."""
        return (self.forward, self.backward)[half]

    def to(self, device: torch.device) -> PackedBatch:
        """The same indices on another device."""
        return PackedBatch(
            self.sizes, self.forward.to(device), self.backward.to(device), self.order.to(device)
        )


def pack_batch(lengths: Tensor, width: int, part: int = 0, parts: int = 1) -> PackedBatch:
    """Plan the packing of sentences of `lengths` (B,) laid out in rows of `width` tokens.

    Of several parts, of like lengths and together all sentences, plan one alone.
    """
    order = torch.argsort(lengths, descending=True, stable=True)[part::parts]
    falling = lengths[order]
    longest = int(falling[0]) if len(falling) else 0
    if longest > width:
        raise ValueError(f"a sentence of {longest} tokens does not fit a row of {width}")
    times = torch.arange(longest, device=lengths.device)
    if len(order) == len(lengths) == 1:  # the same, sooner: people wait for one sentence
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
    """What one stack gave for some sentences of a batch."""

    direction: int  # 0 read forward, 1 backward
    packed: PackedBatch
    layers: list[Tensor]  # L of them (N, D), the token layer first
    final_state: list[State]

    @property
    def rows(self) -> Tensor:
        """Where the packed rows stand in the flattened batch."""
        return self.packed.rows(self.direction)


@dataclass(frozen=True)
class BatchOutput:
    """A batch of `sentences` in rows of `width` tokens: the parts of both halves, forward ones first."""

    sentences: int
    width: int
    parts: Sequence[DirectionOutput]
    initial_state: BiState | None  # a row for each sentence, and maybe more

    def layers(self) -> Tensor:
        """All layers (L, B, T, H), zero behind the end of a sentence."""
        return self._unpacked([part.layers for part in self.parts])

    def unpack_mix(self, mix: MixFunction) -> Tensor:
        """One layer (B, T, H), zero behind the end of a sentence."""
        return self._unpacked([[mix(part.layers)] for part in self.parts])[0]

    def _unpacked(self, packed: Sequence[Sequence[Tensor]]) -> Tensor:
        first = packed[0][0]
        size, count = first.shape[1], self.sentences * self.width
        found = first.new_zeros(len(packed[0]), count, 2 * size)
        for part, layers in zip(self.parts, packed, strict=True):
            for number, layer in enumerate(layers):
                found[number, part.rows, part.direction * size : (part.direction + 1) * size] = layer
        return found.view(len(found), self.sentences, self.width, 2 * size)

    def write_rows(
        self, out: Tensor, rows: Tensor, mix: MixFunction, shifts: tuple[int, int] = (0, 0)
    ) -> None:
        """One layer into `out` (M, H), rounded to its type: the token at flat place p goes to row `rows[p]`.

        rows: (B * T,), -1 for what is not kept, as <S>, </S> and padding. shifts: how many places further on
        a half belongs; what goes over the end of its sentence comes to such a place.
        """
        size = out.shape[1] // 2
        for part in self.parts:
            targets = rows.roll(-shifts[part.direction]).to(part.rows.device)[part.rows]
            kept = (targets >= 0).nonzero()[:, 0]
            columns = slice(part.direction * size, (part.direction + 1) * size)
            out[:, columns].index_copy_(0, targets[kept].to(out.device), mix(part.layers)[kept].to(out))

    def final_state(self) -> BiState:
        """The state behind the last token; sentences of length 0 and rows beyond the batch keep theirs."""
        halves = []
        for half in (0, 1):
            parts = [part for part in self.parts if part.direction == half]
            states = _join([part.final_state for part in parts])
            if self.sentences > 1:
                states = select_state_rows(
                    states, torch.argsort(torch.cat([part.packed.order for part in parts]))
                )
            halves.append(states)
        found = BiState(*halves)
        return pad_state(found, self.initial_state) if self.initial_state else found


def select_state_rows(states: list[State], order: Tensor) -> list[State]:
    """These rows of the state of every layer."""
    return [(output[order], memory[order]) for output, memory in states]


def _join(parts: list[list[State]]) -> list[State]:
    """The rows of several parts, one after the other, layer by layer."""
    if len(parts) == 1:
        return parts[0]
    return [
        (torch.cat([output for output, _ in layer]), torch.cat([memory for _, memory in layer]))
        for layer in zip(*parts, strict=True)
    ]
