"""Iterators that run ahead in a thread: order, errors, bounds, and nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import waiting
from polyseme.io.read_ahead import read_ahead


def count_to(stop: int, seen: list[int] | None = None) -> Iterator[int]:
    for number in range(stop):
        if seen is not None:
            seen.append(number)
        yield number


def test_items_keep_their_order_through_several_stages():
    doubled = (2 * number for number in read_ahead(count_to(100)))
    assert list(read_ahead(doubled, size=3)) == list(range(0, 200, 2))


def test_an_error_is_raised_in_the_place_of_the_item_it_prevented():
    def fail_at_three() -> Iterator[int]:
        yield from count_to(3)
        raise ValueError("three")

    items = read_ahead(n for n in read_ahead(fail_at_three()))
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(items)


def test_only_a_few_items_are_computed_ahead():
    seen: list[int] = []
    items = read_ahead(count_to(100, seen), size=2)
    assert next(items) == 0
    waiting.until(lambda: len(seen) == 4)  # one is with the caller, two wait, one could not be put
    items.close()
    assert len(seen) <= 5


def test_closing_stops_all_stages_and_closes_their_sources():
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            yield from iter(int, 1)
        finally:
            closed.set()

    before = threading.active_count()
    items = read_ahead(n for n in read_ahead(endless()))
    assert next(items) == 0
    items.close()
    assert closed.is_set()
    assert threading.active_count() == before


def test_the_thread_is_initialised_before_the_first_item():
    names: list[str] = []
    items = (threading.current_thread().name for _ in range(1))
    name = next(read_ahead(items, initialise=lambda: names.append(threading.current_thread().name)))
    assert names == [name] != [threading.current_thread().name]
