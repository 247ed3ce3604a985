"""The probability of the next word."""

from __future__ import annotations

import pytest
import torch

from polyseme.model.softmax import AdaptiveSoftmax, Softmax

N, D, V = 11, 16, 40


def softmaxes() -> list[Softmax | AdaptiveSoftmax]:
    torch.manual_seed(0)
    full = Softmax(V, D)
    torch.nn.init.normal_(full.bias)
    return [full, AdaptiveSoftmax(V, D, [4, 13])]


@pytest.mark.parametrize("softmax", softmaxes(), ids=["full", "adaptive"])
@pytest.mark.parametrize("positions", [1, 3, N, 1000])
def test_the_block_size_bounds_memory_and_does_not_change_log_probabilities(
    softmax: Softmax | AdaptiveSoftmax, positions: int
) -> None:
    outputs, targets = torch.randn(N, D), torch.randint(V, (N,))
    expected = softmax(outputs).gather(1, targets[:, None])[:, 0]
    sizes: list[int] = []
    inner = softmax.clusters if isinstance(softmax, AdaptiveSoftmax) else softmax
    hook = inner.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    log_probs = softmax.target_log_probs(outputs, targets, block_values=positions * V)
    hook.remove()
    torch.testing.assert_close(log_probs, expected)
    assert max(sizes) == min(positions, N)  # memory is bounded for any length of text
    assert softmax.target_log_probs(outputs[:0], targets[:0]).shape == (0,)


@pytest.mark.parametrize("softmax", softmaxes(), ids=["full", "adaptive"])
def test_the_loss_is_the_mean_negative_log_probability_of_the_targets(
    softmax: Softmax | AdaptiveSoftmax,
) -> None:
    outputs, targets = torch.randn(N, D), torch.randint(V, (N,))
    torch.testing.assert_close(
        softmax.loss(outputs, targets), -softmax.target_log_probs(outputs, targets).mean()
    )
