"""Stored vectors against one query: as numpy has it, in every instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.model.kernels import dots, native

pytestmark = pytest.mark.skipif(not native.available(), reason="needs the C library")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (255, 31), (256, 32), (257, 33), (1500, 256), (0, 8)])
def test_scores_are_those_of_numpy(instruction_set, rows, width, dtype):
    chance = np.random.default_rng(rows + width)
    vectors = chance.standard_normal((rows, width)).astype(dtype)
    query, lengths = chance.standard_normal(width).astype(np.float32), chance.random(rows) + 0.5
    keep = chance.random(rows) < 0.7
    scores, tops = dots.scores(vectors, query, 0.25, lengths.astype(np.float32), keep)
    wanted = np.where(keep, (vectors.astype(np.float64) @ query - 0.25) / lengths, -np.inf)
    np.testing.assert_allclose(scores, wanted, rtol=1e-4, atol=1e-4)
    starts = range(0, rows, dots.TOGETHER)
    assert tops.tolist() == [float(scores[first : first + dots.TOGETHER].max()) for first in starts]


def test_every_finite_half_is_widened_exactly(instruction_set):
    bits = np.arange(2**16, dtype=np.uint16)
    halves = bits[(bits & 0x7C00) != 0x7C00].view(np.float16)[:, None]
    scores, _ = dots.scores(halves, np.ones(1, np.float32), 0.0, np.ones(len(halves), np.float32))
    assert (scores == halves[:, 0].astype(np.float32)).all()


def test_a_vector_has_the_same_bits_at_every_place(instruction_set):
    vector, query = np.random.default_rng(0).standard_normal((2, 77)).astype(np.float32)
    many = np.repeat(vector[None], 1000, axis=0)
    scores, _ = dots.scores(many, query, 0.0, np.ones(1000, np.float32))
    assert len(set(scores.tolist())) == 1
