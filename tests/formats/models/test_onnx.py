"""ONNX: onnxruntime gives the layers of torch, for every kind of model, batch and length.

B sentences, T tokens incl. <S> and </S>, C characters, H = both directions, L layers.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from builders import SENTENCES, random_model, small_config
from polyseme.errors import FormatError, MissingExtraError, UsageError
from polyseme.formats.models import onnx as onnx_format
from polyseme.formats.models.onnx import METADATA, build_graph, describe_ids
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from random_models import Case, random_batch, random_config, random_network

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[3]
ATOL = 1e-5
GRID: dict[str, Sequence[Any]] = {
    "cell": ("lstm", "gru", "rnn"),
    "layers": (1, 2, 3),
    "projected": (True, False),
    "clipped": (True, False),
    "residual": (True, False),
    "highways": (0, 1, 2),
    "activation": ("relu", "tanh"),
    "tokens": ("bytes", "codepoints", "words", "words+chars"),
}
CASES = [
    Case(cell=cell, tokens=tokens, **{name: rng.choice(GRID[name]) for name in list(GRID)[1:-1]})
    for cell in GRID["cell"]
    for tokens in GRID["tokens"]
    for rng in (random.Random(f"{cell} {tokens} {number}") for number in range(4))
]
BATCHES = [[4, 9, 1, 0, 7, 2], [30], [1], [2, 2, 2]]  # lengths, with an empty sentence


def open_session(graph: Any) -> Any:
    return onnxruntime.InferenceSession(
        graph if isinstance(graph, bytes) else graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def open_file(path: Path) -> Any:
    return open_session(path.read_bytes())


def load_example() -> Callable[..., Any]:
    """The function `embed` of examples/onnx_vectors.py, which needs no torch."""
    spec = importlib.util.spec_from_file_location("onnx_vectors", ROOT / "examples" / "onnx_vectors.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    embed: Callable[..., Any] = module.embed
    return embed


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_onnxruntime_gives_the_layers_of_torch(case: Case):
    rng = np.random.default_rng(CASES.index(case))
    config = random_config(case, rng)
    network = random_network(config, rng)
    session = open_session(build_graph(Pretrained(config, network, None, None)))
    for lengths in BATCHES:
        batch = random_batch(config, lengths, rng)
        ids = {"chars": batch.chars, "words": batch.words}
        feed = {name: values.numpy() for name, values in ids.items() if values is not None}
        (layers,) = session.run(["layers"], feed)
        with torch.inference_mode():
            expected = network(batch.chars, batch.words, batch.lengths)[0].numpy()
        assert layers.shape == expected.shape == (case.layers + 1, len(lengths), max(lengths), config.size)
        np.testing.assert_allclose(layers, expected, atol=ATOL, rtol=0)
        for b, length in enumerate(lengths):
            assert not layers[:, b, length:].any()  # zero after the last token


def test_the_sample_contains_every_value_of_every_option():
    for name, values in GRID.items():
        assert {getattr(case, name) for case in CASES} == set(values)


@pytest.mark.parametrize("name", ["en", "zh", "en-classic", "zh-classic"])
def test_a_bundled_model_gives_the_same_vectors_without_torch(name: str, tmp_path: Path):
    assert polyseme.convert(name, tmp_path / "x.onnx") == "onnx"
    elmo = polyseme.load(name, precision="fp32")
    long_word = "incomprehensibilities-and-more"
    sentences = [["The", "bank", "failed", "."], ["他", "银行", "經濟", "😀", long_word, "曹操"], ["I"], []]
    vectors = load_example()(open_file(tmp_path / "x.onnx"), sentences)
    for layers, expected in zip(vectors, elmo.embed(sentences, layer="all"), strict=True):
        if expected.size:
            np.testing.assert_allclose(layers, expected, atol=ATOL, rtol=0)


@pytest.mark.parametrize("tokens", ["bytes", "codepoints", "words", "words+chars"])
def test_the_metadata_is_enough_to_turn_tokens_into_ids(tokens: str, tmp_path: Path):
    chars = {"max_chars": 12, "dim": 3, "filters": [[1, 2], [2, 3]], "highways": 1}
    chars["encoding"] = "codepoints" if tokens == "codepoints" else "bytes"
    sections: dict[str, Any] = {"chars": None if tokens == "words" else chars}
    if "words" in tokens:
        sections["words"] = {"dim": 4}
    model = random_model(small_config(**sections))
    save_pretrained(model, tmp_path / "x.onnx")
    vectors = load_example()(open_file(tmp_path / "x.onnx"), SENTENCES)
    for layers, expected in zip(vectors, polyseme.Elmo(model).embed(SENTENCES, layer="all"), strict=True):
        np.testing.assert_allclose(layers, expected, atol=ATOL, rtol=0)


def test_the_file_states_its_inputs_outputs_and_ids(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "x.onnx")
    session = open_file(tmp_path / "x.onnx")
    assert [(entry.name, entry.shape) for entry in session.get_inputs()] == [("chars", ["B", "T", 12])]
    assert [(entry.name, entry.shape) for entry in session.get_outputs()] == [("layers", [3, "B", "T", 8])]
    values = json.loads(session.get_modelmeta().custom_metadata_map[METADATA])
    assert values["words"] is None
    assert values["chars"]["first_byte"] == 1
    assert values == json.loads(json.dumps(describe_ids(random_model(small_config()))))


def test_sentences_do_not_change_each_other():
    model = random_model(small_config())
    session, rng = open_session(build_graph(model)), np.random.default_rng(0)
    batch = random_batch(model.config, [9, 3, 5], rng)
    assert batch.chars is not None
    (together,) = session.run(None, {"chars": batch.chars.numpy()})
    for b, length in enumerate([9, 3, 5]):
        (alone,) = session.run(None, {"chars": batch.chars[b : b + 1, :length].numpy()})
        np.testing.assert_allclose(together[:, b : b + 1, :length], alone, atol=ATOL, rtol=0)


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_quantised_model_is_written_in_fp32_and_says_so(precision: str, tmp_path: Path, caplog):
    model = random_model(small_config())
    save_pretrained(model, tmp_path / "small", precision=precision)
    elmo = polyseme.load(tmp_path / "small")
    elmo.save(tmp_path / "x.onnx")
    assert "onnx holds fp32 weights only" in caplog.text
    assert elmo.path is not None  # writing does not change the model
    vectors = load_example()(open_file(tmp_path / "x.onnx"), SENTENCES)
    exact = polyseme.load(tmp_path / "small", precision="fp32").embed(SENTENCES, layer="all")
    for layers, expected in zip(vectors, exact, strict=True):
        np.testing.assert_allclose(layers, expected, atol=ATOL, rtol=0)


def test_onnxruntimes_dynamic_quantiser_keeps_the_directions_of_en(tmp_path: Path, capsys):
    quantization = pytest.importorskip("onnxruntime.quantization")
    polyseme.convert("en", tmp_path / "en.onnx")
    quantization.quantize_dynamic(
        tmp_path / "en.onnx",
        tmp_path / "en8.onnx",
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        weight_type=quantization.QuantType.QInt8,
        extra_options={"EnableSubgraph": True},
    )
    assert (tmp_path / "en8.onnx").stat().st_size < 0.3 * (tmp_path / "en.onnx").stat().st_size
    scans = [node for node in onnx.load(tmp_path / "en8.onnx").graph.node if node.op_type == "Scan"]
    kinds = [node.op_type for scan in scans for a in scan.attribute if a.name == "body" for node in a.g.node]
    assert kinds.count("MatMulInteger") == 8  # hidden weight and projection of two layers, both directions
    assert "MatMul" not in kinds
    sentence = [
        "The",
        "committee",
        "met",
        "on",
        "the",
        "river",
        "bank",
        "and",
        "decided",
        "to",
        "reject",
        "the",
        "proposal",
        ".",
    ]
    (exact,), (rounded,) = (
        load_example()(open_file(tmp_path / f"{name}.onnx"), [sentence]) for name in ("en", "en8")
    )
    lengths = np.linalg.norm(exact, axis=-1) * np.linalg.norm(rounded, axis=-1)
    assert ((exact * rounded).sum(-1) / lengths).min() > 0.995


def test_wrong_names_and_options_are_refused_and_leave_nothing(tmp_path: Path):
    model = random_model(small_config())
    with pytest.raises(UsageError, match=r'an ONNX file ends in \.onnx, and `to` is "onnx"'):
        save_pretrained(model, tmp_path / "folder", to="onnx")
    with pytest.raises(UsageError, match=r'an ONNX file ends in \.onnx, and `to` is "hdf5"'):
        save_pretrained(model, tmp_path / "x.onnx", to="hdf5")
    with pytest.raises(UsageError, match=r'the native format is a folder.*`to="onnx"`'):
        save_pretrained(model, tmp_path / "x.onnx", to="native")
    with pytest.raises(UsageError, match=r"onnx cannot hold int8.*quantize_dynamic"):
        save_pretrained(model, tmp_path / "x.onnx", precision="int8")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "x.onnx").write_text("old")
    with pytest.raises(UsageError, match=r"x\.onnx: exists already"):
        save_pretrained(model, tmp_path / "x.onnx")
    save_pretrained(model, tmp_path / "x.onnx", force=True)
    assert open_file(tmp_path / "x.onnx").get_inputs()[0].name == "chars"


def test_a_file_cannot_be_loaded_back_and_says_what_to_load(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "x.onnx")
    with pytest.raises(FormatError, match=r"x\.onnx: ONNX is written, not read.*the model it was made from"):
        polyseme.load(tmp_path / "x.onnx")


def test_a_model_too_large_for_a_file_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(onnx_format, "LARGEST", 100)
    with pytest.raises(FormatError, match=r"but an \.onnx file has at most"):
        save_pretrained(random_model(small_config()), tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


def test_without_onnx_the_message_has_the_command(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r'Writing ONNX needs onnx: pip install "polyseme\[onnx\]"'):
        save_pretrained(random_model(small_config()), tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []
