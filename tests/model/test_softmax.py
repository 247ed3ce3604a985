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
@pytest.mark.parametrize("places", [1, 3, N, 1000])
def test_probabilities_are_picked_in_blocks_that_change_nothing(
    softmax: Softmax | AdaptiveSoftmax, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, targets = torch.randn(N, D), torch.randint(V, (N,))
    wanted = softmax(outputs).gather(1, targets[:, None])[:, 0]
    sizes: list[int] = []
    inner = softmax.clusters if isinstance(softmax, AdaptiveSoftmax) else softmax
    hook = inner.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    monkeypatch.setattr("polyseme.model.softmax.BLOCK_VALUES", places * V)
    picked = softmax.target_log_probs(outputs, targets)
    hook.remove()
    torch.testing.assert_close(picked, wanted)
    assert max(sizes) == min(places, N)  # so memory is bounded however long a text is
    assert softmax.target_log_probs(outputs[:0], targets[:0]).shape == (0,)


@pytest.mark.parametrize("softmax", softmaxes(), ids=["full", "adaptive"])
def test_the_loss_is_the_mean_of_what_is_picked(softmax: Softmax | AdaptiveSoftmax) -> None:
    outputs, targets = torch.randn(N, D), torch.randint(V, (N,))
    torch.testing.assert_close(
        softmax.loss(outputs, targets), -softmax.target_log_probs(outputs, targets).mean()
    )
