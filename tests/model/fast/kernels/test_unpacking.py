"""Arrays per sentence from C have the bits of torch's; its threads serve any caller and forked children."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import torch

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.model.fast.kernels import native
from polyseme.model.fast.kernels.unpacking import can_unpack, unpack_sentences
from polyseme.model.output import resolve_output

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")

SENTENCES = [[f"word{number % 7}"] * (number % 6) for number in range(23)]


@pytest.fixture
def threads():
    """Set the number of torch threads, until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("layer", ["all", "mean", "top", 0, [0.5, 0.0, -2.0], [0.0, 0.0, 0.0]])
def test_sentences_have_the_bits_of_the_padded_batch(threads, count, layer):
    threads(count)
    elmo = Elmo(random_model(small_config()))
    spec = resolve_output(layer, None, "both", elmo.config.layers)
    with torch.inference_mode():
        output = elmo.run_batch(SENTENCES)
        padded = spec.select(output)
        assert can_unpack(output)
        arrays = unpack_sentences(output, [*map(len, SENTENCES)], spec.weights)
    for sentence, array, row in zip(SENTENCES, arrays, padded, strict=True):
        expected = row[..., 1 : len(sentence) + 1, :].numpy()
        assert array.shape == expected.shape
        assert array.tobytes() == expected.tobytes()


@pytest.mark.parametrize("pool", ["mean", "max", "first", "last", "sum", "concat"])
def test_pools_are_those_of_the_tokens_and_zero_without_tokens(pool):
    elmo = Elmo(random_model(small_config()))
    pooled = elmo.embed(SENTENCES, layer="top", pool=pool)
    functions = {"mean": lambda x: x.mean(0), "max": lambda x: x.max(0), "sum": lambda x: x.sum(0)}
    functions |= {"first": lambda x: x[0], "last": lambda x: x[-1]}
    functions["concat"] = lambda x: np.concatenate([x.mean(0), x.max(0), x.min(0)])
    for vector, tokens in zip(pooled, elmo.embed(SENTENCES, layer="top"), strict=True):
        expected = functions[pool](tokens) if len(tokens) else np.zeros_like(vector)
        np.testing.assert_allclose(vector, expected, rtol=1e-5, atol=1e-6)


def test_several_threads_share_the_workers_and_get_the_same_bits(threads):
    threads(2)
    elmo = Elmo(random_model(small_config()))
    expected, results = elmo.embed(SENTENCES, layer="all"), []

    def embed() -> None:
        for _ in range(20):
            results.append(elmo.embed(SENTENCES, layer="all"))

    callers = [threading.Thread(target=embed) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == 120
    for result in results:
        assert all(np.array_equal(*pair) for pair in zip(expected, result, strict=True))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_starts_its_own_workers(threads):
    threads(2)
    elmo = Elmo(random_model(small_config()))
    expected = elmo.embed(SENTENCES, layer="all")
    child = os.fork()
    if not child:
        try:
            torch.set_num_threads(2)  # our own code sets 1
            stacks = elmo.embed(SENTENCES, layer="all")
            same = all(np.array_equal(*pair) for pair in zip(expected, stacks, strict=True))
        except BaseException:
            same = False
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_token_number_without_a_vector_is_refused():
    elmo = Elmo(random_model(small_config()))
    network = elmo.model.network
    network.pack()
    vectors = torch.zeros(3, elmo.config.size // 2)
    for number in (3, -1):
        with torch.inference_mode(), pytest.raises(IndexError, match="numbers has a row"):
            network.run_stacks(vectors, torch.tensor([[0, number, 1]]), torch.tensor([3]))
