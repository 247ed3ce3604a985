"""The outputs of TF-Hub, and features: static vectors joined with contextual ones.

B sentences, T tokens, D one direction, H = 2D, L layers; m = D and 2m = H in the textbooks.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import polyseme
from builders import SENTENCES, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError

H, D = 8, 4  # of small_config
STATIC = {"the": [1.0, 0.0, 0.5], "bank": [0.0, 1.0, 0.5], "银行": [2.0, 2.0, 2.0]}


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


# ---- outputs ----


def test_outputs_have_the_names_and_shapes_of_tf_hub(elmo):
    outputs = elmo.outputs(SENTENCES)
    assert {name: array.shape for name, array in outputs.items()} == {
        "word_emb": (3, 5, D),
        "lstm_outputs1": (3, 5, H),
        "lstm_outputs2": (3, 5, H),
        "elmo": (3, 5, H),
        "default": (3, H),
        "sequence_len": (3,),
    }
    assert outputs["sequence_len"].tolist() == [4, 5, 1]
    assert outputs["sequence_len"].dtype == np.int64
    assert all(array.dtype == np.float32 for name, array in outputs.items() if name != "sequence_len")


def test_outputs_are_the_layers_padded_with_zeros(elmo):
    outputs = elmo.outputs([*SENTENCES, []])
    for number, layers in enumerate([*elmo.embed(SENTENCES, layer="all"), np.zeros((3, 0, H))]):
        tokens = layers.shape[1]
        parts = {"lstm_outputs1": layers[1], "lstm_outputs2": layers[2], "elmo": layers.mean(axis=0)}
        for name, expected in {"word_emb": layers[0, :, :D], **parts}.items():
            np.testing.assert_allclose(outputs[name][number, :tokens], expected, atol=1e-6)
            assert not outputs[name][number, tokens:].any()
        mean = layers.mean(axis=(0, 1)) if tokens else np.zeros(H)
        np.testing.assert_allclose(outputs["default"][number], mean, atol=1e-6)


@pytest.mark.parametrize("direction", ["both", "forward", "backward"])
def test_concat_joins_the_layers_of_each_token_from_the_lowest(elmo, direction):
    joined = elmo.embed([*SENTENCES, []], layer="concat", direction=direction)
    layers = elmo.embed([*SENTENCES, []], layer="all", direction=direction)
    for array, expected in zip(joined, layers, strict=True):
        np.testing.assert_array_equal(array, np.concatenate(list(expected), axis=-1))
    pooled = elmo.embed([*SENTENCES, []], layer="concat", pool="max", direction=direction)
    assert pooled.shape == (4, joined[0].shape[1])
    np.testing.assert_array_equal(pooled[0], joined[0].max(axis=0))


def test_concat_is_refused_where_a_word_has_one_vector(elmo):
    with pytest.raises(UsageError, match="layer is 'concat', but a word has one vector of one layer's size"):
        polyseme.mean_vectors(elmo, SENTENCES, layer="concat")


def test_the_token_layer_is_the_same_in_both_halves(elmo):
    layer = elmo.embed(SENTENCES, layer=0)[0]
    np.testing.assert_array_equal(layer[:, :D], layer[:, D:])


@pytest.mark.parametrize("layers", [1, 3])
def test_a_model_of_another_depth_has_one_output_per_layer(layers):
    elmo = Elmo(random_model(small_config(recurrent={"layers": layers, "cells": 6, "outputs": 4})))
    names = [name for name in elmo.outputs(["the bank"]) if name.startswith("lstm_outputs")]
    assert names == [f"lstm_outputs{number}" for number in range(1, layers + 1)]


def test_strings_are_segmented_and_one_string_is_one_sentence(elmo):
    single, several = elmo.outputs("the bank . failed"), elmo.outputs(["the bank . failed", ""])
    assert single["elmo"].shape == (1, 4, H)
    assert several["sequence_len"].tolist() == [4, 0]
    np.testing.assert_allclose(single["default"][0], several["default"][0], atol=1e-6)
    assert elmo.outputs("他走了", segment="zh-char")["sequence_len"].tolist() == [3]


def test_outputs_of_no_sentences_have_no_rows(elmo):
    outputs = elmo.outputs([])
    assert outputs["elmo"].shape == (0, 0, H)
    assert outputs["default"].shape == (0, H)
    assert outputs["sequence_len"].shape == (0,)


# ---- features ----


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("method", ["top", "concat", "mix"])
def test_features_have_the_sizes_of_the_textbook(layers, method):
    elmo = Elmo(random_model(small_config(recurrent={"layers": layers, "cells": 6, "outputs": 4})))
    m = elmo.config.size // 2
    expected = {"top": 3 * m, "concat": m + 2 * m * layers, "mix": 3 * m}[method]
    assert [array.shape for array in elmo.features(SENTENCES, method)] == [
        (4, expected),
        (5, expected),
        (1, expected),
    ]


def test_features_join_the_token_with_its_context(elmo):
    features = {method: elmo.features(SENTENCES, method) for method in ("top", "concat", "mix")}
    for number, layers in enumerate(elmo.embed(SENTENCES, layer="all")):
        x, parts = layers[0, :, :D], {"top": [layers[2]], "concat": [layers[1], layers[2]]}
        for method, context in {**parts, "mix": [layers.mean(axis=0)]}.items():
            assert features[method][number].dtype == np.float32
            np.testing.assert_allclose(
                features[method][number], np.concatenate([x, *context], axis=1), atol=1e-6
            )


def test_the_default_method_of_features_is_mix(elmo):
    for default, mix in zip(elmo.features(SENTENCES), elmo.features(SENTENCES, "mix"), strict=True):
        np.testing.assert_array_equal(default, mix)


def test_features_of_a_string_and_of_empty_input(elmo):
    assert elmo.features("the bank").shape == (2, 3 * D)
    assert elmo.features("").shape == (0, 3 * D)
    assert elmo.features("", "concat").shape == (0, 5 * D)
    assert elmo.features([]) == []
    assert [array.shape for array in elmo.features([[], ["the"]], "top")] == [(0, 3 * D), (1, 3 * D)]
    assert elmo.features("他走了", segment="zh-char").shape == (3, 3 * D)


def write_static(path: Path) -> Path:
    """STATIC as GloVe text, gzipped word2vec text or word2vec binary, by the ending of `path`."""
    lines = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in STATIC.items())
    if path.suffix == ".bin":
        rows = (word.encode() + b" " + struct.pack("<3f", *vector) + b"\n" for word, vector in STATIC.items())
        path.write_bytes(b"3 3\n" + b"".join(rows))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(f"3 3\n{lines}".encode()))
    else:
        path.write_text(lines, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["glove.txt", "vectors.bin", "vectors.vec.gz"])
@pytest.mark.parametrize("convert", [str, Path, polyseme.read_vectors])
def test_static_vectors_are_read_from_a_file_and_missing_ones_are_zeros_and_counted(name, convert, tmp_path):
    elmo = Elmo(random_model(small_config()))
    static = convert(write_static(tmp_path / name))
    features = elmo.features([["the", "river", "银行"], [], ["The"]], "top", static=static)
    assert [array.shape for array in features] == [(3, 3 + H), (0, 3 + H), (1, 3 + H)]
    np.testing.assert_array_equal(features[0][:, :3], [STATIC["the"], [0, 0, 0], STATIC["银行"]])
    assert not features[2][:, :3].any()
    top = elmo.embed([["the", "river", "银行"]], layer="top")[0]
    np.testing.assert_allclose(features[0][:, 3:], top, atol=1e-6)
    assert elmo.counts.missing == 2
    elmo.features("the sea", static=static)
    assert elmo.counts.missing == 3


def test_without_a_file_no_token_is_missing():
    elmo = Elmo(random_model(small_config()))
    elmo.features("never seen before")
    assert elmo.counts.missing == 0
    assert elmo.counts.tokens == 3


def test_invalid_arguments_of_features_are_refused(elmo, tmp_path):
    with pytest.raises(UsageError, match="method is 'add', expected top, concat or mix"):
        elmo.features("the bank", "add")
    with pytest.raises(UsageError, match=r"static is of type dict, expected the path of a vector file, or"):
        elmo.features("the bank", static={"the": [1.0]})
    with pytest.raises(UsageError, match=r"nothing\.vec: no such file"):
        elmo.features("the bank", static=tmp_path / "nothing.vec")
    (tmp_path / "bad.vec").write_text("the 1.0 2.0\nbank 1.0\n")
    with pytest.raises(DataError, match=r"bad\.vec:2: 2 columns, expected 3"):
        elmo.features("the bank", static=str(tmp_path / "bad.vec"))
