"""Connections that are slow, endless or not HTTP are closed, and the server keeps running."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

import httpx
import pytest


def connect(server) -> socket.socket:
    connection = socket.create_connection(server.host_and_port)
    connection.settimeout(60)
    return connection


def read_all(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def post_request(route: str, values: object) -> bytes:
    body = json.dumps(values, ensure_ascii=False).encode()
    head = (
        f"POST {route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def is_alive(server) -> bool:
    return httpx.get(f"{server.address}/health", timeout=60).status_code == 200


def test_headers_that_arrive_byte_by_byte_close_the_connection(impatient_server):
    with connect(impatient_server) as slow:
        slow.sendall(b"POST /embed HTTP/1.1\r\n")
        start = time.monotonic()
        closed = False
        while not closed and time.monotonic() - start < 50:
            try:
                slow.sendall(b"X")
                time.sleep(0.2)
            except (BrokenPipeError, ConnectionResetError):
                closed = True
        assert closed
    assert is_alive(impatient_server)


def test_a_silent_connection_is_closed(impatient_server):
    with connect(impatient_server) as silent:
        assert read_all(silent) == b""
    assert is_alive(impatient_server)


def test_an_incomplete_body_is_refused_after_the_timeout(impatient_server):
    with connect(impatient_server) as slow:
        slow.sendall(post_request("/embed", {"texts": ["曹操"]})[:-5])
        head, _, body = read_all(slow).partition(b"\r\n\r\n")
        assert b" 408 " in head
        assert json.loads(body)["error_type"] == "timeout"
    assert is_alive(impatient_server)


def test_a_client_that_does_not_read_is_disconnected(impatient_server):
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect(impatient_server.host_and_port)
        slow.sendall(post_request("/embed_all", {"texts": ["曹操大怒。" * 600] * 3}))
        slow.recv(1, socket.MSG_PEEK)  # the response has begun: the client must read it from now on
        time.sleep(10)
        head, _, body = read_all(slow).partition(b"\r\n\r\n")
    assert b" 200 " in head
    declared = int(next(line for line in head.lower().splitlines() if b"content-length" in line).split()[-1])
    assert len(body) < declared
    assert is_alive(impatient_server)


def test_a_client_that_reads_gets_a_large_response_completely(server):
    values = {"texts": ["曹操大怒。" * 300], "layer": "all"}
    response = httpx.post(f"{server.address}/embed_all", json=values, timeout=60)
    assert len(response.content) > 1_000_000
    assert len(response.json()["vectors"][0]) == 3


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
        response = read_all(large)
    assert b" 413 " in response
    assert sent < 40 * len(part)
    assert is_alive(server)


def test_a_body_slightly_too_large_is_refused_and_the_connection_stays_open(server):
    with httpx.Client(base_url=server.address, timeout=60) as client:
        for _ in range(2):
            assert client.post("/embed", content=b"x" * 3_000_000).status_code == 413
        assert client.get("/health").status_code == 200


def test_bytes_that_are_not_http_get_a_json_error(server):
    with connect(server) as connection:
        connection.sendall(b"\x00\xff not http at all\r\n\r\n")
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b" 400 " in head
    assert set(json.loads(body)) == {"error", "error_type"}
    assert is_alive(server)


def test_a_broken_chunk_is_refused(server):
    with connect(server) as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
        assert b" 400 " in read_all(connection)
    assert is_alive(server)


@pytest.mark.parametrize(
    ("data", "status"), [(b"ffffffffffff\r\n", 413), (b"ffffffff\r\nabc", 413), (b"5\r\nab", 400)]
)
def test_a_chunk_that_will_never_be_complete_is_refused_at_once(server, data, status):
    with connect(server) as client:
        client.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
        client.shutdown(socket.SHUT_WR)
        begin = time.monotonic()
        response = read_all(client)
    assert time.monotonic() - begin < 10  # not the 30 seconds of the server's limit
    assert response.startswith(f"HTTP/1.1 {status} ".encode())
    assert is_alive(server)


def test_a_huge_chunk_is_refused_when_it_is_declared(server):
    with connect(server) as client:
        client.sendall(b"POST /embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n")
        assert b" 413 " in read_all(client)


def test_a_thousand_abandoned_requests_do_not_hold_up_the_others(server):
    request = post_request("/embed", {"texts": ["曹操大怒。" * 100] * 16})
    before = cpu_seconds(server)
    for _ in range(20):
        clients = [connect(server) for _ in range(50)]
        for client in clients:
            client.sendall(request)
            client.close()
    begin = time.monotonic()
    assert is_alive(server)
    waited, computed = time.monotonic() - begin, cpu_seconds(server) - before
    # By the clock the machine counts, too: on an idle one, half a second is far more than it takes.
    assert min(waited, computed) < (0.5 if os.getloadavg()[0] < 1 else 5)


def cpu_seconds(server) -> float:
    """Seconds that the event loop of the server has computed."""
    fields = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/stat").read_text().rsplit(")", 1)[1]
    return sum(map(int, fields.split()[11:13])) / os.sysconf("SC_CLK_TCK")
