"""Job off the event loop: a few threads, and the works that wait for them.

    server.jobs.batching, server.state  ->  server.jobs.worker_pool  ->  the library

A work counts from when it is given until its thread is done with it, whether or not anybody still waits for
it: so what runs cannot pile up. One that has not begun leaves at once with whoever gave it; one that runs may
look at its event `left`, which is set when nobody waits any more, and end early.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from polyseme.server.http.limits import busy, no_memory
from polyseme.training.out_of_memory import is_out_of_memory

PREFIX = "polyseme-"  # of the names of all threads of a server
Result = TypeVar("Result")


class Job(NamedTuple):
    """Something to do, and where its result goes."""

    do: Callable[[], Any]
    result: Future[Any]


class WorkerPool:
    """`count` threads and one queue; more than `most` works, waiting or running, are refused.

    watch: is told the name and how many works wait, whenever that may have changed.
    """

    def __init__(
        self,
        name: str,
        count: int,
        most: int | None = None,
        watch: Callable[[str, int], None] = lambda name, waiting: None,
    ) -> None:
        self._name, self._watch = name, watch
        self._most, self._running, self._closed = most, 0, False
        self._waiting: deque[Job] = deque()
        self._news = threading.Condition()
        self._tell()
        for number in range(count):  # daemons: a process that stops does not wait for what nobody waits for
            start_daemon(f"{name}-{number}", self._work)

    def __len__(self) -> int:
        """How many works wait or run."""
        return len(self._waiting) + self._running

    async def run(self, do: Callable[[], Result], left: threading.Event | None = None) -> Result:
        """What `do` gives; a refusal where too much is under way, or where memory ran out.

        left: is set when nobody waits any more; then what `do` gives is not read, and need not be whole.
        """
        work = Job(do, Future())
        self._add(work)
        try:
            found: Result = await asyncio.wrap_future(work.result)
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
            raise no_memory() from None
        finally:
            self._leave(work)
            if left is not None:
                left.set()
        return found

    def _add(self, work: Job) -> None:
        with self._news:
            if self._most is not None and len(self) >= self._most:
                raise busy("Too many questions are waiting. Ask again in a moment.")
            self._waiting.append(work)
            self._tell()
            self._news.notify()

    def _leave(self, work: Job) -> None:
        """Take a work that has not begun out of the queue."""
        with self._news:
            if work.result.cancel() and work in self._waiting:
                self._waiting.remove(work)
                self._tell()

    def _work(self) -> None:
        """What each thread does: one work after the other."""
        while (work := self._next()) is not None:
            _do(work)
            del work  # or the last result would be kept until the next work comes
            with self._news:
                self._running -= 1

    def _next(self) -> Job | None:
        """The next work that somebody waits for; None at the end."""
        with self._news:
            while True:
                self._news.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return None
                work = self._waiting.popleft()
                self._tell()
                if work.result.set_running_or_notify_cancel():
                    self._running += 1
                    return work

    def close(self) -> None:
        """Let the threads end; what waits is given up."""
        with self._news:
            self._closed = True
            for work in self._waiting:
                work.result.cancel()
            self._waiting.clear()
            self._tell()
            self._news.notify_all()

    def _tell(self) -> None:
        self._watch(self._name, len(self._waiting))


def _do(work: Job) -> None:
    try:
        found = work.do()
    except BaseException as problem:
        work.result.set_exception(problem)
    else:
        work.result.set_result(found)


def start_daemon(name: str, do: Callable[[], None]) -> None:
    """A thread that the end of the process does not wait for."""
    threading.Thread(target=do, name=PREFIX + name, daemon=True).start()


def any_left() -> bool:
    """Whether a thread of a server still runs."""
    return any(one.name.startswith(PREFIX) for one in threading.enumerate())
