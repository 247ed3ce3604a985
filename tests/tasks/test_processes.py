"""Task models in other processes: pickles, copies, joblib, spawned and forked workers, scikit-learn."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import pytest

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.tasks.task_model import TaskModel

SECONDS = 180  # time limit of a program
QUESTIONS = {
    "classification": ("csv", "the film is good"),
    "tagging": ("conll", "the film is good"),
    "pairs": ("jsonl", ("the film is good", "a great story")),
    "relations": ("txt", "the <e1>good</e1> film is <e2>bad</e2>."),
}
SETUP = """
import multiprocessing, os, sys
import torch
torch.set_num_threads(2)
import polyseme

TEXTS = ["the film is good", "a sad story"] * 20

def predict(model):
    return [prediction.label for prediction in model.predict(TEXTS)]
"""


def train(task: str, elmo: Any, files: Path, *settings: str, **named: Any) -> TaskModel:
    path = files / f"train.{QUESTIONS[task][0]}"
    return polyseme.train(task, elmo, train=path, settings=(*toys.EPOCH, *settings), **named)


@pytest.mark.parametrize("task", QUESTIONS)
def test_a_task_model_can_be_copied_and_pickled(task: str, files: Path, elmo: Elmo, tmp_path: Path):
    model, question = train(task, elmo, files), QUESTIONS[task][1]
    expected = model.predict(question)
    joblib.dump(model, tmp_path / "model.joblib")
    for copied in (
        pickle.loads(pickle.dumps(model)),
        copy.copy(model),
        copy.deepcopy(model),
        joblib.load(tmp_path / "model.joblib"),
    ):
        assert copied.predict(question) == expected
        assert copied.settings == model.settings


@pytest.mark.parametrize("setting", ["input.tune=full", "input.elmo=none", "input.static"])
def test_a_pickle_contains_every_input(setting: str, files: Path, elmo: Elmo, tmp_path: Path):
    if setting == "input.static":
        (tmp_path / "v.txt").write_text("good 1 0\nbad 0 1\n", encoding="utf-8")
        setting = f"input.static={tmp_path / 'v.txt'}"
    model = train("classification", elmo, files, setting)
    unpickled = pickle.loads(pickle.dumps(model))
    assert unpickled.predict("a good film") == model.predict("a good film")
    unpickled.save(tmp_path / "task")
    assert polyseme.load_task(tmp_path / "task").predict("a good film") == model.predict("a good film")


def test_the_pickle_of_a_loaded_task_contains_the_path_of_its_elmo(files: Path, elmo: Elmo, tmp_path: Path):
    train("classification", elmo, files, out=tmp_path / "task")
    model = polyseme.load_task(tmp_path / "task")
    pickled = pickle.dumps(model)
    assert str(tmp_path / "task" / "elmo").encode() in pickled
    unpickled = pickle.loads(pickled)
    assert unpickled.predict("a good film") == model.predict("a good film")
    unpickled.save(tmp_path / "again")
    assert polyseme.load_task(tmp_path / "again").predict("good") == model.predict("good")


def run(code: str, *arguments: str) -> str:
    """Run a program that starts with SETUP, and return its output."""
    command = [sys.executable, "-W", "ignore", "-c", SETUP + code, *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


@pytest.fixture(scope="module")
def folder(files: Path, elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A task folder."""
    path = tmp_path_factory.mktemp("tasks") / "task"
    train("classification", elmo, files, out=path)
    return str(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_predicts(folder: str):
    code = """
model = polyseme.load_task(sys.argv[1])
expected = predict(model)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(predict, [model, model]) == [expected, expected])
"""
    assert run(code, folder) == "True"


def test_a_grid_search_trains_task_models_in_two_processes(folder: str):
    code = """
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV

class TextClassifier(ClassifierMixin, BaseEstimator):
    def __init__(self, elmo=None, size=8):
        self.elmo, self.size = elmo, size

    def fit(self, texts, labels):
        settings = ["train.epochs=2", f"encoder.size={self.size}", "input.words=8"]
        rows = list(zip(texts, labels))
        self.classes_ = sorted(set(labels))
        self.model_ = polyseme.train("classification", self.elmo, train=rows, dev=rows, settings=settings)
        return self

    def predict(self, texts):
        return [prediction.label for prediction in self.model_.predict(texts)]

elmo = polyseme.load(sys.argv[1] + "/elmo")
labels = ["pos", "neg"] * 20
search = GridSearchCV(TextClassifier(elmo), {"size": [4, 8]}, cv=2, n_jobs=2, error_score="raise")
search.fit(TEXTS, labels)
print(search.best_estimator_.model_.labels)
"""
    assert run(code, folder) == "('neg', 'pos')"


def test_spawned_workers_predict(folder: str, tmp_path: Path):
    program = tmp_path / "program.py"
    program.write_text(
        SETUP
        + """
if __name__ == "__main__":
    model = polyseme.load_task(sys.argv[1])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(predict, [model]) == [predict(model)])
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-W", "ignore", str(program), folder]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert (completed.returncode, completed.stdout.strip()) == (0, "True"), completed.stderr


def test_training_with_out_hashes_the_model_once(
    files: Path, elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save_pretrained(elmo.model, tmp_path / "model")
    hashed: list[object] = []
    tensors = Pretrained.tensors
    monkeypatch.setattr(Pretrained, "tensors", lambda self: hashed.append(self) or tensors(self))
    loaded = polyseme.load(tmp_path / "model")
    loaded.model.fingerprint()
    for_one_fingerprint = len(hashed)
    hashed.clear()
    train("classification", str(tmp_path / "model"), files, out=tmp_path / "task", copy=False)
    assert len(hashed) <= for_one_fingerprint
