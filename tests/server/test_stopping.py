"""A server that is stopped says so, finishes what it can, and is gone with exit code 0 within its grace."""

from __future__ import annotations

import concurrent.futures
import signal
import time

import httpx
import pytest

SLOW = (
    "import sys, time, polyseme.server.verbs as verbs\n"
    "verbs.score = lambda *_: (print('under way', file=sys.stderr, flush=True), time.sleep(600))"
)
LOADS = "import time, polyseme.server.run as running\nrunning.open_catalog = lambda *_, **__: time.sleep(600)"


def ask_slowly(pool: concurrent.futures.ThreadPoolExecutor, server) -> concurrent.futures.Future:
    """A question that takes ten minutes, under way."""
    asked = pool.submit(httpx.post, f"{server.address}/score", json={"texts": ["曹操"]}, timeout=120)
    server.hear("under way")
    assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200
    return asked


@pytest.mark.parametrize("workers", ["1", "2"])
def test_long_work_does_not_outlive_the_grace_period(start, workers: str):
    server = start("zh-classic", "--grace", "2.9", "--workers", workers, first=SLOW).wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = ask_slowly(pool, server)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        answer = asked.result()
        assert time.monotonic() - begun > 1  # not before its time: the fraction counts
    assert (answer.status_code, answer.json()["error_type"]) == (503, "draining")
    assert server.stop(0)[0] == 0
    assert time.monotonic() - begun < 30  # and not after ten minutes


def test_no_grace_is_no_wait(start):
    server = start("zh-classic", "--grace", "0", first=SLOW).wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = ask_slowly(pool, server)
        server.process.send_signal(signal.SIGTERM)
        assert asked.result().status_code == 503
    assert server.stop(0)[0] == 0


def test_a_server_that_drains_answers_503_and_then_not_at_all(start):
    server = start(
        "zh-classic", "--grace", "40", first="import polyseme.server.run as r\nr.NOTICE_SECONDS = 5"
    ).wait()
    server.process.send_signal(signal.SIGTERM)
    while httpx.get(f"{server.address}/health", timeout=60).status_code == 200:
        time.sleep(0.02)  # it has not heard of it yet
    for answer in (
        httpx.get(f"{server.address}/health", timeout=60),
        httpx.post(f"{server.address}/embed", json={"texts": ["曹操"]}, timeout=60),
    ):
        assert (answer.status_code, answer.json()["error_type"]) == (503, "draining")
        assert int(answer.headers["retry-after"]) >= 1
    assert server.stop(0)[0] == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.address}/health")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_loads_says_so_and_can_be_stopped(start, number: int):
    server = start("zh-classic", "--grace", "1", first=LOADS)
    for _ in range(200):
        try:
            answer = httpx.get(f"{server.address}/health")
            break
        except httpx.TransportError:
            time.sleep(0.1)
    assert (answer.status_code, answer.json()["error_type"]) == (503, "loading")
    assert server.stop(number)[0] == 0
