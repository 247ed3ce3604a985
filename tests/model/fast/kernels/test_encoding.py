"""Filters and highways in C agree with torch, for any words, threads and instruction sets."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.fast.kernels import native
from polyseme.model.fast.kernels.encoding import filter_words
from polyseme.model.tokens import CharCnn, Highway

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")

FILTERS = [(1, 16), (2, 32), (3, 80)]  # 128 in all; the second stretch of 64 begins inside a width


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    """Every instruction set of this machine."""
    before = native.active_instruction_set()
    if not native.select_instruction_set(request.param):
        pytest.skip("not on this machine")
    yield request.param
    native.select_instruction_set(before)


def make_words(count: int) -> torch.Tensor:
    """Character ids (count, 12) of words of 1 to 8 characters, 9 being the padding."""
    chars = torch.full((count, 12), 9)
    for number in range(count):
        length = 1 + number % 8
        chars[number, :length] = torch.randint(1, 9, (length,))
    return chars


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_filters_are_those_of_the_convolutions(instruction_set, activation):
    torch.manual_seed(0)
    encoder = CharCnn(10, 4, FILTERS, activation=activation, highways=0, padding=9)
    chars = make_words(33)
    with torch.no_grad():
        vectors = torch.relu if activation == "relu" else torch.tanh
        embedded = encoder.embedding(chars).transpose(1, 2)
        expected = [vectors(convolution(embedded).amax(dim=2)) for convolution in encoder.convolutions]
        torch.testing.assert_close(encoder(chars), torch.cat(expected, dim=1), rtol=1e-5, atol=1e-6)


def test_a_word_without_room_for_the_filters_does_not_change_the_others():
    torch.manual_seed(0)
    encoder = CharCnn(10, 4, FILTERS, activation="relu", highways=1, padding=9)
    chars = make_words(9)
    crowded = torch.cat([chars, torch.randint(1, 9, (1, 12))])
    with torch.no_grad():
        assert torch.equal(encoder(crowded)[:9], encoder(chars))


def test_an_unknown_character_is_left_to_torch():
    encoder = CharCnn(10, 4, FILTERS, activation="relu", highways=0, padding=9)
    with torch.no_grad():
        lookups = encoder._get_lookups()
        assert lookups is not None
        for character in (-1, 10):
            chars = make_words(3)
            chars[1, 0] = character
            assert filter_words(lookups, chars, encoder._count_characters(chars), relu=True) is None


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 3e-2), ("int8", 5e-2)])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_highway_is_that_of_torch_and_the_same_bits_in_every_batch(
    instruction_set, precision, tolerance, threads
):
    torch.manual_seed(0)
    highway, x = Highway(80), torch.randn(100, 80)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            gate = torch.sigmoid(highway.carry(x))
            expected = gate * torch.relu(highway.transform(x)) + (1 - gate) * x
            highway.transform.pack(precision)
            highway.carry.pack(precision)
            together = highway(x)
            torch.testing.assert_close(together, expected, rtol=tolerance, atol=tolerance)
            for rows in (slice(0, 1), slice(40, 60), slice(99, 100)):
                assert torch.equal(highway(x[rows]), together[rows])
            assert highway(x[:0]).shape == (0, 80)
    finally:
        torch.set_num_threads(before)
