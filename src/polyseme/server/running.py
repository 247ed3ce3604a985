"""Sockets, signals, processes: the application until somebody stops it.

    api.serve  ->  server.running  ->  uvicorn, server.app

SIGTERM: nothing new is taken on, what is under way is finished within the grace period, the exit code is 0.
Several processes share one listening socket and, forked after the weights were laid out, one copy of these.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from polyseme.embedder import Elmo
from polyseme.errors import UsageError
from polyseme.search.index import Index
from polyseme.server.app import create_app
from polyseme.server.catalog import Served, open_all
from polyseme.server.limits import Limits
from polyseme.server.logs import NAME
from polyseme.tasks.model import TaskModel

HEAD_SECONDS = 10.0  # in which the head of a request must be there
KEEP_ALIVE = 30  # seconds between the requests of a connection
BACKLOG = 1024
AGAIN = 1.0  # seconds before a process that died is started again
logger = logging.getLogger(NAME)


class TimedProtocol(H11Protocol):
    """Closes connections that send the head of a request too slowly, one byte now and then."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A connection must begin to talk."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """The clock stops with the head of a request, and runs again with the next one."""
        if self._timer is None and (self.cycle is None or self.cycle.response_complete):
            self._watch()
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """No clock runs for those who left."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)


def serve(
    model: str | Path | Elmo,
    others: Sequence[str | Path | Index | TaskModel] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str | None = None,
    limits: Limits | None = None,
    workers: int = 1,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a model, indexes and task folders until SIGTERM or Ctrl-C; `started` is told the address."""
    if workers < 1:
        raise UsageError(f"workers is {workers}, expected 1 or more.")
    bounds = limits or Limits()
    listening = _listen(host, port)
    if not is_loopback(host) and key is None:
        logger.warning("%s is open to others without a key: say --api-key-file FILE, or 127.0.0.1.", host)
    if started is not None:
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listening.getsockname()[1]}")
    with listening:
        if workers == 1:
            _serve_one(lambda: open_all(model, others), listening, bounds, key)
        else:
            _serve_many(model, others, listening, bounds, key, workers)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio sends small answers at once instead of waiting for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as problem:
        listening.close()
        raise UsageError(f"{host}:{port} cannot be listened on ({problem}). Choose another --port.") from None
    listening.listen(BACKLOG)
    return listening


def _serve_one(load: Callable[[], Served], listening: socket.socket, limits: Limits, key: str | None) -> None:
    """Serve from this process."""
    app, state = create_app(load, limits=limits, key=key)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=TimedProtocol,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(limits.grace),
    )
    server = uvicorn.Server(config)
    leave = server.handle_exit

    def drain(number: int, frame: FrameType | None) -> None:
        state.draining = True
        leave(number, frame)

    def give_up() -> None:
        server.should_exit = True

    server.handle_exit = drain  # type: ignore[assignment,method-assign]
    state.failed = give_up
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises it again at the end; that shall be 0
        signal.signal(number, lambda *_: None)
    server.run(sockets=[listening])
    if state.problem is not None:
        raise state.problem


def _serve_many(
    model: str | Path | Elmo,
    others: Sequence[str | Path | Index | TaskModel],
    listening: socket.socket,
    limits: Limits,
    key: str | None,
    workers: int,
) -> None:
    """Serve from several processes, each with its part of the cores."""
    threads = max(1, torch.get_num_threads() // workers)
    torch.set_num_threads(1)  # no thread may run when processes are forked
    served = open_all(model, others)

    def work() -> None:
        torch.set_num_threads(threads)
        _serve_one(lambda: served, listening, limits, key)

    _keep_running(work, workers)


def _keep_running(work: Callable[[], None], count: int) -> None:
    """`work` in so many processes, each started again where it dies, until SIGTERM or Ctrl-C."""
    alive, held = os.pipe()  # only the first process holds its end; when it is gone, the others leave
    running: set[int] = set()
    stopping = False

    def start() -> int:
        child = os.fork()
        if not child:
            os.close(held)
            _be_a_child(work, alive)
        return child

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in running:
            os.kill(child, signal.SIGTERM)

    running |= {start() for _ in range(count)}
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while running:
        child, status = os.wait()
        running.discard(child)
        if not stopping:
            logger.error("process %d ended with %d and is started again", child, status)
            time.sleep(AGAIN)
            running.add(start())


def _be_a_child(work: Callable[[], None], alive: int) -> NoReturn:
    """`work`, as long as the first process lives."""

    def follow() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    code = 1
    try:
        threading.Thread(target=follow, daemon=True).start()
        work()
        code = 0
    except Exception:
        logger.exception("a process failed")
    finally:
        logging.shutdown()
        os._exit(code)
