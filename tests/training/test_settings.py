"""Settings that have no effect or cannot be used are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import polyseme
import training_story as story
from polyseme.errors import ConfigError
from polyseme.training.settings import adapt_settings, read_pretrain_settings


@pytest.mark.parametrize("cell", ["gru", "rnn"])
def test_weight_drop_is_refused_for_cells_without_it(cell: str):
    overrides = [f"model.recurrent.cell={cell}", "train.weight_drop=0.2"]
    with pytest.raises(ConfigError, match=rf"train.weight_drop is 0.2, .* model.recurrent.cell is {cell}"):
        read_pretrain_settings("tiny", overrides)
    assert read_pretrain_settings("tiny", overrides[:1]).train.weight_drop == 0
    assert read_pretrain_settings("tiny", overrides[1:]).train.weight_drop == 0.2


def test_weight_drop_is_refused_when_a_gru_is_fine_tuned():
    gru = read_pretrain_settings("tiny", ["model.recurrent.cell=gru"]).model
    with_weight_drop = read_pretrain_settings("tiny", ["train.weight_drop=0.2"])
    with pytest.raises(ConfigError, match=r"train.weight_drop"):
        adapt_settings(with_weight_drop, gru, ["train.weight_drop=0.2"])


def test_fine_tuning_refuses_changes_of_the_model_by_name():
    config = read_pretrain_settings("tiny")
    overrides = ["model.recurrent.cells=64", "model.chars.dim=4", "model.segment=en", "train.seed=2"]
    with pytest.raises(ConfigError, match=r"^model.recurrent.cells, model.chars.dim cannot be changed"):
        adapt_settings(config, config.model, overrides)


def test_fine_tuning_may_change_the_segmentation_of_the_model_only():
    base = read_pretrain_settings("small", ["model.segment=split"]).model
    overrides = ["model.segment=en", "train.seed=2"]
    config = read_pretrain_settings("novel", overrides)
    adapted = adapt_settings(config, base, overrides)
    assert adapted.model == base.model_copy(update={"segment": "en"})
    assert adapted.train == config.train
    assert not adapted.softmax.tied  # small has no word table to share
    assert adapt_settings(config, base, []).model == base


def test_a_fine_tuned_model_is_saved_with_its_new_segmentation(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 200)
    settings = [line for line in story.SETTINGS if not line.startswith("model.")]
    polyseme.pretrain([text], tmp_path / "base", "tiny", settings=[*settings, "model.segment=split"])
    options: dict[str, Any] = {"settings": [*settings, "model.segment=en"], "base": tmp_path / "base"}
    polyseme.pretrain([text], tmp_path / "tuned", "tiny", **options)
    assert polyseme.load(tmp_path / "tuned").config.segment == "en"


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:3", "mps"])
def test_valid_device_names_are_accepted(device: str):
    assert read_pretrain_settings("tiny", [f"train.device={device}"]).train.device == device


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cuda:0,1", ""])
def test_invalid_device_names_are_refused(device: str):
    with pytest.raises(ConfigError, match="should be auto, cpu, cuda, cuda:N or mps"):
        read_pretrain_settings("tiny", [f"train.device={device}"])


def test_all_invalid_corpus_settings_are_reported_at_once() -> None:
    settings = ["corpus.min_count=0", "corpus.valid_every=1", "corpus.valid_share=0.7"]
    with pytest.raises(ConfigError) as problem:
        read_pretrain_settings("tiny", settings)
    for name in ("corpus.min_count", "corpus.valid_every", "corpus.valid_share"):
        assert f"{name} is " in str(problem.value)
