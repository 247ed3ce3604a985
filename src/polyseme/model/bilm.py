"""Both directions over a batch of sentences: every layer of every token.

    model.tokens, model.recurrent  ->  model.bilm  ->  model.mix, embedder

B sentences, T tokens incl. <S> and </S>, C characters, D one direction, H = 2D, L layers.
Layer 0 is the token vector twice; layer l is [forward; backward]. The backward stack reads each
sentence reversed within its own length. The two stacks do not see each other.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from polyseme.model.changes import Snapshot
from polyseme.model.narrow import Narrowable
from polyseme.model.paging import page_out
from polyseme.model.recurrent import Stack, State
from polyseme.model.threads import pairs_of_cores, run_all
from polyseme.model.tokens import TokenEncoder

FEWEST = 4  # sentences that are worth a core of their own
_packing = Lock()  # several threads may read for the first time at once


class BiState(NamedTuple):
    """State of both stacks, a pair a layer, rows in the order of the sentences."""

    forward: list[State]
    backward: list[State]


def overlay(upper: BiState, under: BiState) -> BiState:
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


class Packing(NamedTuple):
    """Where the tokens of a batch stand when its sentences are packed, longest first."""

    sizes: list[int]  # how many sentences still run at each time step
    forward: Tensor  # (N,) place in the flattened (B, T) of each packed row, reading forward
    backward: Tensor  # (N,) the same, reading backward
    order: Tensor  # (B,) the sentences by falling length

    def rows(self, half: int) -> Tensor:
        """`forward` for half 0, `backward` for 1."""
        return (self.forward, self.backward)[half]


def pack(lengths: Tensor, width: int, part: int = 0, parts: int = 1) -> Packing:
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
        return Packing([1] * longest, times, times.flip(0), order)
    running = falling > times[:, None]  # (T, B)
    time, rank = running.nonzero(as_tuple=True)
    row = order[rank] * width
    return Packing(
        sizes=running.sum(dim=1).tolist(),
        forward=row + time,
        backward=row + falling[rank] - 1 - time,
        order=order,
    )


class BiLM(nn.Module):
    """A token encoder under a forward and a backward stack."""

    def __init__(self, tokens: TokenEncoder, forward_stack: Stack, backward_stack: Stack) -> None:
        super().__init__()
        self.tokens = tokens
        self.forward_stack = forward_stack
        self.backward_stack = backward_stack
        self.precision = "fp32"  # of the large weights when packed
        self.mapped = False  # whether the weights lie in a file, from which they can be read again
        self._packed: Snapshot | None = None  # the weights that are laid out
        self._laid_out = {
            name: module for name, module in self.named_modules() if isinstance(module, Narrowable)
        }

    def pack(self) -> None:
        """Take the large weights as final, for faster reading without gradients."""
        with _packing:
            same = self._packed is not None and self._packed.holds(self._matrices())
            if same and all(module.is_packed(self.precision) for module in self._laid_out.values()):
                return
            for module in self._laid_out.values():
                if not same:
                    module.unpack()
                module.pack(self.precision)
                if self.mapped and not same and module.takes():
                    for original in module.originals():
                        page_out(original)
            if not same:
                self._packed = Snapshot(self._matrices())

    def _matrices(self) -> list[Tensor]:
        return [weight for module in self._laid_out.values() for weight in module.matrices().values()]

    def __getstate__(self) -> dict[str, Any]:
        """Copies begin unpacked."""
        return self.__dict__ | {"_packed": None}

    def narrowable(self) -> dict[str, Narrowable]:
        """Layers of both directions and highways, under their names in the state dict."""
        return {name: module for name, module in self._laid_out.items() if not module.exact}

    def start(self, batch: int) -> BiState:
        """Zero state for `batch` sentences."""
        return BiState(self.forward_stack.start(batch), self.backward_stack.start(batch))

    def forward(
        self, chars: Tensor | None, words: Tensor | None, lengths: Tensor, state: BiState | None = None
    ) -> tuple[Tensor, BiState]:
        """Ids (B, T, C) and/or (B, T) of sentences with `lengths` to all layers (L, B, T, H) and the state.

        Each distinct token is encoded once.
        """
        parts = [None if words is None else words[..., None], chars]
        both = torch.cat([ids for ids in parts if ids is not None], dim=2)  # (B, T, 1 + C)
        rows, places = torch.unique(both.flatten(0, 1), dim=0, return_inverse=True)
        vectors = self.tokens(
            None if chars is None else rows[:, -chars.shape[2] :], None if words is None else rows[:, 0]
        )
        return self.read(vectors, places.view(both.shape[:2]), lengths, state)

    def read(
        self, vectors: Tensor, places: Tensor, lengths: Tensor, state: BiState | None = None
    ) -> tuple[Tensor, BiState]:
        """Token vectors (N, D), picked by `places` (B, T), to all layers (L, B, T, H) and the state.

        Behind a sentence's end the layers are zero. A `state` with fewer rows is filled up with zeros;
        a sentence of length 0 and rows beyond the batch keep theirs.
        """
        batch, width = places.shape
        parts = 1 if torch.is_grad_enabled() or vectors.is_cuda else min(pairs_of_cores(), batch // FEWEST)
        plans = [pack(lengths, width, part, parts) for part in range(parts)] or [pack(lengths, width)]
        before = overlay(state, self.start(batch)) if state else None
        picked, stacks = places.flatten(), (self.forward_stack, self.backward_stack)
        tasks = [(half, plan) for half in (0, 1) for plan in plans]
        inputs = [vectors[picked[plan.rows(half)]] for half, plan in tasks]  # (N, D)
        readings = []
        for x, (half, plan) in zip(inputs, tasks, strict=True):
            first = _rows(before[half], plan.order) if before else stacks[half].start(len(plan.order))
            readings.append(stacks[half].prepare(x, plan.sizes, first))
        in_c = all(reading.in_c for reading in readings)
        found = run_all([reading.run for reading in readings], without_torch=in_c)
        size = vectors.shape[1]
        layers = vectors.new_zeros(len(self.forward_stack.cells) + 1, batch * width, 2 * size)
        for (half, plan), x, (outputs, _) in zip(tasks, inputs, found, strict=True):
            for number, layer in enumerate([x, *outputs]):
                layers[number, plan.rows(half), half * size : (half + 1) * size] = layer
        ends = [after for _, after in found]
        halves = [_join(part) for part in (ends[: len(plans)], ends[len(plans) :])]
        if batch > 1:
            back = torch.argsort(torch.cat([plan.order for plan in plans]))
            halves = [_rows(half, back) for half in halves]
        after = BiState(*halves)
        return layers.view(len(layers), batch, width, 2 * size), overlay(after, before) if before else after


def _rows(states: list[State], order: Tensor) -> list[State]:
    return [(output[order], memory[order]) for output, memory in states]


def _join(parts: list[list[State]]) -> list[State]:
    """The rows of several parts, one after the other, layer by layer."""
    if len(parts) == 1:
        return parts[0]
    return [
        (torch.cat([output for output, _ in layer]), torch.cat([memory for _, memory in layer]))
        for layer in zip(*parts, strict=True)
    ]
