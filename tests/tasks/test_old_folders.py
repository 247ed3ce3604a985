"""Task folders of format 1, in which all tasks shared their settings, still open and predict the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import polyseme
import task_files as toys

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOLDERS = FIXTURES / "task-v1"
SAVED = json.loads((FOLDERS / "predictions.json").read_text(encoding="utf-8"))
NAMES = {"answer": ("label", "labels", "tags", "number"), "by_token": ("token_probabilities",)}
ENDINGS = {"classification": "csv", "tagging": "conll", "pairs": "jsonl", "relations": "txt"}


def rename(values: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Rename the keys of a prediction of format 1 to those of today."""
    return {
        next((name for name in NAMES.get(key, ()) if name in new), key): value
        for key, value in values.items()
    }


def rounded(values: Any) -> Any:
    """Round all numbers: machines may differ in the last digits."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, list):
        return [rounded(value) for value in values]
    return round(values, 4) if isinstance(values, float) else values


@pytest.mark.parametrize("name", SAVED)
def test_a_folder_of_format_1_gives_the_same_predictions_and_scores(name: str, tmp_path: Path):
    model = polyseme.load_task(FOLDERS / name, FIXTURES / "native-v1")
    questions = [
        tuple(question) if isinstance(question, list) else question for question in SAVED[name]["questions"]
    ]
    for prediction, saved in zip(model.predict(questions), SAVED[name]["predictions"], strict=True):
        new = prediction.as_dict()
        for span in new.get("spans", ()):
            del span["offsets"]  # format 1 had none
        new.pop("entities", None)  # nor these
        assert rounded(new) == rounded(rename(saved, new))
    files = toys.write(tmp_path)
    scores = model.evaluate(files / f"test.{ENDINGS[model.task.name]}")
    assert scores.metrics == pytest.approx(SAVED[name]["test"])


@pytest.mark.parametrize("name", ["tagging", "number"])
def test_a_folder_of_format_1_is_saved_in_the_new_format(name: str, tmp_path: Path):
    model = polyseme.load_task(FOLDERS / name, FIXTURES / "native-v1")
    model.save(tmp_path / "new")
    values = json.loads((tmp_path / "new" / "task.json").read_text(encoding="utf-8"))
    assert values["polyseme_task"] == 2
    assert "pool" not in values["settings"]["head"]  # a setting of other tasks
    question = SAVED[name]["questions"][0]
    question = tuple(question) if isinstance(question, list) else question
    assert polyseme.load_task(tmp_path / "new").predict(question) == model.predict(question)
