"""Where memory runs out, the run says what to lower."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import training_story as story
from polyseme.training.out_of_memory import TooLargeError
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings
from programs import run_program


def test_a_model_that_no_memory_holds_is_one_line_and_exit_code_2(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    huge = ("model.recurrent.cells=1000000000000", "corpus.max_words=5000")
    settings = [part for line in (*story.SETTINGS, *huge) for part in ("--set", line)]
    ran = run_program("pretrain", text, "--out", tmp_path / "model", "--config", "tiny", *settings)
    assert ran.code == 2
    line = ran.err.strip().splitlines()[-1]
    assert "Memory ran out" in line
    assert "Lower train.batch (8), train.unroll (10), corpus.max_words (5000)" in line
    assert "model.recurrent.cells (1000000000000)" in line
    assert "softmax.kind=sampled" in line
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("allocate", [lambda: torch.empty(10**15), lambda: bytearray(10**17)])
def test_the_checkpoint_survives_a_failed_allocation(allocate, tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    settings = [*story.SETTINGS, "train.save_seconds=0.001", "softmax.kind=sampled", "softmax.samples=9"]
    config = read_pretrain_settings("tiny", [*settings, "train.order=sentences"])

    def fail(position, figures):
        if position.step == 5:
            allocate()

    with pytest.raises(
        TooLargeError, match=r"Lower train.batch \(8\), corpus.max_words .* softmax.samples \(9\)"
    ):
        pretrain([text], tmp_path / "model", config, workers=1, on_metrics=fail)
    resumed = pretrain([text], tmp_path / "model", config, workers=1, resume=True)
    whole = pretrain([text], tmp_path / "whole", config, workers=1)
    assert resumed.metrics == whole.metrics


def test_another_fault_keeps_its_traceback(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)

    def fail(position, figures):
        raise RuntimeError("a fault of ours")

    config = read_pretrain_settings("tiny", [*story.SETTINGS])
    with pytest.raises(RuntimeError, match="a fault of ours"):
        pretrain([text], tmp_path / "model", config, workers=1, on_metrics=fail)
