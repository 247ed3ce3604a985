"""Work in threads: what counts, what is refused, and what leaves with whoever asked."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from polyseme.server.http.limits import HttpError
from polyseme.server.jobs.worker_pool import WorkerPool


async def until(fits) -> None:
    """Wait until something is so."""
    for _ in range(1000):
        if fits():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never was so")


def test_a_work_that_nobody_waits_for_counts_until_its_thread_is_done():
    threads, free = WorkerPool("test", 1, max_jobs=1), threading.Event()

    async def ask() -> None:
        left = asyncio.ensure_future(threads.run(free.wait))
        await until(lambda: len(threads) == 1)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
        with pytest.raises(HttpError) as refused:
            await threads.run(lambda: 1)
        assert (refused.value.status, refused.value.retry_after) == (429, 1)
        free.set()
        await until(lambda: len(threads) == 0)
        assert await threads.run(lambda: 1) == 1

    asyncio.run(ask())
    threads.close()


def test_a_work_that_waits_leaves_at_once_with_whoever_asked():
    threads, free, done = WorkerPool("test", 1, max_jobs=2), threading.Event(), []

    async def ask() -> None:
        first = asyncio.ensure_future(threads.run(free.wait))
        second = asyncio.ensure_future(threads.run(lambda: done.append("second")))
        await until(lambda: len(threads) == 2)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert len(threads) == 1
        third = asyncio.ensure_future(threads.run(lambda: done.append("third")))
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(first, third)

    asyncio.run(ask())
    assert done == ["third"]
    threads.close()


def test_a_work_that_runs_is_told_when_nobody_waits_any_more():
    threads, left = WorkerPool("test", 1), threading.Event()

    async def ask() -> None:
        gone = asyncio.ensure_future(threads.run(left.wait, left))
        await until(lambda: len(threads) == 1)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        await until(lambda: len(threads) == 0)

    asyncio.run(ask())
    threads.close()


@pytest.mark.parametrize(
    "problem", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_without_memory_one_work_is_refused_and_the_next_is_done(problem: Exception):
    threads = WorkerPool("test", 1)

    def fail() -> None:
        raise problem

    async def ask() -> int:
        with pytest.raises(HttpError) as refused:
            await threads.run(fail)
        assert refused.value.status == 503
        return await threads.run(lambda: 1)

    assert asyncio.run(ask()) == 1
    threads.close()


def test_closed_threads_end():
    threads = WorkerPool("closing", 2)
    threads.close()
    end = time.monotonic() + 10
    while any("closing" in one.name for one in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
