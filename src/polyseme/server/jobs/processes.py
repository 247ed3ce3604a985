"""Several processes that do the same work: each is restarted if it dies, and all are replaced on SIGHUP.

server.run  ->  server.jobs.processes  ->  os.fork

New processes are forked after the parent has loaded what they share; then the old ones get RETIRE, finish
what they have begun and end. Loading takes place in the parent's only thread, so that it may fork afterwards:
a process that dies meanwhile is restarted after it.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import NoReturn

from polyseme.errors import PolysemeError
from polyseme.server.http.metrics import forget_process
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.hangup import SIGHUP, is_terminal_gone
from polyseme.server.jobs.worker_pool import start_daemon

RESTART_SECONDS = 1.0  # before a process that died is restarted
READY_SECONDS = 60.0  # for the first of new processes to be ready
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
HANDLED_SIGNALS = STOP_SIGNALS if SIGHUP is None else (*STOP_SIGNALS, SIGHUP)  # in the parent
RETIRE = getattr(signal, "SIGUSR1", None)  # to a process: finish, others take the new requests
Ready = Callable[[], object]  # a process calls it when it takes requests
Work = Callable[[Ready], None]
logger = logging.getLogger(LOGGER)


class ServerStoppedError(BaseException):
    """A signal to stop came while models were being loaded again."""


def run_processes(
    work: Work,
    count: int,
    *,
    on_start: Callable[[], None],
    on_stop: Callable[[], None],
    reload: Callable[[], Work],
) -> None:
    """Run `work` in `count` processes until SIGTERM or Ctrl-C.

    Args:
        work: What each process does.
        count: Number of processes.
        on_start: Called when signals are handled, before the processes are started.
        on_stop: Called once the processes have been told to stop.
        reload: Called on SIGHUP; returns what new processes do that replace the old ones.

    """
    Supervisor(work, count, on_stop, reload).run(on_start)


class Supervisor:
    """The parent of the processes; `run_processes` explains the arguments."""

    def __init__(
        self, work: Work, count: int, on_stop: Callable[[], None], reload: Callable[[], Work]
    ) -> None:
        self._work, self._count, self._on_stop, self._load = work, count, on_stop, reload
        self._alive, self._held = os.pipe()  # only the parent holds the second end: without it, children stop
        self._woken, self._wake = os.pipe()  # a byte for every signal
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)
        self._running, self._retiring = set[int](), set[int]()
        self._stopping = self._reload_wanted = self._loading = False

    def run(self, on_start: Callable[[], None]) -> None:
        """Start the processes and look after them until they have ended."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._stop)
        if SIGHUP is not None:
            signal.signal(SIGHUP, self._want_reload)
        signal.signal(signal.SIGCHLD, _note)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        on_start()
        try:
            self._start_missing(_do_nothing)
            while self._running or self._retiring:
                self._wait()
                self._reap()
                if self._reload_wanted and not self._stopping:
                    self._reload()
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in (self._alive, self._held, self._woken, self._wake):
                os.close(end)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        for child in (*self._running, *self._retiring):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
        self._on_stop()
        if self._loading:
            self._loading = False
            raise ServerStoppedError

    def _want_reload(self, number: int, frame: FrameType | None) -> None:
        if is_terminal_gone():
            self._stop(number, frame)
        else:
            self._reload_wanted = True

    def _wait(self) -> None:
        """Wait for a signal."""
        select.select([self._woken], [], [])
        with suppress(BlockingIOError):
            while os.read(self._woken, 4096):
                pass

    def _reap(self) -> None:
        """Note which processes have ended, and replace them if they should not have."""
        has_died = False
        for child, status in _list_ended():
            forget_process(child)
            if child in self._running and not self._stopping:
                logger.error("process %d ended with status %d and is restarted", child, status)
                has_died = True
            self._running.discard(child)
            self._retiring.discard(child)
        if has_died:
            time.sleep(RESTART_SECONDS)
        self._start_missing(_do_nothing)

    def _start_missing(self, ready: Ready) -> None:
        while not self._stopping and len(self._running) < self._count:
            self._start(ready)

    def _start(self, ready: Ready) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)  # they wait until `_running` has the child
        try:
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                for end in (self._held, self._woken, self._wake):
                    os.close(end)
                _run_child(self._work, ready, self._alive)
            self._running.add(child)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)

    def _reload(self) -> None:
        """Load again, and replace all processes; if either fails, the old ones stay."""
        self._reload_wanted = False
        try:
            self._loading = True
            work = self._load()
            self._loading = False
        except ServerStoppedError:
            return
        except PolysemeError as problem:
            logger.error("reloading failed, the models stay as they are: %s", problem)
            return
        except Exception:
            logger.exception("reloading failed, the models stay as they are")
            return
        finally:
            self._loading = False
        old_work, self._work = self._work, work
        old, self._running = self._running, set()
        reports, report = os.pipe()
        self._start_missing(partial(os.write, report, b"."))
        os.close(report)
        is_ready = _wait_for_byte(reports)
        os.close(reports)
        if not is_ready and not self._stopping:
            logger.error("reloading failed, the models stay as they are: no new process became ready")
            self._work, old, self._running = old_work, self._running, old
        elif not self._stopping:
            logger.info("reloaded: %d new processes take the requests", len(self._running))
        self._retiring |= old
        for child in old:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM if self._stopping or RETIRE is None else RETIRE)


def _note(number: int, frame: FrameType | None) -> None:
    """Nothing: the signal wakes the parent by its byte."""


def _do_nothing() -> None:
    """What a process reports that nobody waits for."""


def _list_ended() -> list[tuple[int, int]]:
    """The processes that have ended, with their status."""
    ended = []
    with suppress(ChildProcessError):
        while (pair := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append(pair)
    return ended


def _wait_for_byte(end: int) -> bool:
    """Whether one of the new processes reports in time that it is ready; False if all of them died."""
    deadline = time.monotonic() + READY_SECONDS
    while (seconds := deadline - time.monotonic()) > 0:
        if select.select([end], [], [], seconds)[0]:
            return bool(os.read(end, 1))
    return False


def _run_child(work: Work, ready: Ready, alive: int) -> NoReturn:
    """Run `work` as long as the parent lives."""

    def stop_with_parent() -> None:
        os.read(alive, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    code = 1
    try:
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)  # until `work` installs its handlers
        if SIGHUP is not None:
            signal.signal(SIGHUP, signal.SIG_IGN)  # a terminal sends it to all processes; the parent decides
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        start_daemon("parent-watch", stop_with_parent)
        work(ready)
        code = 0
    except Exception as problem:
        logger.exception("a process failed: %s", problem)
    finally:
        logging.shutdown()
        os._exit(code)
