"""Vectors of words on disk: what comes back, what is refused, and where a model has them."""

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


def test_words_come_back_but_for_rounding(tmp_path: Path, words: WordVectors):
    words.save(tmp_path / "w.safetensors")
    found = open_words(tmp_path / "w.safetensors")
    assert found.words == words.words
    assert list(found.counts) == list(words.counts)
    np.testing.assert_array_equal(found.centre, words.centre)
    largest = np.abs(words.vectors - words.centre).max(axis=1, keepdims=True)
    assert (np.abs(found.vectors - words.vectors) <= largest / 127 * 0.51).all()
    assert found.nearest("the", 3)[0][1] == pytest.approx(words.nearest("the", 3)[0][1], abs=0.02)


def test_a_file_that_is_there_stays_unless_forced(tmp_path: Path, words: WordVectors):
    words.save(tmp_path / "w.safetensors")
    with pytest.raises(UsageError, match="exists already"):
        words.save(tmp_path / "w.safetensors")
    words.save(tmp_path / "w.safetensors", force=True)


def test_they_go_along_where_a_model_is_converted(tmp_path: Path, words: WordVectors):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    words.save(tmp_path / "model" / "words.safetensors")
    polyseme.convert(tmp_path / "model", tmp_path / "small", precision="int8", tables=True)
    assert polyseme.nearest(tmp_path / "small", "the", 2) == polyseme.nearest(tmp_path / "model", "the", 2)
    polyseme.convert(tmp_path / "small", tmp_path / "small", force=True)  # onto itself
    assert open_words(tmp_path / "small").words == words.words


def test_a_model_without_them_says_how_to_make_some(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    with pytest.raises(FormatError, match=r"no word vectors \(words\.safetensors is missing\).*mean_vectors"):
        open_words(tmp_path / "model")
    with pytest.raises(FormatError, match="no such file or folder"):
        open_words(tmp_path / "nothing")


def short(name: str) -> Callable[[dict[str, Any]], None]:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name] = tensors[name][:-1].clone()

    return change


def broken(tensors: dict[str, Any]) -> None:
    tensors["scales"][0] = torch.nan


def not_text(tensors: dict[str, Any]) -> None:
    tensors["words"][0] = 255


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tensors: tensors.pop("rows"), "not a file of word vectors: rows"),
        (short("scales"), "scales has"),
        (short("centre"), "centre has"),
        (short("counts"), "counts has"),
        (broken, "NaN"),
        (not_text, "not UTF-8"),
        (lambda tensors: tensors.update(words=tensors["words"][-1:].clone()), "1 words and"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, words: WordVectors, change: Callable[[dict[str, Any]], None], says: str
):
    words.save(tmp_path / "w.safetensors")
    tensors = load_file(tmp_path / "w.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "w.safetensors")
    with pytest.raises(FormatError, match=says):
        open_words(tmp_path / "w.safetensors")


def test_a_file_of_something_else_is_refused(tmp_path: Path):
    (tmp_path / "w.safetensors").write_bytes(b"not at all")
    with pytest.raises(FormatError, match="not a safetensors file, or damaged"):
        open_words(tmp_path / "w.safetensors")
