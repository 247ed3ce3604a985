"""The log: one line of JSON per request, warning or failure, without the text of any request.

    server.http.middleware, server.run, uvicorn, the library  ->  server.http.request_log  ->  a stream

A thread writes the lines. A stream that nobody reads must not block the server: then lines are dropped.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = "polyseme.server"
MAX_LINES = 10_000  # waiting to be written
CLOSE_SECONDS = 2.0  # to write the last lines when the server stops


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: time, level, and its fields or its message."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record; of an exception only type and traceback, since its message may repeat a text."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = getattr(record, "fields", None) or {"message": record.getMessage()}
        line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), **fields}
        if record.exc_info and record.exc_info[0] is not None:
            line["failure"] = record.exc_info[0].__name__
            line["traceback"] = "".join(traceback.format_tb(record.exc_info[2]))
        return json.dumps(line, ensure_ascii=False)


class BackgroundWriter(logging.Handler):
    """Hands lines to a writer thread; a forked process starts its own."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream, self._process = stream, 0
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line; drop it if too many are waiting."""
        if self._process != os.getpid():
            self._process, self._lines = os.getpid(), queue.SimpleQueue[str | None]()
            self._thread = threading.Thread(target=self._write, args=(self._lines,), daemon=True)
            self._thread.start()
        if self._lines.qsize() < MAX_LINES:
            self._lines.put(self.format(record))

    def _write(self, lines: queue.SimpleQueue[str | None]) -> None:
        """Write lines as they come, all that are waiting at once."""
        last = False
        while not last:
            batch = [lines.get(), *(lines.get() for _ in range(lines.qsize()))]
            last = None in batch
            self._stream.write("".join(f"{line}\n" for line in batch if line is not None))
            self._stream.flush()

    def close(self) -> None:
        """Write the remaining lines, unless the stream is blocked."""
        if self._process == os.getpid() and self._lines.qsize() < MAX_LINES:
            self._lines.put(None)
            self._thread.join(CLOSE_SECONDS)
        super().close()


def configure_logging(stream: TextIO | None = None) -> None:
    """Write the log and all warnings to `stream`, or to standard error."""
    logging.basicConfig(level=logging.WARNING, handlers=[BackgroundWriter(stream or sys.stderr)], force=True)
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    logging.captureWarnings(True)
