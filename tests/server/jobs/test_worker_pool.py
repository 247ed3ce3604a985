"""Jobs in threads: limits, cancelled jobs, and running out of memory."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from polyseme.server.http.limits import HttpError
from polyseme.server.jobs.worker_pool import WorkerPool


async def until(condition) -> None:
    """Wait until the condition holds."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition never held")


def test_a_cancelled_job_counts_until_its_thread_is_done():
    pool, release = WorkerPool("test", 1, max_jobs=1), threading.Event()

    async def run_jobs() -> None:
        job = asyncio.ensure_future(pool.run(release.wait))
        await until(lambda: len(pool) == 1)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        with pytest.raises(HttpError) as error:
            await pool.run(lambda: 1)
        assert (error.value.status, error.value.retry_after) == (429, 1)
        release.set()
        await until(lambda: len(pool) == 0)
        assert await pool.run(lambda: 1) == 1

    asyncio.run(run_jobs())
    pool.close()


def test_a_cancelled_job_that_has_not_started_leaves_the_queue_at_once():
    pool, release, done = WorkerPool("test", 1, max_jobs=2), threading.Event(), []

    async def run_jobs() -> None:
        first = asyncio.ensure_future(pool.run(release.wait))
        second = asyncio.ensure_future(pool.run(lambda: done.append("second")))
        await until(lambda: len(pool) == 2)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert len(pool) == 1
        third = asyncio.ensure_future(pool.run(lambda: done.append("third")))
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(first, third)

    asyncio.run(run_jobs())
    assert done == ["third"]
    pool.close()


def test_a_running_job_is_notified_when_it_is_cancelled():
    pool, abandoned = WorkerPool("test", 1), threading.Event()

    async def run_jobs() -> None:
        job = asyncio.ensure_future(pool.run(abandoned.wait, abandoned))
        await until(lambda: len(pool) == 1)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        await until(lambda: len(pool) == 0)

    asyncio.run(run_jobs())
    pool.close()


@pytest.mark.parametrize(
    "problem", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_after_a_job_ran_out_of_memory_the_next_one_succeeds(problem: Exception):
    pool = WorkerPool("test", 1)

    def fail() -> None:
        raise problem

    async def run_jobs() -> int:
        with pytest.raises(HttpError) as error:
            await pool.run(fail)
        assert error.value.status == 503
        return await pool.run(lambda: 1)

    assert asyncio.run(run_jobs()) == 1
    pool.close()


def test_the_threads_of_a_closed_pool_end():
    pool = WorkerPool("closing", 2)
    pool.close()
    end = time.monotonic() + 10
    while any("closing" in thread.name for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)
