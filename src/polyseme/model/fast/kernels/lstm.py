"""Run LSTM layers and products in C: torch tensors in, torch tensors out.

    model.recurrent, model.tokens, kernels.training  ->  kernels.lstm  ->  kernels.native

Sentences are packed as in `model.recurrent`. All tensors are fp32, on the CPU; gates in the order i, f, o,
candidate. Weights without gradients may be bf16 or int8. With int8 the inputs of a product are quantised too,
with one scale per row, so that rows do not affect each other. A call uses one core and releases the GIL.

N packed tokens, B sentences, M memory cells, D outputs.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from polyseme.model.fast.kernels import native
from polyseme.model.fast.paging import allocate_bytes
from polyseme.model.fast.quantisation import QuantisedMatrix

PANEL = 16  # columns that are packed together
ALIGNMENT = 64  # bytes: a cache line and the widest vector
Z_BYTES = 1 << 20  # memory for the input's share of the gates of some time steps: it stays in the L2 cache
MIN_Z_ROWS = 64  # tokens whose share is computed together even if it takes more memory
MAX_INT8_VALUES = (2**31 - 1) // 127**2  # values of a row whose int8 products never overflow 32 bits
State = tuple[Tensor, Tensor]  # outputs (B, D) and memory (B, M)
Clips = tuple[float | None, float | None]  # of the memory and of the projected output


class PackedWeight(NamedTuple):
    """A copy of a weight (n, k) in the layout of the C code: fp32, bf16 or int8.

    With several groups, such as the gates, the panels of the groups alternate; n includes their padding.
    """

    packed: Tensor  # bytes
    kind: int  # one of native.KINDS
    scales: Tensor | None  # (n,) of int8
    n: int
    k: int


class PackedLayer(NamedTuple):
    """The weights of a layer, packed for the forward or for the backward pass."""

    hidden: PackedWeight
    projection: PackedWeight | None
    cells: int
    outputs: int
    input: PackedWeight | None = None  # in training without groups


class LstmLayer(NamedTuple):
    """A layer for inference: weights, bias (4M,), clips, and a constant for the forget gate."""

    packed: PackedLayer
    bias: Tensor
    clips: Clips
    forget: float = 0.0


class LstmForward(NamedTuple):
    """The tensors that `run_forward` fills: its results, and what `run_backward` needs."""

    output: Tensor  # (N, D)
    h: Tensor  # (B, D) the state after each sentence's end
    c: Tensor  # (B, M)
    gates: Tensor  # (N, 4M) in: the input's share; out: all gates, activated
    memory: Tensor  # (N, M)
    raw: Tensor | None  # (N, M) outputs before the projection, if there is one

    def direction(self, number: int) -> LstmForward:
        """One direction of a run whose tensors have the direction as axis 0."""
        return LstmForward(*(None if t is None else t[number] for t in self))  # type: ignore[arg-type]


class LstmBackward(NamedTuple):
    """The tensors that `run_backward` fills; the gradients of the weights are products of these."""

    z: Tensor  # (N, 4M) of the gates before their activation
    unclipped: Tensor  # (N, D) of the projected outputs before the clip
    recurred: Tensor  # (N, D) no gradient: the outputs that recurred into each step
    h: Tensor  # (B, D) in: of the final state, out: of the initial state
    c: Tensor  # (B, M)

    def direction(self, number: int) -> LstmBackward:
        """One direction of gradients whose tensors have the direction as axis 0."""
        return LstmBackward(*(t[number] for t in self))


class PreparedLstm:
    """A stack of layers, checked and with all memory allocated: `run` is one call in C."""

    def __init__(
        self,
        layers: list[LstmLayer],
        vectors: Tensor,
        sizes: list[int],
        states: list[State] | int,
        *,
        residual: bool = False,
        numbers: Tensor | None = None,
    ) -> None:
        """Prepare a stack for packed tokens.

        Args:
            layers: The layers, the lowest first.
            vectors: The inputs (N, I), or with `numbers` the vectors (any, I) that they are taken from.
            sizes: The sentences that are still running at each time step.
            states: The initial state of each layer, or the number of sentences that start from zero.
            residual: Add its input to the output of a layer, from the second on.
            numbers: (N,) the row in `vectors` of each token.

        """
        batch, tokens = states if isinstance(states, int) else len(states[0][0]), sum(sizes)
        self._steps = _step_sizes(sizes, batch)
        first = layers[0].packed.input
        if first is None:
            raise ValueError("the input weight is not packed")
        vectors = vectors.contiguous()
        self.x = vectors if numbers is None else vectors.new_empty(tokens, first.k)
        name, rows = ("x", tokens) if numbers is None else ("vectors", len(vectors))
        _check_tensor(name, vectors, (rows, first.k))
        if numbers is not None and (numbers.dtype != torch.int64 or numbers.shape != (tokens,)):
            raise ValueError(f"numbers must be {tokens} int64, not {numbers.shape} {numbers.dtype}")
        numbers = None if numbers is None else numbers.contiguous()
        self._tasks = (native.Lstm * len(layers))()
        self._given = [self._first_state(layer, states, at) for at, layer in enumerate(layers)]
        self.outputs = [vectors.new_empty(tokens, layer.packed.outputs) for layer in layers]
        self.states = [
            (vectors.new_empty(batch, layer.packed.outputs), vectors.new_empty(batch, layer.packed.cells))
            for layer in layers
        ]
        x = self.x
        for at, layer in enumerate(layers):
            self._fill_task(at, layer, x, batch)
            x = self.outputs[at]
        self._work = self._allocate_work()  # one layer after the other uses it
        self.stack = native.Stack(self._tasks, len(layers), residual, tokens, len(vectors))
        self.stack.vectors, self.stack.numbers = vectors.data_ptr(), _pointer(numbers)
        self.stack.x = self.x.data_ptr()
        self._alive = layers, vectors, numbers

    def _first_state(self, layer: LstmLayer, states: list[State] | int, at: int) -> State:
        m, d = layer.packed.cells, layer.packed.outputs
        if isinstance(states, int):
            zeros = _zeros(states * max(m, d))
            return zeros, zeros
        h, c = (part.contiguous() for part in states[at])
        _check_tensor("first_h", h, (len(states[0][0]), d))
        _check_tensor("first_c", c, (len(states[0][0]), m))
        return h, c

    def _fill_task(self, at: int, layer: LstmLayer, x: Tensor, batch: int) -> None:
        """Fill the C struct of a layer with input x (N, I), except for the memory to work in."""
        inputs, m = layer.packed.input, layer.packed.cells
        if inputs is None:
            raise ValueError("the input weight is not packed")
        _check_tensor("bias", layer.bias, (4 * m,))
        _check_tensor("x", x, (len(x), inputs.k))
        self._tasks[at] = _task(layer.packed, self._steps, batch, layer.clips)
        task = self._tasks[at]
        task.forget, task.inputs = layer.forget, inputs.k
        task.z_rows = max(batch, min(len(x), max(MIN_Z_ROWS, Z_BYTES // (4 * inputs.n))))
        task.input, task.input_scales = inputs.packed.data_ptr(), _pointer(inputs.scales)
        task.x, task.bias, task.output = x.data_ptr(), layer.bias.data_ptr(), self.outputs[at].data_ptr()
        (task.first_h, task.first_c), (task.last_h, task.last_c) = (
            (h.data_ptr(), c.data_ptr()) for h, c in (self._given[at], self.states[at])
        )

    def _allocate_work(self) -> Tensor:
        """Allocate the memory that all layers work in, and set the pointers to it."""
        scratch_size = native.load_library().polyseme_lstm_scratch_size
        z = max(4 * (task.z_rows + 1) * 4 * -(-task.cells // PANEL) * PANEL for task in self._tasks)
        raw = max(4 * task.batch * task.cells for task in self._tasks)
        raw = -(-raw // ALIGNMENT) * ALIGNMENT
        work = native.allocate_scratch(z + raw + max(map(scratch_size, self._tasks)))
        for task in self._tasks:
            task.z = work.data_ptr()
            task.raw, task.scratch = task.z + z, task.z + z + raw
        return work

    def run(self) -> tuple[list[Tensor], list[State]]:
        """Return the outputs (N, D) and the final state of every layer."""
        run_together([self])
        return self.outputs, self.states


def run_together(stacks: Sequence[PreparedLstm]) -> None:
    """Run some stacks in C, as many at once as torch has threads."""
    tasks = (native.Stack * len(stacks))(*(stack.stack for stack in stacks))
    if not native.load_library().polyseme_read(tasks, len(tasks), torch.get_num_threads()):
        raise IndexError("numbers has a row that vectors does not have")


_shared_zeros: list[Tensor] = []  # the largest that was needed; read by C, written by nobody


def _zeros(count: int) -> Tensor:
    """At least `count` zeros, for initial states."""
    if not _shared_zeros or len(_shared_zeros[0]) < count:
        _shared_zeros[:] = [torch.zeros(count, dtype=torch.float32, device="cpu")]
    return _shared_zeros[0]


def is_supported(*tensors: Tensor | None) -> bool:
    """Whether the library is available and can read all of these tensors."""
    return native.is_available() and all(
        t is None or (t.dtype == torch.float32 and t.device.type == "cpu") for t in tensors
    )


def multiplies_bf16() -> bool:
    """Whether the library multiplies bf16 on this machine, faster than fp32."""
    return native.is_available() and native.active_instruction_set() == "bf16"


def pack_layer(
    hidden: QuantisedMatrix, projection: QuantisedMatrix | None, inputs: QuantisedMatrix | None = None
) -> PackedLayer:
    """Pack hidden (4M, D), projection (D, M) and inputs (4M, I), of one precision, for inference."""
    cells, outputs = hidden.values.shape[0] // 4, hidden.values.shape[1]
    packed_projection = None if projection is None else pack_weight(projection)
    packed_inputs = None if inputs is None else pack_weight(inputs, groups=4)
    return PackedLayer(pack_weight(hidden, groups=4), packed_projection, cells, outputs, packed_inputs)


def pack_training(
    hidden: Tensor, projection: Tensor | None, inputs: Tensor, dtype: torch.dtype
) -> PackedLayer:
    """Pack fp32 weights, hidden (4M, D), projection (D, M) and inputs (4M, I), for `run_forward`."""
    cells, outputs = hidden.shape[0] // 4, hidden.shape[1]
    packed_projection = None if projection is None else pack_rounded(projection, dtype)
    return PackedLayer(
        pack_rounded(hidden, dtype, groups=4), packed_projection, cells, outputs, pack_rounded(inputs, dtype)
    )


def pack_backward(
    hidden: Tensor, projection: Tensor | None, inputs: Tensor, dtype: torch.dtype
) -> PackedLayer:
    """Pack the same weights for `run_backward` and the gradient of the inputs."""
    cells, outputs = hidden.shape[0] // 4, hidden.shape[1]
    transposed = None if projection is None else pack_rounded(projection.t(), dtype)
    return PackedLayer(
        pack_rounded(hidden.t(), dtype), transposed, cells, outputs, pack_rounded(inputs.t(), dtype)
    )


def pack_rounded(weight: Tensor, dtype: torch.dtype, groups: int = 1) -> PackedWeight:
    """Pack fp32 (groups * n, k), with any strides, as fp32 or rounded to bf16."""
    if dtype == torch.float32:
        return pack_weight(QuantisedMatrix(weight), groups)
    library, (rows, k), kind = native.load_library(), weight.shape, native.KINDS[dtype]
    packed = native.allocate_scratch(library.polyseme_packed_size(kind, groups, rows // groups, k))
    address = weight.data_ptr()
    library.polyseme_pack_rounded(address, groups, rows // groups, k, *weight.stride(), packed.data_ptr())
    return PackedWeight(packed, kind, None, _padded_rows(rows, groups), k)


def run_layer(layer: LstmLayer, x: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
    """Run one layer: inputs (N, I) and state to outputs (N, D) and the final state."""
    outputs, states = PreparedLstm([layer], x, sizes, [state]).run()
    return outputs[0], states[0]


def run_forward(
    packed: PackedLayer, bias: Tensor, sizes: list[int], state: State, clips: Clips, run: LstmForward
) -> None:
    """Run a layer from the input's share of the gates, and save what `run_backward` needs."""
    task = _training_task(
        packed, sizes, state, clips,
        z=run.gates, bias=bias, output=run.output, last_h=run.h, last_c=run.c,
        gates=run.gates, memory=run.memory, raw=run.raw,
    )  # fmt: skip
    native.load_library().polyseme_lstm_forward(task)


def run_backward(
    packed: PackedLayer,
    sizes: list[int],
    state: State,
    clips: Clips,
    run: LstmForward,
    d_output: Tensor,
    gradients: LstmBackward,
) -> None:
    """Compute the gradients of the inputs of `run` from those of its outputs (N, D) and its final state."""
    task = _training_task(
        packed, sizes, state, clips,
        output=run.output, gates=run.gates, memory=run.memory, last_h=gradients.h, last_c=gradients.c,
        d_output=d_output, d_z=gradients.z, d_given=gradients.unclipped, recurred=gradients.recurred,
    )  # fmt: skip
    native.load_library().polyseme_lstm_backward(task)


def pack_weight(weight: QuantisedMatrix, groups: int = 1) -> PackedWeight:
    """Pack (groups * n, k), with any strides."""
    library, values, (rows, k) = native.load_library(), weight.values.detach(), weight.values.shape
    kind = native.KINDS[values.dtype]
    if weight.scales is not None and k > MAX_INT8_VALUES:
        raise ValueError(f"int8 sums are exact for up to {MAX_INT8_VALUES} values, not {k}")
    packed = allocate_bytes(library.polyseme_packed_size(kind, groups, rows // groups, k))
    address = values.data_ptr()
    library.polyseme_pack(kind, address, groups, rows // groups, k, *values.stride(), packed.data_ptr())
    return PackedWeight(packed, kind, _scales(weight.scales, groups), _padded_rows(rows, groups), k)


def _padded_rows(rows: int, groups: int) -> int:
    """The rows of a packed weight: panels of several groups are complete."""
    return rows if groups == 1 else groups * -(-rows // groups // PANEL) * PANEL


def _scales(scales: Tensor | None, groups: int) -> Tensor | None:
    """The int8 scales in the order of the packed panels."""
    if scales is None or groups == 1:
        return None if scales is None else scales.detach().contiguous()
    by_group = scales.detach().view(groups, -1)
    by_group = pad(by_group, (0, -by_group.shape[1] % PANEL))
    return by_group.view(groups, -1, PANEL).transpose(0, 1).contiguous().flatten()


def multiply(
    a: Tensor, weight: PackedWeight, out: Tensor | None = None, *, overwrite: bool = False
) -> Tensor:
    """Rows (N, k) times the packed weight, added to `out` (N, n) if there is one, unless `overwrite`."""
    return prepare_product(a, weight, out, overwrite=overwrite)()


def prepare_product(
    a: Tensor, weight: PackedWeight, out: Tensor | None = None, *, overwrite: bool = False
) -> Callable[[], Tensor]:
    """Prepare `multiply`, checked and with all memory allocated: the result is one call in C."""
    library, a, overwrite = native.load_library(), a.contiguous(), overwrite or out is None
    out = a.new_empty(len(a), weight.n) if out is None else out
    _check_tensor("a", a, (len(a), weight.k))
    _check_tensor("out", out, (len(a), weight.n))
    task = native.Product(weight.kind, overwrite, len(a), weight.k, weight.n)
    task.a, task.weight, task.scales = a.data_ptr(), weight.packed.data_ptr(), _pointer(weight.scales)
    scratch = None
    if weight.kind != native.KINDS[torch.float32]:
        scratch = native.allocate_scratch(library.polyseme_scratch_size(len(a), weight.k))
    task.scratch, task.out = _pointer(scratch), out.data_ptr()
    task.alive = a, weight, scratch

    def run() -> Tensor:
        library.polyseme_product(task)
        return out

    return run


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _training_task(
    packed: PackedLayer, sizes: list[int], state: State, clips: Clips, **tensors: Tensor | None
) -> Any:
    """A `struct lstm` of these tensors, which it checks and keeps alive."""
    batch, tokens, m, d = len(state[0]), sum(sizes), packed.cells, packed.outputs
    task = _task(packed, _step_sizes(sizes, batch), batch, clips)
    scratch = _allocate_scratch(task)
    task.scratch = _pointer(scratch)
    tensors |= {"first_h": state[0].contiguous(), "first_c": state[1].contiguous()}
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
        ("output", "d_output", "d_given", "recurred"), (tokens, d)
    )
    shapes |= dict.fromkeys(("gates", "d_z", "z"), (tokens, 4 * m))
    shapes |= dict.fromkeys(("first_h", "last_h"), (batch, d))
    shapes |= dict.fromkeys(("first_c", "last_c"), (batch, m))
    shapes |= {"memory": (tokens, m), "raw": (tokens, m), "bias": (4 * m,)}
    present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    _set_pointers(task, present, shapes)
    task.alive = packed, present, scratch
    return task


def _task(packed: PackedLayer, steps: Any, batch: int, clips: Clips) -> Any:
    """A `struct lstm` with weights and sizes, without the tensors of the batch."""
    task = native.Lstm(packed.hidden.kind, len(steps), batch, 0, packed.cells, packed.outputs)
    task.sizes = steps
    task.cell_clip, task.output_clip = (math.inf if clip is None else clip for clip in clips)
    task.hidden, task.hidden_scales = packed.hidden.packed.data_ptr(), _pointer(packed.hidden.scales)
    if packed.projection is not None:
        task.projection = packed.projection.packed.data_ptr()
        task.projection_scales = _pointer(packed.projection.scales)
    return task


def _step_sizes(sizes: list[int], batch: int) -> Any:
    """`sizes` as a C array; ValueError unless they fall."""
    if any(before < after for before, after in pairwise([batch, *sizes, 0])):
        raise ValueError(f"sizes must fall, from at most {batch}: {sizes}")
    return (ctypes.c_int64 * len(sizes))(*sizes)


def _allocate_scratch(task: Any) -> Tensor | None:
    """Memory for rows that are rounded to int8 or bf16."""
    if task.kind == native.KINDS[torch.float32]:
        return None
    return native.allocate_scratch(native.load_library().polyseme_lstm_scratch_size(task))


def _set_pointers(task: Any, tensors: dict[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check tensors and set the pointers of the task to them."""
    for name, tensor in tensors.items():
        _check_tensor(name, tensor, shapes[name])
        setattr(task, name, tensor.data_ptr())


def _check_tensor(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tensor.dtype != torch.float32 or tensor.device.type != "cpu" or not tensor.is_contiguous():
        raise ValueError(
            f"{name} must be fp32, on the CPU and contiguous, not {tensor.dtype}, {tensor.device}, "
            f"strides {tensor.stride()}"
        )
    if tensor.shape != shape:
        raise ValueError(f"{name} is {tuple(tensor.shape)}, expected {shape}")
