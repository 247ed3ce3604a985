"""Senses of words, kept from request to request: a map, lines sorted by sense and collocates share them.

api.meanings  ->  server.sense_cache  ->  server.verbs, server.concordances
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakKeyDictionary

from polyseme import api
from polyseme.search.index import Index
from polyseme.search.senses import Senses

MAX_WORDS = 32  # of an index


class SenseCache:
    """The senses of the words of each index that were asked for last. It keeps no index open."""

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        self._max_words = max_words
        self._known: WeakKeyDictionary[Index, OrderedDict[object, Senses]] = WeakKeyDictionary()

    def find(
        self,
        index: Index,
        word: str,
        *,
        max_senses: int = 6,
        groups: bool = False,
        seed: int = 0,
        by: str | None = None,
    ) -> Senses:
        """Return what `api.senses` returns for these arguments, computed if it is not known.

        Args:
            index: An index, or a part of one.
            word: As in `api.senses`, like all other arguments.
            max_senses: The largest number of senses.
            groups: Whether groups need no evidence.
            seed: Seeds the sampling.
            by: What the senses are counted by.

        """
        known = self._known.setdefault(index.whole, OrderedDict())
        key = (str(index.selection), word, max_senses, groups, seed, by)
        senses = known.pop(key, None)
        if senses is None:
            senses = api.senses(index, word, max_senses=max_senses, groups=groups, seed=seed, by=by)
        known[key] = senses
        if len(known) > self._max_words:
            known.popitem(last=False)
        return senses
