"""The folder of a run is compared before resuming, cleaned after a kill, and replaced only with `force`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import training_story as story
from polyseme.errors import ConfigError, PolysemeError, UsageError
from polyseme.text.corpus.prepared import prepare_corpus
from polyseme.training.pretrain import make_corpus_spec, pretrain
from polyseme.training.settings import read_pretrain_settings

CONFIG = read_pretrain_settings("tiny", [*story.SETTINGS, "train.epochs=1", "train.save_seconds=0.001"])


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder of a finished run over story.txt."""
    pretrain([story.write(tmp_path / "story.txt", 100)], tmp_path / "model", CONFIG, workers=1)
    return tmp_path / "model"


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_resuming_with_another_text_is_refused_and_overwrites_nothing(out: Path):
    before = content(out)
    other_text = story.write(out.parent / "other.txt", 120, seed=1)
    with pytest.raises(
        ConfigError, match=r"the text \(other.txt is new or changed; the old story.txt is missing"
    ):
        pretrain([other_text], out, CONFIG, resume=True, workers=1)
    with pytest.raises(ConfigError, match=r"differs in the held-out text \(other.txt is new"):
        pretrain([out.parent / "story.txt"], out, CONFIG, valid=[other_text], resume=True, workers=1)
    assert content(out) == before


def test_a_run_can_be_resumed_after_its_text_was_renamed(out: Path):
    moved = (out.parent / "story.txt").rename(out.parent / "tale.txt")
    assert pretrain([moved], out, CONFIG, resume=True, workers=1).position.step > 0


def test_settings_that_change_nothing_in_the_result_may_differ_when_a_run_is_resumed(out: Path):
    settings = [*story.SETTINGS, "train.epochs=1", "train.save_seconds=77"]
    config = read_pretrain_settings("tiny", settings)
    assert pretrain([out.parent / "story.txt"], out, config, resume=True, workers=1).position.step > 0
    other = read_pretrain_settings("tiny", [*settings, "train.rate=0.0123"])
    with pytest.raises(ConfigError, match=r"train\.rate"):
        pretrain([out.parent / "story.txt"], out, other, resume=True, workers=1)


def test_a_run_of_a_version_without_a_setting_can_be_resumed(out: Path):
    record = out / "run.json"
    values = json.loads(record.read_text(encoding="utf-8"))
    del values["config"]["train"]["plateau"]
    record.write_text(json.dumps(values), encoding="utf-8")
    assert pretrain([out.parent / "story.txt"], out, CONFIG, resume=True, workers=1).position.step > 0


def test_force_resumes_with_another_text(out: Path):
    other_text = story.write(out.parent / "other.txt", 120, seed=1)
    assert pretrain([other_text], out, CONFIG, resume=True, force=True, workers=1).report.sentences > 100
    pretrain([other_text], out, CONFIG, resume=True, workers=1)  # now this is the text of the run


def test_an_invalid_text_does_not_replace_the_old_run(out: Path):
    before = content(out)
    empty = out.parent / "empty.txt"
    empty.write_text("")
    with pytest.raises(PolysemeError):
        pretrain([empty], out, CONFIG, force=True, workers=1)
    assert content(out) == before


def test_a_restarted_process_does_not_overwrite_another_run(out: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    before = content(out)
    other_text = story.write(out.parent / "other.txt", 120, seed=1)
    with pytest.raises(UsageError, match="exists already"):
        pretrain([other_text], out, CONFIG, workers=1)
    assert content(out) == before
    pretrain([out.parent / "story.txt"], out, CONFIG, workers=1)  # its own run continues without `resume`


def test_a_folder_with_a_prepared_corpus_only_is_used(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    prepare_corpus([text], tmp_path / "model" / "corpus", make_corpus_spec(CONFIG), workers=1)
    before = (tmp_path / "model" / "corpus" / "meta.json").stat().st_mtime_ns
    pretrain([text], tmp_path / "model", CONFIG, workers=1)
    assert (tmp_path / "model" / "corpus" / "meta.json").stat().st_mtime_ns == before


def test_only_the_temporary_folders_of_killed_runs_are_removed(out: Path):
    leftovers = [".corpus-abcd_123", ".corpus-abcd_123-old", ".model-qwertz12"]
    leftovers += ["checkpoints/.step-000000003-abcdefgh", "checkpoints/.best-abcdefgh-old"]
    other_folders = [
        ".git",
        ".corpus-notes",
        "corpus-abcd_123",
        ".other-abcd_123",
        "checkpoints/.step-000000003-x",
    ]
    for name in [*leftovers, *other_folders]:
        (out / name).mkdir()
        (out / name / "file").write_text("x")
    pretrain([out.parent / "story.txt"], out, CONFIG, resume=True, workers=1)
    assert not [name for name in leftovers if (out / name).exists()]
    assert all((out / name / "file").exists() for name in other_folders)


def test_a_checkpoint_that_was_being_replaced_during_a_kill_is_restored(out: Path):
    last = max((out / "checkpoints").glob("step-*"))
    last.rename(last.with_name(f".{last.name}-abcdefgh-old"))
    last.with_name(f".{last.name}-abcdefgh").mkdir()
    result = pretrain([out.parent / "story.txt"], out, CONFIG, resume=True, workers=1)
    assert f"step-{result.position.step:09d}" == last.name
    assert last.exists()
    assert not list((out / "checkpoints").glob(".*"))


def test_the_run_records_its_number_of_processes(out: Path):
    assert json.loads((out / "run.json").read_text())["processes"] == 1


def test_a_damaged_record_is_reported_and_can_be_replaced(out: Path):
    (out / "run.json").write_text("{")
    with pytest.raises(
        PolysemeError, match=r"run.json: not the record of a run .* Start again with `force=True`"
    ):
        pretrain([out.parent / "story.txt"], out, CONFIG, resume=True, workers=1)
    pretrain([out.parent / "story.txt"], out, CONFIG, force=True, workers=1)
