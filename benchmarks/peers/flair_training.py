"""Train a forward and a backward character language model of flair (0.15.1); print the speed as JSON.

Run by flair's Python:
    .venv-flair/bin/python benchmarks/peers/flair_training.py TEXT --hidden 1024 --steps 4

The steps are those of its `LanguageModelTrainer`, with its defaults: 100 rows of 250 characters, SGD. The
speed is in words of TEXT (tokenised, one sentence per line) that both models read, so that it can be
compared with a biLM that reads words in both directions.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from flair.data import Dictionary
from flair.models import LanguageModel

ROWS, LENGTH, WARM_UP = 100, 250, 1


def measure(text: Path, hidden: int, steps: int) -> dict[str, float]:
    """Words per second of both models together, the median step."""
    content = text.read_text(encoding="utf-8")
    dictionary = Dictionary()
    for character in sorted(set(content)):
        dictionary.add_item(character)
    ids = torch.tensor([dictionary.get_idx_for_item(character) for character in content[: ROWS * LENGTH * 4]])
    rows = ids[: len(ids) // ROWS * ROWS].view(ROWS, -1).t()  # (time, rows)
    seconds = sum(time_step(dictionary, rows, hidden, steps, forward=forward) for forward in (True, False))
    characters_per_word = len(content) / len(content.split())
    return {"tokens_per_second": ROWS * LENGTH / characters_per_word / seconds}


def time_step(dictionary: Dictionary, rows: torch.Tensor, hidden: int, steps: int, *, forward: bool) -> float:
    """Seconds of a step of one direction."""
    model = LanguageModel(dictionary, is_forward_lm=forward, hidden_size=hidden, nlayers=1)
    optimizer, loss_function = torch.optim.SGD(model.parameters(), lr=20), torch.nn.CrossEntropyLoss()
    model.train()
    state, seconds = model.init_hidden(ROWS), []
    text = rows if forward else rows.flip(0)
    for number in range(WARM_UP + steps):
        start = number % (len(text) // LENGTH - 1) * LENGTH
        data, targets = text[start : start + LENGTH], text[start + 1 : start + LENGTH + 1]
        started = time.perf_counter()
        optimizer.zero_grad()
        output, _, state = model.forward(data, state)
        loss_function(output.view(-1, len(dictionary)), targets.reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        state = tuple(part.detach() for part in state)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[WARM_UP:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.text, arguments.hidden, arguments.steps)))
