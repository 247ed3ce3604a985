"""Several processes that do the same work, each started again where it dies.

server.run  ->  server.jobs.processes  ->  os.fork
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from polyseme.server.http.metrics import forget_process
from polyseme.server.http.request_log import NAME
from polyseme.server.jobs.worker_pool import start_daemon

AGAIN = 1.0  # seconds before a process that died is started again
STOPS = (signal.SIGTERM, signal.SIGINT)
logger = logging.getLogger(NAME)


def keep_running(work: Callable[[], None], count: int, stopped: Callable[[], None]) -> None:
    """`work` in so many processes until SIGTERM or Ctrl-C; then `stopped` is called, and they end."""
    alive, held = os.pipe()  # only the first process holds its end; when it is gone, the others leave
    running: set[int] = set()
    stopping = False

    def start() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # a signal waits until the process is among `running`
        try:
            child = os.fork()
            if not child:
                os.close(held)
                _be_a_child(work, alive)
            running.add(child)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in running:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        stopped()

    for number in STOPS:
        signal.signal(number, stop)
    while not stopping and len(running) < count:
        start()
    while running:
        child, status = os.wait()
        running.discard(child)
        forget_process(child)
        if not stopping:
            logger.error("process %d ended with %d and is started again", child, status)
            time.sleep(AGAIN)
        if not stopping:
            start()


def _be_a_child(work: Callable[[], None], alive: int) -> NoReturn:
    """`work`, as long as the first process lives."""

    def follow() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    code = 1
    try:
        for number in STOPS:
            signal.signal(number, signal.SIG_DFL)  # until `work` has its own way to stop
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        start_daemon("follow", follow)
        work()
        code = 0
    except Exception as problem:
        logger.exception("a process failed: %s", problem)
    finally:
        logging.shutdown()
        os._exit(code)
