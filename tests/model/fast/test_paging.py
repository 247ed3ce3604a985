"""Memory given back keeps its contents."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from polyseme.model.fast.paging import page_out


@pytest.mark.parametrize("shape", [(0,), (3,), (1 << 20,), (700, 1000)])
def test_values_stay(shape):
    values = torch.arange(torch.Size(shape).numel(), dtype=torch.float32).view(shape)
    wanted = values.clone()
    page_out(values)
    assert torch.equal(values, wanted)


def test_values_of_a_file_stay_also_those_that_were_changed(tmp_path: Path):
    place = tmp_path / "values"
    place.write_bytes(torch.arange(1 << 20, dtype=torch.float32).numpy().tobytes())
    values = torch.from_file(str(place), shared=False, size=1 << 20, dtype=torch.float32)
    values[1000:2000] = -1
    wanted = values.clone()
    page_out(values)
    assert torch.equal(values, wanted)
    assert place.read_bytes() == torch.arange(1 << 20, dtype=torch.float32).numpy().tobytes()


def test_what_is_not_in_one_piece_or_elsewhere_is_left_alone():
    page_out(torch.zeros(4000, 4000).t())
    page_out(torch.zeros(4000, device="meta"))
