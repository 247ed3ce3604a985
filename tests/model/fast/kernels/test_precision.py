"""bf16 and int8 in C: bit for bit the documented arithmetic, and close to fp32.

N packed tokens, B sentences, M memory cells, D outputs.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from polyseme.model.fast.kernels import lstm, native
from polyseme.model.fast.quantisation import QuantisedMatrix, quantise
from polyseme.model.recurrent import RecurrentCell

pytestmark = pytest.mark.skipif(not native.is_available(), reason=f"C library: {native.unavailable_reason()}")

clips = st.sampled_from([None, 0.1, 3.0])
lengths = st.lists(st.integers(1, 9), min_size=1, max_size=30)


@st.composite
def layers(draw):
    """Weights of a layer (inputs, hidden, projection), clips, sizes of a batch, token vectors and a state."""
    cells, inputs = draw(st.integers(1, 70)), draw(st.integers(1, 40))
    outputs = draw(st.integers(1, cells) | st.just(cells))
    batch = draw(lengths)
    torch.manual_seed(draw(st.integers(0, 1000)))
    shapes = (4 * cells, inputs), (4 * cells, outputs), (outputs, cells)
    weights = [torch.randn(shape) / shape[1] ** 0.5 for shape in shapes]
    sizes = [sum(length > time for length in batch) for time in range(max(batch))]
    state = torch.randn(len(batch), outputs), torch.randn(len(batch), cells)
    if cells == outputs:
        weights[2] = None
    return weights, (draw(clips), draw(clips)), sizes, 3 * torch.randn(sum(sizes), inputs), state


def run(weights, limits, sizes, x, state):
    """Run a layer in C, with weights of any precision."""
    inputs, hidden, projection = weights
    packed = lstm.pack_layer(hidden, projection, inputs)
    return lstm.run_layer(lstm.LstmLayer(packed, torch.ones(len(hidden.values)), limits), x, sizes, state)


def in_precision(weights, precision):
    return [None if weight is None else quantise(weight, precision) for weight in weights]


def int8_product(a, weight):
    """Rows times an int8 weight, in torch, as int8.h computes it."""
    largest = a.abs().amax(dim=1, keepdim=True)
    times = (
        torch.full_like(largest, 254) / largest
    )  # 254 / largest is 254 * (1 / largest), which rounds twice
    twice = torch.nan_to_num(a * times).int()  # truncates
    whole = (twice + 1 + (twice >> 31)) >> 1
    sums = whole.double() @ weight.values.double().t()  # exact
    return sums.float() * (largest / 127 * weight.scales)


def apply_activation(function, x):
    x = x.contiguous()
    y = torch.empty_like(x)
    native.load_library().polyseme_map(function, x.data_ptr(), y.data_ptr(), x.numel())
    return y


def run_reference(weights, limits, sizes, x, state):
    """The layer in torch, with int8 products and all other operations in fp32, in the order of lstm.h."""
    inputs, hidden, projection = weights
    (h, c), outputs, start = (part.clone() for part in state), [], 0
    last_h, last_c = h.clone(), c.clone()
    for n in sizes:
        z = int8_product(x[start : start + n], inputs) + int8_product(h[:n], hidden)
        i, f, o, g = (z + 1).chunk(4, dim=1)
        c = apply_activation(0, f) * c[:n] + apply_activation(0, i) * apply_activation(1, g)
        c = c if limits[0] is None else c.clamp(-limits[0], limits[0])
        h = apply_activation(0, o) * apply_activation(1, c)
        if projection is not None:
            h = int8_product(h, projection)
            h = h if limits[1] is None else h.clamp(-limits[1], limits[1])
        outputs.append(h)
        last_h[:n], last_c[:n], start = h, c, start + n
    return torch.cat(outputs), (last_h, last_c)


def test_int8_is_bit_for_bit_the_documented_arithmetic(instruction_set):
    @settings(max_examples=60, deadline=None)
    @given(layers())
    def compare(layer):
        weights, *rest = layer
        weights = in_precision(weights, "int8")
        outputs, state = run(weights, *rest)
        expected_outputs, expected_state = run_reference(weights, *rest)
        for values, expected in zip((outputs, *state), (expected_outputs, *expected_state), strict=True):
            assert torch.equal(values, expected)

    compare()


def test_bf16_is_bit_for_bit_fp32_with_rounded_weights(instruction_set):
    @settings(max_examples=60, deadline=None)
    @given(layers())
    def compare(layer):
        weights, *rest = layer
        weights = in_precision(weights, "bf16")
        rounded = [None if weight is None else QuantisedMatrix(weight.dequantise()) for weight in weights]
        outputs, expected = run(weights, *rest)[0], run(rounded, *rest)[0]
        torch.testing.assert_close(outputs, expected, rtol=0, atol=0.05 if instruction_set == "bf16" else 0)

    compare()


@pytest.mark.parametrize("k", [1, 2, 255, 256, 257, 600])
@pytest.mark.parametrize("n", [1, 16, 33])
def test_products_of_bf16_are_those_of_fp32(instruction_set, n, k):
    weight = quantise(torch.randn(n, k), "bf16")
    for rows in (1, 5, 7, 40, 200):
        a = torch.randn(rows, k)
        product = lstm.multiply(a, lstm.pack_weight(weight))
        if instruction_set == "bf16":  # rounds the rows, too, and adds two products at once
            a = a.bfloat16().float()
        expected = lstm.multiply(a, lstm.pack_weight(QuantisedMatrix(weight.dequantise())))
        torch.testing.assert_close(product, expected, rtol=0, atol=1e-4 if instruction_set == "bf16" else 0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 130, 4099])
@pytest.mark.parametrize("n", [1, 16, 33, 130])
def test_products_of_int8_are_the_same_bits_in_every_instruction_set(instruction_set, n, k):
    weight = quantise(torch.randn(n, k), "int8")
    for rows in (1, 2, 3, 4, 5, 6, 7, 13, 200):
        a = torch.randn(rows, k) * torch.logspace(-20, 20, rows)[:, None]
        assert torch.equal(lstm.multiply(a, lstm.pack_weight(weight)), int8_product(a, weight))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_a_sentence_gets_the_same_bits_alone_and_in_a_batch(instruction_set, precision):
    torch.manual_seed(0)
    weights = in_precision(
        [torch.randn(200, 5), torch.randn(200, 20) / 4, torch.randn(20, 50) / 7], precision
    )
    x, h, c = torch.randn(7, 30, 5), torch.randn(30, 20), torch.randn(30, 50)
    together, _ = run(weights, (3.0, 3.0), [30] * 7, x.flatten(0, 1), (h, c))
    for number in (0, 11, 29):
        state = h[number : number + 1], c[number : number + 1]
        alone, _ = run(weights, (3.0, 3.0), [1] * 7, x[:, number].contiguous(), state)
        assert torch.equal(together.view(7, 30, 20)[:, number], alone)


@pytest.mark.parametrize(("precision", "least"), [("bf16", 0.9999), ("int8", 0.999)])
def test_vectors_stay_close_to_those_of_fp32(precision, least):
    torch.manual_seed(0)
    cell = RecurrentCell("lstm", 64, 512, 64, project=True, cell_clip=3.0, output_clip=3.0)
    x, state = torch.randn(400, 64), cell.zero_state(20)
    outputs = []
    for packed_precision in ("fp32", precision):
        cell.pack(packed_precision)
        with torch.inference_mode():
            outputs.append(cell(x, [20] * 20, state)[0])
    exact, rounded = outputs
    assert not torch.equal(exact, rounded)
    assert cosine_similarity(exact, rounded, dim=1).min() > least


def test_int8_does_not_hide_nan_or_infinity(instruction_set):
    torch.manual_seed(0)
    cell = RecurrentCell("lstm", 5, 50, 20, project=True, cell_clip=3.0, output_clip=3.0)
    cell.pack("int8")
    x = torch.randn(6, 5)
    x[2, 3], x[5, 0] = float("nan"), float("inf")
    with torch.no_grad():
        output, _ = cell(x, [2, 2, 2], cell.zero_state(2))
    assert output.isnan().all(dim=1).tolist() == [False, False, True, False, True, True]


def test_rows_of_zeros_and_of_tiny_values_give_zero(instruction_set):
    weight = lstm.pack_weight(quantise(torch.randn(20, 9), "int8"))
    a = torch.tensor([0.0, -0.0, 1e-45, 1e-31])[:, None].expand(4, 9)
    assert (lstm.multiply(a, weight) == 0).all()


def test_packed_weights_follow_the_precision_and_the_weights():
    torch.manual_seed(0)
    cell, source = (RecurrentCell("lstm", 5, 6, 4, project=True) for _ in range(2))
    x = torch.randn(4, 5)

    def run_cell(cell, precision):
        cell.pack(precision)
        with torch.no_grad():
            return cell(x, [2, 2], cell.zero_state(2))[0]

    exact, rounded = run_cell(cell, "fp32"), run_cell(cell, "int8")
    assert not torch.equal(exact, rounded)
    assert torch.equal(run_cell(cell, "fp32"), exact)
    run_cell(cell, "int8")
    with torch.no_grad():
        cell.load_state_dict(source.state_dict())
    assert torch.equal(run_cell(cell, "int8"), run_cell(source, "int8"))


def test_weights_that_are_not_finite_are_refused():
    cell = RecurrentCell("lstm", 5, 6, 4, project=True)
    with torch.no_grad():
        cell.hidden_weight[3, 2] = float("inf")
    for precision in ("bf16", "int8"):
        with pytest.raises(ValueError, match=f"not finite: there is no {precision}"):
            cell.pack(precision)


def test_rows_too_long_for_exact_sums_are_refused():
    with pytest.raises(ValueError, match="exact for up to 133144 values, not 133145"):
        lstm.pack_weight(quantise(torch.ones(1, 133_145), "int8"))
    row = torch.ones(1, 133_144)
    assert lstm.multiply(row, lstm.pack_weight(quantise(row, "int8"))).item() == pytest.approx(133_144)
