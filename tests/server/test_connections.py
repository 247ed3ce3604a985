"""Connections that are slow, endless or no HTTP: they are closed, and the server lives."""

from __future__ import annotations

import json
import socket
import time

import httpx


def connect(server) -> socket.socket:
    found = socket.create_connection(server.place)
    found.settimeout(60)
    return found


def read_all(one: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    try:
        while part := one.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def post(route: str, values: object) -> bytes:
    body = json.dumps(values, ensure_ascii=False).encode()
    head = (
        f"POST {route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def alive(server) -> bool:
    return httpx.get(f"{server.address}/health", timeout=60).status_code == 200


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(quick):
    with connect(quick) as slow:
        slow.sendall(b"POST /embed HTTP/1.1\r\n")
        begun = time.monotonic()
        closed = False
        while not closed and time.monotonic() - begun < 50:
            try:
                slow.sendall(b"X")
                time.sleep(0.2)
            except (BrokenPipeError, ConnectionResetError):
                closed = True
        assert closed
    assert alive(quick)


def test_a_connection_that_says_nothing_is_closed(quick):
    with connect(quick) as silent:
        assert read_all(silent) == b""
    assert alive(quick)


def test_a_body_that_does_not_come_is_refused(quick):
    with connect(quick) as slow:
        slow.sendall(post("/embed", {"texts": ["曹操"]})[:-5])
        head, _, body = read_all(slow).partition(b"\r\n\r\n")
        assert b" 408 " in head
        assert json.loads(body)["error_type"] == "timeout"
    assert alive(quick)


def test_whoever_does_not_read_is_not_waited_for(quick):
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect(quick.place)
        slow.sendall(post("/embed_all", {"texts": ["曹操大怒。" * 600] * 3}))
        slow.recv(1, socket.MSG_PEEK)  # the answer is there, and from now on it must be read
        time.sleep(10)
        found = read_all(slow)
    head, _, body = found.partition(b"\r\n\r\n")
    assert b" 200 " in head
    said = int(next(line for line in head.lower().splitlines() if b"content-length" in line).split()[-1])
    assert len(body) < said
    assert alive(quick)


def test_a_large_answer_reaches_those_who_read(server):
    values = {"texts": ["曹操大怒。" * 300], "layer": "all"}
    answer = httpx.post(f"{server.address}/embed_all", json=values, timeout=60)
    assert len(answer.content) > 1_000_000
    assert len(answer.json()["vectors"][0]) == 3


def test_a_chunked_body_of_50_mb_is_refused_early(server):
    part = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    sent = 0
    with connect(server) as large:
        large.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(50):
                large.sendall(part)
                sent += len(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(large)
    assert b" 413 " in answer
    assert sent < 40 * len(part)
    assert alive(server)


def test_a_body_somewhat_too_large_is_refused_and_the_connection_stays(server):
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for _ in range(2):
            assert client.post("/embed", content=b"x" * 3_000_000).status_code == 413
        assert client.get("/health").status_code == 200


def test_what_is_no_http_is_refused_in_our_form(server):
    with connect(server) as strange:
        strange.sendall(b"\x00\xff not http at all\r\n\r\n")
        head, _, body = read_all(strange).partition(b"\r\n\r\n")
    assert b" 400 " in head
    assert set(json.loads(body)) == {"error", "error_type"}
    assert alive(server)


def test_a_broken_chunk_is_refused(server):
    with connect(server) as strange:
        strange.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert b" 400 " in read_all(strange)
    assert alive(server)
