"""Results that take long, kept from request to request: senses of words, changes between indexes, persons.

search.index  ->  server.result_cache  ->  server.served_models, server.verbs, server.concordances
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from polyseme.search.index import Index

Result = TypeVar("Result")


@dataclass
class _CachedResult(Generic[Result]):
    """A result, or one that is being computed."""

    wholes: tuple[Index, ...]  # kept open, so that no other index gets their ids
    computing: threading.Lock = field(default_factory=threading.Lock)
    results: list[Result] = field(default_factory=list)  # one, as soon as it is known


class ResultCache(Generic[Result]):
    """The results of one kind that were asked for last. Who asks for one that is being computed waits for it.

    Args:
        max_results: How many to keep.

    """

    def __init__(self, max_results: int) -> None:
        self._max_results, self._lock = max_results, threading.Lock()
        self._entries: OrderedDict[Hashable, _CachedResult[Result]] = OrderedDict()

    def find(self, indexes: tuple[Index, ...], options: Hashable, compute: Callable[[], Result]) -> Result:
        """Return the result for indexes, or equal parts of them, and options; computed if it is not known.

        Args:
            indexes: The indexes that it depends on.
            options: All else that it depends on.
            compute: Called without a result; what it raises is raised here, and the next caller tries again.

        """
        key = (*((id(index.whole), str(index.selection)) for index in indexes), options)
        with self._lock:
            entry = self._entries.setdefault(key, _CachedResult(tuple(index.whole for index in indexes)))
            self._entries.move_to_end(key)
            if len(self._entries) > self._max_results:
                self._entries.popitem(last=False)
        with entry.computing:
            if not entry.results:
                entry.results.append(compute())
            return entry.results[0]
