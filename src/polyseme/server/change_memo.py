"""What is known of the changes between two indexes of a server.

search.change_search  ->  server.change_memo  ->  server.served_models, server.verbs
"""

from __future__ import annotations

from polyseme.search.change import Change
from polyseme.search.change_search import MAX_CHANGES, ComputedChanges

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
