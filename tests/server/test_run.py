"""A server in another process: API keys, logs, load, broken connections, several workers, wrong commands."""

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


def test_an_api_key_is_required_everywhere_but_for_health(start, tmp_path: Path):
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


def test_a_stopping_server_finishes_requests_in_progress(start):
    server = start("zh-classic", "--max-tokens", "5000").wait()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        texts = [LONG] * 8
        request = pool.submit(httpx.post, f"{server.address}/embed", json={"texts": texts}, timeout=60)
        metrics = f"{server.address}/metrics"
        until(lambda: "polyseme_batch_texts_count 0.0" not in httpx.get(metrics, timeout=60).text)
        server.process.send_signal(signal.SIGTERM)
        assert request.result().status_code == 200
    assert server.stop(0)[0] == 0


def test_logs_contain_request_ids_but_no_text(start):
    server = start("zh-classic").wait()
    headers = {"x-request-id": "known-id"}
    httpx.post(f"{server.address}/embed", json={"texts": ["秘密"]}, headers=headers, timeout=60)
    code, log = server.stop()
    assert code == 0
    first, *rest = log.splitlines()
    assert "http://" in first  # for people; the rest is for programs
    lines = [json.loads(line) for line in rest]
    assert all({"time", "level"} <= set(line) for line in lines)
    assert next(line for line in lines if line.get("id") == "known-id")["route"] == "/embed"
    assert "秘密" not in log


def test_warnings_and_errors_are_logged_as_json(start):
    broken_score = (
        "import warnings\nfrom polyseme import api\n"
        "def score(*_, **__):\n    warnings.warn('strange')\n    raise KeyError('a bug')\n"
        "api.score = score"
    )
    server = start("zh-classic", setup_code=broken_score).wait()
    response = httpx.post(f"{server.address}/score", json={"texts": ["曹操"]}, timeout=60)
    assert (response.status_code, response.json()["error_type"]) == (500, "internal")
    with socket.create_connection(server.host_and_port) as connection:
        connection.sendall(b"no http\r\n\r\n")
        connection.recv(1000)
    code, log = server.stop()
    assert code == 0
    lines = [json.loads(line) for line in log.splitlines() if "http://" not in line]
    messages = {line["level"]: line.get("message", "") for line in lines}
    assert {"info", "warning", "error"} == set(messages)
    assert any("strange" in line.get("message", "") for line in lines)
    assert any(line.get("failure") == "KeyError" and "score" in line["traceback"] for line in lines)


def test_a_log_that_nobody_reads_does_not_stop_the_server(start):
    server = start("zh-classic", read_log=False).wait()
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for _ in range(700):  # more lines than a pipe holds
            assert client.get("/health").status_code == 200


def test_requests_above_the_limits_are_refused_and_all_others_succeed(start):
    slow_embedding = (
        "import time\nfrom polyseme.elmo import Elmo\nembed_tokens = Elmo.embed_tokens\n"
        "Elmo.embed_tokens = lambda *a, **k: (time.sleep(0.1), embed_tokens(*a, **k))[1]"
    )
    limits = ("--queue", "40", "--concurrent", "6", "--body-bytes", "100000")
    server = start("zh-classic", *limits, setup_code=slow_embedding).wait()
    large = httpx.post(f"{server.address}/embed", content=b"x" * 200_000, timeout=60)
    assert large.status_code == 413

    def send(_: int) -> httpx.Response:
        return httpx.post(f"{server.address}/embed", json={"texts": ["曹操大怒。"] * 20}, timeout=60)

    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        responses = list(pool.map(send, range(60)))
    assert {response.status_code for response in responses} == {200, 429}
    busy = [response for response in responses if response.status_code == 429]
    assert all(int(response.headers["retry-after"]) >= 1 for response in busy)
    assert all(response.json()["error_type"] == "busy" for response in busy)
    assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200


def test_vectors_do_not_depend_on_other_texts_in_the_batch(server):
    elmo = polyseme.load("zh-classic")
    texts = ["曹操大怒。", "天色将晚，人马困乏。", "玄德拜关羽为将。", LONG[:600]] * 6
    alone = {text: elmo.embed(text, layer="top", pool="mean") for text in set(texts)}

    def embed(text: str) -> list[float]:
        values = {"texts": [text], "layer": "top", "pool": "mean"}
        return httpx.post(f"{server.address}/embed", json=values, timeout=60).json()["vectors"][0]

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for text, vector in zip(texts, pool.map(embed, texts), strict=True):
            np.testing.assert_allclose(vector, alone[text], atol=1e-6)


def test_a_long_text_does_not_delay_a_short_one(server):
    def embed(texts: list[str]) -> float:
        """Embed texts; returns the time when the response arrived."""
        assert httpx.post(f"{server.address}/embed", json={"texts": texts}, timeout=60).status_code == 200
        return time.monotonic()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        long = [pool.submit(embed, [LONG] * 16) for _ in range(3)]
        time.sleep(0.1)
        short = [pool.submit(embed, ["曹操"]).result() for _ in range(3)]
        assert sum(request.result() > short[-1] for request in long) >= 2  # before most of them


def test_the_server_survives_slow_and_broken_connections(server):
    with ExitStack() as connections:

        def connect(data: bytes) -> socket.socket:
            connection = connections.enter_context(socket.create_connection(server.host_and_port))
            connection.sendall(data)
            return connection

        for _ in range(30):
            connect(b"POST /embed HTTP/1.1\r\nHost: x\r\n")
        assert b"400" in connect(b"\x00\xff not http at all\r\n\r\n").recv(1000)
        connect(b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").close()
        assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200


def waiting_texts(server) -> int:
    """The number of texts that wait for a batch."""
    metrics = httpx.get(f"{server.address}/metrics", timeout=60).text
    return int(float(re.search(r"^polyseme_queue_texts (\S+)", metrics, re.MULTILINE)[1]))


def test_texts_of_a_disconnected_client_leave_the_queue(start):
    stuck_embedding = (  # a batch in progress is finished, here in ten minutes; the rest is dropped
        "import time\nfrom polyseme.elmo import Elmo\nembed_tokens = Elmo.embed_tokens\n"
        "Elmo.embed_tokens = "
        "lambda *a, **k: time.sleep(600) if len(a[1][0]) > 500 else embed_tokens(*a, **k)"
    )
    limits = ("--max-tokens", "5000", "--queue", "40", "--timeout", "300")
    server = start("zh-classic", *limits, setup_code=stuck_embedding).wait()
    body = json.dumps({"texts": [LONG] * 32}, ensure_ascii=False).encode()
    content_type = "Content-Type: application/json"
    head = f"POST /embed HTTP/1.1\r\nHost: x\r\n{content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(server.host_and_port) as connection:
        connection.sendall(head.encode() + body)
        until(lambda: waiting_texts(server) > 10)
    until(lambda: waiting_texts(server) == 0)
    response = httpx.post(f"{server.address}/embed", json={"texts": ["曹操"] * 30}, timeout=60)
    assert response.status_code == 200


def test_several_processes_share_the_requests_and_the_metrics(start):
    server = start("zh-classic", "--workers", "2").wait()
    for _ in range(6):
        response = httpx.post(f"{server.address}/embed", json={"texts": ["曹操"]}, timeout=60)
        assert response.status_code == 200
    metrics = httpx.get(f"{server.address}/metrics", timeout=60).text
    (line,) = [x for x in metrics.splitlines() if x.startswith('polyseme_requests_total{route="/embed"')]
    assert float(line.split()[-1]) == 6  # of all processes
    code, _ = server.stop()
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-model"], "no-such-model"),
        (["zh-classic", "no-such-index"], "neither a model, an index nor a task model"),
        (["zh-classic", "--api-key-file", "none"], "the key cannot be read"),
        (["zh-classic", "--host", "203.0.113.7"], "cannot listen there"),
    ],
)
def test_a_wrong_command_prints_one_line_and_exits_with_2(arguments: list[str], message: str):
    command = [sys.executable, "-m", "polyseme", "serve", *arguments, "--port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_an_index_of_another_model_is_refused_before_the_address_is_shown(folders, workers: int):
    arguments = ["serve", "en-classic", str(folders[0]), "--port", "0", "--workers", str(workers)]
    command = [sys.executable, "-m", "polyseme", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 2, result.stderr
    assert "http://" not in result.stderr
    assert "another model than en-classic" in result.stderr
    assert f"polyseme serve en-classic zh-classic {folders[0]};" in result.stderr


@pytest.mark.parametrize(
    ("host", "key", "warnings"), [("0.0.0.0", 0, 1), ("0.0.0.0", 1, 0), ("127.0.0.1", 0, 0)]
)
def test_a_public_server_without_a_key_logs_a_warning(
    start, tmp_path: Path, host: str, key: int, warnings: int
):
    (tmp_path / "key").write_text("s3cret", encoding="utf-8")
    server = start(
        "zh-classic", "--host", host, *(("--api-key-file", tmp_path / "key") if key else ())
    ).wait()
    code, log = server.stop()
    assert code == 0
    assert log.count("without an API key") == warnings
    assert "s3cret" not in log
