"""What a server opens: tasks share its model, and tasks of another model are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import PolysemeError
from polyseme.formats.models.save import save_pretrained
from polyseme.server.catalog import open_catalog


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, a task of the first, and a task that fine-tuned the first."""
    root = tmp_path_factory.mktemp("tasks")
    save_pretrained(toys.random_model(toys.small_config()), root / "model")
    save_pretrained(toys.random_model(toys.small_config(), seed=7), root / "other")
    files = toys.write(root)
    for name, settings in (("task", []), ("tuned", ["input.tune=full"])):
        polyseme.train(
            "classification",
            root / "model",
            train=files / "train.csv",
            dev=files / "dev.csv",
            out=root / name,
            settings=["train.epochs=1", *settings],
        )
    return root


def test_a_task_uses_the_served_model(folder: Path):
    catalog = open_catalog(folder / "model", [folder / "task"])
    assert catalog.task(None).source.elmo is catalog.elmo


def test_a_task_that_fine_tuned_its_model_keeps_it(folder: Path):
    catalog = open_catalog(folder / "model", [folder / "tuned"])
    assert catalog.task("tuned").source.elmo is not catalog.elmo
    assert catalog.task("tuned").predict("good")


def test_a_task_of_another_model_is_refused(folder: Path):
    with pytest.raises(PolysemeError, match="another ELMo"):
        open_catalog(folder / "other", [folder / "task"])
    task = polyseme.load_task(folder / "task")
    with pytest.raises(PolysemeError, match="another ELMo"):
        open_catalog(folder / "other", [task])
    assert open_catalog(Elmo(task.source.elmo.model), [task]).tasks
