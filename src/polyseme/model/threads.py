"""The two directions at once: each on a thread of its own, with a single core for its products.

    model.bilm  ->  model.threads  ->  torch

A time step is a chain of small products: splitting each of them over the cores costs more than it
brings, while the two directions need nothing of each other. Results are the same bits either way for
a given number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")
_lock = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor] | None = None  # with the process that made it


def run_both(work: Callable[[int], Result]) -> tuple[Result, Result]:
    """`work(0)` and `work(1)`; side by side where no gradient is kept and there is a second core."""
    if torch.is_grad_enabled() or torch.get_num_threads() < 2:
        return work(0), work(1)
    inference = torch.is_inference_mode_enabled()

    def without_gradients(number: int) -> Result:  # these modes belong to a thread
        with torch.inference_mode(inference), torch.no_grad():
            return work(number)

    first, second = _two_threads().map(without_gradients, (0, 1))
    return first, second


def _two_threads() -> ThreadPoolExecutor:
    """The pool, made once a process (threads do not survive a fork); its threads use one core each."""
    global _pool
    with _lock:
        if _pool is None or _pool[0] != os.getpid():
            cores = torch.get_num_threads()
            ready = threading.Barrier(3)

            def start() -> None:
                torch.set_num_threads(1)
                ready.wait()

            pool = ThreadPoolExecutor(2, "polyseme-direction", initializer=start)
            for _ in range(2):
                pool.submit(int)
            ready.wait()
            torch.set_num_threads(cores)  # the number is also what threads made later begin with
            _pool = os.getpid(), pool
        return _pool[1]
