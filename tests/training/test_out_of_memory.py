"""If memory runs out, the error says which settings to lower."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import training_story as story
from polyseme.training.out_of_memory import TooLargeError
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings
from programs import run_program


def test_a_model_that_does_not_fit_in_memory_gives_one_line_and_exit_code_2(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    huge_settings = ("model.recurrent.cells=1000000000000", "corpus.max_words=5000")
    settings = [part for line in (*story.SETTINGS, *huge_settings) for part in ("--set", line)]
    result = run_program("pretrain", text, "--out", tmp_path / "model", "--config", "tiny", *settings)
    assert result.code == 2
    line = result.err.strip().splitlines()[-1]
    assert "Memory ran out" in line
    assert "Lower train.batch (8), train.unroll (10), corpus.max_words (5000)" in line
    assert "model.recurrent.cells (1000000000000)" in line
    assert "softmax.kind=sampled" in line
    assert "Traceback" not in result.err


@pytest.mark.parametrize("allocate", [lambda: torch.empty(10**15), lambda: bytearray(10**17)])
def test_a_run_can_be_resumed_after_a_failed_allocation(allocate, tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    settings = [*story.SETTINGS, "train.save_seconds=0.001", "softmax.kind=sampled", "softmax.samples=9"]
    config = read_pretrain_settings("tiny", [*settings, "train.order=sentences"])

    def fail(position, metrics):
        if position.step == 5:
            allocate()

    with pytest.raises(
        TooLargeError, match=r"Lower train.batch \(8\), corpus.max_words .* softmax.samples \(9\)"
    ):
        pretrain([text], tmp_path / "model", config, workers=1, on_metrics=fail)
    resumed = pretrain([text], tmp_path / "model", config, workers=1, resume=True)
    whole = pretrain([text], tmp_path / "whole", config, workers=1)
    assert resumed.metrics == whole.metrics


def test_other_errors_keep_their_traceback(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)

    def fail(position, metrics):
        raise RuntimeError("a bug")

    config = read_pretrain_settings("tiny", [*story.SETTINGS])
    with pytest.raises(RuntimeError, match="a bug"):
        pretrain([text], tmp_path / "model", config, workers=1, on_metrics=fail)
