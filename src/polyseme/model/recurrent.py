"""One direction of the biLM: a stack of LSTM, GRU or plain RNN layers over packed sentences.

    model.tokens  ->  model.recurrent  ->  model.bilm

Packed means time-major without padding: the first `sizes[0]` rows are the first tokens of all
sentences, longest sentence first, the next `sizes[1]` rows their second tokens, and so on.

N tokens of the batch, B sentences, M memory cells, D outputs (after the projection, if there is one).
State is a pair: what a layer last gave out (B, D) and its memory (B, M); both recur.
What must not change: the memory is clipped before it is used, the projected output is clipped before
it is given out, and it is the clipped output that recurs. The residual is not fed back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, cast

import torch
from torch import Tensor, nn

from polyseme.model.kernels import lstm
from polyseme.model.narrow import Narrow, narrow
from polyseme.model.packing import pack_weight, packed_product, packed_sum

State = tuple[Tensor, Tensor]
WEIGHTS = ("input_weight", "hidden_weight", "projection")  # those of a cell that may be narrow
INPUT_BYTES = 16 << 20  # memory for the hoisted input products of a run of time steps


class Cell(nn.Module):
    """One layer of one direction: an LSTM, a GRU or a plain RNN, and the projection of its output.

    lstm: m' = clip(sigmoid(f) m + sigmoid(i) tanh(g)),  o tanh(m') is projected and given out;
    gru:  r, z = sigmoid(W x + U y + b),  m' = (1 - z) m + z tanh(U (r * y) + W x);
    rnn:  m' = tanh(W x + U y + b);  m' is projected and given out, y is what was given out before.
    """

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
    ) -> None:
        super().__init__()
        self.kind, self.cells, self.outputs = kind, cells, outputs
        self.cell_clip, self.output_clip, self.forget_bias = cell_clip, output_clip, forget_bias
        # Rows of the gates: i, f, o, candidate (lstm); r, z, candidate (gru); candidate (rnn). The reset
        # gate of a gru works on the output that recurs, so it is as wide as that.
        gates = {"lstm": 4 * cells, "gru": outputs + 2 * cells, "rnn": cells}[kind]
        biases = gates - cells if kind == "gru" and not candidate_bias else gates
        self.input_weight = nn.Parameter(torch.empty(gates, inputs))
        self.hidden_weight = nn.Parameter(torch.empty(gates, outputs))
        self.bias = nn.Parameter(torch.zeros(biases))
        self.projection = nn.Parameter(torch.empty(outputs, cells)) if project else None
        self._packed: tuple[Tensor | None, Tensor | None] = (None, None)  # hidden weight and projection
        self._native: lstm.Packed | None = None  # the same for the loop in C
        self._packed_version: list[tuple[int, int]] = []
        self._precision = "fp32"  # of what is packed
        self.stored: dict[str, Narrow] = {}  # the weights, where they are kept in bf16 or int8 alone
        for weight in (self.input_weight, self.hidden_weight, self.projection):
            if weight is not None:
                nn.init.xavier_uniform_(weight)

    def pack(self, precision: str = "fp32") -> None:
        """Take the weights of an LSTM as final and lay them out for faster steps without gradients.

        precision: one of narrow.PRECISIONS, for the loop in C; elsewhere the weights stay as they are.
        """
        packed = self._precision == precision and self._packed_version == self._state_of_weights()
        if self.kind != "lstm" or packed:
            return
        self.unpack()
        weights = self._for_native(precision)
        if weights:
            inputs = None if precision == "fp32" else weights["input_weight"]
            self._native = lstm.pack(weights["hidden_weight"], weights.get("projection"), inputs)
        else:
            self.widen()
            self._packed = pack_weight(self.hidden_weight), pack_weight(self.projection)
        self._precision, self._packed_version = precision, self._state_of_weights()

    def unpack(self) -> None:
        """Forget what was packed: the weights are about to change."""
        self._packed, self._native, self._packed_version = (None, None), None, []

    def _for_native(self, precision: str) -> dict[str, Narrow]:
        """The weights as the loop in C takes them, none where it does not."""
        if self.stored:
            return self.stored if lstm.fits(self.bias) else {}
        weights = {name: weight for name in WEIGHTS if (weight := getattr(self, name)) is not None}
        if not lstm.fits(*weights.values()):
            return {}
        return {name: narrow(weight, precision) for name, weight in weights.items()}

    def store(self, stored: dict[str, Narrow]) -> None:
        """Keep the weights of these names narrow; the parameters have shapes and no memory until `widen`."""
        self.unpack()
        self.stored = stored
        for name, weight in stored.items():
            shape = torch.empty_like(weight.values, dtype=torch.float32, device="meta")
            setattr(self, name, nn.Parameter(shape))

    def widen(self) -> None:
        """Give parameters that are `stored` their memory, as fp32: more than the loop in C needs them."""
        stored, self.stored = self.stored, {}
        with torch.inference_mode(False):
            for name, weight in stored.items():
                setattr(self, name, nn.Parameter(weight.wide()))

    def round_to(self, precision: str) -> None:
        """Round the weights to what `precision` can hold; they stay fp32."""
        weights = {name: weight for name in WEIGHTS if (weight := getattr(self, name)) is not None}
        self.store({name: narrow(weight, precision) for name, weight in weights.items()})
        self.widen()

    def _state_of_weights(self) -> list[tuple[int, int]]:
        """Changes when a packed weight is replaced or written to, but for what fused optimisers write."""
        weights = [w for name in WEIGHTS if (w := getattr(self, name)) is not None]
        return [(w.data_ptr(), 0 if w.is_inference() else w._version) for w in weights]

    def __getstate__(self) -> dict[str, Any]:
        """Copies begin unpacked: their weights may change."""
        return self.__dict__ | {"_packed": (None, None), "_native": None, "_packed_version": []}

    def _apply(self, function: Any, recurse: bool = True) -> Any:
        """Another dtype or device: what was packed does not fit any more."""
        self.unpack()
        self.widen()
        return super()._apply(function, recurse)  # type: ignore[no-untyped-call]

    def start(self, batch: int) -> State:
        """Zero state for `batch` sentences."""
        return self.bias.new_zeros(batch, self.outputs), self.bias.new_zeros(batch, self.cells)

    def gate_bias(self) -> Tensor:
        """The bias of every gate (gates,): learned, with the constant of the forget gate, or zero."""
        if self.kind == "lstm" and self.forget_bias:
            bias = self.bias.clone()
            bias[self.cells : 2 * self.cells] += self.forget_bias
            return bias
        return torch.cat([self.bias, self.bias.new_zeros(len(self.input_weight) - len(self.bias))])

    def hoist(self, x: Tensor) -> Tensor:
        """The part of the gates that needs no state: (N, inputs) -> (N, gates)."""
        return torch.addmm(self.gate_bias(), x, self.input_weight.t())

    def step(self, z: Tensor, output: Tensor, memory: Tensor) -> State:
        """One time step of n sentences: hoisted gates (n, gates) and state to the next state.

        Without gradients it works in place: z is used up and `memory` becomes the new memory.
        """
        advance = {"lstm": self._lstm, "gru": self._gru, "rnn": self._rnn}[self.kind]
        raw, memory = advance(z, output, memory)
        if self.projection is None:
            return raw, memory
        packed = None if torch.is_grad_enabled() else self._packed[1]
        output = packed_product(raw, packed) if packed is not None else raw @ self.projection.t()
        return self._clip(output, self.output_clip), memory

    def _lstm(self, z: Tensor, output: Tensor, memory: Tensor) -> State:
        m, hidden = self.cells, self._packed[0]
        if torch.is_grad_enabled():
            z = torch.addmm(z, output, self.hidden_weight.t())
            i, f, o = torch.sigmoid(z[:, : 3 * m]).split(m, dim=1)
            memory = self._clip(f * memory + i * torch.tanh(z[:, 3 * m :]), self.cell_clip)
            return o * torch.tanh(memory), memory
        z = packed_sum(output, hidden, z) if hidden is not None else z.addmm_(output, self.hidden_weight.t())
        i, f, o = z[:, : 3 * m].sigmoid_().split(m, dim=1)
        memory.mul_(f).addcmul_(i, z[:, 3 * m :].tanh_())
        self._clip(memory, self.cell_clip)
        return torch.tanh(memory).mul_(o), memory

    def _gru(self, z: Tensor, output: Tensor, memory: Tensor) -> State:
        gates = self.outputs + self.cells
        both = torch.sigmoid(torch.addmm(z[:, :gates], output, self.hidden_weight[:gates].t()))
        reset, update = both.split([self.outputs, self.cells], dim=1)
        candidate = torch.tanh(torch.addmm(z[:, gates:], reset * output, self.hidden_weight[gates:].t()))
        memory = self._clip(torch.lerp(memory, candidate, update), self.cell_clip)
        return memory, memory

    def _rnn(self, z: Tensor, output: Tensor, memory: Tensor) -> State:
        memory = self._clip(torch.tanh(torch.addmm(z, output, self.hidden_weight.t())), self.cell_clip)
        return memory, memory

    def _clip(self, values: Tensor, limit: float | None) -> Tensor:
        """Cut to ±limit, in place where no gradient is kept."""
        if limit is None:
            return values
        return values.clamp(-limit, limit) if torch.is_grad_enabled() else values.clamp_(-limit, limit)

    def forward(self, x: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """Packed inputs (N, inputs) to packed outputs (N, D) and the state after each sentence's end."""
        if torch.is_grad_enabled() or self._packed_version != self._state_of_weights():
            self.unpack()  # whoever wants gradients may be about to change the weights, too
        elif self._native is not None and lstm.fits(x, *state) and not torch.is_autocast_enabled("cpu"):
            return self._read(self._native, x, sizes, state)
        self.widen()
        output, memory = state
        if not torch.is_grad_enabled():
            memory = memory.clone()  # `step` works in place, the caller's state stays
        outputs: list[Tensor] = []
        ended: list[State] = []
        for rows, steps in self._blocks(sizes):
            hoisted = self.hoist(x[rows])
            for z in hoisted.split(steps):
                if len(z) < len(output):  # the shortest sentences are through: they stand last
                    ended.append((output[len(z) :], memory[len(z) :]))
                    output, memory = output[: len(z)], memory[: len(z)]
                output, memory = self.step(z, output, memory)
                outputs.append(output)
        ended.append((output, memory))
        ended.reverse()
        final = torch.cat([output for output, _ in ended]), torch.cat([memory for _, memory in ended])
        return torch.cat(outputs) if outputs else x.new_empty(0, self.outputs), final

    def _read(self, packed: lstm.Packed, x: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """`forward` of an LSTM in C, without gradients."""
        bias, clips = self.gate_bias(), (self.cell_clip, self.output_clip)
        outputs = [x.new_empty(0, self.outputs)]
        for rows, steps in self._blocks(sizes):
            if packed.input is None:
                z = x[rows] @ self.input_weight.t()
            else:
                z = lstm.product(x[rows], packed.input)
            output, state = lstm.read(packed, z, bias, steps, state, clips)
            outputs.append(output)
        return outputs[1] if len(outputs) == 2 else torch.cat(outputs), state

    def _blocks(self, sizes: list[int]) -> Iterator[tuple[slice, list[int]]]:
        """Cut the time steps into runs whose hoisted products fit INPUT_BYTES: rows and their steps."""
        limit = max(1, INPUT_BYTES // (len(self.input_weight) * self.input_weight.element_size()))
        if torch.is_grad_enabled():
            limit = sum(sizes)
        first = start = 0
        for step, stop in enumerate(accumulate(sizes)):
            if step + 1 == len(sizes) or stop + sizes[step + 1] - start > limit:
                yield slice(start, stop), sizes[first : step + 1]
                first, start = step + 1, stop


class Stack(nn.Module):
    """The layers of one direction, each reading the one below; residuals from the second on."""

    def __init__(self, cells: list[Cell], *, residual: bool) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)
        self.residual = residual

    def start(self, batch: int) -> list[State]:
        """Zero state for `batch` sentences, one pair a layer."""
        return [cell.start(batch) for cell in cast("Iterable[Cell]", self.cells)]

    def forward(self, x: Tensor, sizes: list[int], states: list[State]) -> tuple[list[Tensor], list[State]]:
        """Packed token vectors (N, D) to the packed outputs of every layer and their last states."""
        layers: list[Tensor] = []
        final: list[State] = []
        for number, (cell, state) in enumerate(zip(self.cells, states, strict=True)):
            output, last = cell(x, sizes, state)
            x = x + output if self.residual and number else output
            layers.append(x)
            final.append(last)
        return layers, final
