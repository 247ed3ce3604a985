"""Files of word vectors: written, read, refused if damaged, and stored beside a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import polyseme
from builders import SENTENCES, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.word_vectors import WordVectors, mean_vectors, open_words


@pytest.fixture
def words() -> WordVectors:
    return mean_vectors(Elmo(random_model(small_config())), [*SENTENCES, ["他", "!"]], min_count=1)


def test_word_vectors_are_read_as_written_but_for_rounding(tmp_path: Path, words: WordVectors):
    words.save(tmp_path / "w.safetensors")
    opened = open_words(tmp_path / "w.safetensors")
    assert opened.words == words.words
    assert list(opened.counts) == list(words.counts)
    np.testing.assert_array_equal(opened.centre, words.centre)
    largest = np.abs(words.vectors - words.centre).max(axis=1, keepdims=True)
    assert (np.abs(opened.vectors - words.vectors) <= largest / 127 * 0.51).all()
    assert opened.nearest("the", 3)[0][1] == pytest.approx(words.nearest("the", 3)[0][1], abs=0.02)


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path, words: WordVectors):
    words.save(tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match="exists already"):
        words.save(tmp_path / "w.safetensors")
    words.save(tmp_path / "w.safetensors", force=True)


def test_word_vectors_are_converted_with_their_model(tmp_path: Path, words: WordVectors):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    words.save(tmp_path / "model" / "words.safetensors")
    polyseme.convert(tmp_path / "model", tmp_path / "small", precision="int8", tables=True)
    assert polyseme.nearest(tmp_path / "small", "the", 2) == polyseme.nearest(tmp_path / "model", "the", 2)
    polyseme.convert(tmp_path / "small", tmp_path / "small", force=True)  # onto itself
    assert open_words(tmp_path / "small").words == words.words


def test_a_model_without_word_vectors_is_refused_with_advice(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    with pytest.raises(FormatError, match=r"no word vectors \(words\.safetensors is missing\).*mean_vectors"):
        open_words(tmp_path / "model")
    with pytest.raises(FormatError, match="no such file or folder"):
        open_words(tmp_path / "nothing")


def shorten(name: str) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name] = tensors[name][:-1].clone()

    return change


def set_nan(tensors: dict[str, Any]) -> None:
    tensors["scales"][0] = torch.nan


def break_utf8(tensors: dict[str, Any]) -> None:
    tensors["words"][0] = 255


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("rows"), "not a file of word vectors: rows"),
        (shorten("scales"), "scales has"),
        (shorten("centre"), "centre has"),
        (shorten("counts"), "counts has"),
        (set_nan, "NaN"),
        (break_utf8, "not UTF-8"),
        (lambda tensors: tensors.update(words=tensors["words"][-1:].clone()), "1 words and"),
    ],
)
def test_inconsistent_tensors_are_refused(
    tmp_path: Path, words: WordVectors, change: Callable[[dict[str, Any]], None], message: str
):
    words.save(tmp_path / "w.safetensors")
    tensors = load_file(tmp_path / "w.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "w.safetensors")
    with pytest.raises(FormatError, match=message):
        open_words(tmp_path / "w.safetensors")


def test_a_file_that_is_not_safetensors_is_refused(tmp_path: Path):
    (tmp_path / "w.safetensors").write_bytes(b"not at all")
    with pytest.raises(FormatError, match="not a safetensors file, or damaged"):
        open_words(tmp_path / "w.safetensors")
