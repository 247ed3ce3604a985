"""A server under load, with a key, stopped, attacked: it answers, refuses, and lives."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import pytest

import polyseme
from waiting import until

LONG = "曹操将兵三十万来攻。" * 190


def test_a_key_is_asked_for_everywhere_but_health(start, tmp_path: Path):
    (tmp_path / "key").write_text("s3cret\n", encoding="utf-8")
    server = start("zh-classic", "--api-key-file", tmp_path / "key").wait()
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for path in (
            "/",
            "/info",
            "/metrics",
            "/docs",
            "/openapi.json",
            "/v1/models",
            "/explorer/index.html",
        ):
            assert client.get(path).status_code == 401, path
            assert client.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert "Basic" in client.get("/").headers["www-authenticate"]
        basic = base64.b64encode(b"any:s3cret").decode()
        for headers in (
            {"Authorization": "Bearer s3cret"},
            {"X-API-Key": "s3cret"},
            {"Authorization": f"Basic {basic}"},
        ):
            assert client.get("/info", headers=headers).status_code == 200


def test_what_is_under_way_is_finished_when_the_server_stops(start):
    server = start("zh-classic", "--max-tokens", "5000").wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        texts = [LONG] * 8
        asked = pool.submit(httpx.post, f"{server.address}/embed", json={"texts": texts}, timeout=60)
        counted = f"{server.address}/metrics"
        until(lambda: "polyseme_batch_texts_count 0.0" not in httpx.get(counted, timeout=60).text)
        server.process.send_signal(signal.SIGTERM)
        assert asked.result().status_code == 200
    assert server.stop(0)[0] == 0


def test_logs_have_ids_and_no_text(start):
    server = start("zh-classic").wait()
    headers = {"x-request-id": "known-id"}
    httpx.post(f"{server.address}/embed", json={"texts": ["秘密"]}, headers=headers, timeout=60)
    code, said = server.stop()
    assert code == 0
    first, *rest = said.splitlines()
    assert "http://" in first  # for a person; the rest is for programs
    lines = [json.loads(line) for line in rest]
    assert all({"time", "level"} <= set(line) for line in lines)
    assert next(line for line in lines if line.get("id") == "known-id")["route"] == "/embed"
    assert "秘密" not in said


def test_warnings_and_failures_are_lines_of_json_too(start):
    broken = (
        "import polyseme.server.verbs as verbs, warnings\n"
        "def score(*_):\n    warnings.warn('strange')\n    raise KeyError('a bug')\n"
        "verbs.score = score"
    )
    server = start("zh-classic", first=broken).wait()
    answer = httpx.post(f"{server.address}/score", json={"texts": ["曹操"]}, timeout=60)
    assert (answer.status_code, answer.json()["error_type"]) == (500, "internal")
    with socket.create_connection(server.place) as strange:
        strange.sendall(b"no http\r\n\r\n")
        strange.recv(1000)
    code, said = server.stop()
    assert code == 0
    lines = [json.loads(line) for line in said.splitlines() if "http://" not in line]
    messages = {line["level"]: line.get("message", "") for line in lines}
    assert {"info", "warning", "error"} == set(messages)
    assert any("strange" in line.get("message", "") for line in lines)
    assert any(line.get("failure") == "KeyError" and "score" in line["traceback"] for line in lines)


def test_a_log_that_nobody_reads_does_not_stop_the_server(start):
    server = start("zh-classic", read=False).wait()
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for _ in range(700):  # more lines than a pipe holds
            assert client.get("/health").status_code == 200


def test_more_than_the_limits_is_refused_and_nothing_else_fails(start):
    slower = (
        "import time, polyseme.elmo as embedder\nwhole = embedder.Elmo.embed_tokens\n"
        "embedder.Elmo.embed_tokens = lambda *a, **k: (time.sleep(0.1), whole(*a, **k))[1]"
    )
    limits = ("--queue", "40", "--concurrent", "6", "--body-bytes", "100000")
    server = start("zh-classic", *limits, first=slower).wait()
    large = httpx.post(f"{server.address}/embed", content=b"x" * 200_000, timeout=60)
    assert large.status_code == 413

    def ask(_: int) -> httpx.Response:
        return httpx.post(f"{server.address}/embed", json={"texts": ["曹操大怒。"] * 20}, timeout=60)

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(60)))
    assert {answer.status_code for answer in answers} == {200, 429}
    refused = [answer for answer in answers if answer.status_code == 429]
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert all(answer.json()["error_type"] == "busy" for answer in refused)
    assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200


def test_vectors_do_not_depend_on_who_shares_the_batch(server):
    elmo = polyseme.load("zh-classic")
    texts = ["曹操大怒。", "天色将晚，人马困乏。", "玄德拜关羽为将。", LONG[:600]] * 6
    alone = {text: elmo.embed(text, layer="top", pool="mean") for text in set(texts)}

    def ask(text: str) -> list[float]:
        values = {"texts": [text], "layer": "top", "pool": "mean"}
        return httpx.post(f"{server.address}/embed", json=values, timeout=60).json()["vectors"][0]

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for text, found in zip(texts, pool.map(ask, texts), strict=True):
            np.testing.assert_allclose(found, alone[text], atol=1e-6)


def test_a_long_text_does_not_hold_up_a_short_one(server):
    def embed(texts: list[str]) -> float:
        assert httpx.post(f"{server.address}/embed", json={"texts": texts}, timeout=60).status_code == 200
        return time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        long = [pool.submit(embed, [LONG] * 16) for _ in range(3)]
        time.sleep(0.1)
        short = [pool.submit(embed, ["曹操"]).result() for _ in range(3)]
        assert sum(one.result() > short[-1] for one in long) >= 2  # well before most of them


def test_slow_and_broken_connections_leave_the_server_alive(server):
    host, port = server.address.removeprefix("http://").split(":")
    with ExitStack() as open_ones:

        def connect(sent: bytes) -> socket.socket:
            one = open_ones.enter_context(socket.create_connection((host, int(port))))
            one.sendall(sent)
            return one

        for _ in range(30):
            connect(b"POST /embed HTTP/1.1\r\nHost: x\r\n")
        assert b"400" in connect(b"\x00\xff not http at all\r\n\r\n").recv(1000)
        connect(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").close()
        assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200


def waiting_texts(server) -> int:
    """How many texts wait to be read."""
    counted = httpx.get(f"{server.address}/metrics", timeout=60).text
    return int(float(re.search(r"^polyseme_queue_texts (\S+)", counted, re.MULTILINE)[1]))


def test_those_who_leave_free_their_places(start):
    stuck = (  # a batch that is read is finished, here in ten minutes; the rest is dropped
        "import time, polyseme.elmo as embedder\nwhole = embedder.Elmo.embed_tokens\n"
        "embedder.Elmo.embed_tokens = "
        "lambda *a, **k: time.sleep(600) if len(a[1][0]) > 500 else whole(*a, **k)"
    )
    limits = ("--max-tokens", "5000", "--queue", "40", "--timeout", "300")
    server = start("zh-classic", *limits, first=stuck).wait()
    host, port = server.address.removeprefix("http://").split(":")
    body = json.dumps({"texts": [LONG] * 32}, ensure_ascii=False).encode()
    kind = "Content-Type: application/json"
    head = f"POST /embed HTTP/1.1\r\nHost: x\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port))) as left:
        left.sendall(head.encode() + body)
        until(lambda: waiting_texts(server) > 10)
    until(lambda: waiting_texts(server) == 0)
    answer = httpx.post(f"{server.address}/embed", json={"texts": ["曹操"] * 30}, timeout=60)
    assert answer.status_code == 200


def test_several_processes_answer_together(start):
    server = start("zh-classic", "--workers", "2").wait()
    for _ in range(6):
        asked = httpx.post(f"{server.address}/embed", json={"texts": ["曹操"]}, timeout=60)
        assert asked.status_code == 200
    counted = httpx.get(f"{server.address}/metrics", timeout=60).text
    (line,) = [x for x in counted.splitlines() if x.startswith('polyseme_requests_total{route="/embed"')]
    assert float(line.split()[-1]) == 6  # of all processes
    code, _ = server.stop()
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-model"], "no-such-model"),
        (["zh-classic", "no-such-index"], "neither an index nor a task model"),
        (["zh-classic", "--api-key-file", "none"], "the key cannot be read"),
        (["zh-classic", "--host", "203.0.113.7"], "cannot listen there"),
    ],
)
def test_a_wrong_command_is_one_line_and_exit_code_2(arguments: list[str], message: str):
    command = [sys.executable, "-m", "polyseme", "serve", *arguments, "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("host", "key", "warned"), [("0.0.0.0", 0, 1), ("0.0.0.0", 1, 0), ("127.0.0.1", 0, 0)]
)
def test_an_open_server_without_a_key_is_warned_about(
    start, tmp_path: Path, host: str, key: int, warned: int
):
    (tmp_path / "key").write_text("s3cret", encoding="utf-8")
    server = start(
        "zh-classic", "--host", host, *(("--api-key-file", tmp_path / "key") if key else ())
    ).wait()
    code, said = server.stop()
    assert code == 0
    assert said.count("without an API key") == warned
    assert "s3cret" not in said
