"""The native format: written and read without loss, old versions stay readable, errors are clear.

`tests/fixtures/native-v1` was written by format 1 and must stay readable; native-v1.json holds
the layers that the numpy reference (tests/reference.py) computed from it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from builders import all_layers, assert_same_vectors, random_model, small_config
from polyseme.errors import ConfigError, DataError, FormatError, PolysemeError
from polyseme.formats.models.native import is_native, read, write

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODEPOINTS = {"encoding": "codepoints", "max_chars": 8, "dim": 3, "filters": [[1, 2]], "highways": 1}
KINDS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "codepoints": {"chars": CODEPOINTS},
    "words": {"chars": None, "words": {"dim": 4}},
    "frozen words": {"chars": None, "words": {"dim": 3, "trained": False}},
    "both": {"chars": CODEPOINTS, "words": {"dim": 3}},
    "gru": {"recurrent": {"cell": "gru", "layers": 1, "cells": 5, "outputs": 4, "candidate_bias": True}},
    "rnn": {"recurrent": {"cell": "rnn", "layers": 3, "cells": 4, "outputs": 4, "residual": False}},
}


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy of the golden folder, to be damaged."""
    return shutil.copytree(FIXTURES / "native-v1", tmp_path / "model")


def change_config(folder: Path, **changes: Any) -> None:
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(values | changes), encoding="utf-8")


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("changes", KINDS.values(), ids=KINDS)
def test_a_model_is_read_as_it_was_written(changes: dict[str, Any], softmax: bool, tmp_path: Path):
    model = random_model(small_config(**changes), softmax=softmax)
    write(model, tmp_path / "model")
    again = read(tmp_path / "model")
    assert again.config == model.config
    assert again.origin == model.origin
    assert again.vocab is not None
    assert model.vocab is not None
    assert again.vocab.words == model.vocab.words
    assert again.tensors().keys() == model.tensors().keys()
    for name, values in model.tensors().items():
        assert torch.equal(values, again.tensors()[name]), name
    trained = {name for name, weight in model.network.named_parameters() if weight.requires_grad}
    assert {name for name, weight in again.network.named_parameters() if weight.requires_grad} == trained
    assert_same_vectors(again, model)


def test_a_model_without_a_vocabulary_has_no_vocab_file(tmp_path: Path):
    write(random_model(small_config(), words=None), tmp_path / "model")
    assert read(tmp_path / "model").vocab is None
    assert not (tmp_path / "model" / "vocab.txt").exists()


def test_version_1_stays_readable():
    expected = json.loads((FIXTURES / "native-v1.json").read_text(encoding="utf-8"))
    model = read(FIXTURES / "native-v1")
    assert model.config.segment == "zh"
    assert model.softmax is not None
    assert model.vocab is not None
    assert model.vocab.unknown == "<oov>"
    for layers, golden_layers in zip(
        all_layers(model, expected["sentences"]), expected["layers"], strict=True
    ):
        np.testing.assert_allclose(layers, golden_layers, atol=2e-6)


def test_version_1_without_vocabulary_marks_gets_those_of_bilm_tf(tmp_path: Path):
    write(random_model(small_config()), tmp_path / "model")
    values = json.loads((tmp_path / "model" / "config.json").read_text())
    del values["vocab_marks"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(values))
    vocab = read(tmp_path / "model").vocab
    assert vocab is not None
    assert vocab.begin == "<S>"


def test_a_later_version_is_refused_with_the_advice_to_upgrade(golden: Path):
    change_config(golden, polyseme_format=5, polyseme_version="9.8.7")
    with pytest.raises(FormatError, match=r"format 5, this Polyseme reads 1 to 4.*polyseme 9\.8\.7: upgrade"):
        read(golden)


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, True, [1]])
def test_an_invalid_version_is_refused(version: object, golden: Path):
    change_config(golden, polyseme_format=version)
    with pytest.raises(FormatError, match="this Polyseme reads 1 to 4"):
        read(golden)


def test_the_config_of_another_program_is_not_a_native_model(golden: Path):
    (golden / "config.json").write_text('{"model_type": "bert"}')
    assert not is_native(golden)
    with pytest.raises(FormatError, match="polyseme_format is missing"):
        read(golden)


@pytest.mark.parametrize(
    ("file", "error", "reason"),
    [
        ("config.json", ConfigError, "config.json: no such file"),
        ("model.safetensors", FormatError, "the model's weights are missing"),
        ("chars.json", FormatError, "the model needs its characters"),
        ("vocab.txt", FormatError, "but no vocabulary"),
    ],
)
def test_a_missing_file_is_named(file: str, error: type[PolysemeError], reason: str, golden: Path):
    (golden / file).unlink()
    with pytest.raises(error, match=reason):
        read(golden)


def test_truncated_and_damaged_weights_are_refused(golden: Path):
    path = golden / "model.safetensors"
    intact = path.read_bytes()
    for length in (0, 4, 8, 100, len(intact) // 2, len(intact) - 1):
        path.write_bytes(intact[:length])
        with pytest.raises(
            FormatError, match=r"model\.safetensors: not a safetensors file, or damaged.*Copy it again"
        ):
            read(golden)
    path.write_bytes(b"\xff" * 8 + intact[8:])  # a header of 2**64 bytes
    with pytest.raises(FormatError, match="damaged"):
        read(golden)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers": 3}, r"forward_stack\.cells\.2 is missing.*requires 3"),
        ({"layers": 1}, "forward_stack.cells.1.* is not part of this model"),
        ({"cells": 9}, r"is \(20, 3\), the config requires \(36, 3\)"),
        ({"layers": 10**9}, "requires 1000000000"),
        ({"cells": 10**12}, "the config requires"),
        ({"cells": 10**30}, "impossible sizes"),
    ],
)
def test_a_config_that_contradicts_the_weights_is_refused(change: dict[str, int], reason: str, golden: Path):
    model = json.loads((golden / "config.json").read_text(encoding="utf-8"))["model"]
    model["recurrent"] |= change
    change_config(golden, model=model)
    with pytest.raises(FormatError, match=reason):
        read(golden)


def test_huge_numbers_of_highways_and_characters_are_refused_without_allocating(golden: Path):
    model = json.loads((golden / "config.json").read_text(encoding="utf-8"))["model"]
    for change, reason in [({"highways": 10**9}, "highways"), ({"dim": 10**12}, "requires")]:
        change_config(golden, model=model | {"chars": model["chars"] | change})
        with pytest.raises(FormatError, match=reason):
            read(golden)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": None},
        {"model": {"chars": 3}},
        {"model": {"recurrent": {"layers": "two"}}},
        {"model": {"what": 1}},
        {"origin": ["a"]},
        {"origin": {"a": 1}},
        {"vocab_marks": "<S>"},
        {"vocab_marks": {"begin": 7}},
        {"vocab_marks": {"middle": "x"}},
    ],
    ids=str,
)
def test_a_config_of_wrong_types_is_refused(changes: dict[str, Any], golden: Path):
    change_config(golden, **changes)
    with pytest.raises((ConfigError, FormatError), match=r"config\.json"):
        read(golden)


def test_a_vocabulary_mark_that_is_not_a_word_is_refused(golden: Path):
    change_config(golden, vocab_marks={"begin": "<bos>", "end": "<eos>", "unknown": "<what>"})
    with pytest.raises(DataError, match="<what>"):
        read(golden)


@pytest.mark.parametrize(
    "text", ["", "{", '"a"', "[1, 2]", '["a", "a"]', '["a"]', "[" * 100_000, "1" * 5000], ids=lambda t: t[:9]
)
def test_a_damaged_character_file_is_refused(text: str, golden: Path):
    (golden / "chars.json").write_text(text)
    with pytest.raises(FormatError, match=r"chars\.json"):
        read(golden)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_with_nan_or_infinite_values_are_refused(value: float, golden: Path):
    weights = load_file(golden / "model.safetensors")
    weights = {name: tensor.clone() for name, tensor in weights.items()}
    weights["backward_stack.cells.1.bias"][3] = value
    save_file(weights, golden / "model.safetensors")
    with pytest.raises(FormatError, match=r"backward_stack\.cells\.1\.bias contains NaN or infinite"):
        read(golden)


def test_float64_weights_are_converted_and_integers_refused(golden: Path):
    expected = read(golden, copy=True)
    weights = {name: tensor.clone() for name, tensor in load_file(golden / "model.safetensors").items()}
    save_file({name: tensor.double() for name, tensor in weights.items()}, golden / "model.safetensors")
    assert_same_vectors(read(golden, copy=True), expected, atol=0)
    weights["forward_stack.cells.0.bias"] = torch.zeros(20, dtype=torch.int64)
    save_file(weights, golden / "model.safetensors")
    with pytest.raises(FormatError, match=r"torch\.int64, expected floating-point"):
        read(golden)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5, 3, 1)])
def test_tables_of_wrong_shapes_are_refused(shape: tuple[int, ...], golden: Path):
    for table in ("tokens.chars.embedding.weight", "tokens.words.weight", "softmax.weight"):
        weights = {
            name: tensor.clone()
            for name, tensor in load_file(FIXTURES / "native-v1/model.safetensors").items()
        }
        save_file(weights | {table: torch.zeros(shape)}, golden / "model.safetensors")
        with pytest.raises(FormatError, match=table.removeprefix("softmax.")):
            read(golden)


def test_a_copied_model_does_not_need_its_file(golden: Path):
    model = read(golden, copy=True)
    before = all_layers(model)
    (golden / "model.safetensors").write_bytes(b"")
    for layers, expected in zip(all_layers(model), before, strict=True):
        np.testing.assert_array_equal(layers, expected)


def test_the_folder_has_a_card_that_describes_the_model(tmp_path: Path):
    write(random_model(small_config()), tmp_path / "river")
    card = (tmp_path / "river" / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlibrary_name: "polyseme"\n')
    assert "\n---\n# river\n" in card
    assert "| vector | 8 values |" in card


def test_loading_does_not_import_torchs_compiler():
    code = (
        "import sys; from polyseme.formats.models.native import read; from pathlib import Path; "
        f"read(Path({str(FIXTURES / 'native-v1')!r})); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
