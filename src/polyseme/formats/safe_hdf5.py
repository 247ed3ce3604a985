"""hdf5 files opened with suspicion: only datasets of numbers, and never in this process.

    formats.models.hdf5, formats.vectors.token_file, formats.vectors.hdf5
        ->  formats.safe_hdf5  ->  formats.hdf5_process  ->  h5py

The hdf5 library trusts what it reads: a few changed bytes make it loop for ever, or crash. Therefore a child
process reads, with a limit of time; whatever happens to it becomes one error here. All files share one child,
which ends a few seconds after the last of them is closed; the others continue in a new one if it dies.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import FormatError
from polyseme.io.checked import check_regular_file
from polyseme.io.progress import ByteProgress, OnProgress, ignore_progress

PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from polyseme.formats.hdf5_process import main; main()"
)
LINGER_SECONDS = 5.0  # before the process ends that has no open file
CLOCK_SECONDS = 600.0  # for a request, where the system cannot limit the seconds of computing


class ReadingProcess:
    """A process that reads hdf5 files, by their numbers."""

    def __init__(self) -> None:
        arguments = [sys.executable, "-c", PROGRAM, json.dumps(sys.path)]
        self._process = subprocess.Popen(  # noqa: S603  # this very program
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._owner = os.getpid()
        self._next = 0
        self._open: set[int] = set()
        self._closed: deque[int] = deque()  # the process is told with the next request
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self.end = weakref.finalize(self, _end_process, self._process, self._owner)

    @property
    def is_usable(self) -> bool:
        """Whether it runs, and was started by this process and not by the one that this was forked from."""
        return self.end.alive and self._owner == os.getpid()

    def open(self, path: Path) -> int:
        """Open a file; returns its number."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            number, self._next = self._next, self._next + 1
            self._open.add(number)
        self.ask(path, number, "open", str(path.absolute()))
        return number

    def close(self, path: Path, number: int) -> None:
        """Close a file now."""
        self.forget(number)
        if self.is_usable:
            self.ask(path, number, "close")

    def forget(self, number: int) -> None:
        """Close a file with the next request; finalizers, which may run anywhere, cannot take the lock."""
        self._closed.append(number)
        self._open.discard(number)
        if not self._open and self.is_usable:
            self._timer = threading.Timer(LINGER_SECONDS, self._end_unused)
            self._timer.daemon = True
            self._timer.start()

    def _end_unused(self) -> None:
        with self._lock:
            if not self._open:
                self.end()

    def ask(self, path: Path, number: int, method: str, *arguments: str) -> Any:
        """Send a request about a file to the process; an error if it fails, ends or takes too long."""
        with self._lock:
            closed = [self._closed.popleft() for _ in range(len(self._closed))]
            timer = None
            if sys.platform == "win32":
                timer = threading.Timer(CLOCK_SECONDS, self._process.kill)
                timer.start()
            try:
                return self._receive([closed, number, method, *arguments])
            except (OSError, EOFError, ValueError):
                self.end()
                what = f"reading {arguments[0]!r:.60}" if arguments and method != "open" else "opening it"
                raise FormatError(
                    f"{path}: damaged: {what} does not end, or crashes the hdf5 library. Copy it again."
                ) from None
            finally:
                if timer is not None:
                    timer.cancel()

    def _receive(self, request: list[Any]) -> Any:
        requests, responses = self._process.stdin, self._process.stdout
        if requests is None or responses is None or requests.closed:
            raise EOFError
        requests.write(json.dumps(request).encode() + b"\n")
        requests.flush()
        line = responses.readline()
        if not line.endswith(b"\n"):
            raise EOFError
        values = json.loads(line)
        if "error" in values:
            raise FormatError(values["error"])
        if "dtype" not in values:
            return values["value"]
        array = np.empty(values["shape"], values["dtype"])
        _read_into(array, responses)
        return array


_process: ReadingProcess | None = None
_process_lock = threading.Lock()


def _find_process() -> ReadingProcess:
    global _process
    with _process_lock:
        if _process is None or not _process.is_usable:
            _process = ReadingProcess()
        return _process


def _forget_lock() -> None:
    """Another thread of the parent may have held the lock when this child was forked."""
    global _process_lock
    _process_lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_lock)


class SafeFile:
    """An open hdf5 file: `name in file`, `names()`, `shape(name)`, `read(name)`."""

    def __init__(self, path: Path, progress: OnProgress = ignore_progress) -> None:
        self.path = path
        check_regular_file(path, "an hdf5 file")
        self._progress = ByteProgress(progress, "reading", path.stat().st_size)
        self._open()

    def _open(self) -> None:
        self._process = _find_process()
        self._number = self._process.open(self.path)
        self._close = weakref.finalize(self, self._process.forget, self._number)

    def __contains__(self, name: str) -> bool:
        return bool(self._ask("has", name))

    def names(self) -> list[str]:
        """The names at the top level."""
        names: list[str] = self._ask("names")
        return names

    def shape(self, name: str) -> tuple[int, ...]:
        """The declared shape of the dataset `name`."""
        return tuple(self._ask("shape", name))

    def read(self, name: str) -> NDArray[np.float32]:
        """The dataset `name` as float32; an error if a value is not finite."""
        stored = self.read_stored(name)
        with np.errstate(over="ignore"):  # of float64, which is checked below
            values = stored.astype(np.float32, copy=False)
        if not np.isfinite(values).all():
            raise FormatError(f"{self.path}: {name} contains NaN or infinite weights. The model is broken.")
        self._progress.add(values.nbytes)
        return values

    def read_stored(self, name: str) -> NDArray[np.floating[Any]]:
        """The dataset `name` in the precision in which it is stored."""
        values: NDArray[np.floating[Any]] = self._ask("read", name)
        return values

    def text(self, name: str, attribute: str) -> str | None:
        """The text in an attribute of a dataset; None if it has none of that name."""
        text: str | None = self._ask("text", name, attribute)
        return text

    def close(self) -> None:
        """Close the file."""
        if self._close.detach() is not None:
            self._process.close(self.path, self._number)

    def _ask(self, method: str, *arguments: str) -> Any:
        if not self._process.is_usable:  # another file has crashed it, or this process was forked
            self._open()
        return self._process.ask(self.path, self._number, method, *arguments)


def _read_into(array: NDArray[Any], source: IO[bytes]) -> None:
    left = memoryview(array.reshape(-1).view(np.uint8).data)
    while left:
        count = source.readinto(left)  # type: ignore[attr-defined]  # of the buffered reader
        if not count:
            raise EOFError
        left = left[count:]


def _end_process(process: subprocess.Popen[bytes], owner: int) -> None:
    """Close the pipes, and end the process if it is a child of this one."""
    if owner == os.getpid():
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


@contextmanager
def open_hdf5(path: Path, progress: OnProgress = ignore_progress) -> Iterator[SafeFile]:
    """Open `path` for reading; `progress` receives an event for each dataset."""
    file = SafeFile(path, progress)
    try:
        yield file
    finally:
        file.close()
