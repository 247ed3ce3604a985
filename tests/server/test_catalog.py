"""What is served together: tasks use the served model, and those of another one are refused."""

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
    """A model, another one, a task of the first, one that fine-tuned it."""
    place = tmp_path_factory.mktemp("tasks")
    save_pretrained(toys.random_model(toys.small_config()), place / "model")
    save_pretrained(toys.random_model(toys.small_config(), seed=7), place / "other")
    files = toys.write(place)
    for name, more in (("task", []), ("tuned", ["input.tune=full"])):
        polyseme.train(
            "classification",
            place / "model",
            train=files / "train.csv",
            dev=files / "dev.csv",
            out=place / name,
            settings=["train.epochs=1", *more],
        )
    return place


def test_a_task_uses_the_served_model(folder: Path):
    served = open_catalog(folder / "model", [folder / "task"])
    assert served.task(None).source.elmo is served.elmo


def test_a_task_that_fine_tuned_its_model_keeps_it(folder: Path):
    served = open_catalog(folder / "model", [folder / "tuned"])
    assert served.task("tuned").source.elmo is not served.elmo
    assert served.task("tuned").predict("good")


def test_a_task_of_another_model_is_refused(folder: Path):
    with pytest.raises(PolysemeError, match="another ELMo"):
        open_catalog(folder / "other", [folder / "task"])
    task = polyseme.load_task(folder / "task")
    with pytest.raises(PolysemeError, match="another ELMo"):
        open_catalog(folder / "other", [task])
    assert open_catalog(Elmo(task.source.elmo.model), [task]).tasks
