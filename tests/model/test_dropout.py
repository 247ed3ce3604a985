"""Dropout masks, and the layer that applies them in training only."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.dropout import Dropout, draw_mask


@pytest.mark.parametrize("share", [0.0001, 0.1, 0.5, 0.9])
def test_a_mask_drops_the_requested_share_and_preserves_the_mean(share: float):
    torch.manual_seed(5)
    mask = draw_mask((2, 301, 333), share, torch.empty(0, dtype=torch.double))
    assert mask.shape == (2, 301, 333)
    assert mask.dtype == torch.double
    assert len(mask.unique()) == 2
    assert (mask == 0).double().mean() == pytest.approx(share, rel=0.02, abs=2e-4)
    assert mask.mean() == pytest.approx(1.0, abs=0.02)


def test_the_seed_determines_the_masks():
    torch.manual_seed(6)
    first, second = (draw_mask((3, 5), 0.5, torch.empty(0)) for _ in range(2))
    torch.manual_seed(6)
    assert torch.equal(draw_mask((3, 5), 0.5, torch.empty(0)), first)
    assert not torch.equal(first, second)


def test_values_are_dropped_in_training_only():
    torch.manual_seed(7)
    x, layer = torch.ones(50, 40, requires_grad=True), Dropout(0.25)
    dropped = layer(x)
    torch.testing.assert_close(dropped.unique(), torch.tensor([0.0, 4 / 3]))
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, dropped.detach())  # dropped values get no gradient
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x
