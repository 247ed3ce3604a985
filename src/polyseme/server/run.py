"""Sockets, signals, processes: the application until somebody stops it.

    server.serve  ->  server.run  ->  uvicorn, server.app

SIGTERM: for a moment all that is new is answered with 503, so that whoever sends requests here looks
elsewhere; then the socket is closed. What is under way is finished within the grace period, or told that it
will not be. The exit code is 0. Several processes share one listening socket and, forked after the weights
were laid out, one copy of these.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import torch
import uvicorn

from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.search.index import Index
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog, open_all
from polyseme.server.http.limits import Limits
from polyseme.server.http.protocol import TimedProtocol
from polyseme.server.http.request_log import NAME
from polyseme.server.jobs.processes import STOPS, keep_running
from polyseme.server.state import ServerState
from polyseme.tasks.task_model import TaskModel

KEEP_ALIVE = 30  # seconds between the requests of a connection
BACKLOG = 1024
NOTICE = 1.0  # seconds in which a server that stops still answers, with 503
LAST = 0.5  # seconds of the grace period in which those who are given up are told
logger = logging.getLogger(NAME)


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


def _serve_one(
    load: Callable[[], Catalog], listening: socket.socket, limits: Limits, key: str | None
) -> None:
    """Serve from this process."""
    app, state = create_app(lambda: _for_good(load()), limits=limits, key=key)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=partial(TimedProtocol, seconds=limits.timeout),  # type: ignore[arg-type]
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
    )
    server = uvicorn.Server(config)

    def give_up() -> None:
        server.should_exit = True

    state.failed = give_up
    server.handle_exit = _drainer(server, state)  # type: ignore[assignment,method-assign]
    for number in STOPS:  # uvicorn raises it again at the end; that shall be 0
        signal.signal(number, lambda *_: None)
    try:
        server.run(sockets=[listening])
    finally:
        gc.unfreeze()
    if state.problem is not None:
        raise state.problem


def _for_good(served: Catalog) -> Catalog:
    """What is loaded stays: Python need not look for garbage in it, a tenth of a second within a request."""
    gc.collect()
    gc.freeze()
    return served


def _drainer(server: uvicorn.Server, state: ServerState) -> Callable[[int, FrameType | None], None]:
    """What a signal does: refuse, after a moment close the socket, at the end of the grace period give up."""
    grace = state.limits.grace
    notice = min(NOTICE, grace / 4)
    leave = server.handle_exit

    def drain(number: int, frame: FrameType | None) -> None:
        loop = asyncio.get_running_loop()
        if state.draining:  # the second signal
            loop.call_soon_threadsafe(leave, number, frame)
            return
        state.draining = True
        wait = 0.0 if number == signal.SIGINT else notice  # a person at a terminal needs none
        server.config.timeout_graceful_shutdown = grace - wait  # type: ignore[assignment]
        loop.call_soon_threadsafe(loop.call_later, wait, leave, number, frame)
        loop.call_soon_threadsafe(loop.call_later, max(0.0, grace - LAST), state.ending.set)

    return drain


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

    keep_running(work, workers, stopped=listening.close)
