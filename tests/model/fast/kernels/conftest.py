"""What the tests of the native part share."""

from __future__ import annotations

import pytest

from polyseme.model.fast.kernels import native


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    """Each instruction set that this machine has, one after the other."""
    best = native.active_instruction_set()
    if not native.select_instruction_set(request.param):
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    native.select_instruction_set(best)
