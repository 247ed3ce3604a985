"""/evaluate and /disambiguate: the values of the library, limits, and rows that are no examples."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

import polyseme
from polyseme.errors import DataError, UsageError

TEXTS = ["曹操大怒。玄德大喜。", "天色将晚，\n人马困乏。"]
REVIEWS = Path(__file__).parents[2] / "examples" / "data" / "reviews.zh.csv"
SENSES = [
    ("将", "玄德拜关羽为[将]。", "general"),
    ("将", "曹操拜张辽为[将]。", "general"),
    ("将", "天色[将]晚。", "soon"),
    ("将", "天色[将]明。", "soon"),
]
USAGES = [("将", "孔明拜赵云为[将]。"), ("将", "日色[将]晚。", "soon"), ("马", "[马]鸣。", None)]
Rows = list[Any]


def read_reviews() -> list[list[str]]:
    with REVIEWS.open(encoding="utf-8", newline="") as file:
        return [[row["text"], row["label"]] for row in csv.DictReader(file)]


def as_objects(rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(("word", "sentence", "sense"), row, strict=False)) for row in rows]


def test_the_perplexity_is_that_of_a_file_with_the_same_lines(client: httpx.Client, tmp_path: Path):
    (tmp_path / "text.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    expected = polyseme.evaluate("zh-classic", tmp_path / "text.txt").total
    values = client.post("/evaluate", json={"texts": TEXTS}).raise_for_status().json()
    assert values["words"] == expected.words
    for name, perplexity in expected.all.perplexities.items():
        assert values["perplexity"][name] == pytest.approx(perplexity, rel=1e-5)
    in_memory = polyseme.evaluate("zh-classic", TEXTS).total
    assert in_memory.mean == pytest.approx(expected.mean, rel=1e-6)


def test_the_scores_of_a_task_are_those_of_the_library(client: httpx.Client, folders: tuple[Path, ...]):
    expected = polyseme.evaluate(folders[2], REVIEWS).as_dict()
    for rows in (read_reviews(), [{"text": text, "label": label} for text, label in read_reviews()]):
        values = client.post("/evaluate", json={"examples": rows, "task": "reviews"}).json()
        assert values["metrics"] == pytest.approx(expected["metrics"])
        assert values["confusion"] == expected["confusion"]


def test_senses_are_those_of_the_library(client: httpx.Client):
    scores, senses = polyseme.disambiguate("zh-classic", SENSES, USAGES)
    body = {"train": as_objects(SENSES), "test": as_objects(USAGES)}
    values = client.post("/disambiguate", json=body).raise_for_status().json()
    assert values["senses"] == senses == ["general", "soon", None]
    assert scores is not None
    assert values["scores"]["accuracy"] == pytest.approx(scores.accuracy)
    unlabelled = client.post("/disambiguate", json=body | {"test": as_objects(USAGES[:1])}).json()
    assert unlabelled == {"senses": ["general"], "scores": None}


def test_rows_in_memory_are_read_as_lines_of_a_file(tmp_path: Path):
    (tmp_path / "train.tsv").write_text("\n".join(map("\t".join, SENSES)), encoding="utf-8")
    rows, lines = (
        polyseme.disambiguate("zh-classic", train, SENSES) for train in (SENSES, tmp_path / "train.tsv")
    )
    assert rows == lines
    wrong: Rows = [SENSES[0], ("将", 7)]
    with pytest.raises(UsageError, match="test:2: expected a tuple"):
        polyseme.disambiguate("zh-classic", SENSES, wrong)
    with pytest.raises(DataError, match="train:1: 1 columns"):
        polyseme.disambiguate("zh-classic", [("将",)], SENSES)
    numbers: Rows = [7]
    with pytest.raises(UsageError, match="text:1 is of type int"):
        polyseme.evaluate("zh-classic", numbers)
    with pytest.raises(DataError, match="no words"):
        polyseme.evaluate("zh-classic", ["", " "])


@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("/evaluate", {}, 422),
        ("/evaluate", {"texts": TEXTS, "examples": [["a", "好评"]]}, 422),
        ("/evaluate", {"texts": TEXTS, "task": "reviews"}, 422),
        ("/evaluate", {"texts": ["", " "]}, 422),
        ("/evaluate", {"texts": ["将 " * 2500]}, 413),
        ("/evaluate", {"texts": ["a"] * 2049}, 413),
        ("/evaluate", {"texts": ["曹操大怒。" * 300] * 80}, 413),
        ("/evaluate", {"examples": [["a", "好评"]] * 2049}, 413),
        ("/evaluate", {"examples": [["a", "none of its labels"]]}, 422),
        ("/evaluate", {"examples": [["a"]], "task": "gone"}, 404),
        ("/disambiguate", {"train": as_objects(SENSES), "test": [{"word": "将", "sentence": "无"}]}, 422),
        ("/disambiguate", {"train": as_objects(USAGES[:1]), "test": as_objects(SENSES)}, 422),
        ("/disambiguate", {"train": as_objects(SENSES), "test": as_objects(SENSES), "layer": 9}, 422),
        ("/disambiguate", {"train": as_objects(SENSES) * 400, "test": as_objects(SENSES) * 200}, 413),
        ("/disambiguate", {"train": as_objects(SENSES), "test": [{"word": "将", "text": "[将]"}]}, 422),
    ],
)
def test_what_is_wrong_or_too_much_is_refused(client: httpx.Client, route: str, body: dict, status: int):
    response = client.post(route, json=body)
    assert response.status_code == status, response.text


def test_half_a_character_in_a_row_is_refused(client: httpx.Client):
    body = b'{"examples": [[{"a": ["\\ud83d"]}, "b"]]}'
    response = client.post("/evaluate", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert "surrogate" in response.json()["error"]


def test_rows_of_any_json_are_scored_or_refused(client: httpx.Client):
    draw, statuses = random.Random(0), set()
    leaves = ["好", "好评", "", None, True, 7, -1e300, [], {}, [["a"]], {"text": ["a"]}, "text", "label"]

    def invent(depth: int) -> Any:
        if depth and draw.random() < 0.6:
            values = [invent(depth - 1) for _ in range(draw.randint(0, 3))]
            names = ["text", "label", "tokens", "7"]
            return values if draw.random() < 0.5 else dict(zip(names, values, strict=False))
        return draw.choice(leaves)

    for _ in range(150):
        row = invent(2)
        rows = [row if isinstance(row, list | dict) else [row, "好评"] for _ in range(draw.randint(1, 3))]
        response = client.post("/evaluate", json={"examples": rows})
        statuses.add(response.status_code)
        assert response.status_code in (200, 422), (rows, response.text)
    assert statuses == {200, 422}
