"""The search for changed words: the results of comparing all, within a time limit, continued later."""

from __future__ import annotations

import asyncio
import itertools
import json

import httpx
import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import UnknownWordError, UsageError
from polyseme.io.progress import ProgressEvent
from polyseme.search import change_screening, change_search
from polyseme.search.change import Change, find_change, judge_changes, sort_changes
from polyseme.search.change_screening import MIN_USAGES, ChangeScreening, find_common_words
from polyseme.search.change_search import ComputedChanges
from polyseme.search.index import Index, open_index
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog

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


def compare_all(first: Index, second: Index, min_count: int = 20, seed: int = 0) -> list[Change]:
    """Compare every frequent word in full."""
    words = list(find_common_words(first, second, max(min_count, MIN_USAGES)))
    changes = [find_change(first, second, word, seed) for word in words]
    return sort_changes(judge_changes(changes, ChangeScreening(first, second, seed), words))


@pytest.mark.parametrize("k", [1, 4, 1000])
@pytest.mark.parametrize(("min_count", "seed"), [(20, 0), (160, 3)])
def test_frequent_words_have_the_order_and_values_of_comparing_all(
    indexes: tuple[Index, Index], k: int, min_count: int, seed: int
):
    changes = api.change(*indexes, k=k, min_count=min_count, seed=seed)
    assert changes == compare_all(*indexes, min_count, seed)[:k]
    assert changes.complete


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


def test_words_with_equal_changes_keep_the_order_of_frequency(indexes: tuple[Index, Index]):
    same = indexes[0], indexes[0]
    assert [change.word for change in api.change(*same, k=3)] == [
        change.word for change in compare_all(*same)[:3]
    ]


def test_punctuation_is_not_ranked_but_can_be_compared_by_name(indexes: tuple[Index, Index]):
    words = {change.word for change in api.change(*indexes, k=1000)}
    assert "bank" in words
    assert not {",", "!", "3", "the"} & words
    everything = {change.word for change in api.change(*indexes, k=1000, all_words=True)}
    assert {"3", "bank", "the"} <= everything
    assert not {",", "!"} & everything
    assert api.change(*indexes, [","])[0].word == ","


def test_the_next_search_continues_with_what_was_computed(indexes: tuple[Index, Index], monkeypatch):
    computed = ComputedChanges(*indexes)
    interrupted = api.change(*indexes, k=3, timeout=-1.0, computed=computed)  # its time is over
    assert len(interrupted) <= 1
    assert not interrupted.complete
    expected = api.change(*indexes, k=3, computed=computed)
    monkeypatch.setattr(change_search, "find_change", None)
    monkeypatch.setattr(change_screening, "sample_usages", None)
    again = api.change(*indexes, k=3, timeout=-1.0, computed=computed)
    assert again == expected
    assert again.complete
    with pytest.raises(UsageError, match="another `seed`"):
        api.change(*indexes, computed=computed, seed=1)


def test_a_search_reports_its_progress_and_ends_with_an_error_of_the_callback(
    indexes: tuple[Index, Index],
):
    events: list[ProgressEvent] = []
    api.change(*indexes, k=2, progress=events.append)
    assert [event.stage for event in events] == sorted((event.stage for event in events), reverse=True)
    assert {event.stage for event in events} == {"ranking", "comparing"}
    assert events[-1].done == events[-1].total

    def stop(event: ProgressEvent) -> None:
        raise KeyboardInterrupt

    computed = ComputedChanges(*indexes)
    with pytest.raises(KeyboardInterrupt):
        api.change(*indexes, k=2, computed=computed, progress=stop)
    assert len(computed.screening.screened) == 1


def test_the_changes_that_are_kept_are_bounded(indexes: tuple[Index, Index]):
    computed = ComputedChanges(*indexes, max_changes=2)
    api.change(*indexes, WORDS, computed=computed)
    assert [word for word in WORDS if computed.has_change(word)] == list(WORDS[-2:])


def test_what_is_usual_does_not_depend_on_the_words_compared_before(indexes: tuple[Index, Index]):
    computed = ComputedChanges(*indexes)
    (alone,) = api.change(*indexes, ["bank"])
    api.change(*indexes, WORDS[1:], computed=computed)
    (later,) = api.change(*indexes, ["bank"], computed=computed)
    assert (later.usual, later.percentile) == (alone.usual, alone.percentile)


def test_sorted_usages_are_those_of_the_blocks(indexes: tuple[Index, Index]):
    for index in indexes:
        reopened = open_index(index.folder, ELMO)
        before = {word: reopened.usage_numbers(word) for word in reopened.words.words}
        part = reopened.restrict("0-")
        reopened.sort_usages()
        for word, numbers in before.items():
            np.testing.assert_array_equal(reopened.usage_numbers(word), numbers)
            np.testing.assert_array_equal(part.usage_numbers(word), numbers)
        with pytest.raises(UnknownWordError):
            reopened.usage_numbers("nowhere")
