"""Damaged requests: changed in bytes, in the headers, or in the JSON of the body, on raw connections.

The server answers with a status that is not 500, or closes the connection; and it goes on serving.
"""

from __future__ import annotations

import json
import socket
from collections import Counter
from random import Random

import httpx
import pytest

from faults.mutations import mutate_bytes, mutate_json, mutate_json_text

FEW, MANY = 120, 6000
BODIES: tuple[tuple[str, dict[str, object]], ...] = (
    ("/embed", {"texts": ["曹操", "天色将晚。"], "layer": "mean"}),
    ("/embed_all", {"texts": ["曹操大喜。"]}),
    ("/tokenize", {"texts": ["曹操大喜。"], "segment": "zh"}),
    ("/nearest", {"word": "将", "k": 3, "context": "曹操将兵"}),
    ("/score", {"texts": ["曹操大喜。"]}),
    ("/similarity", {"texts": ["曹操", "孙权"]}),
    ("/v1/embeddings", {"input": "曹操", "model": "zh-classic"}),
)
LINES = (
    b"Content-Length: -1",
    b"Content-Length: \xb2",
    b"Content-Length: " + b"9" * 5000,
    b"Content-Length: 5\r\nContent-Length: 6",
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: chunked, gzip",
    b"Expect: 100-continue",
    b"Content-Type: \xff",
    b"Content-Type: text/plain; charset=utf-7",
    b"Content-Encoding: gzip",
    b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Upgrade: h2c",
    b"Host: a\r\nHost: b",
    b"Range: bytes=0-",
    b"X: \0",
    b"\x85: x",
    b": x",
    b" folded",
    b"Authorization: Bearer \xff",
    b"X-Request-ID: " + b"a" * 9000,
)


def make_request(rng: Random) -> bytes:
    route, values = rng.choice(BODIES)
    body = json.dumps(values, ensure_ascii=False).encode()
    kind = rng.randrange(4)
    if kind <= 1:
        body = rng.choice((mutate_json, mutate_json_text))(body, rng)
    if rng.random() < 0.2:
        route = rng.choice(
            (route + "?" + "a=b&" * 500, route + "%ff%00", "//" + route, "/../../etc/passwd", "*")
        )
    method = rng.choice(("POST", "POST", "POST", "PUT", "GET", "HEAD"))
    head = f"{method} {route} HTTP/1.1\r\nHost: x\r\n".encode()
    head += b"Content-Type: application/json\r\nConnection: close\r\n"
    if kind == 2:
        head += rng.choice(LINES) + b"\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    return mutate_bytes(request, rng) if kind == 3 else request


def send(server, request: bytes) -> int:
    """The status; 0 if the server closed the connection, or waits for more of the request."""
    with socket.create_connection(server.host_and_port, timeout=60) as connection:
        answer = b""
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while len(answer) < 12 and (part := connection.recv(4096)):
                answer += part
        except (ConnectionError, TimeoutError):
            pass
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.") else 0


def attack(server, seeds: range) -> Counter[int]:
    statuses: Counter[int] = Counter()
    for seed in seeds:
        status = send(server, make_request(Random(seed)))
        assert status != 500, f"seed {seed}: {make_request(Random(seed))[:300]!r}"
        statuses[status] += 1
    assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200
    assert not [line for line in server.log if "Traceback" in line]
    return statuses


def test_damaged_requests_are_refused_or_answered(server, capsys: pytest.CaptureFixture[str]):
    statuses = attack(server, range(FEW))
    with capsys.disabled():
        print(f" {dict(sorted(statuses.items()))}", end="")
    assert statuses[200]
    assert statuses[422]


@pytest.mark.slow
def test_thousands_of_damaged_requests(server, capsys: pytest.CaptureFixture[str]):
    statuses = attack(server, range(10_000, 10_000 + MANY))
    with capsys.disabled():
        print(f" {dict(sorted(statuses.items()))}", end="")
