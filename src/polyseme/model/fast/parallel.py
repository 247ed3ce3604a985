"""Independent pieces of work at once: each on a thread of its own, with a single core for its products.

    model.bilm, model.tokens, kernels.training  ->  model.fast.parallel  ->  torch

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


def count_core_pairs() -> int:
    """Half of the cores, at least 1: into so many parts what comes in twos may be cut."""
    return max(1, torch.get_num_threads() // 2)


def run_parallel(works: Sequence[Callable[[], Result]], *, native: bool = False) -> list[Result]:
    """What each of `works` gives; side by side where no gradient is kept and there are several cores.

    Works `native` need no core set aside for them, so that the last one runs in the calling thread.
    """
    if len(works) < 2 or torch.is_grad_enabled() or torch.get_num_threads() < 2:
        return [work() for work in works]
    if native:
        others = [_get_pool().submit(work) for work in works[:-1]]
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

    return list(_get_pool().map(without_gradients, works))


def _get_pool() -> ThreadPoolExecutor:
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


def _reset_in_child() -> None:
    """Make a forked child compute with one thread.

    The threads of our pool and of torch's OpenMP pool are gone in the child, and OpenMP would wait for its
    own for ever. The lock may have been held by a thread that is gone, too.
    """
    global _pool, _lock
    _pool, _lock = None, threading.Lock()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_reset_in_child)
