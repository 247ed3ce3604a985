"""torch's LSTM over packed sentences equals our cells without clips; on a GPU it is one call of cuDNN."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.fast.packed_lstm import fits_packed_lstm, run_packed_lstm
from polyseme.model.recurrent import RecurrentCell


@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("sizes", [[5, 5, 5], [4, 3, 1], [5, 2], []])
def test_outputs_states_and_gradients_equal_those_of_a_cell(project, sizes):
    torch.manual_seed(0)
    outputs = 3 if project else 6
    cell = RecurrentCell("lstm", 4, 6, outputs, project=project).double()
    x = torch.randn(sum(sizes), 4, dtype=torch.double, requires_grad=True)
    state = torch.randn(5, outputs, dtype=torch.double), torch.randn(5, 6, dtype=torch.double)
    weights = cell.input_weight, cell.hidden_weight, cell.gate_bias(), cell.projection
    output, (h, c) = run_packed_lstm(x, sizes, state, *weights)
    expected, (expected_h, expected_c) = cell(x, sizes, state)
    torch.testing.assert_close([output, h, c], [expected, expected_h, expected_c])
    if sizes:
        trained = [x, *(weight for weight in cell.parameters())]
        gradients = torch.autograd.grad(output.sin().sum() + h.cos().sum() + c.sum(), trained)
        others = torch.autograd.grad(
            expected.sin().sum() + expected_h.cos().sum() + expected_c.sum(), trained
        )
        torch.testing.assert_close(gradients, others)


def test_it_is_for_gpus_and_cells_without_clips():
    gpu = torch.device("cuda")
    assert fits_packed_lstm(gpu, 8, 4, (None, None), True)
    assert fits_packed_lstm(gpu, 8, 8, (None, 3.0), False)
    assert not fits_packed_lstm(gpu, 8, 4, (3.0, None), True)
    assert not fits_packed_lstm(gpu, 8, 4, (None, 3.0), True)
    assert not fits_packed_lstm(gpu, 8, 8, (None, None), True)
    assert not fits_packed_lstm(torch.device("cpu"), 8, 4, (None, None), True)
