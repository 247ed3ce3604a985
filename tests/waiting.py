"""Waiting for what another process does: as long as it needs, and no longer than a test may take."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(fits: Callable[[], object], seconds: float = 60, otherwise: Callable[[], object] = str) -> None:
    """Until something is so; if it never is, the test fails with what `otherwise` tells."""
    end = time.monotonic() + seconds
    while not fits():
        assert time.monotonic() < end, otherwise()
        time.sleep(0.02)
