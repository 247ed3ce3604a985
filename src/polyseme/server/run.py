"""Sockets, signals and processes: run the application until it is stopped.

    server.serve  ->  server.run  ->  uvicorn, server.app

On SIGTERM new requests get 503 for a moment, so that a load balancer sends them elsewhere; then the socket is
closed. Requests in progress are finished within the grace period, or get 503. The exit code is 0. Several
processes share one listening socket and, since they are forked after packing, one copy of the weights.

On SIGHUP the models are loaded again, and no request fails. One process takes them for the next requests;
several are replaced by new ones. Then the old ones accept no more connections, close each after its next
response, and end when all are closed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType

import torch
import uvicorn

from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.model.device import resolve_device
from polyseme.server.app import create_app
from polyseme.server.http.limits import Limits
from polyseme.server.http.middleware import App
from polyseme.server.http.protocol import TimedProtocol
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.hangup import SIGHUP, had_terminal, is_terminal_gone
from polyseme.server.jobs.processes import RETIRE, STOP_SIGNALS, Ready, Work, run_processes
from polyseme.server.served_models import Served, ServedModels, open_models, sort_parts
from polyseme.server.state import Opened, ServerState
from polyseme.server.workspace.same_origin import is_loopback
from polyseme.server.workspace.supervisor import Workspace, list_models

KEEP_ALIVE_SECONDS = 30  # between the requests of a connection
BACKLOG = 1024  # connections waiting to be accepted
SWITCH_SECONDS = 0.0005  # that a busy thread may make the event loop wait after each system call
NOTICE_SECONDS = 1.0  # in which a stopping server still answers new requests, with 503
LAST_SECONDS = 0.5  # of the grace period, to answer requests that are given up
RETIREMENT_TICK = 0.1  # seconds between two looks at the connections that are left
CreateApp = Callable[[Callable[[], Opened]], tuple[App, ServerState]]
logger = logging.getLogger(LOGGER)


def run_server(
    model: str | Path | Elmo,
    served: Sequence[Served] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str | None = None,
    limits: Limits | None = None,
    workers: int = 1,
    device: str = "cpu",
    cors_origins: Sequence[str] = (),
    workspace: str | Path | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C; the arguments are those of `polyseme.serve`."""
    if workers < 1:
        raise UsageError(f"workers is {workers}, expected 1 or more.")
    if workers > 1 and resolve_device(device).type != "cpu":
        raise UsageError(
            f"device is {device}: processes that are forked share the CPU alone. Use `workers=1`."
        )
    parts = sort_parts(model, served)  # refuses wrong paths before anything is loaded
    for origin in cors_origins:
        _check_origin(origin)
    if workspace is not None:
        _check_workspace(host, key, workers)
    limits = limits or Limits()
    listener = _listen(host, port)
    port = listener.getsockname()[1]  # now: a signal may close it before the models are loaded
    if not is_loopback(host) and key is None:
        logger.warning(
            "%s is reachable from other machines without an API key: set one, or use 127.0.0.1.", host
        )

    def announce() -> None:
        if started is not None:
            address = f"[{host}]" if ":" in host else host
            started(f"http://{address}:{port}")

    had_terminal()  # before its end can send SIGHUP
    with listener, ExitStack() as stack:
        folder = None
        if workspace is not None:
            folder = Workspace(workspace, limits, list_models(parts.models))
            stack.callback(folder.close)
        create = partial(create_app, limits=limits, key=key, cors_origins=cors_origins, workspace=folder)
        load = partial(open_models, model, served, device=device)
        if workers == 1:
            _serve_one(create, load, listener, announce)
        else:
            _serve_many(create, load, listener, workers, announce)


def _check_origin(origin: str) -> None:
    """Refuse what no browser sends as an origin."""
    if origin != "*" and not re.fullmatch(r"https?://[^/\s]+", origin):
        raise UsageError(
            f"`cors_origins`: {origin!r} is not the origin of a site. Write it as https://example.com, "
            "without a path."
        )


def _check_workspace(host: str, key: str | None, workers: int) -> None:
    """Refuse a workspace that anybody could write to, or that several processes would write to."""
    if key is None and not is_loopback(host):
        raise UsageError(
            f"`workspace` on {host}: other machines could write to it. Set an API key (`key`), or use "
            "`host='127.0.0.1'`."
        )
    if workers > 1:
        raise UsageError("`workspace` needs one process: one server starts its jobs. Use `workers=1`.")


def _listen(host: str, port: int) -> socket.socket:
    """Open the listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol given, asyncio sets TCP_NODELAY: small responses are sent at once.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as problem:
        listening.close()
        raise UsageError(f"{host}:{port}: cannot listen there ({problem}). Choose another `port`.") from None
    listening.listen(BACKLOG)
    return listening


def _serve_one(
    create: CreateApp,
    load: Callable[[], ServedModels],
    listener: socket.socket,
    announce: Ready,
    models: ServedModels | None = None,
) -> None:
    """Serve from this process, with these models or those that `load` returns."""
    app, state = create(lambda: _freeze(load()))
    limits, state.on_load = state.limits, announce
    if models is not None:
        state.adopt(_freeze(models))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=partial(TimedProtocol, seconds=limits.timeout, max_body=limits.body_bytes),  # type: ignore[arg-type]
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    server = uvicorn.Server(config)
    sys.setswitchinterval(SWITCH_SECONDS)

    def stop() -> None:
        server.should_exit = True

    state.on_load_failure = stop
    server.handle_exit = _make_signal_handler(server, state)  # type: ignore[assignment,method-assign]
    for number in STOP_SIGNALS:  # uvicorn raises it again at the end; the exit code is to be 0
        signal.signal(number, lambda *_: None)
    _handle_hangup(server, state, has_parent=models is not None)
    try:
        server.run(sockets=[listener])
    finally:
        gc.unfreeze()
    if state.load_error is not None:
        raise state.load_error


def _freeze(models: ServedModels) -> ServedModels:
    """Exclude the models from garbage collection, which would take 0.1 s within some request."""
    gc.unfreeze()  # models that are served no more
    gc.collect()
    gc.freeze()
    return models


def _handle_hangup(server: uvicorn.Server, state: ServerState, *, has_parent: bool) -> None:
    """Load models again on SIGHUP; a process of several is replaced instead, and retires when it is told."""

    def hang_up(number: int, frame: FrameType | None) -> None:
        if is_terminal_gone():
            server.handle_exit(number, frame)
        else:
            state.reload()

    def retire(number: int, frame: FrameType | None) -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon_threadsafe(lambda: tasks.append(loop.create_task(_retire(server, state))))

    tasks: list[asyncio.Task[None]] = []  # the loop itself keeps only weak references
    if has_parent and RETIRE is not None:
        signal.signal(RETIRE, retire)
    elif not has_parent and SIGHUP is not None:
        signal.signal(SIGHUP, hang_up)


async def _retire(server: uvicorn.Server, state: ServerState) -> None:
    """Accept no more connections, close each after its next response, and end when all are closed."""
    loop = asyncio.get_running_loop()
    state.retiring = True
    for listening in (each for part in server.servers for each in part.sockets):
        loop.remove_reader(listening.fileno())
    await asyncio.sleep(RETIREMENT_TICK)  # for connections that have just been accepted
    for part in server.servers:
        part.close()
    deadline = loop.time() + KEEP_ALIVE_SECONDS + state.limits.timeout
    while server.server_state.connections and loop.time() < deadline:
        await asyncio.sleep(RETIREMENT_TICK)
    server.should_exit = True


def _make_signal_handler(
    server: uvicorn.Server, state: ServerState
) -> Callable[[int, FrameType | None], None]:
    """A handler that refuses new requests, then closes the socket, and gives up when the grace is over."""
    grace = state.limits.grace
    notice = min(NOTICE_SECONDS, grace / 4)
    exit_server = server.handle_exit

    def drain(number: int, frame: FrameType | None) -> None:
        loop = asyncio.get_running_loop()
        if state.draining:  # the second signal
            if server.should_exit and number == signal.SIGINT:  # another Ctrl-C: wait for no request
                loop.call_soon_threadsafe(state.grace_over.set)
                loop.call_soon_threadsafe(loop.call_later, LAST_SECONDS, _abort_connections, server)
            else:
                loop.call_soon_threadsafe(exit_server, number, frame)
            return
        state.draining = True
        wait = 0.0 if number == signal.SIGINT else notice  # no load balancer sends Ctrl-C
        server.config.timeout_graceful_shutdown = grace - wait  # type: ignore[assignment]
        loop.call_soon_threadsafe(loop.call_later, wait, exit_server, number, frame)
        loop.call_soon_threadsafe(loop.call_later, max(0.0, grace - LAST_SECONDS), state.grace_over.set)

    return drain


def _abort_connections(server: uvicorn.Server) -> None:
    for connection in server.server_state.connections:
        connection.transport.abort()


def _serve_many(
    create: CreateApp,
    load: Callable[[], ServedModels],
    listener: socket.socket,
    workers: int,
    announce: Callable[[], None],
) -> None:
    """Serve from several processes, which share the cores."""
    threads = max(1, torch.get_num_threads() // workers)
    torch.set_num_threads(1)  # no thread may run when processes are forked

    def make_work(models: ServedModels) -> Work:
        def work(ready: Ready) -> None:
            torch.set_num_threads(threads)
            _serve_one(create, lambda: models, listener, ready, models)

        return work

    run_processes(
        make_work(load()),
        workers,
        on_start=announce,
        on_stop=listener.close,
        reload=lambda: make_work(load()),
    )
