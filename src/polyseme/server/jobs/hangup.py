"""SIGHUP: a program that is asked to load its models again, or a terminal that is closed.

server.run, server.jobs.processes  ->  server.jobs.hangup

A terminal sends SIGHUP to its programs when it goes away. Then a server should end, as it does with Ctrl-C.
"""

from __future__ import annotations

import os
import signal
from functools import cache

SIGHUP = getattr(signal, "SIGHUP", None)  # Windows has none


@cache
def had_terminal() -> bool:
    """Whether this process ended with its terminal when this was first called; not if nohup started it."""
    return SIGHUP is not None and signal.getsignal(SIGHUP) != signal.SIG_IGN and _can_open_terminal()


def is_terminal_gone() -> bool:
    """Whether the terminal, which there was at the start, is closed."""
    return had_terminal() and not _can_open_terminal()


def _can_open_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
