"""The change of words on the server: results of the library, within a time limit, cached."""

from __future__ import annotations

import asyncio
import itertools
import json

import httpx
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.search.index import Index
from polyseme.server import word_change
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog
from polyseme.server.word_change import ChangeSearch, IndexPairCache

ELMO = Elmo(random_model(small_config(), softmax=True))
FRAMES = ("the {} runs , and", "a {} of stone !", "see the {} , 3 days", "{} , {} and water !")
WORDS = ("bank", "river", "dog", "money", "tree", "king")


def make_text(number: int) -> str:
    """At least 150 usages of each word, in sentences that differ between text 0 and text 1."""
    pairs = itertools.product(range(150), WORDS)
    return "".join(FRAMES[(n * (number + 1) + len(w) * number) % 4].format(w, w) + "\n" for n, w in pairs)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Index]:
    folder = tmp_path_factory.mktemp("change")

    def build(number: int) -> Index:
        (folder / f"{number}.txt").write_text(make_text(number), encoding="utf-8")
        return api.index(ELMO, folder / f"{number}.txt", folder / f"index-{number}")

    return build(0), build(1)


@pytest.mark.parametrize("k", [1, 4, 1000])
def test_frequent_words_have_the_order_and_values_of_the_library(indexes: tuple[Index, Index], k: int):
    search = ChangeSearch(IndexPairCache().get(*indexes), 1000.0)
    changes = [change.as_dict() for change in search.find_most_changed(k)]
    assert changes == [change.as_dict() for change in api.change(*indexes)[:k]]
    assert search.complete


def test_the_route_returns_the_changes_of_the_library(indexes: tuple[Index, Index]):
    app, state = create_app(lambda: Catalog("toy", None, ELMO, {"one": indexes[0], "other": indexes[1]}))
    state.load()

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x", timeout=60) as client:
            return await client.post("/change", json={"first": "one", "second": "other", "k": 4})

    response = asyncio.run(send()).json()
    expected = [json.loads(json.dumps(change.as_dict())) for change in api.change(*indexes)[:4]]
    neighbours = [change.pop("neighbours") for change in response["changes"]]
    assert all(
        len(senses) == len(change["shares"]) for senses, change in zip(neighbours, expected, strict=True)
    )
    assert response == {"changes": expected, "complete": True}
    assert len(expected) == 4


def test_words_with_equal_changes_keep_the_order_of_the_library(indexes: tuple[Index, Index]):
    same = indexes[0], indexes[0]
    search = ChangeSearch(IndexPairCache().get(*same), 1000.0)
    words = [change.word for change in search.find_most_changed(3)]
    assert words == [change.word for change in api.change(*same)[:3]]


def test_punctuation_is_not_ranked_but_can_be_compared_by_name(indexes: tuple[Index, Index]):
    search = ChangeSearch(IndexPairCache().get(*indexes), 1000.0)
    words = {change.word for change in search.find_most_changed(1000)}
    assert {"3", "bank"} <= words
    assert not {",", "!"} & words
    assert search.compare_words([","])[0].word == ","


def test_the_next_request_continues_with_cached_results(indexes: tuple[Index, Index], monkeypatch):
    pairs = IndexPairCache()
    interrupted = ChangeSearch(pairs.get(*indexes), -1.0)  # its time is over
    assert len(interrupted.find_most_changed(3)) <= 1
    assert not interrupted.complete
    expected = ChangeSearch(pairs.get(*indexes), 1000.0).find_most_changed(3)
    monkeypatch.setattr(word_change, "find_changes", None)
    monkeypatch.setattr(word_change, "measure_prototype_distance", None)
    again = ChangeSearch(pairs.get(*indexes), -1.0)
    assert again.find_most_changed(3) == expected
    assert again.complete


def test_the_cache_is_bounded(indexes: tuple[Index, Index]):
    pairs, (first, second) = IndexPairCache(max_pairs=1, max_changes=2), indexes
    pair = pairs.get(first, second)
    ChangeSearch(pair, 1000.0).compare_words(WORDS)
    assert [word for word in WORDS if pair.has_change(word)] == list(WORDS[-2:])
    pairs.get(second, first)
    assert pairs.get(first, second) is not pair
