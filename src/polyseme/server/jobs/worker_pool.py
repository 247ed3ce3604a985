"""Work off the event loop: a few threads, and a queue of jobs.

    server.jobs.batching, server.state  ->  server.jobs.worker_pool  ->  the library

A job counts from when it is queued until its thread has finished it, even if its caller is gone: so running
jobs cannot pile up. A queued job is removed as soon as its caller is gone. A running job may check its event
`abandoned`, which is set when nobody waits for the result, and end early.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from typing import Any, NamedTuple, TypeVar

from polyseme.server.http.limits import busy, out_of_memory
from polyseme.training.out_of_memory import is_out_of_memory

PREFIX = "polyseme-"  # of the names of all threads of a server
Result = TypeVar("Result")


class Job(NamedTuple):
    """A function to call, and the future for its result."""

    function: Callable[[], Any]
    result: Future[Any]


class WorkerPool:
    """Threads that share one queue.

    Args:
        name: Name of the pool, for its threads and metrics.
        threads: Number of threads.
        max_jobs: Further jobs, waiting or running, are refused; None for no limit.
        on_queue_change: Receives the name and the number of waiting jobs whenever it may have changed.

    """

    def __init__(
        self,
        name: str,
        threads: int,
        max_jobs: int | None = None,
        on_queue_change: Callable[[str, int], None] = lambda name, waiting: None,
    ) -> None:
        self._name, self._on_queue_change = name, on_queue_change
        self._max_jobs, self._running, self._closed = max_jobs, 0, False
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._report_queue()
        for number in range(threads):  # daemons: a stopping process does not wait for abandoned jobs
            start_daemon(f"{name}-{number}", self._run_jobs)

    def __len__(self) -> int:
        """Number of jobs that wait or run."""
        return len(self._waiting) + self._running

    async def run(self, function: Callable[[], Result], abandoned: threading.Event | None = None) -> Result:
        """Call `function` in a thread.

        Args:
            function: What to call, in the context of the caller: with the models of its request.
            abandoned: Set when nobody waits for the result any more; it may then be incomplete.

        Returns:
            What the function returns.

        Raises:
            HttpError: If too many jobs are waiting, or memory runs out.

        """
        job = Job(partial(copy_context().run, function), Future())
        self._add(job)
        try:
            result: Result = await asyncio.wrap_future(job.result)
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
            raise out_of_memory() from None
        finally:
            self._remove(job)
            if abandoned is not None:
                abandoned.set()
        return result

    def _add(self, job: Job) -> None:
        with self._changed:
            if self._max_jobs is not None and len(self) >= self._max_jobs:
                raise busy("Too many requests are waiting. Try again in a moment.")
            self._waiting.append(job)
            self._report_queue()
            self._changed.notify()

    def _remove(self, job: Job) -> None:
        """Remove a job from the queue, if it has not begun."""
        with self._changed:
            if job.result.cancel() and job in self._waiting:
                self._waiting.remove(job)
                self._report_queue()

    def _run_jobs(self) -> None:
        """Run one job after the other, in each thread."""
        while (job := self._take_job()) is not None:
            _run(job)
            del job  # or the last result would stay in memory until the next job
            with self._changed:
                self._running -= 1

    def _take_job(self) -> Job | None:
        """Wait for the next job; None when the pool is closed."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return None
                job = self._waiting.popleft()
                self._report_queue()
                if job.result.set_running_or_notify_cancel():
                    self._running += 1
                    return job

    def close(self) -> None:
        """Cancel waiting jobs and let the threads end."""
        with self._changed:
            self._closed = True
            for job in self._waiting:
                job.result.cancel()
            self._waiting.clear()
            self._report_queue()
            self._changed.notify_all()

    def _report_queue(self) -> None:
        self._on_queue_change(self._name, len(self._waiting))


def _run(job: Job) -> None:
    """Call the function of a job and set its result."""
    try:
        result = job.function()
    except BaseException as problem:
        job.result.set_exception(problem)
    else:
        job.result.set_result(result)


def start_daemon(name: str, function: Callable[[], None]) -> None:
    """Start a thread that the end of the process does not wait for."""
    threading.Thread(target=function, name=PREFIX + name, daemon=True).start()


def has_running_threads() -> bool:
    """Whether a thread of a server still runs."""
    return any(thread.name.startswith(PREFIX) for thread in threading.enumerate())
