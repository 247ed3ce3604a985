"""Let one process at a time write an output.

    training.pretrain, tasks.experiment, search.build, api  ->  io.output_lock  ->  .NAME.lock beside NAME

The lock file names the process that holds it. The system releases the lock when that process ends, however it
ends, so a lock file that was left behind stops nobody.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polyseme.errors import UsageError
from polyseme.io.atomic import remove_killed_writes

try:
    import fcntl
except ImportError:  # Windows has no fcntl, and no lock
    fcntl = None  # type: ignore[assignment]


@contextmanager
def lock_output(path: Path) -> Iterator[None]:
    """Hold the lock of an output while the block runs.

    Args:
        path: The file or folder that will be written; it need not exist.

    Raises:
        UsageError: Another process is writing it.

    """
    absolute = path.expanduser().absolute()
    folder = absolute.parent
    if fcntl is None or not folder.is_dir():  # without a folder there is nothing that others could write
        yield
        return
    lock = folder / f".{absolute.name[:200]}.lock"
    handle = _acquire(lock, path)
    if handle is None:
        yield
        return
    try:
        remove_killed_writes(absolute)
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)


def _acquire(lock: Path, path: Path) -> int | None:
    """Open and lock the file; None if the folder allows no new files, which its writer will report."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 20).decode("ascii", "replace").strip()
            os.close(handle)
            raise UsageError(
                f"{path}: process {holder or 'unknown'} is writing it. Wait until it ends, or choose another "
                "name."
            ) from None
        except OSError:  # a file system without locks
            os.close(handle)
            return None
        if _is_current(handle, lock):
            with suppress(OSError):  # a full disk, which the writer of the output will report
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
            return handle
        os.close(handle)  # its holder removed it between open and lock


def _is_current(handle: int, lock: Path) -> bool:
    """Whether the locked file is still the one at that path."""
    try:
        return os.path.samestat(os.fstat(handle), lock.stat())
    except FileNotFoundError:
        return False
