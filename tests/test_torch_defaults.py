"""A program that changes torch's default device or dtype: the vectors stay as they are.

The default device "meta" stands in for a GPU: a tensor that is made there by mistake has no values, and C
would write to address 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from builders import SENTENCES, random_model, small_config
from polyseme.elmo import load
from polyseme.formats.models.save import save_pretrained

TEXTS = ["the bank failed", "", "他 银行 river"]
DEFAULTS: dict[str, Any] = {"meta": "meta", "float64": torch.float64, "bfloat16": torch.bfloat16}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config(), softmax=True), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def default(request: pytest.FixtureRequest) -> Iterator[None]:
    """A default device or dtype, as a program would set it."""
    value = DEFAULTS[request.param]
    try:
        if isinstance(value, str):
            torch.set_default_device(value)
        else:
            torch.set_default_dtype(value)
        yield
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)


def compute_all(folder: Path, precision: str) -> list[np.ndarray]:
    """Vectors of every kind, of a model that is loaded for it."""
    elmo = load(folder, precision=precision)
    arrays = [*elmo.embed(TEXTS), *elmo.embed(TEXTS, layer="all", direction="forward")]
    arrays += [elmo.embed(TEXTS, pool=pool) for pool in ("mean", "max", "first", "last", "sum")]
    arrays += [*elmo.embed(TEXTS, layer="concat"), *elmo.embed(TEXTS, stateful=True)]
    arrays += [np.asarray(value) for value in elmo.outputs(TEXTS).values()]
    arrays += elmo.features(TEXTS, "concat")
    kinds: list[dict[str, Any]] = [{}, {"fine_tune": True}, {"by_direction": True, "layer_norm": True}]
    for options in kinds:
        arrays.append(polyseme.ElmoLayer(elmo, **options).eval()(SENTENCES)[0][0].detach().numpy())
    arrays.append(polyseme.mean_vectors(elmo, TEXTS, min_count=1).vectors)
    arrays += [np.asarray(score.forward) for score in polyseme.score(elmo, TEXTS[:1])]
    return arrays


@pytest.mark.parametrize("precision", ["fp32", "int8", "bf16"])
@pytest.mark.parametrize("default", DEFAULTS, indirect=True)
def test_the_defaults_of_torch_change_no_vector(folder, default, precision):
    arrays = compute_all(folder, precision)
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)
    for array, expected in zip(arrays, compute_all(folder, precision), strict=True):
        assert array.dtype == expected.dtype
        np.testing.assert_array_equal(array, expected)
