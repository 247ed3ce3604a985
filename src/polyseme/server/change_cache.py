"""Changes of words between the indexes of a server, kept from request to request.

search.change_search  ->  server.change_cache  ->  server.state, server.verbs
"""

from __future__ import annotations

from polyseme.search.change import Change
from polyseme.search.change_search import MAX_CHANGES, ComputedChanges
from polyseme.search.index import Index

MAX_PAIRS = 4  # pairs of indexes whose changes are kept
SENSE_NEIGHBOURS = 4  # words that describe a sense


class ChangeMemo:
    """What is known of the changes between two indexes. Not thread-safe.

    Attributes:
        computed: The changes computed so far.

    """

    def __init__(self, computed: ComputedChanges) -> None:
        self.computed = computed
        self._neighbours: dict[str, list[list[str]]] = {}

    def neighbours(self, change: Change) -> list[list[str]]:
        """For each sense of a word, the nearest words of the first index."""
        if change.word not in self._neighbours:
            if len(self._neighbours) >= MAX_CHANGES:
                del self._neighbours[next(iter(self._neighbours))]
            nearest = self.computed.first.nearest_words(change.centres, SENSE_NEIGHBOURS, without=change.word)
            self._neighbours[change.word] = nearest
        return self._neighbours[change.word]


class ChangeCache:
    """The memos of the pairs of indexes used most recently."""

    def __init__(self, *, max_pairs: int = MAX_PAIRS) -> None:
        self._max_pairs = max_pairs
        self._memos: dict[tuple[int, str, int, str, int], ChangeMemo] = {}

    def get(self, first: Index, second: Index, seed: int = 0) -> ChangeMemo:
        """The memo of these indexes, or equal parts of indexes, and this seed."""
        # A memo holds its indexes, so that no other index gets their ids.
        key = (id(first.whole), str(first.selection), id(second.whole), str(second.selection), seed)
        memo = self._memos.pop(key, None) or ChangeMemo(ComputedChanges(first, second, seed))
        self._memos[key] = memo
        if len(self._memos) > self._max_pairs:
            del self._memos[next(iter(self._memos))]
        return memo
