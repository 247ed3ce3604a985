"""The benchmark of pretraining measures a preset and prints a row; a GPU would run the same code."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest
import torch

import training_story as story

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import pretrain

    yield pretrain
    for name in (
        "pretrain",
        "training_flops",
        "hardware_limits",
        "measure",
        "training_phases",
        "results_page",
    ):
        sys.modules.pop(name, None)


def test_a_preset_is_measured_on_the_device_of_its_settings(benchmark, tmp_path):
    text = story.write(tmp_path / "story.txt", 300)
    numbers = benchmark.measure(text, "tiny", [*story.SETTINGS, "train.device=cpu"], steps=1, repeats=1)
    assert numbers.keys() == {"tokens_per_second", "operations", "peak", "memory"}
    assert all(value > 0 for value in numbers.values())


def test_the_phases_of_a_step_add_up_to_it(benchmark, tmp_path):
    import training_phases

    text = story.write(tmp_path / "story.txt", 300)
    phases = benchmark.profile(text, "tiny", [*story.SETTINGS, "train.device=cpu"], steps=2)
    assert phases.keys() == {*training_phases.PHASES, training_phases.PYTHON}
    for phase in ("batch and sampled words", "clip and optimiser", "LSTMs, forward", "LSTMs, backward"):
        assert phases[phase] > 0
    assert (
        training_phases.find_phase("autograd::engine::evaluate_function: _NativePairBackward")
        == "LSTMs, backward"
    )
    lines = training_phases.format_phases(phases, phases)
    assert len(lines) == 3 + len(phases)
    assert lines[-1].startswith("| a step |")
    assert lines[-1].endswith("| 1.00 |")


def test_the_peak_of_a_gpu_is_that_of_a_large_product(benchmark):
    for bf16 in (False, True):
        assert benchmark.product_peak(torch.device("cpu"), 64, bf16=bf16) > 0


def test_a_row_has_shares_of_the_peak_and_ratios(benchmark):
    fp32 = {"tokens_per_second": 1000.0, "operations": 2e7, "peak": 40.0, "memory": 512.0}
    bf16 = fp32 | {"tokens_per_second": 1700.0, "peak": 80.0}
    one = fp32 | {"tokens_per_second": 500.0}
    row = benchmark.format_row("notebook:train.batch=128", fp32, bf16, one)
    assert row == (
        "| notebook train.batch=128 | 1,000 | 50% of 40 | 1,700 | 42% of 80 | 1.70 | 2.00 | 512, 512 MiB |"
    )
    assert "| - |" in benchmark.format_row("novel", fp32, bf16, None)


def test_settings_reach_the_process_of_a_cell_with_and_without_profile(benchmark, tmp_path):
    text = story.write(tmp_path / "story.txt", 300)
    for profile in (False, True):
        arguments = argparse.Namespace(text=text, steps=1, profile=profile, device="cpu")
        numbers = benchmark.measure_apart(arguments, ":".join(["tiny", *story.SETTINGS]), "train.batch=4")
        assert numbers["clip and optimiser" if profile else "tokens_per_second"] > 0


def test_a_table_replaces_the_one_of_its_benchmark_in_a_page(benchmark, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "a\n<!-- embed -->\nother\n<!-- end -->\n<!-- pretrain -->\nold\n<!-- end -->\nb\n", "utf-8"
    )
    benchmark.write_results(page, "pretrain", ["| new |"])
    expected = "a\n<!-- embed -->\nother\n<!-- end -->\n<!-- pretrain -->\n| new |\n<!-- end -->\nb\n"
    assert page.read_text("utf-8") == expected
    with pytest.raises(SystemExit, match="<!-- missing --> and <!-- end --> are missing"):
        benchmark.write_results(page, "missing", [])
