"""The persons of the indexes of a server, kept from request to request.

api.books  ->  server.cast_cache  ->  server.state, server.verbs
"""

from __future__ import annotations

import threading

from polyseme import api
from polyseme.books.cast import Cast
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.search.index import Index

MAX_CASTS = 8
WARM_K = 40  # persons that the page shows


class CastCache:
    """The casts that were asked for most recently. Who asks for one that is being found waits for it."""

    def __init__(self, *, max_casts: int = MAX_CASTS) -> None:
        self._max_casts, self._lock = max_casts, threading.Lock()
        self._casts: dict[tuple[int, int, str | None], tuple[Index, Cast]] = {}

    def get(self, index: Index, k: int, documents: str | None, progress: OnProgress) -> Cast:
        """The cast of an index, or of some of its documents.

        Raises:
            UsageError: No document fits.

        """
        key = (id(index), k, documents)  # an entry holds its index, so that no other one gets its id
        with self._lock:
            entry = self._casts.pop(key, None)
            if entry is None:
                entry = index, api.characters(index, k=k, documents=documents, progress=progress)
            self._casts[key] = entry
            if len(self._casts) > self._max_casts:
                del self._casts[next(iter(self._casts))]
            return entry[1]

    def warm_up(self, index: Index) -> None:
        """Find the persons of an index before they are asked for, which takes seconds."""
        self.get(index, WARM_K, None, ignore_progress)
