"""Training keeps memory and leaves old objects out of garbage collection, until it ends."""

from __future__ import annotations

import gc

import pytest

from polyseme.training.steady_process import steady_process


def test_objects_are_left_out_of_garbage_collection_only_inside_the_block():
    before = gc.get_freeze_count()
    with steady_process():
        assert gc.get_freeze_count() > before + 1000
    assert gc.get_freeze_count() == 0


def test_an_error_inside_the_block_ends_it():
    with pytest.raises(RuntimeError, match="broken"), steady_process():
        raise RuntimeError("broken")
    assert gc.get_freeze_count() == 0


def test_new_cycles_are_still_collected():
    with steady_process():
        node: list[object] = []
        node.append(node)
        del node
        assert gc.collect() > 0
