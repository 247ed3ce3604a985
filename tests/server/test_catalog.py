"""What a server opens: which index and task belongs to which of its models, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyseme
import task_files as toys
from polyseme.elmo import Elmo
from polyseme.errors import PolysemeError, UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.server.served_models import open_models

TEXT = "the bank failed .\nhe sat on the river bank .\n" * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with an index each, a task of the first, and a task that fine-tuned the first."""
    root = tmp_path_factory.mktemp("tasks")
    save_pretrained(toys.random_model(toys.small_config()), root / "model")
    save_pretrained(toys.random_model(toys.small_config(), seed=7), root / "other")
    (root / "text.txt").write_text(TEXT, encoding="utf-8")
    for name in ("model", "other"):
        polyseme.index(root / name, root / "text.txt", root / f"{name}-index")
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
    catalog = open_models(folder / "model", [folder / "task"]).first
    assert catalog.task(None).source.elmo is catalog.elmo


def test_a_task_that_fine_tuned_its_model_keeps_it(folder: Path):
    catalog = open_models(folder / "model", [folder / "tuned"]).first
    assert catalog.task("tuned").source.elmo is not catalog.elmo
    assert catalog.task("tuned").predict("good")


def test_a_task_of_another_model_is_refused(folder: Path):
    with pytest.raises(PolysemeError, match="another ELMo") as problem:
        open_models(folder / "other", [folder / "task"])
    assert f"`polyseme.serve({folder / 'other'}, " in str(problem.value)
    task = polyseme.load_task(folder / "task")
    with pytest.raises(PolysemeError, match="another ELMo"):
        open_models(folder / "other", [task])
    assert open_models(Elmo(task.source.elmo.model), [task]).first.tasks


def test_an_index_of_another_model_is_refused_and_the_error_serves_both(folder: Path):
    index = folder / "model-index"
    with pytest.raises(UsageError, match="another model than") as problem:
        open_models(folder / "other", [index])
    assert f"Serve both: `polyseme.serve({folder / 'other'}, {folder / 'model'}, {index})`" in str(
        problem.value
    )
    assert open_models(folder / "other", [folder / "model", index]).catalogs["model"].indexes


def test_each_index_and_task_finds_its_model_in_any_order(folder: Path):
    others = [folder / name for name in ("other-index", "task", "model-index", "other")]
    models = open_models(folder / "model", others)
    assert list(models.catalogs) == ["model", "other"]
    assert {name: list(catalog.indexes) for name, catalog in models.catalogs.items()} == {
        "model": ["model-index"],
        "other": ["other-index"],
    }
    assert list(models.first.tasks) == ["task"]
    for catalog in models.catalogs.values():
        assert all(index.elmo is catalog.elmo for index in catalog.indexes.values())


def test_open_models_indexes_and_tasks_are_served_as_they_are(folder: Path):
    elmo, other = polyseme.load(folder / "model"), polyseme.load(folder / "other")
    index, task = polyseme.open_index(folder / "other-index", other), polyseme.load_task(folder / "task")
    models = open_models(elmo, [index, other, task])
    assert models.catalogs["model"].elmo is elmo
    assert models.catalogs["other"].index("other-index") is index
    assert models.first.task("task1") is task


def test_names_are_unique_in_a_server(folder: Path, tmp_path: Path):
    for name in ("model", "model-index"):
        (tmp_path / name).symlink_to(folder / name.replace("model", "other"))
    models = open_models(
        folder / "model", [tmp_path / "model", folder / "model-index", tmp_path / "model-index"]
    )
    assert list(models.catalogs) == ["model", "model-2"]
    assert [list(catalog.indexes) for catalog in models.catalogs.values()] == [
        ["model-index"],
        ["model-index-2"],
    ]


@pytest.mark.parametrize("name", ["nothing", "train.csv"])
def test_what_is_neither_model_index_nor_task_is_refused_by_name(folder: Path, name: str):
    with pytest.raises(PolysemeError, match=name):
        open_models(folder / "model", [folder / name])
