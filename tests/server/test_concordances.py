"""/concordance, /collocates and /passage: the values of the library, and requests that are refused."""

from __future__ import annotations

from pathlib import Path

import httpx
import numpy as np
import pytest

import polyseme
from polyseme.search.index import Index

WORD = "将"


@pytest.fixture(scope="module")
def index(folders: tuple[Path, ...]) -> Index:
    return polyseme.open_index(folders[0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3, "start": 2, "sort": "left", "width": 4},
        {"sort": "right", "collocate": "兵", "window": 2},
        {"sort": "similarity", "usage": 7},
        {"sort": "sense", "max_senses": 2, "groups": True},
        {"documents": "1", "by": "document"},
    ],
)
def test_a_concordance_over_http_is_that_of_the_library(client: httpx.Client, index: Index, options: dict):
    response = client.post("/concordance", json={"word": WORD, "index": "one-index"} | options)
    assert response.status_code == 200, response.text
    values = response.json()
    expected = polyseme.concordance(index, WORD, **options).as_dict()
    for line, expected_line in zip(values["lines"], expected["lines"], strict=True):
        cosines = line.pop("cosine"), expected_line.pop("cosine")
        assert cosines == (None, None) or cosines[0] == pytest.approx(cosines[1], abs=1e-6)
        assert line == expected_line | {"document": Path(expected_line["document"]).name}  # no server path
    assert values["documents"] == expected["documents"]
    assert (values["total"], values["start"]) == (expected["total"], expected["start"])
    assert (values["kind"], values["senses"] is None) == (expected["kind"], expected["senses"] is None)


def test_collocates_over_http_are_those_of_the_library(client: httpx.Client, index: Index):
    body = {"word": WORD, "index": "one-index", "window": 3, "min_count": 1, "all_words": True}
    values = client.post("/collocates", json=body | {"senses": True}).json()
    expected = polyseme.collocates(index, WORD, window=3, min_count=1, all_words=True, senses=True)
    assert [row["word"] for row in values["collocates"]] == [row.word for row in expected]
    np.testing.assert_allclose(
        [row["log_likelihood"] for row in values["collocates"]], [row.log_likelihood for row in expected]
    )
    assert [tuple(row["senses"]) for row in values["collocates"]] == [row.senses for row in expected]
    assert len(values["senses"]) == len(expected[0].senses)
    assert client.post("/collocates", json=body).json()["senses"] is None


def test_the_usages_of_other_routes_lead_to_their_passages(client: httpx.Client, index: Index):
    body = {"word": WORD, "context": "天色将晚。", "index": "one-index", "k": 2}
    for usage in client.post("/nearest", json=body).json()["usages"]:
        passage = client.post("/passage", json={"usage": usage["number"], "sentences": 1}).json()
        text = passage["paragraphs"][passage["paragraph"]]["text"]
        assert text[passage["start"] : passage["stop"]] == usage["word"]
        assert usage["sentence"] in text
        assert passage["line"] == usage["line"]
        assert passage["document"] == "one.txt"
        assert passage["paragraphs"][passage["paragraph"]]["line"] == usage["line"]


@pytest.mark.parametrize(
    ("route", "body", "status", "code"),
    [
        ("/concordance", {"word": "没有的词"}, 404, "word_missing"),
        ("/concordance", {"word": WORD, "collocate": "没有的词"}, 404, "word_missing"),
        ("/concordance", {"word": WORD, "collocate": "孙权", "window": 1}, 422, "no_lines"),
        ("/concordance", {"word": WORD, "documents": "no such title"}, 422, "no_lines"),
        ("/concordance", {"word": WORD, "by": "year"}, 422, "no_lines"),
        ("/concordance", {"word": WORD, "sort": "similarity"}, 422, None),
        ("/concordance", {"word": WORD, "usage": 1}, 422, None),
        ("/concordance", {"word": WORD, "sort": "similarity", "usage": 10**9}, 404, "usage_missing"),
        ("/concordance", {"word": "烧毁", "sort": "sense"}, 422, "too_few_for_senses"),
        ("/concordance", {"word": WORD, "k": 0}, 422, None),
        ("/concordance", {"word": WORD, "width": 10**6}, 422, None),
        ("/concordance", {"word": WORD, "sort": "size"}, 422, None),
        ("/collocates", {"word": "没有的词"}, 404, "word_missing"),
        ("/collocates", {"word": "烧毁", "senses": True}, 422, "too_few_for_senses"),
        ("/collocates", {"word": WORD, "window": 0}, 422, None),
        ("/passage", {"usage": 10**9}, 404, "usage_missing"),
        ("/passage", {"usage": -1}, 422, None),
        ("/passage", {"usage": 0, "index": "gone"}, 404, "index_missing"),
    ],
)
def test_requests_that_cannot_be_answered_are_refused(
    client: httpx.Client, route: str, body: dict, status: int, code: str | None
):
    response = client.post(route, json=body)
    assert (response.status_code, response.json().get("code")) == (status, code), response.text
