"""Wait for another process or thread, with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 60, message: Callable[[], object] = str) -> None:
    """Wait until the condition holds; after `seconds`, fail with the message."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, message()
        time.sleep(0.02)
