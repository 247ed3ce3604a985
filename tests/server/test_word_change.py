"""How words changed, asked of the server: the library's own figures, in time, kept for the next one."""

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


def text(turn: int) -> str:
    """150 usages of each word and more, in sentences that differ between the texts."""
    pairs = itertools.product(range(150), WORDS)
    return "".join(FRAMES[(n * (turn + 1) + len(w) * turn) % 4].format(w, w) + "\n" for n, w in pairs)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Index, Index]:
    place = tmp_path_factory.mktemp("change")
    found = []
    for turn in (0, 1):
        (place / f"{turn}.txt").write_text(text(turn), encoding="utf-8")
        found.append(api.index(ELMO, place / f"{turn}.txt", place / f"index-{turn}"))
    return found[0], found[1]


@pytest.mark.parametrize("k", [1, 4, 1000])
def test_frequent_words_have_the_order_and_the_figures_of_the_library(two: tuple[Index, Index], k: int):
    search = ChangeSearch(IndexPairCache().get(*two), 1000.0)
    found = [change.as_dict() for change in search.find_most_changed(k)]
    assert found == [change.as_dict() for change in api.change(*two)[:k]]
    assert search.complete


def test_the_route_tells_what_the_library_tells(two: tuple[Index, Index]):
    app, state = create_app(lambda: Catalog("toy", None, ELMO, {"one": two[0], "other": two[1]}))
    state.load()

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x", timeout=60) as client:
            return await client.post("/change", json={"first": "one", "second": "other", "k": 4})

    found = asyncio.run(ask()).json()
    wanted = [json.loads(json.dumps(change.as_dict())) for change in api.change(*two)[:4]]
    named = [change.pop("neighbours") for change in found["changes"]]
    assert all(len(senses) == len(change["shares"]) for senses, change in zip(named, wanted, strict=True))
    assert found == {"changes": wanted, "complete": True}
    assert len(wanted) == 4


def test_words_that_all_moved_alike_keep_the_order_of_the_library(two: tuple[Index, Index]):
    same = two[0], two[0]
    found = [change.word for change in ChangeSearch(IndexPairCache().get(*same), 1000.0).find_most_changed(3)]
    assert found == [change.word for change in api.change(*same)[:3]]


def test_punctuation_is_not_ranked_but_told_where_it_is_named(two: tuple[Index, Index]):
    search = ChangeSearch(IndexPairCache().get(*two), 1000.0)
    words = {change.word for change in search.find_most_changed(1000)}
    assert {"3", "bank"} <= words
    assert not {",", "!"} & words
    assert search.compare_words([","])[0].word == ","


def test_what_was_found_is_kept_and_the_next_request_goes_on(two: tuple[Index, Index], monkeypatch):
    pairs = IndexPairCache()
    short = ChangeSearch(pairs.get(*two), -1.0)  # its time is over
    assert len(short.find_most_changed(3)) <= 1
    assert not short.complete
    wanted = ChangeSearch(pairs.get(*two), 1000.0).find_most_changed(3)
    monkeypatch.setattr(word_change, "find_changes", None)
    monkeypatch.setattr(word_change, "measure_prototype_distance", None)
    again = ChangeSearch(pairs.get(*two), -1.0)
    assert again.find_most_changed(3) == wanted
    assert again.complete


def test_what_is_kept_is_bounded(two: tuple[Index, Index]):
    pairs, (one, other) = IndexPairCache(max_pairs=1, max_changes=2), two
    pair = pairs.get(one, other)
    ChangeSearch(pair, 1000.0).compare_words(WORDS)
    assert [word for word in WORDS if pair.has_change(word)] == list(WORDS[-2:])
    pairs.get(other, one)
    assert pairs.get(one, other) is not pair
