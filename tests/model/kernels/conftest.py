"""What the tests of the native part share."""

from __future__ import annotations

import pytest

from polyseme.model.kernels import native


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    """Each instruction set that this machine has, one after the other."""
    best = native.instruction_set()
    if not native.use(request.param):
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    native.use(best)
