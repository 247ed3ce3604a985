"""Scores of stored vectors for one query or many agree with numpy in every instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.model.fast.kernels import dots, native

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (255, 31), (256, 32), (257, 33), (1500, 256), (0, 8)])
def test_scores_are_those_of_numpy(instruction_set, rows, width, dtype):
    rng = np.random.default_rng(rows + width)
    vectors = rng.standard_normal((rows, width)).astype(dtype)
    query, lengths = rng.standard_normal(width).astype(np.float32), rng.random(rows) + 0.5
    keep = rng.random(rows) < 0.7
    scores, tops = dots.score_query(vectors, query, 0.25, lengths.astype(np.float32), keep)
    expected = np.where(keep, (vectors.astype(np.float64) @ query - 0.25) / lengths, -np.inf)
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)
    starts = range(0, rows, dots.TOGETHER)
    assert tops.tolist() == [float(scores[first : first + dots.TOGETHER].max()) for first in starts]


def test_every_finite_fp16_value_is_widened_exactly(instruction_set):
    bits = np.arange(2**16, dtype=np.uint16)
    halves = bits[(bits & 0x7C00) != 0x7C00].view(np.float16)[:, None]
    scores, _ = dots.score_query(halves, np.ones(1, np.float32), 0.0, np.ones(len(halves), np.float32))
    assert (scores == halves[:, 0].astype(np.float32)).all()


def test_a_score_has_the_same_bits_in_every_row(instruction_set):
    vector, query = np.random.default_rng(0).standard_normal((2, 77)).astype(np.float32)
    vectors = np.repeat(vector[None], 1000, axis=0)
    scores, _ = dots.score_query(vectors, query, 0.0, np.ones(1000, np.float32))
    assert len(set(scores.tolist())) == 1


SHAPES = [(1, 1, 1), (191, 31, 5), (193, 300, 16), (1000, 256, 64), (700, 1100, 33), (0, 8, 3)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize(("rows", "width", "count"), SHAPES)
def test_scores_of_many_queries_above_their_bounds_are_those_of_numpy(
    instruction_set, rows, width, count, filtered, dtype
):
    rng = np.random.default_rng(rows + width)
    vectors = rng.standard_normal((rows, width)).astype(dtype)
    queries, offsets = (rng.standard_normal(size).astype(np.float32) for size in ((count, width), count))
    lengths, least = rng.random(rows).astype(np.float32) + 0.5, rng.random(count).astype(np.float32)
    least[0] = -np.inf  # the first query has no bound
    keep = rng.random(rows) < 0.7 if filtered else None
    indices, scores = dots.PackedQueries(queries, offsets).find_above(vectors, lengths, least, keep)
    expected = (vectors.astype(np.float64) @ queries.T - offsets) / lengths[:, None]
    above = np.full((rows, count), -np.inf)
    above[indices // count, indices % count] = scores
    allowed = np.ones(rows, np.bool_) if keep is None else keep
    near = np.abs(expected - least) < 1e-3  # rounding decides
    assert ((above > -np.inf) == (expected > least) & allowed[:, None])[~near].all()
    np.testing.assert_allclose(scores, expected.ravel()[indices], rtol=1e-4, atol=1e-3)
    assert (np.diff(indices) > 0).all()  # by rows, then by queries


def test_a_score_has_the_same_bits_among_many_queries_and_in_every_row(instruction_set):
    rng = np.random.default_rng(0)
    queries, lengths = rng.standard_normal((9, 77)).astype(np.float32), np.ones(500, np.float32)
    vectors = np.repeat(rng.standard_normal((1, 77)).astype(np.float32), 500, axis=0)
    least = np.full(9, -np.inf, np.float32)
    _, scores = dots.PackedQueries(queries, np.zeros(9, np.float32)).find_above(vectors, lengths, least)
    assert all(len(set(column.tolist())) == 1 for column in scores.reshape(500, 9).T)
    _, alone = dots.PackedQueries(queries[:1], np.zeros(1, np.float32)).find_above(
        vectors[:1], lengths[:1], least[:1]
    )
    assert alone[0] == scores[0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (191, 31), (193, 300), (1000, 256), (400, 1100), (0, 8)])
def test_lengths_in_a_corrected_space_are_those_of_numpy(instruction_set, rows, width, dtype):
    rng = np.random.default_rng(rows + width)
    vectors = rng.standard_normal((rows, width)).astype(dtype)
    centre, matrix = (rng.standard_normal(size).astype(np.float32) for size in (width, (width, width)))
    lengths = dots.TransformedNorms(centre, matrix).lengths(vectors)
    expected = np.linalg.norm((vectors.astype(np.float64) - centre) @ matrix, axis=1)
    np.testing.assert_allclose(lengths, expected, rtol=1e-4)


def test_a_length_has_the_same_bits_in_every_row(instruction_set):
    vector, centre, *matrix = np.random.default_rng(0).standard_normal((79, 77)).astype(np.float32)
    lengths = dots.TransformedNorms(centre, np.stack(matrix)).lengths(np.repeat(vector[None], 1000, axis=0))
    assert len(set(lengths.tolist())) == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize(("rows", "width", "count"), [(1, 1, 1), (300, 33, 7), (900, 600, 40), (0, 8, 3)])
def test_rows_are_added_to_their_sums(instruction_set, rows, width, count, dtype):
    rng = np.random.default_rng(rows + width)
    vectors, indices = rng.standard_normal((rows, width)).astype(dtype), rng.integers(count, size=rows)
    sums = np.ones((count, width), np.float32)
    dots.add_rows(sums, indices.astype(np.int32), vectors)
    expected = np.ones((count, width), np.float32)
    np.add.at(expected, indices, vectors.astype(np.float32))
    assert (sums == expected).all()


@pytest.mark.parametrize("number", [-1, 3])
def test_a_sum_that_does_not_exist_is_refused(number):
    with pytest.raises(ValueError, match="rows out of range"):
        dots.add_rows(np.zeros((3, 4), np.float32), np.array([number], np.int32), np.ones((1, 4), np.float32))
