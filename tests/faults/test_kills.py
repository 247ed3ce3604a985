"""A process may be killed at any moment: what it was replacing is the old or the new one, whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import builders
import polyseme
import task_files as toys
import training_story as story
from kill_points import killed_runs
from polyseme.elmo import Elmo
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.tasks.task_model import TaskModel
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
OLD = builders.random_model(builders.small_config(), seed=1)
NEW = builders.random_model(builders.small_config(), seed=2, words=builders.WORDS[::-1])


def words_and_weights(path: Path) -> tuple[str, tuple[str, ...]]:
    model = open_pretrained(path)
    return model.fingerprint(), () if model.vocab is None else tuple(model.vocab.words)


def restore(saved: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, folder)


def check_kills(folder: Path, write: Callable[[], object], read: Callable[[], object]) -> None:
    """Kill `write` at every point: `read` sees the old or the new state, and `write` can be repeated."""
    saved = folder.with_name("saved")
    shutil.copytree(folder, saved)
    old = read()
    seen = []
    for _ in killed_runs(write):
        seen.append(read())
        write()
        restore(saved, folder)
    write()
    new = read()
    assert old != new
    assert seen
    assert all(state in (old, new) for state in seen)
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]  # no leftovers


@pytest.mark.parametrize("to", ["native", "hdf5"])
def test_a_replaced_model_folder(to: str, tmp_path: Path):
    folder = tmp_path / "models"
    save_pretrained(OLD, folder / "m", to)
    check_kills(
        folder,
        lambda: save_pretrained(NEW, folder / "m", to, force=True),
        lambda: words_and_weights(folder / "m"),
    )


def test_replaced_hdf5_files_with_their_options_and_vocabulary(tmp_path: Path):
    folder = tmp_path / "models"
    weights = folder / "m_weights.hdf5"
    save_pretrained(OLD, weights, "hdf5")
    check_kills(
        folder,
        lambda: save_pretrained(NEW, weights, "hdf5", force=True),
        lambda: words_and_weights(weights),
    )


def test_a_replaced_task(tmp_path: Path):
    files, elmo = toys.write(tmp_path), toys.elmo()
    other = tmp_path / "other.csv"
    other.write_text("text,label\n" + "the good day,up\nthe bad day,down\n" * 8, encoding="utf-8")
    first, second = (make_task(elmo, file) for file in (files / "train.csv", other))
    folder = tmp_path / "task"
    first.save(folder)

    def read() -> tuple[tuple[str, ...], list[float]]:
        task = polyseme.load_task(folder)
        weights = task.network.parameters()  # type: ignore[attr-defined]
        return task.labels, [float(values.detach().sum()) for values in weights]

    check_kills(folder, lambda: second.write_into(folder), read)


def make_task(elmo: Elmo, file: Path) -> TaskModel:
    return polyseme.train("classification", elmo, train=file, settings=toys.EPOCH)


def test_a_run_that_was_killed_before_it_began_starts_with_the_same_call_or_with_resume(tmp_path: Path):
    config = read_pretrain_settings("tiny", [*story.SETTINGS, "train.epochs=1"])
    text = story.write(tmp_path / "story.txt", 60)
    out = tmp_path / "model"

    def run(*, resume: bool = False) -> None:
        pretrain([text], out, config, resume=resume, workers=1)

    for point, _ in zip(killed_runs(run), range(12), strict=False):
        has_begun = (out / "run.json").exists()
        if point % 2 and not has_begun:
            run()
        elif out.exists():
            run(resume=True)
        shutil.rmtree(out, ignore_errors=True)
