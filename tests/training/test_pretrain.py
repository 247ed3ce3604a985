"""Pretraining from a text to a model folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import polyseme
import training_story as story
from polyseme.errors import ConfigError, UsageError
from polyseme.formats.models.open import open_pretrained
from polyseme.language import evaluate, find_substitutes
from polyseme.text.reading import Line
from polyseme.training.loop import DivergedError
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import list_presets, read_pretrain_settings

WORDS_AND_CHARS = ("model.words.dim=16", "softmax.tied=true")
KINDS = {
    "full": ("softmax.kind=full",),
    "sampled": ("softmax.kind=sampled", "softmax.samples=10"),
    "more samples than words": ("softmax.kind=sampled", "softmax.samples=5000"),
    "adaptive": ("softmax.kind=adaptive",),
    "tied": WORDS_AND_CHARS,
    "sentences": ("train.order=sentences", *WORDS_AND_CHARS),
    "gru": ("model.recurrent.cell=gru",),
    "rnn": ("model.recurrent.cell=rnn",),
    "bytes": ("model.chars.encoding=bytes",),
    "adagrad": ("train.optimizer=adagrad", "train.rate=1.0", "train.epochs=8"),
    "sgd": ("train.optimizer=sgd", "train.rate=2.0"),
    "variational and weight drop": ("train.variational=true", "train.weight_drop=0.1"),
    "accumulated": ("train.accumulate=2",),
    "bf16": ("train.precision=bf16",),
}


def run(tmp_path: Path, *settings: str, out: str = "model", lines: int = 300, **options):
    text = story.write(tmp_path / "story.txt", lines)
    config = read_pretrain_settings("tiny", [*story.SETTINGS, "train.epochs=4", *settings])
    return pretrain([text], tmp_path / out, config, workers=1, **options)


@pytest.mark.parametrize("settings", KINDS.values(), ids=KINDS)
def test_every_kind_of_model_can_be_trained_saved_and_loaded(settings: tuple[str, ...], tmp_path: Path):
    result = run(tmp_path, *settings)
    vocabulary = result.report.words
    assert result.metrics["mean"] < vocabulary / 2.5
    model = polyseme.load(tmp_path / "model")
    assert model.embed("Anna sees the bank .").shape == (5, 32)
    perplexity = evaluate(
        model,
        [Line("x", n, line) for n, line in enumerate(story.sentences(50, seed=9))],
    )
    assert perplexity.total.mean < vocabulary / 2.5


def test_the_model_learns_which_nouns_follow_a_verb(tmp_path: Path):
    run(tmp_path, *WORDS_AND_CHARS, "train.epochs=20", "train.order=sentences", "train.dropout=0", lines=500)
    model = polyseme.load(tmp_path / "model")
    for verb, things in story.VERBS.items():
        best = find_substitutes(model, f"Anna {verb} the [map] .", 3).forward.best
        assert best[0].word in {*things, "old", "very"}
        assert {candidate.word for candidate in best} <= {*things, "old", "very"}


def test_the_same_seed_gives_the_same_weights(tmp_path: Path):
    weights = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(tmp_path, f"train.seed={seed}", "train.epochs=1", out=name)
        tensors = open_pretrained(tmp_path / name).tensors().values()
        weights.append(torch.cat([tensor.flatten() for tensor in tensors]))
    assert torch.equal(weights[0], weights[1])
    assert weights[0].shape != weights[2].shape or not torch.equal(weights[0], weights[2])


def test_a_byte_model_converts_to_hdf5_and_other_models_are_refused(tmp_path: Path):
    run(tmp_path, "model.chars.encoding=bytes", "train.epochs=1")
    polyseme.convert(tmp_path / "model", tmp_path / "theirs", to="hdf5")
    ours, theirs = (polyseme.load(tmp_path / name) for name in ("model", "theirs"))
    sentence = "Clara reads the map ."
    torch.testing.assert_close(*(torch.from_numpy(m.embed(sentence, layer="all")) for m in (ours, theirs)))
    run(tmp_path, "model.recurrent.cell=gru", "train.epochs=1", out="gru")
    with pytest.raises(polyseme.FormatError, match="gru cells"):
        polyseme.convert(tmp_path / "gru", tmp_path / "no", to="hdf5")


def test_fine_tuning_lowers_the_perplexity_of_the_new_text(tmp_path: Path):
    run(tmp_path, "train.epochs=3")
    base = open_pretrained(tmp_path / "model")
    new = tmp_path / "new.txt"
    new.write_text("\n".join(f"{line} indeed" for line in story.sentences(200, seed=4)) + "\n")
    for number, fresh in enumerate((False, True)):
        config = read_pretrain_settings("tiny", [*story.SETTINGS, "train.epochs=3"])
        out = tmp_path / f"tuned{number}"
        result = pretrain([new], out, config, base=base, new_vocabulary=fresh, workers=1)
        assert result.metrics["mean"] < result.before["mean"]
        assert ("indeed" in polyseme.load(out).model.vocab) == fresh


def test_metrics_are_written_as_json_lines(tmp_path: Path):
    run(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()]
    assert {"step", "validation", "end"} == {line["event"] for line in lines}
    assert all(line["tokens"] > 0 for line in lines)
    validations = [line for line in lines if line["event"] == "validation"]
    assert validations[-1]["mean"] < validations[0]["mean"]


def test_a_folder_that_exists_is_not_overwritten(tmp_path: Path):
    run(tmp_path, "train.epochs=1")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        run(tmp_path, "train.epochs=1")
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before


def test_resuming_with_other_settings_or_text_is_refused_with_the_difference(tmp_path: Path):
    run(tmp_path, "train.epochs=1")
    with pytest.raises(ConfigError, match=r"train.rate \(was 0.01, is 0.02\).*`force=True`"):
        run(tmp_path, "train.epochs=1", "train.rate=0.02", resume=True)
    with pytest.raises(ConfigError, match="the text"):
        run(tmp_path, "train.epochs=1", lines=301, resume=True)
    with pytest.raises(UsageError, match="no run to resume"):
        run(tmp_path, out="nowhere", resume=True)


def test_a_diverging_run_stops_with_advice(tmp_path: Path):
    with pytest.raises(DivergedError, match=r"Lower train.rate"):
        run(tmp_path, "train.optimizer=sgd", "train.rate=1e30", "train.clip=1e30", "train.epochs=40")


def test_early_stopping_ends_the_run(tmp_path: Path):
    result = run(tmp_path, "train.epochs=30", "train.evaluations=60", "train.patience=2", "train.rate=0.1")
    assert result.position.tokens < 30 * 1500


@pytest.mark.parametrize("name", list_presets())
def test_every_preset_is_valid(name: str):
    assert read_pretrain_settings(name).train.seed == 1


def test_all_invalid_settings_are_reported_at_once(tmp_path: Path):
    with pytest.raises(ConfigError) as problem:
        read_pretrain_settings("tiny", ["train.sede=7", "model.recurrent.cels=3", "train.dropout=2"])
    message = str(problem.value)
    assert "train.sede is not a setting. Did you mean seed?" in message
    assert "Did you mean cells?" in message
    assert "train.dropout" in message
    with pytest.raises(ConfigError, match="Did you mean novel"):
        read_pretrain_settings("nvoel")


def test_an_invalid_text_creates_no_folder_and_parent_folders_are_created(tmp_path: Path):
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    config = read_pretrain_settings("tiny", [*story.SETTINGS])
    with pytest.raises(polyseme.PolysemeError):
        pretrain([empty], tmp_path / "a" / "b", config, workers=1)
    assert not (tmp_path / "a" / "b").exists()
    run(tmp_path, "train.epochs=1", out="a/b")
    assert (tmp_path / "a" / "b" / "config.json").exists()


def test_a_run_without_held_out_text_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="No text is held out"):
        run(tmp_path, "corpus.valid_share=0")
