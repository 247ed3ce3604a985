"""Train a forward and a backward character language model, for flair and for stanza.

    text, a library's own model class  ->  two trained models, each with half of the budget

Rows of contiguous characters with carried state, as both libraries train; the rate follows the CPU time.
AdamW, or the SGD with rate 20 and clipping at 0.25 that both have as a default.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from rival import Budget, Run
from torch import nn

# Logits and the next state, from ids (time, rows) and a state or None
Step = Callable[[torch.Tensor, Any], tuple[torch.Tensor, Any]]


def count_characters(lines: list[str], at_least: int) -> list[str]:
    """Characters that occur often enough, in order of their frequency; the line end is among them."""
    counts = Counter("\n".join(lines))
    return [character for character, count in counts.most_common() if count >= at_least]


def train_direction(
    model: nn.Module, step: Step, ids: torch.Tensor, run: Run, budget: Budget
) -> dict[str, float]:
    """Train one direction until its budget is over."""
    settings = run.settings
    rows, length = settings["rows"], settings["length"]
    table = ids[: len(ids) // rows * rows].view(rows, -1).t().contiguous()  # (time, rows)
    sgd = settings["optimizer"] == "sgd"
    make: Callable[..., torch.optim.Optimizer] = torch.optim.SGD if sgd else torch.optim.AdamW
    optimizer = make(model.parameters(), lr=settings["rate"])
    model.train()
    state, position, steps = None, 0, 0
    while not budget.is_over:
        for group in optimizer.param_groups:
            group["lr"] = budget.rate(settings["rate"])
        if position + length + 1 > len(table):
            state, position = None, 0
        data, targets = table[position : position + length], table[position + 1 : position + length + 1]
        logits, state = step(data, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25 if sgd else 1.0)
        optimizer.step()
        state = tuple(part.detach() for part in state)
        position, steps = position + length, steps + 1
    characters = steps * rows * length
    return {
        "steps": steps,
        "tokens": characters,
        "epochs": round(characters / len(ids), 3),
        "loss": loss.item(),
    }
