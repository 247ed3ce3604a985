"""Both directions over a batch of sentences: every layer of every token.

    model.tokens, model.recurrent  ->  model.bilm  ->  model.readout, model.mix, embedder

B sentences, T tokens incl. <S> and </S>, C characters, D one direction, H = 2D, L layers.
Layer 0 is the token vector twice; layer l is [forward; backward]. The backward stack reads each
sentence reversed within its own length. The two stacks do not see each other.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.model.changes import Snapshot
from polyseme.model.narrow import Narrowable
from polyseme.model.paging import page_out
from polyseme.model.readout import BiState, Part, Readout, overlay, pack, state_rows
from polyseme.model.recurrent import Stack
from polyseme.model.threads import pairs_of_cores, run_all
from polyseme.model.tokens import TokenEncoder

FEWEST = 4  # sentences that are worth a core of their own
_packing = Lock()  # several threads may read for the first time at once


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

        Each distinct token is encoded once. Behind a sentence's end the layers are zero.
        """
        parts = [None if words is None else words[..., None], chars]
        both = torch.cat([ids for ids in parts if ids is not None], dim=2)  # (B, T, 1 + C)
        rows, places = torch.unique(both.flatten(0, 1), dim=0, return_inverse=True)
        vectors = self.tokens(
            None if chars is None else rows[:, -chars.shape[2] :], None if words is None else rows[:, 0]
        )
        found = self.read(vectors, places.view(both.shape[:2]), lengths, state)
        return found.layers(), found.after()

    def read(self, vectors: Tensor, places: Tensor, lengths: Tensor, state: BiState | None = None) -> Readout:
        """Token vectors (N, D), picked by `places` (B, T), through both stacks.

        A `state` with fewer rows is filled up with zeros.
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
            first = state_rows(before[half], plan.order) if before else stacks[half].start(len(plan.order))
            readings.append(stacks[half].prepare(x, plan.sizes, first))
        in_c = all(reading.in_c for reading in readings)
        found = run_all([reading.run for reading in readings], without_torch=in_c)
        return Readout(
            batch,
            width,
            [
                Part(*task, [x, *outputs], after)
                for task, x, (outputs, after) in zip(tasks, inputs, found, strict=True)
            ],
            before,
        )
