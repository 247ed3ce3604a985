"""Models written by Polyseme give the same vectors in AllenNLP and simple_elmo.

`make test-peers` builds the environment of these programs and runs the tests.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.formats.models.save import save_pretrained

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-peers" / "bin" / "python"
ALLENNLP = ROOT / "benchmarks" / "peers" / "allennlp_elmo.py"
SIMPLE_ELMO = ROOT / "benchmarks" / "peers" / "simple_elmo_run.py"
SENTENCES = ["The river bank was steep .", "河 岸 很 陡 。", "a", "Donaudampfschifffahrtsgesellschaft naïve"]
CHARS = {"dim": 4, "filters": [[1, 4], [2, 8], [3, 12]], "highways": 1}


def recurrent(**changes):
    return {"layers": 2, "cells": 16, "outputs": 8, "cell_clip": 0.3, "output_clip": 0.2} | changes


BOTH = (ALLENNLP, SIMPLE_ELMO)
MODELS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Path, ...]]] = {
    "as published": ({}, {}, BOTH),
    "one layer": ({}, {"layers": 1}, BOTH),
    "three layers": ({}, {"layers": 3}, BOTH),
    "without clips": ({}, {"cell_clip": None, "output_clip": None}, BOTH),
    "no highway": ({"highways": 0}, {}, BOTH),
    "tanh": ({"activation": "tanh"}, {}, BOTH),
    "without projection": ({}, {"cells": 8}, (SIMPLE_ELMO,)),
    "without residual": ({}, {"residual": False}, (SIMPLE_ELMO,)),
    "filters as wide as the outputs": ({"filters": [[1, 8]]}, {}, (SIMPLE_ELMO,)),
    "shorter words": ({"max_chars": 20}, {}, (SIMPLE_ELMO,)),
}
CASES = [(name, program) for name, (_, _, programs) in MODELS.items() for program in programs]


@pytest.mark.peers
@pytest.mark.parametrize(("name", "program"), CASES, ids=lambda value: getattr(value, "stem", value))
def test_a_written_model_gives_the_same_vectors_in_the_peer(name: str, program: Path, tmp_path: Path):
    if not PYTHON.exists():
        pytest.fail("The peers are not installed: make peers")
    chars, stack, _ = MODELS[name]
    model = random_model(small_config(chars=CHARS | chars, recurrent=recurrent(**stack)))
    with torch.no_grad():
        for weight in model.network.parameters():
            weight.mul_(0.4)  # large random weights make the recurrence chaotic: rounding errors would grow
    save_pretrained(model, tmp_path / "model", to="hdf5")
    text = tmp_path / "text"
    text.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    files: list[str | Path] = [
        tmp_path / "model/options.json",
        tmp_path / "model/model.hdf5",
        text,
        "--out",
        tmp_path / "out.npz",
    ]
    done = subprocess.run([PYTHON, program, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    ours = Elmo(model).embed([sentence.split() for sentence in SENTENCES], layer="all")
    with np.load(tmp_path / "out.npz") as theirs:
        for number, layers in enumerate(ours):
            np.testing.assert_allclose(theirs[str(number)], layers, atol=1e-5)
