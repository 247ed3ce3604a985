"""One direction of the biLM: a stack of LSTM, GRU or plain RNN layers over packed sentences.

    model.tokens  ->  model.recurrent  ->  model.bilm

Packed means time-major without padding: the first `sizes[0]` rows are the first tokens of all
sentences, longest sentence first, the next `sizes[1]` rows their second tokens, and so on.

N tokens of the batch, B sentences, M memory cells, D outputs (after the projection, if there is one).
State is a pair: the last output of a layer (B, D) and its memory (B, M); both recur.
What must not change: the memory is clipped before it is used, the projected output is clipped before
it is returned, and the clipped output recurs. The residual is not fed back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.onednn import multiply_add_packed, multiply_packed, pack_weight
from polyseme.model.fast.packed_lstm import fits_packed_lstm, run_packed_lstm
from polyseme.model.fast.quantisation import Quantisable, QuantisedMatrix

State = tuple[Tensor, Tensor]
INPUT_BYTES = 16 << 20  # memory for the input products that are computed ahead of the time steps


class OneDnnWeights(NamedTuple):
    """The weights of a cell in oneDNN's layout, for time steps in torch; None if oneDNN is unavailable."""

    hidden: Tensor | None
    projection: Tensor | None


class PreparedStack(NamedTuple):
    """A stack ready to run: `run` returns the packed outputs and the final state of every layer."""

    x: Tensor  # (N, D) the token vectors, filled by `run` if `native`
    run: Callable[[], tuple[list[Tensor], list[State]]]
    native: lstm.PreparedLstm | None  # what `run` runs in C, without any torch function


class RecurrentCell(Quantisable):
    """One layer of one direction: an LSTM, a GRU or a plain RNN, and the projection of its output.

    lstm: m' = clip(sigmoid(f) m + sigmoid(i) tanh(g)),  the output is the projected o tanh(m');
    gru:  r, z = sigmoid(W x + U y + b),  m' = (1 - z) m + z tanh(U (r * y) + W x);
    rnn:  m' = tanh(W x + U y + b);  the output is the projected m', y is the output before.
    """

    MATRICES = ("input_weight", "hidden_weight", "projection")

    def __init__(
        self,
        kind: str,
        inputs: int,
        cells: int,
        outputs: int,
        *,
        project: bool,
        cell_clip: float | None = None,
        output_clip: float | None = None,
        forget_bias: float = 1.0,
        candidate_bias: bool = False,
        input_bytes: int = INPUT_BYTES,
    ) -> None:
        super().__init__()
        self.kind, self.cells, self.outputs = kind, cells, outputs
        self.cell_clip, self.output_clip, self.forget_bias = cell_clip, output_clip, forget_bias
        self.input_bytes = input_bytes
        # Rows of the gates: i, f, o, candidate (lstm); r, z, candidate (gru); candidate (rnn). The reset
        # gate of a gru multiplies the output that recurs, so it has the same width.
        gates = {"lstm": 4 * cells, "gru": outputs + 2 * cells, "rnn": cells}[kind]
        biases = gates - cells if kind == "gru" and not candidate_bias else gates
        self.input_weight = nn.Parameter(torch.empty(gates, inputs))
        self.hidden_weight = nn.Parameter(torch.empty(gates, outputs))
        self.bias = nn.Parameter(torch.zeros(biases))
        self.projection = nn.Parameter(torch.empty(outputs, cells)) if project else None
        for weight in self.matrices().values():
            nn.init.xavier_uniform_(weight)

    def can_run_native(self) -> bool:
        """Whether the C loop can run this cell: LSTMs only."""
        return self.kind == "lstm" and lstm.is_supported(
            self.bias, *(() if self.quantised else self.matrices().values())
        )

    def build_layout(self, weights: dict[str, QuantisedMatrix]) -> lstm.PackedLayer | OneDnnWeights | None:
        """Pack an LSTM for the C loop, or for time steps in torch; other cells need no layout."""
        if self.kind != "lstm":
            return None
        if not weights:
            self.dequantise()
            return OneDnnWeights(pack_weight(self.hidden_weight), pack_weight(self.projection))
        return lstm.pack_layer(weights["hidden_weight"], weights.get("projection"), weights["input_weight"])

    def native_layer(self) -> lstm.LstmLayer | None:
        """The layer for the C loop; None if the weights are not packed, have changed or need gradients."""
        layout = self.current_layout()
        if not isinstance(layout, lstm.PackedLayer):
            return None
        return lstm.LstmLayer(layout, self.bias, (self.cell_clip, self.output_clip), self.forget_bias)

    def zero_state(self, batch: int) -> State:
        """Zero state for `batch` sentences."""
        return self.bias.new_zeros(batch, self.outputs), self.bias.new_zeros(batch, self.cells)

    def gate_bias(self) -> Tensor:
        """The bias of every gate (gates,), with the constant of the forget gate; zero if none is learned."""
        if self.kind == "lstm" and self.forget_bias:
            constant = torch.zeros_like(self.bias, requires_grad=False)
            constant[self.cells : 2 * self.cells] = self.forget_bias
            return self.bias + constant
        return torch.cat([self.bias, self.bias.new_zeros(len(self.input_weight) - len(self.bias))])

    def project_inputs(self, x: Tensor) -> Tensor:
        """The input's share of the gates, which needs no state: (N, inputs) -> (N, gates)."""
        return torch.addmm(self.gate_bias(), x, self.input_weight.t())

    def step(self, z: Tensor, output: Tensor, memory: Tensor, packed: OneDnnWeights) -> State:
        """Run one time step of n sentences, from the input's share of the gates (n, gates) and the state.

        Without gradients it works in place: z is overwritten and `memory` becomes the new memory.
        """
        if self.kind == "lstm":
            raw, memory = self._step_lstm(z, output, memory, packed.hidden)
        else:
            raw, memory = (self._step_gru if self.kind == "gru" else self._step_rnn)(z, output, memory)
        if self.projection is None:
            return raw, memory
        projection = packed.projection
        output = multiply_packed(raw, projection) if projection is not None else raw @ self.projection.t()
        return self._clip(output, self.output_clip), memory

    def _step_lstm(self, z: Tensor, output: Tensor, memory: Tensor, hidden: Tensor | None) -> State:
        m = self.cells
        if torch.is_grad_enabled():
            z = torch.addmm(z, output, self.hidden_weight.t())
            i, f, o = torch.sigmoid(z[:, : 3 * m]).split(m, dim=1)
            memory = self._clip(f * memory + i * torch.tanh(z[:, 3 * m :]), self.cell_clip)
            return o * torch.tanh(memory), memory
        z = (
            multiply_add_packed(output, hidden, z)
            if hidden is not None
            else z.addmm_(output, self.hidden_weight.t())
        )
        i, f, o = z[:, : 3 * m].sigmoid_().split(m, dim=1)
        memory.mul_(f).addcmul_(i, z[:, 3 * m :].tanh_())
        self._clip(memory, self.cell_clip)
        return torch.tanh(memory).mul_(o), memory

    def _step_gru(self, z: Tensor, output: Tensor, memory: Tensor) -> State:
        gates = self.outputs + self.cells
        both = torch.sigmoid(torch.addmm(z[:, :gates], output, self.hidden_weight[:gates].t()))
        reset, update = both.split([self.outputs, self.cells], dim=1)
        candidate = torch.tanh(torch.addmm(z[:, gates:], reset * output, self.hidden_weight[gates:].t()))
        memory = self._clip(torch.lerp(memory, candidate, update), self.cell_clip)
        return memory, memory

    def _step_rnn(self, z: Tensor, output: Tensor, memory: Tensor) -> State:
        memory = self._clip(torch.tanh(torch.addmm(z, output, self.hidden_weight.t())), self.cell_clip)
        return memory, memory

    def _clip(self, values: Tensor, limit: float | None) -> Tensor:
        """Clip to ±limit, in place without gradients."""
        if limit is None:
            return values
        return values.clamp(-limit, limit) if torch.is_grad_enabled() else values.clamp_(-limit, limit)

    def forward(self, x: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """Packed inputs (N, inputs) to packed outputs (N, D) and the state after each sentence's end."""
        layer = self.native_layer()
        if layer is not None and can_run_native(x, state):
            return lstm.run_layer(layer, x, sizes, state)
        layout = self.current_layout()
        packed = layout if isinstance(layout, OneDnnWeights) else OneDnnWeights(None, None)
        self.dequantise()
        clips, projects = (self.cell_clip, self.output_clip), self.projection is not None
        if self.kind == "lstm" and fits_packed_lstm(x.device, self.cells, self.outputs, clips, projects):
            weights = self.input_weight, self.hidden_weight, self.gate_bias(), self.projection
            return run_packed_lstm(x, sizes, state, *weights)
        output, memory = state
        if not torch.is_grad_enabled():
            memory = memory.clone()  # `step` works in place and must not change the caller's state
        outputs: list[Tensor] = []
        ended: list[State] = []
        for rows, steps in self._group_steps(sizes):
            for z in self.project_inputs(x[rows]).split(steps):
                if len(z) < len(output):  # the shortest sentences, which come last, have ended
                    ended.append((output[len(z) :], memory[len(z) :]))
                    output, memory = output[: len(z)], memory[: len(z)]
                output, memory = self.step(z, output, memory, packed)
                outputs.append(output)
        ended.append((output, memory))
        ended.reverse()
        final = torch.cat([output for output, _ in ended]), torch.cat([memory for _, memory in ended])
        return torch.cat(outputs) if outputs else x.new_empty(0, self.outputs), final

    def _group_steps(self, sizes: list[int]) -> Iterator[tuple[slice, list[int]]]:
        """Group time steps whose input products fit `input_bytes`: their rows and their sizes."""
        limit = max(1, self.input_bytes // (len(self.input_weight) * self.input_weight.element_size()))
        if torch.is_grad_enabled():
            limit = sum(sizes)
        first = start = 0
        for step, stop in enumerate(accumulate(sizes)):
            if step + 1 == len(sizes) or stop + sizes[step + 1] - start > limit:
                yield slice(start, stop), sizes[first : step + 1]
                first, start = step + 1, stop


def can_run_native(x: Tensor, *states: State) -> bool:
    """Whether the C loop can read these tensors."""
    parts = (part for state in states for part in state)
    return lstm.is_supported(x, *parts) and not torch.is_autocast_enabled("cpu")


class RecurrentStack(nn.Module):
    """The layers of one direction, each reading the one below; residuals from the second on."""

    def __init__(self, cells: list[RecurrentCell], *, residual: bool) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)
        self.residual = residual

    def zero_state(self, batch: int) -> list[State]:
        """Zero state for `batch` sentences, one pair a layer."""
        return [cell.zero_state(batch) for cell in cast("Iterable[RecurrentCell]", self.cells)]

    def prepare(
        self, vectors: Tensor, sizes: list[int], states: list[State] | int, numbers: Tensor | None = None
    ) -> PreparedStack:
        """Prepare `forward` so that `run` does the work, in C if possible.

        Args:
            vectors: Token vectors (N, D), or with `numbers` those that the tokens (N,) are numbers of.
            sizes: The sentences that are still running at each time step.
            states: The initial state of each layer, or the number of sentences that start from zero.
            numbers: The row in `vectors` of each token.

        """
        layers: list[lstm.LstmLayer] = []
        for cell in cast("Iterable[RecurrentCell]", self.cells):
            layer = cell.native_layer()
            if layer is None:
                break
            layers.append(layer)
        initial = [] if isinstance(states, int) else states
        if len(layers) == len(self.cells) and can_run_native(vectors, *initial):
            prepared = lstm.PreparedLstm(
                layers, vectors, sizes, states, residual=self.residual, numbers=numbers
            )
            return PreparedStack(prepared.x, prepared.run, prepared)
        x = vectors if numbers is None else vectors[numbers]
        initial = self.zero_state(states) if isinstance(states, int) else states
        return PreparedStack(x, partial(self._run_torch, x, sizes, initial), None)

    def forward(self, x: Tensor, sizes: list[int], states: list[State]) -> tuple[list[Tensor], list[State]]:
        """Packed token vectors (N, D) to the packed outputs and the final state of every layer."""
        return self.prepare(x, sizes, states).run()

    def _run_torch(
        self, x: Tensor, sizes: list[int], states: list[State]
    ) -> tuple[list[Tensor], list[State]]:
        layers: list[Tensor] = []
        final: list[State] = []
        for number, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            output, last = cell(x, sizes, state)
            x = x + output if self.residual and number else output
            layers.append(x)
            final.append(last)
        return layers, final
