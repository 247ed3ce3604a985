"""One direction: sizes, state and gradients of cells of every kind.

N packed tokens, B sentences, T tokens, M memory cells, D outputs.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from polyseme.model.recurrent import RecurrentCell, RecurrentStack

KINDS = ("lstm", "gru", "rnn")
SIZES = [4, 4, 3, 1, 1]  # sentences of 5, 3, 3 and 2 tokens, packed


def make_cell(kind: str, *, inputs: int = 3, cells: int = 5, outputs: int = 2, **options) -> RecurrentCell:
    torch.manual_seed(1)
    cell = RecurrentCell(kind, inputs, cells, outputs, project=cells != outputs, **options).double()
    with torch.no_grad():
        for weight in cell.parameters():
            weight.normal_()
    return cell


def make_stack(kind: str, layers: int = 3, **options) -> RecurrentStack:
    cells = [make_cell(kind, inputs=2, cell_clip=0.5, output_clip=0.5, **options) for _ in range(layers)]
    return RecurrentStack(cells, residual=True)


def random_state(cell: RecurrentCell, batch: int) -> tuple[Tensor, Tensor]:
    output, memory = (torch.randn_like(values) for values in cell.zero_state(batch))
    return output, memory if cell.projection is not None else output


@pytest.mark.parametrize(("n", "m"), [(7, 4), (4, 4), (1, 9)])
def test_cells_without_projection_have_the_parameters_of_the_textbook(n: int, m: int):
    counts = {
        kind: sum(weight.numel() for weight in RecurrentCell(kind, n, m, m, project=False).parameters())
        for kind in KINDS
    }
    assert counts == {
        "rnn": m * n + m * m + m,
        "lstm": 4 * (m * n + m * m + m),
        "gru": 3 * (m * n + m * m) + 2 * m,
    }


def test_a_candidate_bias_adds_one_value_per_cell_to_a_gru_only():
    for kind, added in (("gru", 5), ("lstm", 0), ("rnn", 0)):
        plain, biased = (make_cell(kind, candidate_bias=bias) for bias in (False, True))
        assert len(biased.bias) - len(plain.bias) == added


def test_state_is_the_output_and_the_memory():
    for kind in KINDS:
        output, memory = make_cell(kind).zero_state(6)
        assert output.shape == (6, 2)
        assert memory.shape == (6, 5)
        assert not output.any()
        assert not memory.any()


@pytest.mark.parametrize(("kind", "library"), [("lstm", nn.LSTM), ("rnn", nn.RNN)])
def test_a_cell_without_projection_matches_torch(kind: str, library: type[nn.Module]):
    ours = make_cell(kind, cells=4, outputs=4, forget_bias=0.0)
    theirs = library(3, 4).double()
    order = [0, 1, 3, 2] if kind == "lstm" else [0]  # theirs: i, f, candidate, o
    with torch.no_grad():
        for name, values in (
            ("weight_ih_l0", ours.input_weight),
            ("weight_hh_l0", ours.hidden_weight),
            ("bias_ih_l0", ours.bias),
        ):
            blocks = values.chunk(len(order))
            getattr(theirs, name).copy_(torch.cat([blocks[number] for number in order]))
        theirs.bias_hh_l0.zero_()
    x = torch.randn(6, 2, 3, dtype=torch.double)  # (T, B, inputs)
    outputs, _ = ours(x.flatten(0, 1), [2] * 6, ours.zero_state(2))
    torch.testing.assert_close(outputs.view(6, 2, 4), theirs(x)[0])


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_carrying_the_state_between_two_halves_equals_one_run(kind: str, grad: bool):
    stack = make_stack(kind)
    x = torch.randn(9, 4, 2, dtype=torch.double)  # (T, B, D)
    with torch.set_grad_enabled(grad):
        whole, end = stack(x.flatten(0, 1), [4] * 9, stack.zero_state(4))
        first, between = stack(x[:5].flatten(0, 1), [4] * 5, stack.zero_state(4))
        second, last = stack(x[5:].flatten(0, 1), [4] * 4, between)
    for layer in range(3):
        torch.testing.assert_close(torch.cat([first[layer], second[layer]]), whole[layer])
        torch.testing.assert_close(last[layer], end[layer])


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_state_of_each_sentence_is_returned(kind: str, grad: bool):
    cell = make_cell(kind)
    state = random_state(cell, 4)
    x = torch.randn(sum(SIZES), 3, dtype=torch.double)
    with torch.set_grad_enabled(grad):
        _, (output, memory) = cell(x, SIZES, state)
        starts = [sum(SIZES[:step]) for step in range(5)]
        for b, length in enumerate([5, 3, 3, 2]):
            alone = x[[start + b for start in starts[:length]]]
            _, last = cell(alone, [1] * length, (state[0][b : b + 1], state[1][b : b + 1]))
            torch.testing.assert_close((output[b : b + 1], memory[b : b + 1]), last)


@pytest.mark.parametrize("outputs", [2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_state_and_inputs_passed_in_are_not_changed(kind: str, outputs: int):
    cell = make_cell(kind, outputs=outputs, cell_clip=0.1, output_clip=0.1)
    state = random_state(cell, 4)
    x = torch.randn(sum(SIZES), 3, dtype=torch.double)
    before = [values.clone() for values in (x, *state)]
    with torch.no_grad():
        first, end = cell(x, SIZES, state)
        copies = first.clone(), end[0].clone(), end[1].clone()
        cell(x, SIZES, end)
    for was, now in zip(before, (x, *state), strict=True):
        assert torch.equal(was, now)
    for was, now in zip(copies, (first, *end), strict=True):
        assert torch.equal(was, now)


@pytest.mark.parametrize("kind", KINDS)
def test_without_tokens_the_state_is_unchanged(kind: str):
    cell = make_cell(kind)
    state = random_state(cell, 2)
    outputs, after = cell(torch.empty(0, 3, dtype=torch.double), [], state)
    assert outputs.shape == (0, 2)
    torch.testing.assert_close(after, state)


@pytest.mark.parametrize("input_bytes", [1, 150, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_small_blocks_of_input_products_change_nothing(kind: str, input_bytes: int):
    stack, small = make_stack(kind), make_stack(kind, input_bytes=input_bytes)
    x = torch.randn(sum(SIZES), 2, dtype=torch.double)
    with torch.no_grad():
        whole, end = stack(x, SIZES, stack.zero_state(4))
        blocks = [rows for rows, _ in small.cells[0]._group_steps(SIZES)]
        parts, last = small(x, SIZES, small.zero_state(4))
    assert len(blocks) > 1
    assert [block.stop for block in blocks[:-1]] == [block.start for block in blocks[1:]]
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(last, end)


def test_the_residual_starts_at_the_second_layer_and_does_not_recur():
    stack = make_stack("lstm", layers=2)
    x = torch.randn(3, 2, dtype=torch.double)
    with torch.no_grad():
        (first, second), state = stack(x, [1, 1, 1], stack.zero_state(1))
        alone, _ = stack.cells[0](x, [1, 1, 1], stack.cells[0].zero_state(1))
        above, _ = stack.cells[1](first, [1, 1, 1], stack.cells[1].zero_state(1))
    torch.testing.assert_close(first, alone)
    torch.testing.assert_close(second, first + above)
    torch.testing.assert_close(state[1][0], above[-1:])


@pytest.mark.parametrize("kind", KINDS)
def test_memory_and_output_stay_within_their_clips(kind: str):
    cell = make_cell(kind, cell_clip=0.25, output_clip=0.125)
    with torch.no_grad():
        outputs, (_, memory) = cell(torch.randn(20, 3, dtype=torch.double), [4] * 5, cell.zero_state(4))
    assert outputs.abs().max() == 0.125
    assert memory.abs().max() == 0.25


def test_without_a_projection_the_output_is_not_clipped():
    for kind in KINDS:
        cell = make_cell(kind, cells=4, outputs=4, output_clip=0.01)
        with torch.no_grad():
            outputs, _ = cell(torch.randn(20, 3, dtype=torch.double), [4] * 5, cell.zero_state(4))
        assert outputs.abs().max() > 0.01


@pytest.mark.parametrize("options", [{}, {"outputs": 3, "cells": 3}, {"cell_clip": 0.6, "output_clip": 0.9}])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_agree_with_finite_differences(kind: str, options: dict):
    cell = make_cell(kind, candidate_bias=True, **{"cells": 4, **options})
    names, values = zip(*cell.named_parameters(), strict=True)
    output, memory = (torch.randn_like(part).requires_grad_() for part in cell.zero_state(2))
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)

    def run(x: Tensor, output: Tensor, memory: Tensor, *weights: Tensor):
        named = dict(zip(names, weights, strict=True))
        outputs, state = functional_call(cell, named, (x, [2, 2, 1], (output, memory)))
        return outputs, *state

    assert torch.autograd.gradcheck(run, (x, output, memory, *values))
