"""Write a model as one ONNX graph, for onnxruntime in any language and in the browser.

    formats.models.pretrained  ->  formats.models.onnx  ->  onnxruntime

Inputs are ids with <S> and </S>, 0 behind the end of a sentence: `chars` (B, T, C), `words` (B, T), or both,
as the model reads them. The output is `layers` (L, B, T, H), zero behind the end, each sentence from zero
state. B and T are free. The metadata `polyseme` is JSON: how to turn tokens into ids.

B sentences, T tokens, C characters, N tokens of a batch, D one direction, H = 2D, L layers, M memory cells.
Each layer of each direction is a `Scan` over time, because ONNX's own LSTM has neither a projection nor clips
of memory and output. The backward one scans from the last token to the first: state stays zero behind the
end. The products of the inputs stand outside the loop. The network is `model.bilm`; what it computes must not
differ here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from polyseme.config import CharsSettings
from polyseme.errors import FormatError, require
from polyseme.formats.models.pretrained import Pretrained
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.model.recurrent import RecurrentCell
from polyseme.text.chars import ByteAlphabet, CodepointAlphabet
from polyseme.text.simplified import pair_characters

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

METADATA = "polyseme"  # key of the metadata
OPSET, IR_VERSION = 17, 8  # of 2022: old runtimes read the file, too
LARGEST = 2**31 - 1  # bytes: the limit of Protocol Buffers


def write(model: Pretrained, path: Path, progress: OnProgress = ignore_progress) -> None:
    """Write `model` to the file `path`, which has fp32 weights.

    Raises:
        MissingExtraError: The package onnx is not installed.
        FormatError: The model is too large for a file of this format.

    """
    size = sum(tensor.numel() for tensor in model.network.state_dict().values()) * 4
    if size > LARGEST:
        raise FormatError(
            f"{path}: the weights take {size / 1e9:.1f} GB, but an .onnx file has at most 2.1 GB. "
            'Use `to="native"` or `to="hdf5"`.'
        )
    graph = build_graph(model)
    progress(ProgressEvent("writing", detail=f"{size / 1e6:,.0f} MB"))
    path.write_bytes(graph.SerializeToString())


def build_graph(model: Pretrained) -> ModelProto:
    """The ONNX model of `model`, checked."""
    onnx = require("onnx", "onnx", "Writing ONNX")
    builder = _GraphBuilder(onnx.helper, onnx.TensorProto, model)
    proto = builder.build()
    onnx.checker.check_model(proto, full_check=True)
    return cast("ModelProto", proto)


def describe_ids(model: Pretrained) -> dict[str, Any]:
    """How to turn tokens into ids, as values for JSON.

    Returns:
        "chars": `max_chars`, the ids of the marks, and the id of each character, or for bytes `first_byte`,
        the id of byte 0; None if the model reads no characters. "words": the vocabulary, whose first word has
        id 1, and its marks; None if the model has no word table. A word and its form in `simplified`
        characters have the lower id of the two.

    """
    config, alphabet, vocab = model.config, model.alphabet, model.vocab
    chars: dict[str, Any] | None = None
    if config.chars is not None and alphabet is not None:
        begin, end = alphabet.boundaries().tolist()  # [word begin, mark, word end, padding…]
        chars = {
            "max_chars": alphabet.max_chars,
            "word_begin": begin[0],
            "word_end": begin[2],
            "padding": alphabet.padding,
            "sentence_begin": begin[1],
            "sentence_end": end[1],
        }
        if isinstance(alphabet, CodepointAlphabet):
            chars |= {"ids": alphabet.ids_by_character(), "unknown": alphabet.unknown}
        elif isinstance(alphabet, ByteAlphabet):
            chars["first_byte"] = 1
    words: dict[str, Any] | None = None
    if config.words is not None and vocab is not None:
        words = {"list": vocab.words, "begin": vocab.begin, "end": vocab.end, "unknown": vocab.unknown}
        words["simplified"] = dict(pair_characters()) if vocab.simplifies else {}
    return {"segment": config.segment, "chars": chars, "words": words}


class _GraphBuilder:
    """Builds the graph node by node; a method returns the name of what it computes."""

    def __init__(self, helper: Any, types: Any, model: Pretrained) -> None:
        self._helper, self._types, self._model = helper, types, model
        self._weights = model.tensors()  # fp32
        self._constants: dict[str, Any] = {}
        self._nodes: list[NodeProto] = []
        self._count = 0

    def build(self) -> Any:
        """The whole graph."""
        config = self._model.config
        inputs = []
        if config.chars is not None:
            inputs.append(self._declare("chars", self._types.INT64, ["B", "T", config.chars.max_chars]))
        if config.words is not None:
            inputs.append(self._declare("words", self._types.INT64, ["B", "T"]))
        mask = self._add_mask()  # (B, T, 1)
        x = self._add_tokens()  # (B, T, D)
        directions = [
            self._add_stack(x, mask, stack, backward)
            for backward, stack in enumerate(("forward_stack", "backward_stack"))
        ]
        pairs = [(x, x), *zip(*directions, strict=True)]
        layers = [self._unsqueeze(self._add("Concat", pair, axis=2), 0) for pair in pairs]  # (1, B, T, H)
        stacked = layers[0] if len(layers) == 1 else self._add("Concat", layers, axis=0)  # (L, B, T, H)
        zero = self._constant("zero", np.zeros((), np.float32))
        self._add("Where", [mask, stacked, zero], output="layers")
        output = self._declare("layers", self._types.FLOAT, [config.layers, "B", "T", config.size])
        graph = self._helper.make_graph(
            self._nodes, "polyseme", inputs, [output], list(self._constants.values())
        )
        proto = self._helper.make_model(
            graph,
            opset_imports=[self._helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="polyseme",
        )
        values = json.dumps(describe_ids(self._model), ensure_ascii=False)
        self._helper.set_model_props(proto, {METADATA: values})
        return proto

    def _add_mask(self) -> str:
        """Whether there is a token: (B, T, 1)."""
        ids = "words"
        if self._model.config.chars is not None:
            ids = self._add("ReduceMax", ["chars"], axes=[2], keepdims=0)
        return self._unsqueeze(self._add("Greater", [ids, self._integers("no_token", [0])]), 2)

    def _add_tokens(self) -> str:
        """The vectors of all tokens (B, T, D); each distinct token is computed once."""
        config = self._model.config
        shape = self._add("Shape", ["words" if config.chars is None else "chars"], start=0, end=2)
        columns = []  # of the rows that identify a token
        if config.words is not None:
            columns.append(self._unsqueeze("words", 2))
        if config.chars is not None:
            columns.append("chars")
        width = (config.words is not None) + (config.chars.max_chars if config.chars else 0)
        ids = columns[0] if len(columns) == 1 else self._add("Concat", columns, axis=2)
        flat = self._add("Reshape", [ids, self._integers("flat", [-1, width])])  # (N, width)
        rows, _, numbers, _ = self._add_all("Unique", [flat], 4, axis=0)
        parts = []
        if config.words is not None:
            ids = self._add("Gather", [rows, self._constant("first", np.array(0, np.int64))], axis=1)
            parts.append(self._add("Gather", [self._weight("tokens.words.weight"), ids]))
        if config.chars is not None:
            parts.append(
                self._add_char_cnn(self._slice(rows, width - config.chars.max_chars, width), config.chars)
            )
        vectors = parts[0] if len(parts) == 1 else self._add("Concat", parts, axis=1)
        if config.projects_tokens:
            vectors = self._add_linear(vectors, "tokens.projection")
        x = self._add("Gather", [vectors, numbers])  # (N, D)
        full = self._add("Concat", [shape, self._integers("d", [config.recurrent.outputs])], axis=0)
        return self._add("Reshape", [x, full], allowzero=1)  # or a batch without sentences would fail

    def _add_char_cnn(self, ids: str, chars: CharsSettings) -> str:
        """Character ids (N, C) to the maxima of the filters after the highways (N, F)."""
        embedded = self._add("Gather", [self._weight("tokens.chars.embedding.weight"), ids])
        embedded = self._add("Transpose", [embedded], perm=[0, 2, 1])  # (N, dim, C)
        maxima = []
        for number, (width, _) in enumerate(chars.filters):
            names = [f"tokens.chars.convolutions.{number}.{part}" for part in ("weight", "bias")]
            filtered = self._add(
                "Conv", [embedded, *map(self._weight, names)], kernel_shape=[width]
            )  # (N, filters, C - width + 1)
            maxima.append(self._add("ReduceMax", [filtered], axes=[2], keepdims=0))
        joined = maxima[0] if len(maxima) == 1 else self._add("Concat", maxima, axis=1)
        x = self._add({"relu": "Relu", "tanh": "Tanh"}[chars.activation], [joined])
        for number in range(chars.highways):
            name = f"tokens.chars.highways.{number}"
            gate = self._add("Sigmoid", [self._add_linear(x, f"{name}.carry")])
            new = self._add("Relu", [self._add_linear(x, f"{name}.transform")])
            one = self._constant("one", np.ones((), np.float32))
            kept = self._add("Mul", [self._add("Sub", [one, gate]), x])
            x = self._add("Add", [self._add("Mul", [gate, new]), kept])
        return x

    def _add_stack(self, x: str, mask: str, stack: str, backward: int) -> list[str]:
        """One direction: token vectors (B, T, D) to each layer's outputs (B, T, D)."""
        recurrent = self._model.config.recurrent
        x = self._add("Transpose", [x], perm=[1, 0, 2])  # (T, B, D), over which Scan loops
        mask = self._add("Transpose", [mask], perm=[1, 0, 2])
        batch = self._add("Shape", [x], start=1, end=2)
        layers = []
        for number in range(recurrent.layers):
            y = self._add_layer(x, mask, batch, f"{stack}.cells.{number}", backward)
            x = self._add("Add", [x, y]) if recurrent.residual and number else y
            layers.append(self._add("Transpose", [x], perm=[1, 0, 2]))
        return layers

    def _add_layer(self, x: str, mask: str, batch: str, name: str, backward: int) -> str:
        """One layer of one direction: (T, B, D) to (T, B, D)."""
        recurrent = self._model.config.recurrent
        cell = cast("RecurrentCell", self._model.network.get_submodule(name))
        bias = self._constant(f"{name}.gates", _to_array(cell.gate_bias()))
        z = self._add("Add", [self._add("MatMul", [x, self._weight(f"{name}.input_weight", True)]), bias])
        sizes = {"output": recurrent.outputs, "memory": recurrent.cells}
        states = []
        for state, size in sizes.items():
            shape = self._add("Concat", [batch, self._integers(f"{state}_size", [size])], axis=0)
            states.append(self._add("ConstantOfShape", [shape]))  # of float zeros
        body = self._build_step(cell, name)
        return self._add_all(
            "Scan",
            [*states, z, mask],
            3,
            body=body,
            num_scan_inputs=2,
            scan_input_directions=[backward, backward],
            scan_output_directions=[backward],
        )[2]

    def _build_step(self, cell: RecurrentCell, name: str) -> Any:
        """The body of a Scan: (output, memory, z, whether there is a token) to (output, memory, output)."""
        outer, self._nodes = self._nodes, []
        output, memory, z, token = (f"{name}.{part}" for part in ("before", "memory", "z", "token"))
        inputs = [
            self._declare(output, self._types.FLOAT, ["B", cell.outputs]),
            self._declare(memory, self._types.FLOAT, ["B", cell.cells]),
            self._declare(z, self._types.FLOAT, ["B", len(cell.input_weight)]),
            self._declare(token, self._types.BOOL, ["B", 1]),
        ]
        add_cell = {"lstm": self._add_lstm, "gru": self._add_gru, "rnn": self._add_rnn}[cell.kind]
        raw, new_memory = add_cell(cell, name, z, output, memory)
        if cell.projection is not None:
            raw = self._add("MatMul", [raw, self._weight(f"{name}.projection", True)])
            raw = self._clip(raw, cell.output_clip)
        after, kept, emitted = (f"{name}.{part}" for part in ("after", "kept", "emitted"))
        self._add("Where", [token, raw, output], output=after)
        self._add("Where", [token, new_memory, memory], output=kept)
        self._add("Identity", [after], output=emitted)
        outputs = [
            self._declare(after, self._types.FLOAT, ["B", cell.outputs]),
            self._declare(kept, self._types.FLOAT, ["B", cell.cells]),
            self._declare(emitted, self._types.FLOAT, ["B", cell.outputs]),
        ]
        body = self._helper.make_graph(self._nodes, name, inputs, outputs)
        self._nodes = outer
        return body

    def _add_lstm(self, cell: RecurrentCell, name: str, z: str, output: str, memory: str) -> tuple[str, str]:
        """The raw output and the memory of an LSTM, whose gates are i, f, o and the candidate."""
        m = cell.cells
        z = self._add("Add", [z, self._multiply_hidden(output, name, slice(None))])
        i, f, o = self._split(self._add("Sigmoid", [self._slice(z, 0, 3 * m)]), [m, m, m])
        new = self._add("Mul", [i, self._add("Tanh", [self._slice(z, 3 * m, 4 * m)])])
        memory = self._clip(self._add("Add", [self._add("Mul", [f, memory]), new]), cell.cell_clip)
        return self._add("Mul", [o, self._add("Tanh", [memory])]), memory

    def _add_gru(self, cell: RecurrentCell, name: str, z: str, output: str, memory: str) -> tuple[str, str]:
        """The raw output of a GRU, which is its memory; the reset gate multiplies the output before."""
        gates, rows = cell.outputs + cell.cells, len(cell.input_weight)
        hidden = self._multiply_hidden(output, name, slice(0, gates))
        both = self._add("Sigmoid", [self._add("Add", [self._slice(z, 0, gates), hidden])])
        reset, update = self._split(both, [cell.outputs, cell.cells])
        hidden = self._multiply_hidden(self._add("Mul", [reset, output]), name, slice(gates, rows))
        candidate = self._add("Tanh", [self._add("Add", [self._slice(z, gates, rows), hidden])])
        step = self._add("Mul", [update, self._add("Sub", [candidate, memory])])
        memory = self._clip(self._add("Add", [memory, step]), cell.cell_clip)
        return memory, memory

    def _add_rnn(self, cell: RecurrentCell, name: str, z: str, output: str, memory: str) -> tuple[str, str]:
        """The raw output of a plain RNN, which is its memory."""
        z = self._add("Add", [z, self._multiply_hidden(output, name, slice(None))])
        memory = self._clip(self._add("Tanh", [z]), cell.cell_clip)
        return memory, memory

    def _multiply_hidden(self, x: str, name: str, rows: slice) -> str:
        """The product of x (B, D) and those rows of the hidden weight."""
        weight = _to_array(self._weights[f"{name}.hidden_weight"][rows].t())
        suffix = "" if rows == slice(None) else f".{rows.start}"
        return self._add("MatMul", [x, self._constant(f"{name}.hidden_weight{suffix}", weight)])

    def _add_linear(self, x: str, name: str) -> str:
        product = self._add("MatMul", [x, self._weight(f"{name}.weight", True)])
        return self._add("Add", [product, self._weight(f"{name}.bias")])

    def _clip(self, x: str, limit: float | None) -> str:
        if limit is None:
            return x
        low, high = (self._constant(f"{bound:g}", np.array(bound, np.float32)) for bound in (-limit, limit))
        return self._add("Clip", [x, low, high])

    def _slice(self, x: str, start: int, stop: int) -> str:
        """Columns of x (N, …)."""
        bounds = [self._integers(f"column_{number}", [number]) for number in (start, stop)]
        return self._add("Slice", [x, *bounds, self._integers("axis_1", [1])])

    def _split(self, x: str, sizes: Sequence[int]) -> list[str]:
        """Columns of x (N, …) in parts of these sizes."""
        name = "_".join(["sizes", *map(str, sizes)])
        return self._add_all("Split", [x, self._integers(name, sizes)], len(sizes), axis=1)

    def _unsqueeze(self, x: str, axis: int) -> str:
        return self._add("Unsqueeze", [x, self._integers(f"axis_{axis}", [axis])])

    def _weight(self, name: str, transposed: bool = False) -> str:
        weight = self._weights[name]
        return self._constant(name, _to_array(weight.t() if transposed else weight))

    def _integers(self, name: str, values: Sequence[int]) -> str:
        return self._constant(name, np.array(values, np.int64))

    def _constant(self, name: str, values: NDArray[Any]) -> str:
        """The name of a constant; equal names have equal values."""
        if name not in self._constants:
            kind = self._types.INT64 if values.dtype == np.int64 else self._types.FLOAT
            self._constants[name] = self._helper.make_tensor(
                name, kind, values.shape, values.astype(values.dtype.newbyteorder("<")).tobytes(), raw=True
            )
        return name

    def _add(self, kind: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output."""
        name = output or self._name(kind)
        self._nodes.append(self._helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def _add_all(self, kind: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        """Add a node with `count` outputs."""
        names = [self._name(kind) for _ in range(count)]
        self._nodes.append(self._helper.make_node(kind, inputs, names, name=names[0], **attributes))
        return names

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    def _declare(self, name: str, kind: Any, shape: Sequence[int | str]) -> ValueInfoProto:
        """Declare an input or output."""
        return cast("ValueInfoProto", self._helper.make_tensor_value_info(name, kind, shape))


def _to_array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().contiguous().numpy()
    return array
