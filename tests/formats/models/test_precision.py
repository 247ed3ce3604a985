"""Models in bf16 and int8: in memory and in folders, with and without the C library."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn.functional import cosine_similarity

import polyseme
from builders import random_model, small_config
from polyseme.api import convert
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models import native as native_format
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.precision import AUTO_COSINE, TABLES, _probe, set_precision
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.model.fast.kernels import native
from polyseme.model.fast.quantisation import DTYPES, quantise

SENTENCES = [["a", "river", "bank"], ["the", "bank", "failed", "again"], []]
SIZES = {"cell": "lstm", "layers": 2, "cells": 40, "outputs": 12, "cell_clip": 3.0, "output_clip": 3.0}
QUANTISED = pytest.mark.parametrize("precision", ["bf16", "int8"])


def well_scaled_model(**recurrent: object) -> Pretrained:
    """A model with weights of usual size, so that rounding errors do not grow."""
    model = random_model(small_config(recurrent=SIZES | recurrent))
    torch.manual_seed(0)
    for module in model.network.quantisable_modules().values():
        for weight in module.matrices().values():
            torch.nn.init.xavier_uniform_(weight)
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a model in fp32."""
    save_pretrained(well_scaled_model(), tmp_path / "fp32")
    return tmp_path / "fp32"


@pytest.fixture(params=["native", "torch"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With and without the C library."""
    if request.param == "torch":
        monkeypatch.setattr(native, "is_available", lambda: False)
    elif not native.is_available():
        pytest.skip(f"C library: {native.unavailable_reason()}")
    return str(request.param)


def vectors(model: polyseme.Elmo) -> np.ndarray:
    return np.concatenate(model.embed(SENTENCES, layer="all"), axis=1)


def save_in_precision(folder: Path, precision: str) -> Path:
    save_pretrained(open_pretrained(folder), folder.parent / precision, precision=precision)
    return folder.parent / precision


@QUANTISED
def test_a_lower_precision_changes_the_vectors_a_little(folder: Path, backend: str, precision: str):
    exact, rough = (vectors(polyseme.load(folder, precision=name)) for name in ("fp32", precision))
    assert 0 < np.abs(exact - rough).max() < (0.01 if precision == "bf16" else 0.05)
    assert np.array_equal(exact, vectors(polyseme.load(folder)))


@QUANTISED
def test_a_saved_folder_gives_the_same_vectors_as_loading_in_that_precision(
    folder: Path, backend: str, precision: str
):
    model = polyseme.load(save_in_precision(folder, precision))
    assert model.model.network.precision == precision
    assert np.array_equal(vectors(model), vectors(polyseme.load(folder, precision=precision)))


@QUANTISED
def test_sentences_get_the_same_vectors_alone_and_in_a_batch(folder: Path, precision: str):
    if not native.is_available():
        pytest.skip(f"C library: {native.unavailable_reason()}")
    model = polyseme.load(folder, precision=precision)
    for sentence, together in zip(SENTENCES, model.embed(SENTENCES, layer="top"), strict=True):
        np.testing.assert_array_equal(model.embed([sentence], layer="top")[0], together)


@QUANTISED
def test_a_saved_folder_names_and_stores_its_precision(folder: Path, precision: str):
    target = save_in_precision(folder, precision)
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    assert (config["polyseme_format"], config["precision"]) == (2, precision)
    assert json.loads((folder / "config.json").read_text(encoding="utf-8"))["polyseme_format"] == 1
    assert f"{precision} in stacks and highways" in (target / "README.md").read_text(encoding="utf-8")
    tensors, wide = (load_file(path / "model.safetensors") for path in (target, folder))
    name = "forward_stack.cells.1.hidden_weight"
    weight = quantise(wide[name], precision)
    assert torch.equal(tensors[name], weight.values)
    if weight.scales is not None:
        assert torch.equal(tensors[f"{name}.scales"], weight.scales)


@QUANTISED
def test_a_quantised_folder_converts_to_its_dequantised_weights(folder: Path, tmp_path: Path, precision: str):
    target = save_in_precision(folder, precision)
    wide = load_file(folder / "model.safetensors")
    save_pretrained(open_pretrained(target), tmp_path / "hdf5", to="hdf5")
    for path in (target, tmp_path / "hdf5"):
        tensors = open_pretrained(path, precision=None).tensors()
        for name, weight in wide.items():
            rounded = (".cells." in name or ".highways." in name) and weight.ndim == 2
            assert torch.equal(
                tensors[name], quantise(weight, precision).dequantise() if rounded else weight
            ), name
    save_pretrained(open_pretrained(target), tmp_path / "again", precision=precision)
    first, second = (load_file(path / "model.safetensors") for path in (target, tmp_path / "again"))
    assert all(torch.equal(first[name], second[name]) for name in first.keys() | second.keys())


def test_a_quantised_model_can_be_loaded_in_another_precision_copied_and_trained(folder: Path, backend: str):
    target = save_in_precision(folder, "int8")
    model = polyseme.load(target)
    expected = vectors(model)
    assert np.array_equal(vectors(polyseme.Elmo(copy.deepcopy(model.model))), expected)
    exact, rough = (vectors(polyseme.load(target, precision=name)) for name in ("fp32", "bf16"))
    assert np.abs(exact - expected).max() < 0.05
    assert np.abs(exact - rough).max() < 0.01
    network = model.model.network
    ids = model.model.token_ids(["bank"])[0]
    assert ids is not None
    layers, _ = network(ids[None], None, torch.tensor([3]))  # with gradients
    layers.sum().backward()
    assert all(weight.grad is not None for weight in network.forward_stack.parameters())


@pytest.mark.parametrize("cell", ["gru", "rnn"])
def test_cells_without_quantised_kernels_get_rounded_weights(tmp_path: Path, cell: str):
    save_pretrained(well_scaled_model(cell=cell), tmp_path / "fp32")
    target = save_in_precision(tmp_path / "fp32", "int8")
    saved, exact = polyseme.load(target), polyseme.load(tmp_path / "fp32")
    rounded = polyseme.load(tmp_path / "fp32", precision="int8")
    assert np.array_equal(vectors(saved), vectors(rounded))
    assert 0 < np.abs(vectors(exact) - vectors(rounded)).max() < 0.2


@QUANTISED
def test_tables_can_be_quantised_too(tmp_path: Path, backend: str, precision: str):
    config = small_config(recurrent=SIZES, words={"dim": 12})
    model = random_model(config, softmax=True)
    for name in ("plain", "small"):
        save_pretrained(model, tmp_path / name, precision=precision, tables=name == "small")
    small, plain = (load_file(tmp_path / name / "model.safetensors") for name in ("small", "plain"))
    wide, opened = model.tensors(), open_pretrained(tmp_path / "small").tensors()
    for name in TABLES:
        assert (small[name].dtype, plain[name].dtype) == (DTYPES[precision], torch.float32)
        assert torch.equal(opened[name], quantise(wide[name], precision).dequantise())
    values = json.loads((tmp_path / "small" / "config.json").read_text(encoding="utf-8"))
    assert values["polyseme_format"] == 3
    card = (tmp_path / "small" / "README.md").read_text(encoding="utf-8")
    assert f"{precision} in tables, stacks and highways" in card
    exact, rough = (vectors(polyseme.load(tmp_path / name))[0] for name in ("plain", "small"))
    assert 0 < np.abs(exact - rough).max() < 0.1  # of the token layer
    save_pretrained(open_pretrained(tmp_path / "small"), tmp_path / "again", precision=precision, tables=True)
    again = load_file(tmp_path / "again" / "model.safetensors")
    assert all(torch.equal(small[name], again[name]) for name in small.keys() | again.keys())


def test_tables_are_quantised_only_with_the_other_weights(folder: Path, tmp_path: Path):
    with pytest.raises(UsageError, match="`tables` needs a `precision` of bf16 or int8"):
        save_pretrained(open_pretrained(folder), tmp_path / "new", tables=True)
    assert not (tmp_path / "new").exists()


@pytest.fixture
def use_instructions() -> Iterator[Callable[[str], bool]]:
    """Switch to an instruction set until the end of the test."""
    if not native.is_available():
        pytest.skip(f"C library: {native.unavailable_reason()}")
    before = native.active_instruction_set()
    yield native.select_instruction_set
    native.select_instruction_set(before)


@pytest.mark.parametrize("instructions", native.INSTRUCTION_SETS)
def test_auto_chooses_the_fastest_precision_that_is_accurate_enough(
    folder: Path, instructions: str, use_instructions: Callable[[str], bool]
):
    if not use_instructions(instructions):
        pytest.skip(f"this CPU has no {instructions}")
    probes = [_probe(open_pretrained(folder, precision=name)) for name in ("fp32", "bf16", "int8")]
    bf16, int8 = (float(cosine_similarity(probes[0], probe, dim=-1).min()) for probe in probes[1:])
    second = "bf16" if instructions == "bf16" else "fp32"  # elsewhere bf16 is slower than fp32
    for min_cosine, expected in ((int8 - 1e-5, "int8"), ((bf16 + int8) / 2, second), (1.1, "fp32")):
        model = open_pretrained(folder)
        set_precision(model, "auto", auto_cosine=min_cosine)
        assert model.network.precision == expected
    by_default = "int8" if int8 >= AUTO_COSINE else second if bf16 >= AUTO_COSINE else "fp32"
    assert polyseme.load(folder, precision="auto").model.network.precision == by_default


def test_a_model_has_the_same_automatic_precision_each_time(folder: Path):
    chosen = {polyseme.load(folder, precision="auto").model.network.precision for _ in range(3)}
    assert len(chosen) == 1


def test_auto_is_exact_without_the_c_library(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "is_available", lambda: False)
    model = polyseme.load(folder, precision="auto")
    assert np.array_equal(vectors(model), vectors(polyseme.load(folder)))


@QUANTISED
def test_saving_keeps_the_precision_a_model_was_loaded_with(folder: Path, backend: str, precision: str):
    for number, loaded in enumerate(
        (polyseme.load(save_in_precision(folder, precision)), polyseme.load(folder, precision=precision))
    ):
        target = folder.parent / f"again{number}"
        loaded.save(target)
        again = polyseme.load(target)
        assert again.model.network.precision == precision
        assert np.array_equal(vectors(again), vectors(loaded))


def test_saving_keeps_quantised_tables_only_if_that_loses_nothing(folder: Path, tmp_path: Path):
    save_pretrained(open_pretrained(folder), tmp_path / "small", precision="int8", tables=True)
    convert(tmp_path / "small", tmp_path / "again")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (
        tmp_path / "small/model.safetensors"
    ).read_bytes()
    convert(save_in_precision(folder, "int8"), tmp_path / "wide")
    assert load_file(tmp_path / "wide/model.safetensors")["tokens.chars.embedding.weight"].dtype == (
        torch.float32
    )


def test_a_model_can_be_saved_in_another_precision(folder: Path, caplog: pytest.LogCaptureFixture):
    model = polyseme.load(save_in_precision(folder, "int8"))
    model.save(folder.parent / "wide", precision="fp32")
    assert polyseme.load(folder.parent / "wide").model.network.precision == "fp32"
    assert not caplog.records
    model.save(folder.parent / "hdf5", to="hdf5")
    assert "hdf5 holds fp32 weights only" in caplog.text


def test_unknown_precisions_are_refused(folder: Path, tmp_path: Path):
    with pytest.raises(UsageError, match=r"precision is 'int', expected one of fp32, bf16, int8, auto.*int8"):
        polyseme.load(folder, precision="int")
    with pytest.raises(UsageError, match="precision is 'auto', expected fp32 or bf16 or int8"):
        save_pretrained(open_pretrained(folder), tmp_path / "new", precision="auto")
    with pytest.raises(UsageError, match="hdf5 cannot hold int8"):
        save_pretrained(open_pretrained(folder), tmp_path / "new", to="hdf5", precision="int8")
    assert not (tmp_path / "new").exists()


def test_a_newer_format_is_refused_and_a_quantised_folder_is_newer_than_the_first(folder: Path):
    target = save_in_precision(folder, "int8")
    values = json.loads((target / "config.json").read_text(encoding="utf-8"))
    assert values["polyseme_format"] == 2  # versions that read only format 1 refuse it
    newer = native_format.FORMAT + 1
    (target / "config.json").write_text(json.dumps(values | {"polyseme_format": newer}), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"format {newer}, this Polyseme reads 1 to {newer - 1}.*upgrade"):
        polyseme.load(target)


def replace_tensor(name: str, value: object) -> Callable[[dict[str, torch.Tensor]], None]:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        if value is None:
            del tensors[name]
        else:
            tensors[name] = torch.full_like(tensors[name], value) if isinstance(value, float) else value  # type: ignore[assignment]

    return change


WEIGHT = "backward_stack.cells.0.projection"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replace_tensor(f"{WEIGHT}.scales", None), r"projection\.scales must be 12 float32"),
        (replace_tensor(f"{WEIGHT}.scales", torch.ones(11)), r"projection\.scales must be 12 float32"),
        (replace_tensor(f"{WEIGHT}.scales", float("nan")), "NaN or infinite"),
        (
            replace_tensor(WEIGHT, torch.ones(12, 40)),
            r"projection is torch\.float32 \(12, 40\), .* says int8",
        ),
        (replace_tensor(WEIGHT, torch.ones(480, dtype=torch.int8)), r"projection is torch\.int8 \(480,\)"),
        (
            replace_tensor(WEIGHT, torch.ones(12, 41, dtype=torch.int8)),
            r"projection is \(12, 41\), the config requires",
        ),
        (replace_tensor(WEIGHT, None), "projection is missing|scales is not part"),
        (replace_tensor("tokens.projection.bias", torch.ones(12, dtype=torch.int8)), "bias is torch.int8"),
    ],
)
def test_damaged_folders_are_refused(folder: Path, change, message: str):
    target = save_in_precision(folder, "int8")
    tensors = load_file(target / "model.safetensors")
    change(tensors)
    save_file(tensors, target / "model.safetensors")
    with pytest.raises(FormatError, match=message):
        polyseme.load(target)


def test_an_unknown_precision_in_the_config_is_refused(folder: Path):
    target = save_in_precision(folder, "bf16")
    config = json.loads((target / "config.json").read_text(encoding="utf-8"))
    (target / "config.json").write_text(json.dumps(config | {"precision": "int4"}), encoding="utf-8")
    with pytest.raises(FormatError, match="precision is 'int4', expected one of fp32, bf16, int8"):
        polyseme.load(target)


def test_fine_tuning_a_quantised_model_trains_all_stacks_and_highways(folder: Path, backend: str):
    layer = polyseme.ElmoLayer(save_in_precision(folder, "int8"), fine_tune=True)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
    before = {name: weight.detach().clone() for name, weight in layer.network.named_parameters()}
    layer([["a", "river", "bank"]]).vectors[0].sum().backward()
    optimiser.step()
    for name, weight in layer.network.named_parameters():
        if ".cells." in name or ".highways." in name:
            assert not torch.equal(weight, before[name]), name


def test_a_folder_of_format_2_may_have_highways_in_fp32(folder: Path, backend: str):
    target = save_in_precision(folder, "int8")
    tensors, wide = (load_file(path / "model.safetensors") for path in (target, folder))
    for name in [name for name in tensors if ".highways." in name]:
        del tensors[name]
        tensors |= {name: wide[name]} if name in wide else {}
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    assert np.abs(vectors(polyseme.load(target)) - vectors(polyseme.load(folder))).max() < 0.05


def test_generation_does_not_depend_on_earlier_embedding(tmp_path: Path):
    save_pretrained(
        random_model(small_config(recurrent=SIZES), softmax=True), tmp_path, precision="int8", force=True
    )
    fresh, used = polyseme.load(tmp_path), polyseme.load(tmp_path)
    used.embed(SENTENCES)
    scores = [list(polyseme.generate(model, "the", tokens=8).log_probs) for model in (fresh, used)]
    assert scores[0] == scores[1]
