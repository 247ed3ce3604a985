"""`doctor` describes the installation, and says what is broken and how to repair it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import polyseme
from builders import random_model, small_config
from polyseme.api import installation
from polyseme.elmo import Elmo
from polyseme.formats.models import bundled
from polyseme.io.progress import ProgressEvent
from polyseme.model.bilm import BiLM
from programs import Ran


def find_check(report: installation.DoctorReport, topic: str) -> installation.InstallationCheck:
    (check,) = (check for check in report.checks if check.topic == topic)
    return check


def test_a_working_installation_is_healthy():
    events: list[ProgressEvent] = []
    report = polyseme.doctor(progress=events.append)
    assert report.healthy
    assert find_check(report, "torch").detail.startswith(torch.__version__)
    assert find_check(report, "C library").state in ("ok", "missing")
    assert find_check(report, "extra serve").state == "ok"
    assert "en, en-classic, zh, zh-classic" in find_check(report, "bundled models").detail
    assert [find_check(report, topic).state for topic in ("exactness", "batches")] == ["ok", "ok"]
    assert events[-1].done < events[-1].total
    assert "<table" in report._repr_html_()


def test_the_command_prints_a_line_per_check_or_json(run: Callable[..., Ran]):
    ran = run("doctor")
    assert ran.code == 0
    assert {line.split("  ")[0] for line in ran.out.splitlines()} >= {"Polyseme", "Python", "exactness"}
    values = json.loads(run("doctor", "--json").out)
    assert values["healthy"]
    assert {"topic", "state", "detail"} == set(values["checks"][0])


def test_damaged_bundled_models_fail_with_the_file_and_the_repair(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "bundled"
    shutil.copytree(bundled.FOLDER, folder)
    (folder / "zh" / "vocab.txt").write_text("damaged", encoding="utf-8")
    monkeypatch.setattr(bundled, "FOLDER", folder)
    bundled._read_sums.cache_clear()
    ran = run("doctor")
    assert ran.code == 1
    line = next(line for line in ran.out.splitlines() if line.startswith("bundled models"))
    assert "failed" in line
    assert "vocab.txt: damaged" in line
    assert "pip install --force-reinstall" in line


@pytest.mark.skipif(os.name == "nt", reason="a file as a folder is another error there")
def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "file" / "cache"))
    check = find_check(polyseme.doctor(progress=False), "cache folder")
    assert check.state == "failed"
    assert "POLYSEME_CACHE" in check.detail


def test_layers_that_differ_from_float64_are_no_longer_exact(monkeypatch: pytest.MonkeyPatch):
    elmo = Elmo(random_model(small_config()))
    assert installation.measure_error(elmo) < installation.MAX_ERROR
    network = type(elmo.model.network)
    run_stacks = network.run_stacks

    def run_wrong(self: BiLM, vectors: torch.Tensor, *rest: Any) -> object:
        return run_stacks(self, vectors * 1.001 if vectors.dtype == torch.float32 else vectors, *rest)

    monkeypatch.setattr(network, "run_stacks", run_wrong)
    assert installation.measure_error(elmo) > installation.MAX_ERROR


def test_a_check_that_raises_is_reported_as_failed():
    def fail() -> installation.InstallationCheck:
        raise RuntimeError("libgomp.so.1: cannot open shared object file")

    (check,) = installation._run_step("torch", fail)
    assert (check.state, check.detail) == (
        "failed",
        "RuntimeError: libgomp.so.1: cannot open shared object file",
    )
