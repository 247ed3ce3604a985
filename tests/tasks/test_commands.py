"""`polyseme train`, `predict` and `evaluate` for tasks: checks, errors, moved files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import task_files as toys
from polyseme.formats.models.save import save_pretrained
from programs import run_program as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of all tasks, a model and static vectors."""
    path = toys.write(tmp_path_factory.mktemp("files"))
    save_pretrained(toys.elmo().model, path / "model")
    (path / "v.txt").write_text("good 1 0\nbad 0 1\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def run_refused(*arguments: str) -> str:
    """Run a command that fails, and return its error line."""
    result = run(*arguments)
    assert result.code == 2, result.err
    (line,) = result.err.strip().splitlines()
    return line


def test_evaluate_and_predict_take_the_new_path_of_a_moved_model(folder: Path, tmp_path: Path):
    model, task = tmp_path / "elmo", tmp_path / "task"
    shutil.copytree(folder / "model", model)
    settings = ("--set", "train.epochs=1", "--set", "input.static=v.txt")
    trained = run(
        "train", "classification", model, "--train", "train.csv", "--out", task, "--no-copy", *settings
    )
    assert trained.code == 0, trained.err
    moved, vectors = model.rename(tmp_path / "moved"), shutil.copy("v.txt", tmp_path / "w.txt")
    assert "its ELMo is missing" in run_refused("evaluate", str(task), "test.csv")
    result = run("evaluate", task, "test.csv", "--elmo", moved, "--static", vectors)
    assert result.code == 0, result.err
    assert result.out.startswith("accuracy\t")
    assert run("predict", task, "test.csv", "--elmo", moved).code == 0
    assert "--stateful is for a language model" in run_refused(
        "evaluate", str(task), "test.csv", "--stateful"
    )
    assert "--elmo is for a task folder" in run_refused(
        "evaluate", str(moved), "test.csv", "--elmo", str(moved)
    )


def test_a_task_trained_on_a_gpu_predicts_from_standard_input_without_one(folder: Path, tmp_path: Path):
    task = tmp_path / "task"
    result = run(
        "train", "tagging", "model", "--train", "train.conll", "--out", task, "--set", "train.epochs=1"
    )
    assert result.code == 0, result.err
    values = (task / "task.json").read_text(encoding="utf-8")
    (task / "task.json").write_text(values.replace('"device": "auto"', '"device": "cuda"'), encoding="utf-8")
    result = run("predict", task, "-", "--format", "columns", stdin=b"good O\nfilm O\n")
    assert result.code == 0, result.err
    assert [line.split("\t")[0] for line in result.out.split("\n")[:2]] == ["good", "film"]


def test_truncated_texts_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "a.csv").write_text("label,text\n1,a b c d\n0,a\n1,b\n0,b\n", encoding="utf-8")
    options = ("--train", tmp_path / "a.csv", "--set", "data.max_tokens=3")
    assert run("train", "classification", "model", "--dry-run", *options).code == 0
    assert "1 of 4 texts are longer than data.max_tokens (3)" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("classification", "--train", "bad.csv"), "bad.csv:3: 3 columns, expected 2"),
        (("classification", "--train", "train.csv", "--test", "new.csv"), "new.csv:2: the label 'new'"),
        (("classification", "--train", "train.csv", "--set", "input.static=none.txt"), "none.txt"),
        (("classification", "--train", "train.csv", "--set", "input.static=train.csv"), "train.csv"),
        (("classification", "--train", "train.csv", "--set", "input.layers=9"), "has layers 0 to 2"),
        (("classification", "--train", "train.csv", "--curve", "200%"), "share of the curve is 2"),
        (("probes", "--train", "train.conll", "--set", "data.scheme=iob2"), "data.scheme is fixed in probes"),
        (("probes", "--train", "train.conll", "--set", "train.epoch=2"), "epochs"),
    ],
)
def test_a_dry_run_reports_the_errors_of_training(folder: Path, arguments: tuple[str, ...], message: str):
    (folder / "bad.csv").write_text("label,text\n1,a\n1,b,c\n", encoding="utf-8")
    (folder / "new.csv").write_text("label,text\nnew,a\n", encoding="utf-8")
    task, *options = arguments
    assert message in run_refused("train", task, "model", "--dry-run", *options)


@pytest.mark.parametrize(
    "option",
    ["--compare", "--resume", "--no-copy", "--without-elmo", "--runs=2", "--curve=10%", "--vectors=v"],
)
def test_options_that_probes_do_not_have_are_refused(option: str):
    line = run_refused("train", "probes", "model", "--train", "train.conll", "--out", "x", option)
    assert f"train probes has no {option.partition('=')[0]}" in line


def test_a_dry_run_counts_the_spans_of_each_type(tmp_path: Path):
    (tmp_path / "a.conll").write_text("a B-PER\nb I-PER\nc B-LOC\n\nd B-PER\ne O\n", encoding="utf-8")
    path = tmp_path / "a.conll"
    result = run("train", "tagging", "model", "--train", path, "--dev", path, "--dry-run")
    assert result.code == 0, result.err
    assert "train: 2 examples, 5 tokens; PER 2, LOC 1" in result.out
    assert "test" not in result.out  # there is no test file


def test_a_dry_run_of_probes_counts_their_tags():
    result = run("train", "probes", "model", "--train", "train.conll", "--dry-run")
    assert result.code == 0, result.err
    assert "B-GOOD" in result.out  # tags as in the file, not spans
