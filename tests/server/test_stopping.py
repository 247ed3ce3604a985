"""A server that is stopped finishes what it can within its grace period, and exits with 0."""

from __future__ import annotations

import concurrent.futures
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

SLOW_SCORE = (
    "import sys, time\nfrom polyseme import api\n"
    "api.score = lambda *_, **__: (print('scoring', file=sys.stderr, flush=True), time.sleep(600))"
)
SLOW_LOADING = (
    "import time, polyseme.server.run as running\nrunning.open_models = lambda *_, **__: time.sleep(600)"
)

LOADED_AT_THE_END = """
import threading, polyseme.server.run as running
from polyseme.server.state import ServerState
stopping, loaded = threading.Event(), threading.Event()
open_models, load, close = running.open_models, ServerState.load, ServerState.close
running.open_models = lambda *a, **k: (stopping.wait(), open_models(*a, **k))[1]
ServerState.load = lambda self: (load(self), loaded.set())
ServerState.close = lambda self: (stopping.set(), loaded.wait(), close(self))  # the sockets are closed by now
"""


def send_slow_request(pool: concurrent.futures.ThreadPoolExecutor, server) -> concurrent.futures.Future:
    """Send a request that takes ten minutes, and wait until the server works on it."""
    request = pool.submit(httpx.post, f"{server.address}/score", json={"texts": ["曹操"]}, timeout=120)
    server.wait_for_log("scoring")
    assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200
    return request


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_long_request_ends_with_the_grace_period(start, workers: str):
    server = start("zh-classic", "--grace", "2.9", "--workers", workers, setup_code=SLOW_SCORE).wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        request = send_slow_request(pool, server)
        start_time = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        response = request.result()
        assert time.monotonic() - start_time > 1  # not too early
    assert (response.status_code, response.json()["error_type"]) == (503, "draining")
    assert server.stop(0)[0] == 0
    assert time.monotonic() - start_time < 30  # long before the request would end


def test_without_a_grace_period_the_server_stops_at_once(start):
    server = start("zh-classic", "--grace", "0", setup_code=SLOW_SCORE).wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        request = send_slow_request(pool, server)
        server.process.send_signal(signal.SIGTERM)
        assert request.result().status_code == 503
    assert server.stop(0)[0] == 0


def test_a_draining_server_answers_503_and_then_closes_its_port(start):
    server = start(
        "zh-classic", "--grace", "40", setup_code="import polyseme.server.run as run\nrun.NOTICE_SECONDS = 5"
    ).wait()
    server.process.send_signal(signal.SIGTERM)
    while httpx.get(f"{server.address}/health", timeout=60).status_code == 200:
        time.sleep(0.02)  # the signal has not arrived yet
    for response in (
        httpx.get(f"{server.address}/health", timeout=60),
        httpx.post(f"{server.address}/embed", json={"texts": ["曹操"]}, timeout=60),
    ):
        assert (response.status_code, response.json()["error_type"]) == (503, "draining")
        assert int(response.headers["retry-after"]) >= 1
    assert server.stop(0)[0] == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.address}/health")


def test_the_second_ctrl_c_waits_for_no_request_and_the_server_still_closes_in_order(start):
    server = start("zh-classic", "--grace", "90", setup_code=SLOW_SCORE).wait()
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        socket.create_connection(server.host_and_port),  # a browser keeps such connections
    ):
        request = send_slow_request(pool, server)
        start_time = time.monotonic()
        server.process.send_signal(signal.SIGINT)
        while not request.done():
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert request.result().status_code == 503
        code, log = server.stop(0)
    assert code == 0
    assert time.monotonic() - start_time < 80  # not the grace period
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("signal_number", "loading"),
    [(signal.SIGTERM, SLOW_LOADING), (signal.SIGINT, SLOW_LOADING), (signal.SIGTERM, LOADED_AT_THE_END)],
)
def test_a_loading_server_answers_503_and_can_be_stopped(signal_number: int, loading: str):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]  # the address is shown only when everything is loaded
    code = f"{loading}\nfrom polyseme.cli import main\nmain()"
    command = [sys.executable, "-c", code, "serve", "zh-classic", "--grace", "1", "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(600):
            try:
                response = httpx.get(f"http://127.0.0.1:{port}/health")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        process.send_signal(signal_number)
        _, log = process.communicate(timeout=60)
    assert (response.status_code, response.json()["error_type"]) == (503, "loading")
    assert process.returncode == 0
    assert "http://" not in log
    assert "Traceback" not in log
