"""Memory-mapped files: released pages take no memory of the process."""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np
import pytest

from polyseme.io.memory_map import map_ids, release

STATUS = Path("/proc/self/status")


def mapped_megabytes() -> int:
    match = re.search(r"RssFile:\s+(\d+)", STATUS.read_text())
    assert match is not None
    return int(match[1]) // 1024


@pytest.mark.skipif(not STATUS.exists() or not hasattr(mmap, "MADV_DONTNEED"), reason="needs Linux")
def test_released_pages_leave_memory_and_keep_their_values(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    np.arange(8 << 20, dtype=np.uint32).tofile(file)  # 32 MB
    numbers = np.memmap(file, np.uint32, "r+")
    before = mapped_megabytes()
    numbers += 1
    assert mapped_megabytes() > before + 24
    release(numbers.view(np.int32), None, np.zeros(3))
    assert mapped_megabytes() < before + 8
    np.testing.assert_array_equal(numbers[:3], [1, 2, 3])
    assert numbers[-1] == 8 << 20


def test_an_empty_file_is_an_empty_array(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    ids = map_ids(tmp_path / "empty", np.int64)
    release(ids)
    assert ids.shape == (0,)
