"""The bidirectional language model: every layer of every token of a batch.

    model.tokens, model.recurrent  ->  model.bilm  ->  model.fast.packing, model.mix, elmo

B sentences, T tokens incl. <S> and </S>, C characters, N token vectors, D one direction, H = 2D, L layers.
Layer 0 is the token vector twice; layer l is [forward; backward]. The backward stack reads each
sentence reversed, without its padding. The two stacks do not see each other.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Any, cast

import torch
from torch import Tensor, nn

from polyseme.model.fast.kernels import lstm
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

MIN_SENTENCES_PER_THREAD = 4  # fewer are not worth another core
_packing = Lock()  # several threads may call a new model at once


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
        self.memory_mapped = False  # whether the weights are mapped from a file, so that pages can be dropped
        self._packed: WeightSnapshot | None = None  # the weights that were packed
        self._quantisable = {
            name: module for name, module in self.named_modules() if isinstance(module, Quantisable)
        }

    def pack(self) -> None:
        """Pack the large weights for faster inference; they are packed again if they change."""
        with _packing:
            unchanged = self._packed is not None and self._packed.matches(self._list_matrices())
            if unchanged and all(module.is_packed(self.precision) for module in self._quantisable.values()):
                return
            for module in self._quantisable.values():
                if not unchanged:
                    module.unpack()
                module.pack(self.precision)
                if self.memory_mapped and not unchanged and module.can_run_native():
                    for original in module.source_tensors():
                        page_out(original)
            if not unchanged:
                self._packed = WeightSnapshot(self._list_matrices())

    def _list_matrices(self) -> list[Tensor]:
        return [weight for module in self._quantisable.values() for weight in module.matrices().values()]

    def __getstate__(self) -> dict[str, Any]:
        """Copies start unpacked."""
        return self.__dict__ | {"_packed": None}

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return cast("RecurrentCell", self.forward_stack.cells[0]).bias.device

    def quantisable_modules(self) -> dict[str, Quantisable]:
        """Layers of both directions and highways, by their names in the state dict."""
        return {name: module for name, module in self._quantisable.items() if not module.keeps_fp32}

    def zero_state(self, batch: int) -> BiState:
        """Zero state for `batch` sentences."""
        return BiState(self.forward_stack.zero_state(batch), self.backward_stack.zero_state(batch))

    def forward(
        self, chars: Tensor | None, words: Tensor | None, lengths: Tensor, state: BiState | None = None
    ) -> tuple[Tensor, BiState]:
        """Compute all layers (L, B, T, H) of a batch, and its final state.

        Each distinct token is encoded once. Layers are zero behind the end of a sentence.

        Args:
            chars: Character ids (B, T, C); None if the model has no char-CNN.
            words: Word ids (B, T); None if the model has no word table.
            lengths: Tokens of each sentence (B,), with <S> and </S>.
            state: Initial state of the first sentences; the others start from zero.

        """
        parts = [None if words is None else words[..., None], chars]
        ids = torch.cat([part for part in parts if part is not None], dim=2)  # (B, T, 1 + C)
        rows, positions = torch.unique(ids.flatten(0, 1), dim=0, return_inverse=True)
        vectors = self.tokens(
            None if chars is None else rows[:, -chars.shape[2] :], None if words is None else rows[:, 0]
        )
        output = self.run_stacks(vectors, positions.view(ids.shape[:2]), lengths, state)
        return output.layers(), output.final_state()

    def run_stacks(
        self, vectors: Tensor, positions: Tensor, lengths: Tensor, state: BiState | None = None
    ) -> BatchOutput:
        """Run both stacks on the token vectors (N, D) that `positions` (B, T) index.

        A `state` with fewer rows than sentences is padded with zeros. The result stays packed.
        """
        batch, width = positions.shape
        on_cpu = vectors.device.type == "cpu"
        splits = on_cpu and not torch.is_grad_enabled()
        parts = max(1, min(count_core_pairs(), batch // MIN_SENTENCES_PER_THREAD)) if splits else 1
        lengths = lengths.cpu()  # the sizes of a packed batch drive a Python loop over time steps
        packed = [pack_batch(lengths, width, part, parts).to(vectors.device) for part in range(parts)]
        before = pad_state(state, self.zero_state(batch)) if state else None
        flat = positions.to(vectors.device).flatten()
        stacks = self.forward_stack, self.backward_stack
        tasks = [(direction, part) for direction in (0, 1) for part in packed]
        prepared = []
        for direction, part in tasks:
            initial = (
                select_state_rows(before[direction], part.order) if before is not None else len(part.order)
            )
            numbers = flat[part.rows(direction)]  # (N,)
            prepared.append(stacks[direction].prepare(vectors, part.sizes, initial, numbers))
        native = [stack.native for stack in prepared if stack.native is not None]
        if len(native) == len(prepared):
            lstm.run_together(native)
            results = [(stack.outputs, stack.states) for stack in native]
        else:
            runs = [stack.run for stack in prepared]
            results = run_parallel(runs) if on_cpu else [run() for run in runs]
        return BatchOutput(
            batch,
            width,
            [
                DirectionOutput(*task, [stack.x, *outputs], after)
                for task, stack, (outputs, after) in zip(tasks, prepared, results, strict=True)
            ],
            before,
        )
