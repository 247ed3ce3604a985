"""Tokens before any context: the char-CNN, the word table, and both.

N tokens, C characters, F the sum of the filters, D the size handed to the stacks.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import reference
from polyseme.config import CharsSettings
from polyseme.model.tokens import CharCnn, TokenEncoder, fill_word_table, make_word_table

PADDING = 261
FILTERS = {
    "narrow": ((1, 3), (2, 4)),
    "usual": ((1, 2), (2, 2), (3, 2), (4, 2), (7, 5)),
    "wide": ((12, 3), (5, 2)),  # as wide as the row
}
MAX_CHARS = 12


def make_cnn(filters=FILTERS["usual"], *, activation: str = "relu", highways: int = 1, **options) -> CharCnn:
    torch.manual_seed(2)
    cnn = CharCnn(262, 3, filters, activation=activation, highways=highways, padding=PADDING, **options)
    cnn = cnn.double()
    with torch.no_grad():
        for name, weight in cnn.named_parameters():
            weight.normal_()
            if name == "embedding.weight":
                weight[0] = 0
    return cnn.eval()


def rows(*words: str) -> torch.Tensor:
    """(N, C): the bytes of the words, truncated and padded."""
    return torch.tensor([reference.byte_row(word, MAX_CHARS) for word in words])


def reference_vectors(cnn: CharCnn, chars: torch.Tensor) -> np.ndarray:
    """The vectors of the numpy reference, always over the full width of the row."""
    shapes = [
        weight.shape for name, weight in cnn.named_parameters() if re.match(r"convolutions.*weight", name)
    ]
    settings = {
        "max_chars": MAX_CHARS,
        "filters": [(width, count) for count, _, width in shapes],
        "activation": cnn.activation,
        "highways": len(cnn.highways),
    }
    config = CharsSettings.model_validate(settings)
    weights = {f"tokens.chars.{name}": value.numpy() for name, value in cnn.state_dict().items()}
    return np.stack([reference.char_vector(config, weights, row) for row in chars.numpy()])


@pytest.mark.parametrize("filters", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("length", range(13))
def test_a_cropped_row_gives_the_same_vector_as_the_full_row(length: int, filters):
    cnn = make_cnn(filters)
    chars = rows("x" * length, "xyzabcdefghi"[:length])  # up to 10 letters fit beside the two marks
    with torch.no_grad():
        np.testing.assert_allclose(cnn(chars).numpy(), reference_vectors(cnn, chars), atol=1e-12)


def test_the_padding_of_a_word_takes_part_in_the_maximum():
    cnn = make_cnn(((1, 4),), highways=0)
    with torch.no_grad():
        cnn.embedding.weight[PADDING] = 100 * cnn.convolutions[0].weight[0, :, 0]
        short, full = cnn(rows("a", "a" * 10))
        alone = cnn(rows("a"))[0]
    assert short[0] > full[0] + 10
    torch.testing.assert_close(alone, short)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_words_of_all_lengths_get_the_same_vectors_together_and_alone(activation: str):
    cnn = make_cnn(activation=activation, block_words=3)
    chars = rows("<S>", "", "a", "word", "a" * 9, "b" * 10, "c" * 11, "d" * 40, "é", "的的", "</S>")
    with torch.no_grad():
        in_blocks = cnn(chars)
        alone = torch.cat([cnn(row[None]) for row in chars])
    together = cnn(chars).detach()  # with gradients all words run at once
    torch.testing.assert_close(in_blocks, alone)
    torch.testing.assert_close(in_blocks, together)
    np.testing.assert_allclose(in_blocks.numpy(), reference_vectors(cnn, chars), atol=1e-12)


def test_no_words_give_no_vectors():
    cnn = make_cnn()
    empty = torch.empty(0, MAX_CHARS, dtype=torch.long)
    assert cnn(empty).shape == (0, cnn.size)
    with torch.no_grad():
        assert cnn(empty).shape == (0, cnn.size)


def test_with_words_and_characters_the_word_vector_comes_first():
    cnn, table = make_cnn(), make_word_table(5, 4).double()
    encoder = TokenEncoder(chars=cnn, words=table, outputs=4 + cnn.size, project=False)
    chars, words = rows("a", "word"), torch.tensor([2, 5])
    vectors = encoder(chars, words)
    assert vectors.shape == (2, 4 + cnn.size)
    assert torch.equal(vectors[:, :4], table.weight[[2, 5]])
    assert torch.equal(vectors[:, 4:], cnn(chars))


def test_a_projection_has_the_requested_size():
    encoder = TokenEncoder(chars=None, words=make_word_table(5, 4), outputs=7, project=True)
    vectors = encoder(None, torch.tensor([1, 2, 3]))
    assert vectors.shape == (3, 7)


def test_gradients_reach_every_parameter_but_not_the_padding_rows():
    encoder = TokenEncoder(
        chars=make_cnn(), words=make_word_table(5, 4).double(), outputs=6, project=True
    ).double()
    ids = torch.cat([rows("a", "word"), torch.zeros(1, MAX_CHARS, dtype=torch.long)])
    encoder(ids, torch.tensor([1, 5, 0])).square().sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    assert not encoder.words.weight.grad[0].any()
    assert not encoder.chars.embedding.weight.grad[0].any()


def test_a_frozen_word_table_gets_no_gradient():
    table = make_word_table(5, 4, trained=False)
    encoder = TokenEncoder(chars=None, words=table, outputs=3, project=True)
    encoder(None, torch.tensor([1, 2])).sum().backward()
    assert table.weight.grad is None
    assert encoder.projection.weight.grad is not None


def test_a_word_table_has_a_zero_row_for_padding():
    table = make_word_table(5, 4)
    assert table.weight.shape == (6, 4)
    assert not table.weight[0].any()
    assert table.weight[1:].all()


@pytest.mark.parametrize("trained", [True, False])
def test_static_vectors_fill_only_their_rows(trained: bool):
    table = make_word_table(5, 2, trained=trained)
    before = table.weight.detach().clone()
    vectors = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.double)
    fill_word_table(table, torch.tensor([4, 2]), vectors)
    assert table.weight[4].tolist() == [1, 2]
    assert table.weight[2].tolist() == [3, 4]
    assert torch.equal(table.weight[[0, 1, 3, 5]], before[[0, 1, 3, 5]])
    assert table.weight.requires_grad == trained


def test_static_vectors_of_the_wrong_size_are_refused():
    for vectors in (torch.ones(2, 3), torch.ones(1, 2), torch.ones(2)):
        with pytest.raises(ValueError, match="vectors are"):
            fill_word_table(make_word_table(5, 2), torch.tensor([1, 2]), vectors)


@torch.no_grad()
def test_lookup_tables_follow_the_weights_even_if_no_version_counter_changes():
    cnn = make_cnn()
    chars = rows("one", "three")
    before = cnn(chars)
    optimizer = torch.optim.AdamW(cnn.parameters(), 0.1, fused=True)
    for parameter in cnn.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    after = cnn(chars)
    assert not torch.allclose(before, after)
    with torch.enable_grad():
        torch.testing.assert_close(after, cnn(chars).detach())
