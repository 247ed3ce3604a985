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


def make(lengths: list[int], **options) -> tuple[ModelSettings, BiLM, Batch]:
    rng = np.random.default_rng(4)
    config = random_config(Case(**{"tokens": "words+chars", **options}), rng)
    return config, random_network(config, rng).double(), random_batch(config, lengths, rng)


def test_packing_puts_the_longest_sentences_first_and_reads_both_ways():
    packing = pack_batch(torch.tensor([2, 0, 3]), width=4)
    assert packing.order.tolist() == [2, 0, 1]
    assert packing.sizes == [2, 2, 1]
    assert packing.forward.tolist() == [8, 0, 9, 1, 10]
    assert packing.backward.tolist() == [10, 1, 9, 0, 8]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("cell", KINDS)
def test_a_sentence_gets_the_same_vectors_alone_and_among_others(cell: str, grad: bool):
    _, network, batch = make(LENGTHS, cell=cell)
    with torch.set_grad_enabled(grad):
        together, state = network(*batch)
        for b, length in enumerate(LENGTHS):
            alone, own = network(*batch.rows(b, width=max(length, 1)))
            torch.testing.assert_close(alone[:, 0, :length], together[:, b, :length])
            for stacks in zip(state, own, strict=True):
                for (output, memory), last in zip(*stacks, strict=True):
                    torch.testing.assert_close((output[b], memory[b]), (last[0][0], last[1][0]))


def test_the_order_of_the_sentences_does_not_matter():
    _, network, batch = make(LENGTHS)
    order = [3, 5, 0, 4, 2, 1]
    with torch.no_grad():
        layers, _ = network(*batch)
        shuffled, _ = network(*batch.rows(*order))
    torch.testing.assert_close(shuffled, layers[:, order])


def test_what_stands_behind_a_sentence_does_not_matter():
    _, network, batch = make(LENGTHS)
    assert batch.chars is not None
    assert batch.words is not None
    behind = torch.arange(7) >= batch.lengths[:, None]
    with torch.no_grad():
        layers, _ = network(*batch)
        changed, _ = network(
            torch.where(behind[..., None], batch.chars.flip(0), batch.chars),
            torch.where(behind, 3, batch.words),
            batch.lengths,
        )
    torch.testing.assert_close(changed, layers)


def test_the_lowest_layer_is_the_token_twice_and_all_is_zero_behind_the_end():
    config, network, batch = make(LENGTHS)
    with torch.no_grad():
        layers, _ = network(*batch)
        tokens = network.tokens(batch.chars.flatten(0, 1), batch.words.flatten()).view(6, 7, -1)
    assert layers.shape == (config.layers, 6, 7, config.size)
    for b, length in enumerate(LENGTHS):
        own = tokens[b, :length]
        torch.testing.assert_close(layers[0, b, :length], torch.cat([own, own], dim=1))
        assert not layers[:, b, length:].any()


def test_backward_sees_only_what_follows_and_forward_only_what_went_before():
    config, network, batch = make([6], clipped=False)
    half = config.recurrent.outputs
    changed = batch.words.clone()
    changed[0, 3] = changed[0, 3] % 11 + 1
    with torch.no_grad():
        one, _ = network(*batch)
        other, _ = network(batch.chars, changed, batch.lengths)
    moved = (one - other).abs() > 1e-9  # (L, B, T, H)
    assert moved[0, 0].any(dim=-1).tolist() == [False, False, False, True, False, False]
    for layer in moved[1:, 0]:
        assert layer[:, :half].any(dim=-1).tolist() == [False, False, False, True, True, True]
        assert layer[:, half:].any(dim=-1).tolist() == [True, True, True, True, False, False]


@pytest.mark.parametrize("cell", KINDS)
def test_a_sentence_in_two_halves_is_one_run_for_the_forward_stack(cell: str):
    config, network, batch = make([8, 8], cell=cell, tokens="words")
    half = config.recurrent.outputs
    three, five = torch.tensor([3, 3]), torch.tensor([5, 5])
    with torch.no_grad():
        whole, end = network(*batch)
        first, state = network(None, batch.words[:, :3], three)
        second, last = network(None, batch.words[:, 3:], five, state)
    torch.testing.assert_close(torch.cat([first, second], dim=2)[..., :half], whole[..., :half])
    torch.testing.assert_close(last.forward, end.forward)


def test_an_empty_sentence_keeps_its_state():
    _, network, batch = make([3, 5, 2])
    with torch.no_grad():
        _, state = network(*batch)
        _, after = network(*batch._replace(lengths=torch.tensor([3, 0, 2])), state)
    for before, now in zip((*state.forward, *state.backward), (*after.forward, *after.backward), strict=True):
        torch.testing.assert_close((now[0][1], now[1][1]), (before[0][1], before[1][1]))
        assert not torch.equal(now[0][0], before[0][0])


def test_a_smaller_batch_leaves_the_state_of_the_other_rows():
    _, network, batch = make([3, 5, 2])
    with torch.no_grad():
        _, state = network(*batch)
        layers, after = network(*batch.rows(1), state)
        alone, _ = network(*batch.rows(1), _row(state, 0))
    torch.testing.assert_close(layers, alone)
    for row in (1, 2):
        torch.testing.assert_close(_row(after, row), _row(state, row))


def test_a_larger_batch_starts_its_new_rows_at_zero():
    _, network, batch = make([3, 5, 2])
    with torch.no_grad():
        _, state = network(*batch.rows(2))
        layers, after = network(*batch, state)
        fresh, _ = network(*batch)
        carried, _ = network(*batch.rows(0), state)
    torch.testing.assert_close(layers[:, 1:], fresh[:, 1:])
    torch.testing.assert_close(layers[:, :1], carried)
    assert all(len(output) == len(memory) == 3 for output, memory in (*after.forward, *after.backward))


def _row(state: BiState, row: int) -> BiState:
    one = slice(row, row + 1)
    return BiState(*([(output[one], memory[one]) for output, memory in stack] for stack in state))


@pytest.mark.parametrize("tokens", ["bytes", "words", "words+chars"])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0]])
def test_batches_without_tokens_give_layers_without_tokens(lengths: list[int], tokens: str):
    config, network, batch = make(lengths, tokens=tokens)
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            layers, state = network(*batch)
        assert layers.shape == (config.layers, len(lengths), 0, config.size)
        assert state.forward[0][0].shape == (len(lengths), config.recurrent.outputs)


def test_each_distinct_token_is_encoded_once():
    _, network, batch = make([7, 7, 7], tokens="words")
    counts: list[int] = []
    network.tokens.register_forward_hook(lambda module, inputs, output: counts.append(len(output)))
    with torch.no_grad():
        network(*batch)
    assert counts == [len(batch.words.unique())]


@pytest.mark.parametrize("grad", [False, True])
def test_the_callers_state_stays_as_it_was(grad: bool):
    _, network, batch = make([3, 5, 2])
    with torch.set_grad_enabled(grad):
        _, state = network(*batch)
        kept = [[(output.clone(), memory.clone()) for output, memory in stack] for stack in state]
        first, _ = network(*batch, state)
        again, _ = network(*batch, state)
    assert torch.equal(first, again)
    torch.testing.assert_close([*state], kept, rtol=0, atol=0)


@pytest.mark.parametrize("tokens", ["bytes", "codepoints", "words", "words+chars"])
@pytest.mark.parametrize("cell", KINDS)
def test_gradients_reach_every_parameter(cell: str, tokens: str):
    _, network, batch = make([4, 7, 2], cell=cell, tokens=tokens, clipped=False)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("transform.bias"):
                parameter.fill_(3)  # no relu is dead
    layers, _ = network(*batch)
    layers[-1].square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("cell", KINDS)
def test_gradients_are_those_of_finite_differences(cell: str):
    _, network, batch = make([3, 1, 4], cell=cell, layers=2, highways=1, activation="tanh")
    names, values = zip(*network.named_parameters(), strict=True)

    def run(*weights: Tensor) -> Tensor:
        layers, _ = functional_call(network, dict(zip(names, weights, strict=True)), tuple(batch))
        return layers

    assert torch.autograd.gradcheck(run, values, fast_mode=True)
