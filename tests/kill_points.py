"""Kill a process before each of its changes to the disk.

    do()  ->  kill_points.killed_runs  ->  the state that each kill leaves

The process is a fork, which counts the audit events of Python that precede a change: opening a file for
writing, rename, remove, mkdir, rmdir, truncate; and fsync. Before the N-th of them it is killed, as by
`kill -9`. Where kill_before.c is preloaded, every write of every library counts as well.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator

CHANGES = frozenset({"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "ctypes.dlopen"})
PRELOADED = "kill_before" in os.environ.get("LD_PRELOAD", "")
STEP = int(os.environ.get("KILL_STEP", "1"))  # with the preloaded library there are many points
FIRST = int(os.environ.get("KILL_FIRST", "1"))  # another one of them gives other points
MOST = 20_000  # points; more would be an endless loop
points = 0  # at which a process was killed


def killed_runs(do: Callable[[], object], *, step: int = 1) -> Iterator[int]:
    """Run `do` in child processes that are killed before change FIRST, FIRST + `step`, … until one finishes.

    Yields:
        The number of the change that was prevented; between two of them the caller restores the state.

    """
    global points
    for number in range(FIRST, MOST, step * STEP):
        if not is_killed(do, number):
            return
        points += 1
        yield number
    raise AssertionError(f"More than {MOST} changes.")


def is_killed(do: Callable[[], object], number: int) -> bool:
    child = os.fork()
    if child == 0:
        _kill_before(number)
        code = 1
        try:
            do()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0, f"failed at point {number}"
    return False


def _kill_before(number: int) -> None:
    if PRELOADED:
        ctypes.CDLL(None).kill_before(ctypes.c_long(number))
        return
    left = number

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event in CHANGES or (event == "open" and _writes(arguments)):
            count()

    def sync(file: int, fsync: Callable[[int], None] = os.fsync) -> None:
        count()
        fsync(file)

    sys.addaudithook(audit)
    os.fsync = sync  # type: ignore[assignment]  # in this process, which ends soon


def _writes(arguments: tuple[object, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wxa+")
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
