"""The calls in the right columns of docs/coming-from.md give what those in the left columns give.

`make test-peers` builds the environment of AllenNLP, bilm-tf and simple_elmo and runs the tests.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from builders import random_model, small_config
from polyseme.formats.models.save import save_pretrained

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
PROGRAM = ROOT / "benchmarks" / "peers" / "migration.py"
SENTENCES = [["The", "river", "bank", "was", "steep", "."], ["Why", "?"], ["naïve", "Donau", "."]]

Arrays = Mapping[str, np.ndarray]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in the published format, a vocabulary and a text."""
    model = random_model(
        small_config(
            chars={"dim": 4, "filters": [[1, 4], [2, 8], [3, 12]], "highways": 1},
            recurrent={"layers": 2, "cells": 16, "outputs": 8, "cell_clip": 0.3, "output_clip": 0.2},
        )
    )
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.mul_(0.4)  # large random weights make the recurrence chaotic: rounding errors would grow
    path = tmp_path_factory.mktemp("migration") / "model"
    save_pretrained(model, path, to="hdf5")
    words = sorted({word for sentence in SENTENCES for word in sentence})
    (path / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n", encoding="utf-8")
    lines = [" ".join(sentence) for sentence in SENTENCES]
    (path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def run_library(library: str, folder: Path) -> Arrays:
    """Run the calls of a library; its arrays by name."""
    if not PYTHON.exists():
        pytest.fail("The peers are not installed: make peers")
    out = folder.parent / f"{library}.npz"
    done = subprocess.run(
        [PYTHON, PROGRAM, library, folder, out], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with np.load(out) as arrays:
        return dict(arrays)


def assert_same(theirs: np.ndarray, ours: np.ndarray) -> None:
    assert np.abs(ours).max() > 0.01  # so that the tolerance can tell different vectors apart
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


@pytest.mark.peers
def test_allennlp(folder: Path):
    theirs = run_library("allennlp", folder)
    ids = polyseme.batch_to_ids(SENTENCES)
    assert np.array_equal(theirs["ids"], ids.numpy())
    weights_file = folder / "model.hdf5"
    layers = {
        "mixes": polyseme.ElmoLayer(weights_file, mixes=2, stateful=True),
        "layer norm": polyseme.ElmoLayer(weights_file, layer_norm=True, stateful=True),
        "boundaries": polyseme.ElmoLayer(weights_file, keep_boundaries=True, stateful=True),
        "weights": polyseme.ElmoLayer(
            weights_file, weights=[0.2, -0.3, 1.0], trained_mix=False, stateful=True
        ),
    }
    for name, layer in layers.items():
        layer.eval()
        assert layer.size == int(theirs[f"{name}, size"])
        with torch.inference_mode():
            for batch in ("first", "second"):
                vectors, mask = layer(ids)
                assert np.array_equal(theirs[f"{name}, mask"].astype(bool), mask.numpy().astype(bool))
                real = mask.numpy().astype(bool)
                assert_same(theirs[f"{name}, {batch}"][real], vectors[-1].numpy()[real])


@pytest.mark.peers
def test_bilm_tf(folder: Path):
    theirs = run_library("bilm-tf", folder)
    model = polyseme.load(folder / "model.hdf5")
    for batch in ("first", "second"):
        ours = model.embed(SENTENCES, layer="all", stateful=True)
        for number, layers in enumerate(ours):
            assert_same(theirs[f"layers, {batch}"][number][:, : layers.shape[1]], layers)
    for name, top_only in (("mix", False), ("top", True)):
        layer = polyseme.ElmoLayer(model, top_only=top_only).eval()
        with torch.inference_mode():
            vectors, mask = layer(polyseme.batch_to_ids(SENTENCES))
        real = mask.numpy().astype(bool)
        assert_same(theirs[name][real], vectors[0].numpy()[real])
    assert float(layer.mixes[0].penalty()) >= 0
    model = polyseme.load(folder / "model.hdf5")
    for number, sentence in enumerate(SENTENCES):
        assert_same(theirs[f"dump {number}"], model.embed([sentence], layer="all", stateful=True)[0])
    words = (folder / "vocab.txt").read_text(encoding="utf-8").split()[3:]
    cached = np.concatenate(model.embed([[word] for word in words], layer=0, direction="forward"))
    assert_same(theirs["tokens"][3:], cached)


@pytest.mark.peers
def test_simple_elmo(folder: Path):
    theirs = run_library("simple_elmo", folder)
    for name, layer in (("average", "mean"), ("top", "top"), ("all", "all")):
        model = polyseme.load(folder)
        model.embed(SENTENCES, layer=layer, stateful=True)  # simple_elmo warms up with the first batch
        for number, vectors in enumerate(model.embed(SENTENCES, layer=layer, stateful=True)):
            length = len(SENTENCES[number])
            assert_same(theirs[name][number][..., :length, :], vectors)
    model = polyseme.load(folder)
    sentence = [SENTENCES[0]]  # of one length: simple_elmo's mean of a batch includes its padding
    model.embed(sentence, stateful=True)
    mean = model.embed(sentence, pool="mean", stateful=True)
    assert_same(theirs["sentence"], mean / np.linalg.norm(mean, axis=1, keepdims=True))
