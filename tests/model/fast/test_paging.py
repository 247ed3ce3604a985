"""Pages can be returned to the system without changing values; weights are allocated in large pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from polyseme.model.fast.paging import LARGE_PAGE, allocate_bytes, page_out

SIZE = 1 << 20  # values in a file, 4 MB


@pytest.fixture
def mapped(tmp_path: Path) -> tuple[Path, Tensor]:
    """A file, and a tensor that maps it: the first write to a page copies it."""
    path = tmp_path / "values"
    path.write_bytes(torch.arange(SIZE, dtype=torch.float32).numpy().tobytes())
    return path, torch.from_file(str(path), shared=False, size=SIZE, dtype=torch.float32)


def resident_kb(path: Path) -> int:
    """Kilobytes of a mapped file that are in the memory of this process."""
    mappings = re.split(
        r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE
    )
    return sum(
        int(size)
        for text in mappings
        if str(path) in text
        for size in re.findall(r"^Rss: +(\d+)", text, re.M)
    )


@pytest.mark.parametrize("shape", [(0,), (3,), (1 << 20,), (700, 1000)])
def test_values_stay_the_same(shape: tuple[int, ...]) -> None:
    values = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape)
    expected = values.clone()
    page_out(values)
    assert torch.equal(values, expected)


def test_changed_values_of_a_mapped_file_stay_the_same(mapped: tuple[Path, Tensor]) -> None:
    path, values = mapped
    values[1000:2000] = -1
    expected = values.clone()
    page_out(values)
    assert torch.equal(values, expected)
    assert path.read_bytes() == torch.arange(SIZE, dtype=torch.float32).numpy().tobytes()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/smaps")
def test_only_contiguous_tensors_are_paged_out(mapped: tuple[Path, Tensor]) -> None:
    path, values = mapped
    assert values.sum() > 0  # reads every page
    assert resident_kb(path) == 4096
    page_out(values.view(1024, 1024).t())
    assert resident_kb(path) == 4096
    page_out(values)
    assert resident_kb(path) < 1024


def test_a_tensor_without_memory_is_skipped() -> None:
    values = torch.zeros(4000, device="meta")
    page_out(values)
    assert values.is_meta


@pytest.mark.parametrize("size", [0, 5, LARGE_PAGE - 1, LARGE_PAGE, 2 * LARGE_PAGE + 77])
def test_memory_for_weights_has_the_size_and_starts_a_page_if_it_fills_one(size: int) -> None:
    values = allocate_bytes(size)
    assert values.shape == (size,)
    values.fill_(7)
    assert values.sum(dtype=torch.int64) == 7 * size
    assert size < LARGE_PAGE or values.data_ptr() % LARGE_PAGE == 0
