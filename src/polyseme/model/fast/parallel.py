"""Run independent tasks in parallel, each on one thread and one core.

    model.bilm, model.tokens, kernels.training, kernels.dots, embedding_pipeline
        ->  model.fast.parallel  ->  torch

A time step is a chain of small products. Splitting each of them over the cores costs more than it gains,
while the two directions, and the sentences of a batch, are independent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import torch

Result = TypeVar("Result")
_lock = threading.Lock()
_pool: tuple[tuple[int, int], ThreadPoolExecutor] | None = None  # with its process and number of threads
_thread = (
    threading.local()
)  # `cores`: how many to use, in a thread where torch uses one; `is_kept` in a block


def count_cores() -> int:
    """The cores that independent tasks may use: torch's threads, also after `use_one_core`."""
    return getattr(_thread, "cores", None) or torch.get_num_threads()


def count_core_pairs() -> int:
    """Half of the cores, at least 1: the parts of each direction if both run at once."""
    return max(1, count_cores() // 2)


def use_one_core() -> None:
    """Make each torch function use one core in the current thread; `run_parallel` still uses all.

    For the threads of a pipeline: with OpenMP threads of its own, each would wait for cores that others use.
    """
    with _lock:
        cores = count_cores()
        _thread.cores = cores
        torch.get_num_threads()  # without this, the first product would reset the number
        torch.set_num_threads(1)
        _reset_default(cores)


@contextmanager
def keep_torch_on_one_core() -> Iterator[None]:
    """Make each torch function use one core inside the block, in this thread; `run_parallel` still uses all.

    OpenMP threads look for work for milliseconds after each function, on the core that a task could use.
    """
    before, cores = torch.get_num_threads(), getattr(_thread, "cores", None)
    was_kept, _thread.is_kept = is_torch_kept_on_one_core(), True
    if before > 1:
        use_one_core()
    try:
        yield
    finally:
        _thread.is_kept = was_kept
        if before > 1:
            _thread.cores = cores
            torch.set_num_threads(before)


def is_torch_kept_on_one_core() -> bool:
    """Whether this thread is in a block of `keep_torch_on_one_core`, however many cores there are."""
    return getattr(_thread, "is_kept", False)


def run_parallel(tasks: Sequence[Callable[[], Result]], *, native: bool = False) -> list[Result]:
    """Return the results of `tasks`; run in parallel without gradients and with several threads.

    The last task runs in the calling thread if its torch functions use one core there. `native` tasks call no
    torch function, so that this is always so.
    """
    if len(tasks) < 2 or torch.is_grad_enabled() or count_cores() < 2:
        return [task() for task in tasks]
    inference = torch.is_inference_mode_enabled()

    def run_without_gradients(task: Callable[[], Result]) -> Result:  # these modes are per thread
        with torch.inference_mode(inference), torch.no_grad():
            return task()

    pool = _get_pool()
    if native or torch.get_num_threads() == 1:
        first = tasks[:-1] if native else [partial(run_without_gradients, task) for task in tasks[:-1]]
        futures = [pool.submit(task) for task in first]
        try:
            last = tasks[-1]()
        finally:
            for future in futures:
                future.exception()  # wait, even after an error: they write to the caller's memory
        return [*(future.result() for future in futures), last]
    return list(pool.map(run_without_gradients, tasks))


def _get_pool() -> ThreadPoolExecutor:
    """The thread pool, created once per process; its threads use one core each."""
    global _pool
    with _lock:
        cores = count_cores()
        if _pool is None or _pool[0] != (os.getpid(), cores):
            ready = threading.Barrier(cores + 1)

            def start() -> None:
                torch.get_num_threads()  # without this, the first product would reset the number
                torch.set_num_threads(1)
                ready.wait()

            pool = ThreadPoolExecutor(cores, "polyseme-task", initializer=start)
            for _ in range(cores):
                pool.submit(int)
            ready.wait()
            _reset_default(cores)
            _pool = (os.getpid(), cores), pool  # a pool of another size ends when it is idle
        return _pool[1]


def _reset_default(cores: int) -> None:
    """Set the number of threads for threads that start later: from a thread that ends, to change no other."""
    reset = threading.Thread(target=torch.set_num_threads, args=(cores,))
    reset.start()
    reset.join()


def _reset_in_child() -> None:
    """Make a forked child compute with one thread.

    The threads of this pool and of torch's OpenMP pool do not exist in the child, and OpenMP would wait for
    its threads forever. The lock may have been held by a thread that does not exist either.
    """
    global _pool, _lock, _thread
    _pool, _lock, _thread = None, threading.Lock(), threading.local()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_reset_in_child)
