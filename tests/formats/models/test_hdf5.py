"""The hdf5 format of bilm-tf: read, written, and converted without changing a bit."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from builders import (
    SENTENCES,
    WORDS,
    Bilm,
    all_layers,
    assert_same_vectors,
    random_model,
    read_datasets,
    small_config,
    write_bilm,
)
from polyseme.errors import FormatError
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained

CHAR_MODELS = [
    Bilm(
        layers=layers, cells=cells, highways=highways, filters=filters, projection=projection, softmax=softmax
    )
    for layers, cells, highways, (filters, projection), softmax in product(
        (1, 2, 3),
        (6, 4),  # with and without a projection after the cell
        (0, 1, 2),
        ((((1, 2), (2, 3)), True), (((1, 4),), False), (((3, 1), (1, 3)), True)),
        (False, True),
    )
]
WORD_MODELS = [
    Bilm(layers=layers, cells=cells, filters=(), softmax=softmax)
    for layers, cells, softmax in product((1, 2, 3), (6, 4), (False, True))
]


@pytest.mark.parametrize("bilm", [*random.Random(1).sample(CHAR_MODELS, 36), *WORD_MODELS[::2]], ids=str)
def test_conversion_to_the_native_format_and_back_changes_no_bit(bilm: Bilm, tmp_path: Path):
    write_bilm(tmp_path / "theirs", bilm)
    first = open_pretrained(tmp_path / "theirs")
    save_pretrained(first, tmp_path / "ours")
    second = open_pretrained(tmp_path / "ours")
    save_pretrained(second, tmp_path / "back", to="hdf5")
    before, after = (read_datasets(tmp_path / name / "model.hdf5") for name in ("theirs", "back"))
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert values.shape == after[name].shape, name
        assert values.dtype == after[name].dtype, name
        assert values.tobytes() == after[name].tobytes(), name
    third = open_pretrained(tmp_path / "back")
    assert third.config == first.config
    assert third.vocab is not None
    assert third.vocab.words == ("<S>", "</S>", "<UNK>", *WORDS)
    assert_same_vectors(second, first)
    assert_same_vectors(third, first)


def test_a_single_layer_may_have_either_name(tmp_path: Path):
    write_bilm(tmp_path / "alone", Bilm(layers=1, alone=True))
    write_bilm(tmp_path / "stacked", Bilm(layers=1))
    assert_same_vectors(open_pretrained(tmp_path / "alone"), open_pretrained(tmp_path / "stacked"))


@pytest.mark.parametrize("n_characters", [261, 262])
@pytest.mark.parametrize("char_rows", [261, 262])
def test_options_of_training_and_prediction_describe_the_same_model(
    n_characters: int, char_rows: int, tmp_path: Path
):
    bilm = Bilm(n_characters=n_characters, char_rows=char_rows)
    datasets = Bilm().datasets()
    padded = np.concatenate([datasets["char_embed"], np.full((char_rows - 261, 3), 9, np.float32)])
    write_bilm(tmp_path / "plain")
    write_bilm(tmp_path / "padded", bilm, changes=datasets | {"char_embed": padded})
    model = open_pretrained(tmp_path / "padded")
    assert_same_vectors(model, open_pretrained(tmp_path / "plain"))
    save_pretrained(model, tmp_path / "back", to="hdf5")
    options = json.loads((tmp_path / "back" / "options.json").read_text())
    assert options["char_cnn"]["n_characters"] == 262
    assert read_datasets(tmp_path / "back" / "model.hdf5")["char_embed"].tobytes() == padded.tobytes()


def test_optional_keys_have_the_defaults_of_bilm_tf(tmp_path: Path):
    write_bilm(tmp_path, Bilm(layers=1, highways=0))
    options = json.loads((tmp_path / "options.json").read_text())
    for section, keys in {
        "lstm": ["cell_clip", "proj_clip", "n_layers", "use_skip_connections"],
        "char_cnn": ["n_highway", "n_characters"],
    }.items():
        for key in keys:
            del options[section][key]
    (tmp_path / "options.json").write_text(json.dumps(options))
    model = open_pretrained(tmp_path)
    assert model.config.recurrent.cell_clip is None
    assert model.config.recurrent.output_clip is None
    assert model.config.recurrent.layers == 1
    assert not model.config.recurrent.residual
    assert model.config.chars is not None
    assert model.config.chars.highways == 0


def test_float64_weights_are_read_as_float32(tmp_path: Path):
    changes = {name: values.astype(np.float64) for name, values in Bilm().datasets().items()}
    write_bilm(tmp_path / "double", changes=changes)
    write_bilm(tmp_path / "single")
    assert_same_vectors(open_pretrained(tmp_path / "double"), open_pretrained(tmp_path / "single"))


def test_the_softmax_is_read(tmp_path: Path):
    bilm = Bilm(softmax=True)
    write_bilm(tmp_path, bilm)
    softmax = open_pretrained(tmp_path).softmax
    assert softmax is not None
    np.testing.assert_array_equal(softmax.weight.detach().numpy(), bilm.datasets()["softmax/W"])
    np.testing.assert_array_equal(softmax.bias.detach().numpy(), bilm.datasets()["softmax/b"])


@pytest.mark.parametrize("forget_bias", [0.0, 2.5])
def test_another_forget_bias_is_added_to_the_stored_bias(forget_bias: float, tmp_path: Path):
    recurrent = {"layers": 2, "cells": 6, "outputs": 4, "forget_bias": forget_bias}
    model = random_model(small_config(recurrent=recurrent))
    save_pretrained(model, tmp_path / "theirs", to="hdf5")
    back = open_pretrained(tmp_path / "theirs")
    assert back.config.recurrent.forget_bias == 1.0
    assert_same_vectors(back, model, atol=1e-5)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_clips_are_written_and_read(clip: float | None, tmp_path: Path):
    recurrent = {"layers": 2, "cells": 6, "outputs": 4, "cell_clip": clip, "output_clip": clip}
    model = random_model(small_config(recurrent=recurrent))
    save_pretrained(model, tmp_path / "theirs", to="hdf5")
    back = open_pretrained(tmp_path / "theirs")
    assert back.config.recurrent.cell_clip == back.config.recurrent.output_clip == clip
    assert_same_vectors(back, model)


CODEPOINTS = {"encoding": "codepoints", "max_chars": 12, "dim": 3, "filters": [[1, 2]], "highways": 0}
RECURRENT = {"layers": 1, "cells": 6, "outputs": 4}
UNSUPPORTED = {
    "gru": ({"recurrent": RECURRENT | {"cell": "gru"}}, "gru cells"),
    "rnn": ({"recurrent": RECURRENT | {"cell": "rnn"}}, "rnn cells"),
    "both": ({"words": {"dim": 3}}, "both a word table and a char-CNN"),
    "codepoints": ({"chars": CODEPOINTS}, "code points"),
    "projected words": ({"chars": None, "words": {"dim": 3}}, "projected word table"),
    "square": ({"recurrent": RECURRENT | {"outputs": 6, "projection": True}}, "does not reduce the size"),
}


@pytest.mark.parametrize(("changes", "reason"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_models_that_hdf5_cannot_hold_are_refused_with_reason_and_advice(
    changes: dict[str, object], reason: str, tmp_path: Path
):
    model = random_model(small_config(**changes))
    with pytest.raises(FormatError, match=reason) as problem:
        save_pretrained(model, tmp_path / "theirs", to="hdf5")
    assert '`to="native"`' in str(problem.value)
    assert list(tmp_path.iterdir()) == []
    save_pretrained(model, tmp_path / "ours")
    assert_same_vectors(open_pretrained(tmp_path / "ours"), model)


def test_a_vocabulary_with_other_marks_is_refused(tmp_path: Path):
    marks = {"begin": "<bos>", "end": "<eos>", "unknown": "<oov>"}
    model = random_model(small_config(), marks=marks)
    with pytest.raises(FormatError, match=r"<bos> <eos> <oov>.*native"):
        save_pretrained(model, tmp_path / "theirs", to="hdf5")


def test_options_that_contradict_the_weights_are_named_with_both_files(tmp_path: Path):
    write_bilm(tmp_path)
    for bilm, name in [
        (replace(Bilm(), cells=7), "lstm.dim"),
        (replace(Bilm(), outputs=5), "lstm.projection_dim"),
        (replace(Bilm(), filters=((1, 2), (2, 4))), "char_cnn.filters"),
        (replace(Bilm(), layers=3), "Cell2"),
        (replace(Bilm(), layers=1), "lstm.n_layers"),
        (replace(Bilm(), highways=2), "CNN_high_1"),
        (replace(Bilm(), highways=0), "char_cnn.n_highway"),
    ]:
        (tmp_path / "options.json").write_text(json.dumps(bilm.options()))
        with pytest.raises(FormatError, match=name) as problem:
            open_pretrained(tmp_path)
        assert "model.hdf5" in str(problem.value)


def test_a_loaded_model_has_the_shapes_of_its_options(tmp_path: Path):
    write_bilm(tmp_path)
    for sentence, layers in zip(SENTENCES, all_layers(open_pretrained(tmp_path)), strict=True):
        assert layers.shape == (3, len(sentence), 8)
