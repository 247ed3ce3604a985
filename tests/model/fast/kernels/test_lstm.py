"""The LSTM in C gives the values and gradients of torch for all shapes, lengths and clips.

N packed tokens, B sentences, M memory cells, D outputs.
"""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyseme.model.fast import paired
from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.quantisation import QuantisedMatrix
from polyseme.model.recurrent import RecurrentCell, RecurrentStack

pytestmark = pytest.mark.skipif(not native.is_available(), reason=f"C library: {native.unavailable_reason()}")

lengths = st.lists(st.integers(0, 9), min_size=1, max_size=8) | st.integers(9, 70).map(
    lambda batch: [1 + number % 5 for number in range(batch)]
)
clips = st.sampled_from([None, 0.1, 3.0])
CLIP_MARGIN = 1e-6  # twice the largest rounding error of fp32 in these layers


@st.composite
def layers(draw):
    """Two cells of the same shape (one per direction), the packed sizes of a batch, and a state."""
    cells = draw(st.integers(1, 40) | st.sampled_from([64, 100, 256]))
    outputs = draw(st.integers(1, cells) | st.just(cells))
    options = {"project": cells != outputs, "cell_clip": draw(clips), "output_clip": draw(clips)}
    torch.manual_seed(draw(st.integers(0, 1000)))
    pair = tuple(RecurrentCell("lstm", 5, cells, outputs, **options) for _ in range(2))
    batch = draw(lengths)
    sizes = [sum(length > time for length in batch) for time in range(max(batch))]
    state = 0.5 * torch.randn(2, len(batch), outputs), torch.randn(2, len(batch), cells)
    return pair, sizes, state


def compute_gradients(pair, x, sizes, state):
    """Outputs and last state, and every gradient of a loss that uses all of them."""
    for cell in pair:
        cell.zero_grad()
    x = x.clone().requires_grad_()
    state = tuple(part.clone().requires_grad_() for part in state)
    output, (h, c) = paired.run_layer_paired(pair, x, sizes, state)
    loss = (output * torch.linspace(-1, 1, output.numel()).view_as(output)).sum()
    (loss + (h.sin() * 0.3).sum() + (c.cos() * 0.2).sum()).backward()
    weights = [weight.grad for cell in pair for weight in cell.parameters()]
    return [output, h, c], [x.grad, *(part.grad for part in state), *weights]


def clip_margin(pair, x, sizes, state):
    """The smallest distance of a value to its clip.

    A clipped value has no gradient. If a value is within rounding of its clip, fp32 may clip it and double
    precision not, and both gradients are correct.
    """
    margins = [float("inf")]
    for direction, cell in enumerate(copy.deepcopy(pair)):
        clip = cell._clip

        def record(values, limit, clip=clip):
            if limit is not None:
                margins.append((values.abs() - limit).abs().min().item())
            return clip(values, limit)

        vars(cell)["_clip"] = record
        with torch.no_grad():
            cell(x[direction], sizes, tuple(part[direction] for part in state))
    return min(margins)


@settings(max_examples=60, deadline=None)
@given(layers())
def test_without_gradients_outputs_and_state_are_those_of_torch(layer):
    (cell, _), sizes, (h, c) = layer
    packed = copy.deepcopy(cell)
    x, state = torch.randn(sum(sizes), 5), (h[0], c[0])
    copies = [part.clone() for part in state]
    packed.pack()
    with torch.inference_mode():
        outputs, last = packed(x, sizes, state)
    with torch.no_grad():
        expected_outputs, expected_last = cell(x, sizes, state)
    for values, expected in zip((outputs, *last), (expected_outputs, *expected_last), strict=True):
        torch.testing.assert_close(values, expected, rtol=0, atol=1e-5)
    assert all(torch.equal(*parts) for parts in zip(copies, state, strict=True))  # not changed


def test_values_and_gradients_are_those_of_torch_in_double_precision(instruction_set):
    @settings(max_examples=40, deadline=None)
    @given(layers())
    def compare(layer):
        pair, sizes, state = layer
        if not sizes:
            return
        x = torch.randn(2, sum(sizes), 5)
        exact = (
            [copy.deepcopy(cell).double() for cell in pair],
            x.double(),
            sizes,
            [part.double() for part in state],
        )
        assume(clip_margin(*exact) > CLIP_MARGIN)
        values, gradients = compute_gradients(pair, x, sizes, state)
        expected_values, expected_gradients = compute_gradients(*exact)
        for value, expected in zip(values, expected_values, strict=True):
            torch.testing.assert_close(value.double(), expected, rtol=0, atol=1e-5)
        for gradient, expected in zip(gradients, expected_gradients, strict=True):
            torch.testing.assert_close(gradient.double(), expected, rtol=1e-4, atol=1e-4)

    compare()


def test_one_thread_and_two_give_the_same_bits():
    torch.manual_seed(0)
    pair = tuple(
        RecurrentCell("lstm", 5, 50, 20, project=True, cell_clip=3.0, output_clip=3.0) for _ in range(2)
    )
    x, state = torch.randn(2, 26, 5), (torch.randn(2, 9, 20), torch.randn(2, 9, 50))
    threads, results = torch.get_num_threads(), []
    for count in (1, 2):
        torch.set_num_threads(count)
        values, gradients = compute_gradients(pair, x, [9, 8, 5, 3, 1], state)
        results.append([*values, *gradients])
    torch.set_num_threads(threads)
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def pack(cell: RecurrentCell) -> lstm.PackedLayer:
    """The weights of a projected cell, packed."""
    assert cell.projection is not None
    weights = (cell.hidden_weight, cell.projection, cell.input_weight)
    return lstm.pack_layer(*(QuantisedMatrix(weight) for weight in weights))


def test_a_sentence_gets_the_same_bits_in_every_batch():
    torch.manual_seed(0)
    cell = RecurrentCell("lstm", 5, 50, 20, project=True)
    packed = pack(cell)
    x, bias, h, c = torch.randn(7, 30, 5), cell.gate_bias().detach(), torch.randn(30, 20), torch.randn(30, 50)
    together, _ = lstm.run_layer(
        lstm.LstmLayer(packed, bias, (None, None)), x.flatten(0, 1), [30] * 7, (h, c)
    )
    alone, _ = lstm.run_layer(
        lstm.LstmLayer(packed, bias, (None, None)), x[:, 11], [1] * 7, (h[11:12], c[11:12])
    )
    assert torch.equal(together.view(7, 30, 20)[:, 11], alone)


@pytest.mark.parametrize("residual", [False, True])
def test_a_stack_in_one_call_gives_the_bits_of_its_layers_one_by_one(residual):
    torch.manual_seed(0)
    cells = [
        RecurrentCell("lstm", 20, 50, 20, project=True, cell_clip=3.0, output_clip=1.0) for _ in range(3)
    ]
    stack = RecurrentStack(cells, residual=residual)
    for cell in cells:
        cell.pack()
    x, sizes = torch.randn(26, 20), [9, 8, 5, 3, 1]
    states = [(torch.randn(9, 20), torch.randn(9, 50)) for _ in cells]
    with torch.no_grad():
        prepared = stack.prepare(x, sizes, states)
        assert prepared.native is not None
        outputs, after = prepared.run()
        for number, (cell, state) in enumerate(zip(cells, states, strict=True)):
            output, last = cell(x, sizes, state)
            x = x + output if residual and number else output
            assert torch.equal(outputs[number], x)
            assert all(torch.equal(*parts) for parts in zip(after[number], last, strict=True))


def test_backward_can_run_twice():
    pair = tuple(RecurrentCell("lstm", 5, 6, 4, project=True) for _ in range(2))
    x, state = torch.randn(2, 5, 5, requires_grad=True), (torch.zeros(2, 3, 4), torch.zeros(2, 3, 6))
    output, _ = paired.run_layer_paired(pair, x, [3, 2], state)
    (first,) = torch.autograd.grad(output.sum(), x, retain_graph=True)
    (second,) = torch.autograd.grad(output.sum(), x)
    assert torch.equal(first, second)


def test_nan_is_not_hidden():
    torch.manual_seed(0)
    cell = RecurrentCell("lstm", 5, 50, 20, project=True, cell_clip=3.0, output_clip=3.0)
    cell.pack()
    x = torch.randn(6, 5)
    x[2, 3] = float("nan")
    with torch.no_grad():
        output, _ = cell(x, [2, 2, 2], cell.zero_state(2))
    assert output.isnan().all(dim=1).tolist() == [False, False, True, False, True, False]


def test_packed_weights_follow_loading_and_training():
    torch.manual_seed(0)
    cell, source = (RecurrentCell("lstm", 5, 6, 4, project=True) for _ in range(2))
    x = torch.randn(4, 5)

    def run_cell(cell):
        cell.pack()
        with torch.no_grad():
            return cell(x, [2, 2], cell.zero_state(2))[0]

    run_cell(cell)
    cell.load_state_dict(source.state_dict())
    assert torch.equal(run_cell(cell), run_cell(source))
    optimiser = torch.optim.AdamW(cell.parameters(), fused=True)  # changes no version counter
    cell(x, [2, 2], cell.zero_state(2))[0].sum().backward()
    optimiser.step()
    assert torch.equal(run_cell(cell), run_cell(copy.deepcopy(cell)))


def test_inputs_of_a_wrong_shape_or_type_are_refused():
    cell = RecurrentCell("lstm", 5, 6, 4, project=True)
    packed = pack(cell)
    x, bias, state = torch.zeros(3, 5), torch.zeros(24), (torch.zeros(2, 4), torch.zeros(2, 6))
    for inputs, sizes, message in (
        (x.double(), [2, 1], "must be fp32"),
        (x, [2, 2], r"x is \(3, 5\), expected \(4, 5\)"),
        (x[:, :4], [2, 1], r"x is \(3, 4\), expected \(3, 5\)"),
        (x, [1, 2], "sizes must fall"),  # and not exceed the number of sentences:
        (x, [3], "sizes must fall"),
    ):
        with pytest.raises(ValueError, match=message):
            lstm.run_layer(lstm.LstmLayer(packed, bias, (None, None)), inputs, sizes, state)
    with pytest.raises(ValueError, match="not packed"):
        lstm.run_layer(lstm.LstmLayer(packed._replace(input=None), bias, (None, None)), x, [2, 1], state)
    assert not lstm.is_supported(x.double())
    assert not lstm.is_supported(x.to("meta"))
