"""BERT of a published size by onnxruntime: the top layer of all words, timed as the peers are.

Run by onnxruntime's Python:
    .venv-onnx/bin/python benchmarks/peers/bert_onnx.py mini MODELS SENTENCES --time [--int8]

The graph has onnxruntime's own fused operators (Attention, SkipLayerNormalization, BiasGelu), as its
optimiser for transformers makes them; --int8 quantises it dynamically (`quantize_dynamic`). A word counts
as one word piece, with [CLS] and [SEP] around a sentence: real text has more pieces than words, and
splitting words costs time, too. Speed depends on shapes only.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import measure
import numpy as np

SIZES = {"mini": (4, 256), "small": (4, 512), "base": (12, 768)}  # layers and values
HEAD, VOCABULARY, LONGEST = 64, 30_522, 512
INT8 = "--int8" in sys.argv


def load(size: Path, folder: Path, batch: int, threads: int) -> measure.Embed:
    """Open the model, which is built if MODELS does not have it."""
    import onnxruntime

    path = build(size.name, folder)
    if INT8:
        path = quantise(path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    numbers: dict[str, int] = {}

    def embed(sentences: list[measure.Sentence]) -> list[np.ndarray]:
        width = max(map(len, sentences)) + 2
        ids = np.zeros((len(sentences), width), np.int64)
        mask = np.zeros((len(sentences), width), np.int32)
        for row, sentence in enumerate(sentences):
            pieces = [1000 + numbers.setdefault(word, len(numbers)) % 29_000 for word in sentence]
            ids[row, : len(pieces) + 2] = [101, *pieces, 102]
            mask[row, : len(pieces) + 2] = 1
        (vectors,) = session.run(None, {"ids": ids, "mask": mask})
        return [vectors[row, None, 1 : len(sentence) + 1] for row, sentence in enumerate(sentences)]

    return embed


def build(size: str, folder: Path) -> Path:
    """Write the model of a size, once."""
    import onnx
    from onnx import TensorProto, helper

    path = folder / f"bert-{size}.onnx"
    if path.exists():
        return path
    n_layers, width = SIZES[size]
    weights = dict(_weights(n_layers, width))
    nodes = [
        helper.make_node("Gather", ["words", "ids"], ["word"]),
        helper.make_node("Shape", ["ids"], ["length"], start=1),
        helper.make_node("Slice", ["positions", "zero", "length"], ["position"]),
        helper.make_node("Add", ["word", "position"], ["embedded"]),
        helper.make_node("LayerNormalization", ["embedded", "gain", "shift"], ["x0"], epsilon=1e-12),
    ]
    for layer in range(n_layers):
        nodes += _layer_nodes(helper, layer, width // HEAD)
    graph = helper.make_graph(
        nodes,
        f"bert-{size}",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info("mask", TensorProto.INT32, ["batch", "length"]),
        ],
        [helper.make_tensor_value_info(f"x{n_layers}", TensorProto.FLOAT, ["batch", "length", width])],
        [onnx.numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def _layer_nodes(helper, layer: int, heads: int) -> list:
    """One layer: attention, then two products, each added to its input and normalised."""
    fused = {"domain": "com.microsoft"}
    x, n = f"x{layer}", lambda name: f"{name}{layer}"
    return [
        helper.make_node(
            "Attention", [x, n("qkv"), n("qkv_bias"), "mask"], [n("heads")], num_heads=heads, **fused
        ),
        helper.make_node("MatMul", [n("heads"), n("joined")], [n("attended")]),
        helper.make_node(
            "SkipLayerNormalization",
            [n("attended"), x, "gain", "shift", "bias"],
            [n("y")],
            epsilon=1e-12,
            **fused,
        ),
        helper.make_node("MatMul", [n("y"), n("wide")], [n("inner")]),
        helper.make_node("BiasGelu", [n("inner"), "wide_bias"], [n("active")], **fused),
        helper.make_node("MatMul", [n("active"), n("narrow")], [n("outer")]),
        helper.make_node(
            "SkipLayerNormalization",
            [n("outer"), n("y"), "gain", "shift", "bias"],
            [f"x{layer + 1}"],
            epsilon=1e-12,
            **fused,
        ),
    ]


def _weights(n_layers: int, width: int) -> Iterator[tuple[str, np.ndarray]]:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.normal(0, 0.02, shape).astype(np.float32)

    yield "words", normal(VOCABULARY, width)
    yield "positions", normal(LONGEST, width)
    yield "zero", np.zeros(1, np.int64)
    yield "gain", np.ones(width, np.float32)
    yield "shift", np.zeros(width, np.float32)
    yield "bias", np.zeros(width, np.float32)
    yield "wide_bias", np.zeros(4 * width, np.float32)
    for layer in range(n_layers):
        yield f"qkv{layer}", normal(width, 3 * width)
        yield f"qkv_bias{layer}", np.zeros(3 * width, np.float32)
        yield f"joined{layer}", normal(width, width)
        yield f"wide{layer}", normal(width, 4 * width)
        yield f"narrow{layer}", normal(4 * width, width)


def quantise(path: Path) -> Path:
    """Write the int8 model, once."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantised = path.with_name(f"{path.stem}-int8.onnx")
    if not quantised.exists():
        quantize_dynamic(
            path,
            quantised,
            op_types_to_quantize=["MatMul", "Attention"],
            weight_type=QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True, "DefaultTensorType": 1},  # 1 is float32
        )
    return quantised


if __name__ == "__main__":
    if INT8:
        sys.argv.remove("--int8")
    measure.main(__doc__, load)
