"""Both directions over a batch: a sentence gets the same vectors in any batch.

B sentences, T tokens incl. <S> and </S>, C characters, D one direction, H = 2D, L layers.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from polyseme.config import ModelSettings
from polyseme.model.bilm import BiLM
from polyseme.model.fast.packing import BiState, pack_batch
from random_models import Batch, Case, random_batch, random_config, random_network

LENGTHS = [4, 7, 1, 0, 7, 2]
KINDS = ("lstm", "gru", "rnn")


def make_network(lengths: list[int], **options) -> tuple[ModelSettings, BiLM, Batch]:
    """Random settings, their network in double precision, and a batch of sentences of `lengths`."""
    rng = np.random.default_rng(4)
    config = random_config(Case(**{"tokens": "words+chars", **options}), rng)
    return config, random_network(config, rng).double(), random_batch(config, lengths, rng)


def test_packing_puts_the_longest_sentences_first_in_both_directions():
    packing = pack_batch(torch.tensor([2, 0, 3]), width=4)
    assert packing.order.tolist() == [2, 0, 1]
    assert packing.sizes == [2, 2, 1]
    assert packing.forward.tolist() == [8, 0, 9, 1, 10]
    assert packing.backward.tolist() == [10, 1, 9, 0, 8]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("cell", KINDS)
def test_a_sentence_gets_the_same_vectors_alone_and_among_others(cell: str, grad: bool):
    _, network, batch = make_network(LENGTHS, cell=cell)
    with torch.set_grad_enabled(grad):
        together, state = network(*batch)
        for b, length in enumerate(LENGTHS):
            alone, alone_state = network(*batch.rows(b, width=max(length, 1)))
            torch.testing.assert_close(alone[:, 0, :length], together[:, b, :length])
            for stacks in zip(state, alone_state, strict=True):
                for (output, memory), last in zip(*stacks, strict=True):
                    torch.testing.assert_close((output[b], memory[b]), (last[0][0], last[1][0]))


def test_the_order_of_the_sentences_does_not_matter():
    _, network, batch = make_network(LENGTHS)
    order = [3, 5, 0, 4, 2, 1]
    with torch.no_grad():
        layers, _ = network(*batch)
        shuffled, _ = network(*batch.rows(*order))
    torch.testing.assert_close(shuffled, layers[:, order])


def test_padding_after_a_sentence_does_not_matter():
    _, network, batch = make_network(LENGTHS)
    assert batch.chars is not None
    assert batch.words is not None
    is_padding = torch.arange(7) >= batch.lengths[:, None]
    with torch.no_grad():
        layers, _ = network(*batch)
        changed, _ = network(
            torch.where(is_padding[..., None], batch.chars.flip(0), batch.chars),
            torch.where(is_padding, 3, batch.words),
            batch.lengths,
        )
    torch.testing.assert_close(changed, layers)


def test_the_lowest_layer_repeats_the_token_vector_and_padding_is_zero():
    config, network, batch = make_network(LENGTHS)
    with torch.no_grad():
        layers, _ = network(*batch)
        tokens = network.tokens(batch.chars.flatten(0, 1), batch.words.flatten()).view(6, 7, -1)
    assert layers.shape == (config.layers, 6, 7, config.size)
    for b, length in enumerate(LENGTHS):
        vectors = tokens[b, :length]
        torch.testing.assert_close(layers[0, b, :length], torch.cat([vectors, vectors], dim=1))
        assert not layers[:, b, length:].any()


def test_forward_reads_only_preceding_tokens_and_backward_only_following_ones():
    config, network, batch = make_network([6], clipped=False)
    half = config.recurrent.outputs
    changed = batch.words.clone()
    changed[0, 3] = changed[0, 3] % 11 + 1
    with torch.no_grad():
        before, _ = network(*batch)
        after, _ = network(batch.chars, changed, batch.lengths)
    moved = (before - after).abs() > 1e-9  # (L, B, T, H)
    assert moved[0, 0].any(dim=-1).tolist() == [False, False, False, True, False, False]
    for layer in moved[1:, 0]:
        assert layer[:, :half].any(dim=-1).tolist() == [False, False, False, True, True, True]
        assert layer[:, half:].any(dim=-1).tolist() == [True, True, True, True, False, False]


@pytest.mark.parametrize("cell", KINDS)
def test_the_forward_stack_can_read_a_sentence_in_two_parts(cell: str):
    config, network, batch = make_network([8, 8], cell=cell, tokens="words")
    half = config.recurrent.outputs
    with torch.no_grad():
        whole, end = network(*batch)
        first, state = network(None, batch.words[:, :3], torch.tensor([3, 3]))
        second, last = network(None, batch.words[:, 3:], torch.tensor([5, 5]), state)
    torch.testing.assert_close(torch.cat([first, second], dim=2)[..., :half], whole[..., :half])
    torch.testing.assert_close(last.forward, end.forward)


def test_an_empty_sentence_keeps_its_state():
    _, network, batch = make_network([3, 5, 2])
    with torch.no_grad():
        _, state = network(*batch)
        _, after = network(*batch._replace(lengths=torch.tensor([3, 0, 2])), state)
    for before, now in zip((*state.forward, *state.backward), (*after.forward, *after.backward), strict=True):
        torch.testing.assert_close((now[0][1], now[1][1]), (before[0][1], before[1][1]))
        assert not torch.equal(now[0][0], before[0][0])


def test_a_smaller_batch_does_not_change_the_state_of_the_remaining_rows():
    _, network, batch = make_network([3, 5, 2])
    with torch.no_grad():
        _, state = network(*batch)
        layers, after = network(*batch.rows(1), state)
        alone, _ = network(*batch.rows(1), _row(state, 0))
    torch.testing.assert_close(layers, alone)
    for row in (1, 2):
        torch.testing.assert_close(_row(after, row), _row(state, row))


def test_new_rows_of_a_larger_batch_start_from_zero_state():
    _, network, batch = make_network([3, 5, 2])
    with torch.no_grad():
        _, state = network(*batch.rows(2))
        layers, after = network(*batch, state)
        fresh, _ = network(*batch)
        carried, _ = network(*batch.rows(0), state)
    torch.testing.assert_close(layers[:, 1:], fresh[:, 1:])
    torch.testing.assert_close(layers[:, :1], carried)
    assert all(len(output) == len(memory) == 3 for output, memory in (*after.forward, *after.backward))


def _row(state: BiState, row: int) -> BiState:
    rows = slice(row, row + 1)
    return BiState(*([(output[rows], memory[rows]) for output, memory in stack] for stack in state))


@pytest.mark.parametrize("tokens", ["bytes", "words", "words+chars"])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_batches_without_tokens_give_layers_without_tokens(lengths: list[int], tokens: str):
    config, network, batch = make_network(lengths, tokens=tokens)
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            layers, state = network(*batch)
        assert layers.shape == (config.layers, len(lengths), 0, config.size)
        assert state.forward[0][0].shape == (len(lengths), config.recurrent.outputs)


def test_each_distinct_token_is_encoded_once():
    _, network, batch = make_network([7, 7, 7], tokens="words")
    counts: list[int] = []
    network.tokens.register_forward_hook(lambda module, inputs, output: counts.append(len(output)))
    with torch.no_grad():
        network(*batch)
    assert counts == [len(batch.words.unique())]


@pytest.mark.parametrize("grad", [False, True])
def test_the_state_passed_in_is_not_changed(grad: bool):
    _, network, batch = make_network([3, 5, 2])
    with torch.set_grad_enabled(grad):
        _, state = network(*batch)
        copies = [[(output.clone(), memory.clone()) for output, memory in stack] for stack in state]
        first, _ = network(*batch, state)
        again, _ = network(*batch, state)
    assert torch.equal(first, again)
    torch.testing.assert_close([*state], copies, rtol=0, atol=0)


@pytest.mark.parametrize("tokens", ["bytes", "codepoints", "words", "words+chars"])
@pytest.mark.parametrize("cell", KINDS)
def test_gradients_reach_every_parameter(cell: str, tokens: str):
    _, network, batch = make_network([4, 7, 2], cell=cell, tokens=tokens, clipped=False)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("transform.bias"):
                parameter.fill_(3)  # so that no relu is dead
    layers, _ = network(*batch)
    layers[-1].square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("cell", KINDS)
def test_gradients_agree_with_finite_differences(cell: str):
    _, network, batch = make_network([3, 1, 4], cell=cell, layers=2, highways=1, activation="tanh")
    names, values = zip(*network.named_parameters(), strict=True)

    def run(*weights: Tensor) -> Tensor:
        layers, _ = functional_call(network, dict(zip(names, weights, strict=True)), tuple(batch))
        return layers

    assert torch.autograd.gradcheck(run, values, fast_mode=True)
