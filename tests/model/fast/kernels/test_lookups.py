"""Rows of a table get the gradients of torch, for any number of cores."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from polyseme.model.fast.kernels import native
from polyseme.model.fast.kernels.lookups import take_rows

pytestmark = pytest.mark.skipif(not native.is_available(), reason="needs the C library")


@pytest.mark.parametrize("padding", [None, 0, 4])
@pytest.mark.parametrize("shape", [(50,), (3, 20), (0,)])
def test_rows_and_gradients_equal_those_of_torch(padding, shape):
    torch.manual_seed(0)
    table, numbers = torch.randn(7, 19, requires_grad=True), torch.randint(7, shape)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 9):
            torch.set_num_threads(threads)
            results, rows = [], torch.randn(*shape, 19)
            for look_up in (take_rows, lambda table, numbers, padding: F.embedding(numbers, table, padding)):
                out = look_up(table, numbers, padding)
                results.append([out, *torch.autograd.grad((out * rows).sum(), table)])
            assert torch.equal(results[0][0], results[1][0])
            torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-6, atol=1e-6)
    finally:
        torch.set_num_threads(before)


def test_a_number_outside_the_table_is_an_error():
    with pytest.raises(IndexError):
        take_rows(torch.randn(7, 19, requires_grad=True), torch.tensor([7]))
