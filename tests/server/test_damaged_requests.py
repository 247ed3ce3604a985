"""Damaged requests on raw sockets: each is answered or closed at once, and the server goes on."""

from __future__ import annotations

import json
import random
import re
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from waiting import until

SECONDS = 20.0  # for an answer or the end; a wait for a time-out would take 30, and the machine may be busy
QUIET = 2.0  # for the answer to a request that is whole; then the client closes its half of the connection
CASES = 300
CLIENTS = 8  # at the same time
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
BODY = json.dumps({"texts": ["曹操大怒。"]}, ensure_ascii=False).encode()
HEAD = b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
LAST = HEAD + b"Connection: close\r\n"
WHOLE = LAST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = LAST + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
INTACT = (
    WHOLE,
    CHUNKED,
    b"GET /info HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /openapi.json HTTP/1.0\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" + CHUNKED,
)
PIECES = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b"\xff" * 9, b"\r\n\r\n", b"0\r\n\r\n"),
    *(b"Content-Length: 99999\r\n", b"Content-Length: -1\r\n", b"Transfer-Encoding: chunked\r\n"),
    *(b"Transfer-Encoding: gzip\r\n", b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n"),
    *(b"Connection: close\r\n", b"X: " + b"y" * 70_000 + b"\r\n", b"HTTP/9.9", b"ffffffffffffffffffff\r\n"),
)


def exchange(server, *parts: bytes, pause: float = 0.0, quiet: float = QUIET) -> bytes:
    """Send parts of a request and read until the server closes the connection."""
    answer = b""
    with socket.create_connection(server.host_and_port, timeout=SECONDS) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
            connection.settimeout(quiet)
            while (part := _receive(connection)) != b"":
                answer += part
        except (ConnectionResetError, BrokenPipeError):
            pass
    return answer


def _receive(connection: socket.socket) -> bytes:
    """The next bytes; if the server waits for more, close this half: then it must end at once."""
    try:
        return connection.recv(1 << 16)
    except TimeoutError:
        connection.settimeout(SECONDS)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(1 << 16)


def statuses(answer: bytes) -> list[int]:
    return [int(status) for status in STATUS.findall(answer)]


def damage(request: bytes, draw: random.Random) -> bytes:
    """A request with one to four mistakes."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(request) + 1)
        stop = min(len(request), start + draw.choice((1, 1, 2, 8, 40)))
        request = draw.choice(
            (
                request[:start],
                request[:start] + request[stop:],
                request[:start] + request[start:stop] * draw.choice((2, 300)) + request[stop:],
                request[:start] + draw.choice(PIECES) + request[start:],
                request[:start] + bytes(draw.randrange(256) for _ in range(stop - start)) + request[stop:],
                re.sub(
                    rb"\d+", lambda _: str(draw.choice((0, 1, 7, 10**9, 10**25))).encode(), request, count=1
                ),
            )
        )
    return request


def count_descriptors(server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def test_hundreds_of_damaged_requests_are_answered_or_closed_at_once(server, capsys):
    before, counts = count_descriptors(server), Counter[str]()

    def send(seed: int) -> str:
        draw = random.Random(seed)
        request = damage(draw.choice(INTACT), draw)
        cut = draw.randrange(len(request) + 1)
        found = statuses(exchange(server, request[:cut], request[cut:], quiet=0.5))
        assert all(status < 500 for status in found), (seed, request, found)
        return "closed" if not found else "refused" if found[-1] >= 400 else "answered"

    with ThreadPoolExecutor(CLIENTS) as pool:
        counts.update(pool.map(send, range(CASES)))
    with capsys.disabled():
        print(f"\ndamaged requests: {dict(counts)}")
    assert min(counts["closed"], counts["refused"], counts["answered"]) > CASES / 20
    assert httpx.post(f"{server.address}/embed", json={"texts": ["曹操"]}, timeout=60).status_code == 200
    until(lambda: count_descriptors(server) <= before + 2)


def test_a_request_that_ends_anywhere_in_its_head_is_closed_at_once(server):
    head = WHOLE[: WHOLE.index(b"\r\n\r\n") + 3]
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = list(pool.map(lambda stop: exchange(server, head[:stop], quiet=0.01), range(len(head) + 1)))
    assert {tuple(statuses(answer)) for answer in answers} <= {(), (400,)}


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (b"Content-Length: %d" % (len(BODY) + 5), BODY, [400]),  # longer than the body
        (b"Content-Length: %d" % (len(BODY) - 5), BODY, [400, 400]),  # the rest is no request
        (b"Content-Length: 0", BODY, [422, 400]),
        (b"Content-Length: -1", BODY, [400]),
        (b"Content-Length: 7x", BODY, [400]),
        (b"Content-Length: " + b"9" * 19, b"", [413]),
        (b"Content-Length: " + b"9" * 5000, b"", [400]),
        (b"Content-Length: 5\r\nContent-Length: 6", BODY, [400]),
        (b"Transfer-Encoding: gzip", BODY, [400]),
        (b"Transfer-Encoding: chunked, chunked", BODY, [400]),
        (b"Transfer-Encoding: chunked", b"-5\r\nabc", [400]),
        (b"Transfer-Encoding: chunked", b"7fffffffffffffff\r\nabc", [413]),
        (b"Transfer-Encoding: chunked", b"5;" + b"x" * 70_000, [400]),
        (b"Transfer-Encoding: chunked", b"5\r\nabcdeX\r\n0\r\n\r\n", [400]),
    ],
)
def test_a_false_length_is_refused_at_once(server, headers: bytes, body: bytes, expected: list[int]):
    found = statuses(exchange(server, HEAD + headers + b"\r\n\r\n" + body))
    assert found in (expected, expected[:1]), found  # a connection may be closed after the first error


def test_a_length_beside_chunks_cannot_smuggle_a_request(server):
    smuggled = b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    headers = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(smuggled)
    answer = exchange(server, HEAD + headers + smuggled)
    assert (
        b"polyseme_requests_total" not in answer or len(statuses(answer)) == 2
    )  # read as chunks, never both
    assert all(status < 500 for status in statuses(answer))


def test_pipelined_requests_are_answered_in_order(server):
    requests = [
        (LAST if number == 39 else HEAD).replace(b"/embed", b"/tokenize")
        + b"X-Request-Id: n%d\r\nContent-Length: %d\r\n\r\n" % (number, len(BODY))
        + BODY
        for number in range(40)
    ]
    answer = exchange(server, b"".join(requests), quiet=SECONDS)
    assert statuses(answer) == [200] * 40
    assert re.findall(rb"x-request-id: n(\d+)", answer) == [str(n).encode() for n in range(40)]


def test_after_a_damaged_request_in_a_pipeline_nothing_is_answered(server):
    answer = exchange(server, WHOLE.replace(b"close", b"keep-alive"), b"\x00\xff damaged\r\n\r\n", WHOLE)
    assert statuses(answer) == [200, 400]


def test_slow_bodies_hold_up_nobody(server):
    slow = LAST + b"Content-Length: %d\r\n\r\n" % len(BODY)
    with ThreadPoolExecutor(24) as pool:
        dribbling = [
            pool.submit(exchange, server, slow, *(BODY[n : n + 1] for n in range(len(BODY))), pause=0.1)
            for _ in range(20)
        ]
        for _ in range(10):
            begin = time.monotonic()
            response = httpx.post(f"{server.address}/embed", json={"texts": ["曹操"]}, timeout=60)
            assert response.status_code == 200
            assert time.monotonic() - begin < 5
        assert [statuses(request.result()) for request in dribbling] == [[200]] * 20


def test_an_endless_slow_body_ends_with_the_time_limit(impatient_server):
    with socket.create_connection(impatient_server.host_and_port, timeout=60) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        begin, answer = time.monotonic(), b""
        connection.settimeout(0.2)
        while not answer and time.monotonic() - begin < 60:
            connection.sendall(b"1\r\nx\r\n")
            try:
                answer = connection.recv(1 << 16)
            except TimeoutError:
                continue
    assert statuses(answer) == [408]
    assert 4 < time.monotonic() - begin < 30  # its limit is 6 seconds
