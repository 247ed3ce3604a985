"""Several processes: they share the weights, are replaced when they die, and all of them end."""

from __future__ import annotations

import concurrent.futures
import os
import re
import signal
import time
from pathlib import Path

import httpx

from builders import random_model, small_config
from polyseme.formats.models.save import save_pretrained
from waiting import until

MEMORY_LINE = r"(\w+):\s+(\d+) kB"


def embed(server, count: int) -> None:
    for _ in range(count):
        response = httpx.post(f"{server.address}/embed", json={"texts": ["the bank failed"]}, timeout=60)
        assert response.status_code == 200


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_weights_are_shared(start, tmp_path: Path):
    config = small_config(recurrent={"layers": 2, "cells": 4096, "outputs": 256})
    save_pretrained(random_model(config), tmp_path / "model")
    weights = (tmp_path / "model" / "model.safetensors").stat().st_size / 1024
    assert weights > 100_000
    server = start(tmp_path / "model", "--workers", "2").wait()
    embed(server, 20)
    for child in server.children:
        memory = dict(re.findall(MEMORY_LINE, Path(f"/proc/{child}/smaps_rollup").read_text()))
        assert int(memory["Private_Dirty"]) + int(memory["Private_Clean"]) < weights
        assert int(memory["Shared_Dirty"]) + int(memory["Shared_Clean"]) > weights


def test_a_dead_process_is_replaced_and_leaves_no_queue(start):
    server = start("zh-classic", "--workers", "2").wait()
    embed(server, 6)
    before = server.children
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(server.children) == 2 and before[0] not in server.children)
    server.wait()
    embed(server, 6)
    metrics = httpx.get(f"{server.address}/metrics", timeout=60).text
    (line,) = [x for x in metrics.splitlines() if x.startswith('polyseme_requests_total{route="/embed"')]
    assert float(line.split()[-1]) == 12  # the counts of the dead process stay
    (queue,) = [x for x in metrics.splitlines() if x.startswith("polyseme_queue_texts ")]
    assert float(queue.split()[-1]) == 0
    code, log = server.stop()
    assert code == 0
    assert f"process {before[0]} ended" in log


def test_a_signal_during_a_restart_leaves_no_process_behind(start):
    slow_restart = "import polyseme.server.jobs.processes as processes\nprocesses.RESTART_SECONDS = 3.0"
    server = start("zh-classic", "--workers", "2", setup_code=slow_restart).wait()
    before = server.children
    os.kill(before[0], signal.SIGKILL)
    until(lambda: server.children == before[1:])
    assert server.stop()[0] == 0  # within the three seconds
    until(lambda: not any(map(is_alive, before)))
    try:
        status = httpx.get(f"{server.address}/health").status_code
    except httpx.TransportError:
        status = 0
    assert status == 0


def test_new_connections_are_refused_once_the_workers_stop_listening(start):
    """The main process must not hold the socket while its workers finish."""
    slow_score = (
        "import sys, time\nfrom polyseme import api\n"
        "api.score = lambda *_, **__: (print('scoring', file=sys.stderr, flush=True), time.sleep(600))"
    )
    server = start("zh-classic", "--workers", "2", "--grace", "8", setup_code=slow_score).wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        request = pool.submit(httpx.post, f"{server.address}/score", json={"texts": ["曹操"]}, timeout=60)
        server.wait_for_log("scoring")
        server.process.send_signal(signal.SIGTERM)
        refused = 0
        while not request.done():
            try:
                status = httpx.get(f"{server.address}/health", timeout=5).status_code
                assert status == 503 or (status == 200 and not refused)  # 200 before the signal arrives
            except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError):
                refused += 1  # at once; a connection that waits for a response would be a ReadTimeout
            time.sleep(0.1)
        assert request.result().status_code == 503
        assert refused
    assert server.stop(0)[0] == 0
