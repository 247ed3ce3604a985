"""Both directions over a batch of sentences: every layer of every token.

    model.tokens, model.recurrent  ->  model.bilm  ->  model.fast.packing, model.mix, embedder

B sentences, T tokens incl. <S> and </S>, C characters, D one direction, H = 2D, L layers.
Layer 0 is the token vector twice; layer l is [forward; backward]. The backward stack reads each
sentence reversed within its own length. The two stacks do not see each other.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Any, cast

import torch
from torch import Tensor, nn

from polyseme.model.fast.packing import (
    BatchOutput,
    BiState,
    DirectionOutput,
    pack_batch,
    pad_state,
    select_state_rows,
)
from polyseme.model.fast.paging import page_out
from polyseme.model.fast.parallel import count_core_pairs, run_parallel
from polyseme.model.fast.quantisation import Quantisable
from polyseme.model.fast.weight_versions import WeightSnapshot
from polyseme.model.recurrent import RecurrentCell, RecurrentStack
from polyseme.model.tokens import TokenEncoder

MIN_SENTENCES_PER_THREAD = 4  # sentences that are worth a core of their own
_packing = Lock()  # several threads may read for the first time at once


def _reset_in_child() -> None:
    """Replace the lock in a forked child: a thread that is gone there may have held it."""
    global _packing
    _packing = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_reset_in_child)


class BiLM(nn.Module):
    """A token encoder under a forward and a backward stack."""

    def __init__(
        self, tokens: TokenEncoder, forward_stack: RecurrentStack, backward_stack: RecurrentStack
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.forward_stack = forward_stack
        self.backward_stack = backward_stack
        self.precision = "fp32"  # of the large weights when packed
        self.memory_mapped = False  # whether the weights lie in a file, from which they can be read again
        self._packed: WeightSnapshot | None = None  # the weights that are laid out
        self._laid_out = {
            name: module for name, module in self.named_modules() if isinstance(module, Quantisable)
        }

    def pack(self) -> None:
        """Take the large weights as final, for faster reading without gradients."""
        with _packing:
            same = self._packed is not None and self._packed.matches(self._matrices())
            if same and all(module.is_packed(self.precision) for module in self._laid_out.values()):
                return
            for module in self._laid_out.values():
                if not same:
                    module.unpack()
                module.pack(self.precision)
                if self.memory_mapped and not same and module.can_run_native():
                    for original in module.source_tensors():
                        page_out(original)
            if not same:
                self._packed = WeightSnapshot(self._matrices())

    def _matrices(self) -> list[Tensor]:
        return [weight for module in self._laid_out.values() for weight in module.matrices().values()]

    def __getstate__(self) -> dict[str, Any]:
        """Copies begin unpacked."""
        return self.__dict__ | {"_packed": None}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return cast("RecurrentCell", self.forward_stack.cells[0]).bias.device

    def quantisable_modules(self) -> dict[str, Quantisable]:
        """Layers of both directions and highways, under their names in the state dict."""
        return {name: module for name, module in self._laid_out.items() if not module.keeps_fp32}

    def zero_state(self, batch: int) -> BiState:
        """Zero state for `batch` sentences."""
        return BiState(self.forward_stack.zero_state(batch), self.backward_stack.zero_state(batch))

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
        found = self.run_stacks(vectors, places.view(both.shape[:2]), lengths, state)
        return found.layers(), found.final_state()

    def run_stacks(
        self, vectors: Tensor, places: Tensor, lengths: Tensor, state: BiState | None = None
    ) -> BatchOutput:
        """Token vectors (N, D), picked by `places` (B, T), through both stacks.

        A `state` with fewer rows is filled up with zeros.
        """
        batch, width = places.shape
        on_cpu = vectors.device.type == "cpu"
        in_parts = on_cpu and not torch.is_grad_enabled()
        parts = min(count_core_pairs(), batch // MIN_SENTENCES_PER_THREAD) if in_parts else 1
        lengths = lengths.cpu()  # the packing is planned there: it decides the Python loop over time steps
        plans = [
            pack_batch(lengths, width, part, max(1, parts)).to(vectors.device)
            for part in range(max(1, parts))
        ]
        before = pad_state(state, self.zero_state(batch)) if state else None
        picked = places.to(vectors.device).flatten()
        stacks = self.forward_stack, self.backward_stack
        tasks = [(half, plan) for half in (0, 1) for plan in plans]
        inputs = [vectors[picked[plan.rows(half)]] for half, plan in tasks]  # (N, D)
        readings = []
        for x, (half, plan) in zip(inputs, tasks, strict=True):
            first = (
                select_state_rows(before[half], plan.order)
                if before
                else stacks[half].zero_state(len(plan.order))
            )
            readings.append(stacks[half].prepare(x, plan.sizes, first))
        native = all(reading.is_native for reading in readings)
        runs = [reading.run for reading in readings]
        found = run_parallel(runs, native=native) if on_cpu else [run() for run in runs]
        return BatchOutput(
            batch,
            width,
            [
                DirectionOutput(*task, [x, *outputs], after)
                for task, x, (outputs, after) in zip(tasks, inputs, found, strict=True)
            ],
            before,
        )
