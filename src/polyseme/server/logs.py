"""Where the server's log goes: a line of JSON a request, without its text.

    server.guard, server.running  ->  server.logs  ->  a stream

A thread writes the lines. A stream that nobody reads must not stop the server: then lines are dropped.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from typing import TextIO

NAME = "polyseme.server"
LINES = 10_000  # that wait to be written
SECONDS = 2.0  # to write the last lines when the server stops


class Writer(logging.Handler):
    """Hands lines to a thread of its own; a forked process begins anew with one of its own."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream, self._process = stream, 0
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; it is lost where too many wait already."""
        if self._process != os.getpid():
            self._process, self._lines = os.getpid(), queue.Queue[str | None](LINES)
            self._thread = threading.Thread(target=self._write, args=(self._lines,), daemon=True)
            self._thread.start()
        try:
            self._lines.put_nowait(self.format(record))
        except queue.Full:
            return

    def _write(self, lines: queue.Queue[str | None]) -> None:
        while (line := lines.get()) is not None:
            print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Write what is left, if somebody reads it."""
        if self._process == os.getpid() and not self._lines.full():
            self._lines.put_nowait(None)
            self._thread.join(SECONDS)
        super().close()


def log_to(stream: TextIO | None = None) -> None:
    """Write the log to `stream`, or to standard error."""
    logger = logging.getLogger(NAME)
    logger.addHandler(Writer(stream or sys.stderr))
    logger.setLevel(logging.INFO)
    logger.propagate = False
