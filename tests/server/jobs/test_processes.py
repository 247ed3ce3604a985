"""Several processes: one copy of the weights, the dead are replaced, all of them end."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import httpx

from builders import random_model, small_config
from polyseme.formats.models.save import save_pretrained
from waiting import until

FIGURES = r"(\w+):\s+(\d+) kB"


def embed(server, count: int) -> None:
    for _ in range(count):
        answer = httpx.post(f"{server.address}/embed", json={"texts": ["the bank failed"]}, timeout=60)
        assert answer.status_code == 200


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
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
        found = dict(re.findall(FIGURES, Path(f"/proc/{child}/smaps_rollup").read_text()))
        assert int(found["Private_Dirty"]) + int(found["Private_Clean"]) < weights
        assert int(found["Shared_Dirty"]) + int(found["Shared_Clean"]) > weights


def test_a_dead_process_is_replaced_and_forgotten(start):
    server = start("zh-classic", "--workers", "2").wait()
    embed(server, 6)
    before = server.children
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(server.children) == 2 and before[0] not in server.children)
    server.wait()
    embed(server, 6)
    counted = httpx.get(f"{server.address}/metrics", timeout=60).text
    (line,) = [x for x in counted.splitlines() if x.startswith('polyseme_requests_total{route="/embed"')]
    assert float(line.split()[-1]) == 12  # what the dead one counted stays
    (queue,) = [x for x in counted.splitlines() if x.startswith("polyseme_queue_texts ")]
    assert float(queue.split()[-1]) == 0
    code, said = server.stop()
    assert code == 0
    assert f"process {before[0]} ended" in said


def test_a_signal_while_a_process_is_replaced_leaves_none_behind(start):
    again = "import polyseme.server.jobs.processes as processes\nprocesses.RESTART_SECONDS = 3.0"
    server = start("zh-classic", "--workers", "2", first=again).wait()
    before = server.children
    os.kill(before[0], signal.SIGKILL)
    until(lambda: server.children == before[1:])
    assert server.stop()[0] == 0  # within the three seconds
    until(lambda: not any(map(is_alive, before)))
    try:
        answered = httpx.get(f"{server.address}/health").status_code
    except httpx.TransportError:
        answered = 0
    assert answered == 0


def test_no_connection_waits_for_a_server_that_is_gone(start):
    """The first process must not hold the socket while the others finish."""
    slow = (
        "import sys, time, polyseme.server.verbs as verbs\n"
        "verbs.score = lambda *_: (print('under way', file=sys.stderr, flush=True), time.sleep(600))"
    )
    server = start("zh-classic", "--workers", "2", "--grace", "8", first=slow).wait()
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(httpx.post, f"{server.address}/score", json={"texts": ["曹操"]}, timeout=60)
        server.hear("under way")
        server.process.send_signal(signal.SIGTERM)
        refused = 0
        while not asked.done():
            try:
                status = httpx.get(f"{server.address}/health", timeout=5).status_code
                assert status == 503 or (status == 200 and not refused)  # before all have heard of it
            except (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError):
                refused += 1  # at once; one that waits for an answer would be a ReadTimeout
            time.sleep(0.1)
        assert asked.result().status_code == 503
        assert refused
    assert server.stop(0)[0] == 0
