"""Independent pieces of work at once: each on a thread of its own, with a single core for its products.

    model.bilm, model.tokens, kernels.training  ->  model.threads  ->  torch

A time step is a chain of small products: splitting each of them over the cores costs more than it brings,
while the two directions, and the sentences of a batch, need nothing of each other.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")
_lock = threading.Lock()
_pool: tuple[tuple[int, int], ThreadPoolExecutor] | None = None  # with its process and number of threads


def pairs_of_cores() -> int:
    """Half of the cores, at least 1: into so many parts what comes in twos may be cut."""
    return max(1, torch.get_num_threads() // 2)


def run_both(work: Callable[[int], Result]) -> tuple[Result, Result]:
    """`work(0)` and `work(1)`; side by side where no gradient is kept and there is a second core."""
    first, second = run_all([lambda: work(0), lambda: work(1)])
    return first, second


def run_all(works: Sequence[Callable[[], Result]], *, without_torch: bool = False) -> list[Result]:
    """What each of `works` gives; side by side where no gradient is kept and there are several cores.

    Works `without_torch` need no core set aside for them, so that the last one runs in the calling thread.
    """
    if len(works) < 2 or torch.is_grad_enabled() or torch.get_num_threads() < 2:
        return [work() for work in works]
    if without_torch:
        others = [_threads().submit(work) for work in works[:-1]]
        try:
            last = works[-1]()
        finally:
            for other in others:
                other.exception()  # waits: their memory is the caller's
        return [*(other.result() for other in others), last]
    inference = torch.is_inference_mode_enabled()

    def without_gradients(work: Callable[[], Result]) -> Result:  # these modes belong to a thread
        with torch.inference_mode(inference), torch.no_grad():
            return work()

    return list(_threads().map(without_gradients, works))


def _threads() -> ThreadPoolExecutor:
    """The pool, made once a process (threads do not survive a fork); its threads use one core each."""
    global _pool
    with _lock:
        cores = torch.get_num_threads()
        if _pool is None or _pool[0] != (os.getpid(), cores):
            ready = threading.Barrier(cores + 1)

            def start() -> None:
                torch.get_num_threads()  # otherwise the first product would take the number of the process
                torch.set_num_threads(1)
                ready.wait()

            pool = ThreadPoolExecutor(cores, "polyseme-piece", initializer=start)
            for _ in range(cores):
                pool.submit(int)
            ready.wait()
            torch.set_num_threads(cores)  # the number is also what threads made later begin with
            _pool = (os.getpid(), cores), pool  # one with another number of threads ends when it is idle
        return _pool[1]
