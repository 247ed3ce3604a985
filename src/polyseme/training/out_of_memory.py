"""Explain in one line what to lower when memory runs out.

training.settings  ->  training.out_of_memory  ->  training.pretrain
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from polyseme.errors import PolysemeError
from polyseme.training.settings import PretrainSettings

# Messages of allocators in torch and its libraries, which raise a plain RuntimeError.
MESSAGES = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")


class TooLargeError(PolysemeError):
    """The run does not fit into memory."""


@contextmanager
def explain_out_of_memory(config: PretrainSettings) -> Iterator[None]:
    """Turn a failed allocation in the block into a TooLargeError with advice."""
    try:
        yield
    except (MemoryError, RuntimeError) as problem:
        if not is_out_of_memory(problem):
            raise
        raise TooLargeError(
            f"Memory ran out ({_get_first_line(problem)}). Lower {_list_settings(config)}, and start again; "
            "the last checkpoint, if there is one, is intact."
        ) from problem


def is_out_of_memory(problem: BaseException) -> bool:
    """Whether an allocation failed; outside GPUs only the message of the error says so."""
    if isinstance(problem, MemoryError | torch.OutOfMemoryError):
        return True
    return any(message in str(problem) for message in MESSAGES)


def _get_first_line(problem: BaseException) -> str:
    """The first line of the message, without internals of torch."""
    lines = str(problem).splitlines() or [type(problem).__name__]
    return lines[0].rpartition("] ")[2].removeprefix("err == 0. ").rstrip(".")[:160]


def _list_settings(config: PretrainSettings) -> str:
    """The settings that decide memory, with their values."""
    train, softmax = config.train, config.softmax
    settings = [f"train.batch ({train.batch})"]
    if train.order == "rows":
        settings.append(f"train.unroll ({train.unroll})")
    settings.append(f"corpus.max_words ({config.corpus.max_words})")
    if softmax.kind in ("sampled", "auto"):
        settings.append(f"softmax.samples ({softmax.samples})")
    recurrent = config.model.recurrent
    settings.append(f"model.recurrent.cells ({recurrent.cells})")
    advice = f"{', '.join(settings[:-1])} or {settings[-1]}"
    return advice if softmax.kind != "full" else f"{advice}, or set softmax.kind=sampled (it is full)"
