"""Keras 3: batches of ELMo layers, the layer that mixes them, and models with both on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.integrations.keras import ElmoBatches, WeightedSum

pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of Keras
TEXTS = ["The bank failed .", "river", "The river of the bank !", "!"]


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


def build_model(n_layers: int = 3, size: int = 8) -> keras.Model:
    layers = keras.Input((None, n_layers, size), name="elmo")
    words = keras.Input((None,), dtype="int32", name="words")
    mixed = WeightedSum(name="mix")(layers)
    pooled = keras.layers.GlobalAveragePooling1D()(mixed, mask=keras.ops.not_equal(words, 0))
    model = keras.Model([layers, words], keras.layers.Dense(2, activation="softmax")(pooled))
    model.compile(keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def test_batches_hold_the_layers_of_elmo_padded_with_zeros(elmo):
    batches = ElmoBatches(elmo, TEXTS, [0, 1, 0, 1], batch_size=3)
    assert len(batches) == 2
    inputs, labels = batches[0]
    assert inputs["elmo"].shape == (3, 6, 3, 8)  # (B, T, L, H)
    assert labels.tolist() == [0, 1, 0]
    for number, layers in enumerate(elmo.embed(TEXTS[:3], layer="all")):
        count = layers.shape[1]
        np.testing.assert_allclose(
            inputs["elmo"][number, :count], layers.swapaxes(0, 1), atol=2e-3
        )  # float16
        assert not inputs["elmo"][number, count:].any()
        assert (inputs["words"][number] == 0).tolist() == [False] * count + [True] * (6 - count)
    assert ElmoBatches(elmo, TEXTS, layer="mean")[0][0]["elmo"].shape == (4, 6, 8)
    assert len(ElmoBatches(elmo, TEXTS)[0]) == 1  # without labels, as `predict` wants it


def test_words_of_other_texts_have_one_id(elmo):
    batches = ElmoBatches(elmo, ["the bank", "the river"])
    assert batches.vocabulary == {"the": 2, "bank": 3, "river": 4}
    other = ElmoBatches(elmo, ["the lake", "river the"], vocabulary=batches.vocabulary)
    assert other[0][0]["words"].tolist() == [[2, 1], [4, 2]]


def test_shuffling_keeps_texts_with_their_labels_and_depends_on_the_seed(elmo):
    labels = [0, 1, 0, 1]
    vectors = {array.mean().round(3): label for array, label in zip(elmo.embed(TEXTS), labels, strict=True)}
    orders = []
    for seed in (0, 0, 1):
        batches = ElmoBatches(elmo, TEXTS, labels, layer="mean", batch_size=1, shuffle=True, seed=seed)
        rows = [batches[number] for number in range(4)]
        assert [vectors[inputs["elmo"].mean().round(3)] for inputs, _ in rows] == [int(y[0]) for _, y in rows]
        orders.append([inputs["words"].shape[1] for inputs, _ in rows])
    assert orders[0] == orders[1] != orders[2]


def test_an_untrained_sum_is_the_mean_of_the_layers():
    layers = np.random.default_rng(0).normal(size=(2, 5, 3, 8)).astype(np.float32)
    mix = WeightedSum()
    np.testing.assert_allclose(keras.ops.convert_to_numpy(mix(layers)), layers.mean(axis=2), atol=1e-6)
    assert mix.shares == pytest.approx([1 / 3] * 3)
    with pytest.raises(ValueError, match="expected \\(texts, tokens, layers, values\\)"):
        WeightedSum()(layers[0])


def test_a_model_learns_is_saved_and_predicts_the_same(elmo, tmp_path):
    keras.utils.set_random_seed(0)
    batches = ElmoBatches(elmo, TEXTS, [0, 1, 0, 1], shuffle=True)
    model = build_model()
    before = model.get_layer("mix").shares
    model.fit(batches, epochs=40, verbose=0)
    assert model.evaluate(batches, verbose=0)[1] == 1.0
    assert model.get_layer("mix").shares != before
    expected = model.predict(ElmoBatches(elmo, TEXTS), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(ElmoBatches(elmo, TEXTS), verbose=0), expected, atol=1e-6)


def test_invalid_input_is_a_value_error_of_one_line(elmo):
    with pytest.raises(ValueError, match="3 labels for 4 texts"):
        ElmoBatches(elmo, TEXTS, [0, 1, 0])
    with pytest.raises(ValueError, match="text 1 is empty"):
        ElmoBatches(elmo, ["a", ""])
    with pytest.raises(ValueError, match="There are no texts"):
        ElmoBatches(elmo, [])
    with pytest.raises(ValueError, match="label 1 is nan, expected the number of a class"):
        ElmoBatches(elmo, TEXTS, [0, float("nan"), 0, 1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="label 0 is 'pos', expected the number of a class"):
        ElmoBatches(elmo, TEXTS, ["pos", "neg", "pos", "neg"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="sentence 1 is a missing value"):
        ElmoBatches(elmo, ["a", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"elmo is of type str, expected what polyseme\.load returns"):
        ElmoBatches("en", TEXTS)  # type: ignore[arg-type]
    for size in (0, "3"):
        with pytest.raises(ValueError, match=f"batch_size is {size!r}"):
            ElmoBatches(elmo, TEXTS, batch_size=size)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="layer is 9"):
        ElmoBatches(elmo, TEXTS, layer=9)


def test_without_a_choice_the_backend_is_torch(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "KERAS_BACKEND"}
    code = "import polyseme.integrations.keras, keras; print(keras.backend.backend())"
    environment |= {"KERAS_HOME": str(tmp_path)}
    (tmp_path / "keras.json").write_text('{"backend": "no_such_backend"}', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout == "torch\n"


def test_without_keras_the_command_to_install_it_is_named():
    code = (
        "import sys\nsys.modules['keras'] = None\n"
        "try:\n    import polyseme.integrations.keras\nexcept ImportError as problem:\n    print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == 'The Keras integration needs keras: pip install "polyseme[keras]"\n'


@pytest.mark.parametrize("setup", ["joined", "elmo", "pooled"])
def test_the_example_learns_in_each_of_its_setups(elmo, setup, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    from importlib import import_module

    example = import_module("keras_classifier")
    rows = [(label, text) for label, text in zip("ABAB", TEXTS, strict=True)] * 16
    assert example.run(setup, elmo, rows, rows[:4], epochs=40) >= 0.75  # of four; guessing gives 0.5
    assert len(example.read(example.TOPICS)) == 240
