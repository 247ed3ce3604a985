"""Several processes that do the same work, each restarted if it dies.

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
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.worker_pool import start_daemon

RESTART_SECONDS = 1.0  # before a process that died is restarted
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
logger = logging.getLogger(LOGGER)


def run_processes(work: Callable[[], None], count: int, on_stop: Callable[[], None]) -> None:
    """Run `work` in `count` processes until SIGTERM or Ctrl-C.

    Args:
        work: What each process does.
        count: Number of processes.
        on_stop: Called once the processes have been told to stop.

    """
    alive, held = os.pipe()  # only the parent holds the second end; when it is gone, the children stop
    running: set[int] = set()
    stopping = False

    def start() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # a signal waits until `running` has the child
        try:
            child = os.fork()
            if not child:
                os.close(held)
                _run_child(work, alive)
            running.add(child)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in running:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        on_stop()

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    while not stopping and len(running) < count:
        start()
    while running:
        child, status = os.wait()
        running.discard(child)
        forget_process(child)
        if not stopping:
            logger.error("process %d ended with status %d and is restarted", child, status)
            time.sleep(RESTART_SECONDS)
        if not stopping:
            start()


def _run_child(work: Callable[[], None], alive: int) -> NoReturn:
    """Run `work` as long as the parent lives."""

    def stop_with_parent() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    code = 1
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # until `work` installs its handlers
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        start_daemon("parent-watch", stop_with_parent)
        work()
        code = 0
    except Exception as problem:
        logger.exception("a process failed: %s", problem)
    finally:
        logging.shutdown()
        os._exit(code)
