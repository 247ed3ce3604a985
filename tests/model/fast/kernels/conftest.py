"""Fixtures for the tests of the C library."""

from __future__ import annotations

import pytest

from polyseme.model.fast.kernels import native


@pytest.fixture(params=native.INSTRUCTION_SETS)
def instruction_set(request):
    """Run the test with each instruction set of this machine."""
    best = native.active_instruction_set()
    if not native.select_instruction_set(request.param):
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    native.select_instruction_set(best)
