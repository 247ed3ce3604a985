"""What a server keeps of the results for its indexes."""

from __future__ import annotations

import threading

import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.search.index import Index
from polyseme.server.result_cache import ResultCache


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("cache")
    (folder / "text.txt").write_text("the bank\nthe river\n", encoding="utf-8")
    elmo = Elmo(random_model(small_config()))
    return api.index(elmo, folder / "text.txt", folder / "index", documents="line")


def test_a_result_is_computed_once_for_equal_parts_and_options(index: Index):
    cache = ResultCache[object](max_results=2)
    first = cache.find((index,), "将", object)
    assert cache.find((index,), "将", object) is first
    part = cache.find((index.restrict("1"),), "将", object)
    assert part is not first
    assert cache.find((index.restrict("1"),), "将", object) is part
    assert cache.find((index, index), "将", object) is not part
    assert cache.find((index,), "将", object) is not first  # two other results are newer


def test_who_asks_for_a_result_that_is_being_computed_waits_for_it(index: Index):
    cache, may_end = ResultCache[object](max_results=2), threading.Event()
    results: list[object] = []

    def compute() -> object:
        may_end.wait(10)
        return object()

    threads = [
        threading.Thread(target=lambda: results.append(cache.find((index,), 0, compute))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert cache.find((index,), 1, lambda: "another") == "another"  # does not wait for them
    may_end.set()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    assert len(set(map(id, results))) == 1


def test_after_a_failure_the_next_one_computes(index: Index):
    cache = ResultCache[str](max_results=1)
    with pytest.raises(ZeroDivisionError):
        cache.find((index,), 0, lambda: str(1 / 0))
    assert cache.find((index,), 0, lambda: "now") == "now"
