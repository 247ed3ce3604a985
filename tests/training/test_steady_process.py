"""Training keeps memory and leaves old objects out of garbage collection, until it ends."""

from __future__ import annotations

import gc
import os
import platform
from pathlib import Path

import numpy as np
import pytest

from polyseme.training.steady_process import release_free_memory, steady_process


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


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps what was freed")
def test_holes_between_arrays_go_back_to_the_system():
    arrays = [np.ones(10_000) for _ in range(2_000)]  # 160 MB, each too small for a page map of its own
    del arrays[::2]
    before = resident_bytes()
    release_free_memory()
    assert before - resident_bytes() > 40_000_000
    assert len(arrays) == 1_000
