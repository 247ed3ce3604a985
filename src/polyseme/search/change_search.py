"""Find the words that changed most between two indexes, within a time limit.

    search.change  ->  search.change_search  ->  api (and through it the server)

All frequent words are first screened, which is quick; only those that changed most are compared in full. The
result is the same as if all were. A search ends when its time is over;
what it computed is kept in `ComputedChanges`, and the next search continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from polyseme.errors import UsageError
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.search.change import (
    Change,
    check_comparable,
    check_usages,
    find_change,
    judge_changes,
    sort_changes,
)
from polyseme.search.change_screening import ChangeScreening
from polyseme.search.index import Index

MAX_CHANGES = 1200  # kept: a bit more than one request to a server can ask for


class ComputedChanges:
    """The changes of words between two indexes, as far as they have been computed. Not thread-safe.

    Args:
        first: An index.
        second: Another index.
        seed: Seeds the sampling and the tests of significance.
        max_changes: How many changes to keep; the oldest are dropped.

    """

    def __init__(self, first: Index, second: Index, seed: int = 0, *, max_changes: int = MAX_CHANGES) -> None:
        self.first, self.second, self.seed, self._max_changes = first, second, seed, max_changes
        self.screening = ChangeScreening(first, second, seed)
        self._changes: dict[str, Change] = {}

    def has_change(self, word: str) -> bool:
        """Whether the change of a word is known already."""
        return word in self._changes

    def change(self, word: str) -> Change:
        """The change of a word."""
        if word not in self._changes:
            while len(self._changes) >= self._max_changes:
                del self._changes[next(iter(self._changes))]
            self._changes[word] = find_change(self.first, self.second, word, self.seed)
        return self._changes[word]


class ChangeSearch:
    """One search for changed words.

    Args:
        first: An index.
        second: Another index, of the same model, layer and view.
        seed: Seeds the sampling and the tests of significance.
        timeout: Seconds after which the search ends, with one word compared at least; None is no limit.
        computed: What earlier searches computed, which this one continues.
        on_progress: Receives the progress; what it raises ends the search.

    Raises:
        UsageError: The indexes cannot be compared, or `computed` is of others.

    """

    def __init__(
        self,
        first: Index,
        second: Index,
        *,
        seed: int = 0,
        timeout: float | None = None,
        computed: ComputedChanges | None = None,
        on_progress: OnProgress = ignore_progress,
    ) -> None:
        check_comparable(first, second)
        self._computed = computed or ComputedChanges(first, second, seed)
        known = self._computed
        if known.first is not first or known.second is not second or known.seed != seed:
            raise UsageError("`computed` holds the changes of other indexes, or of another `seed`.")
        self._timeout = float("inf") if timeout is None else timeout
        self._end = self._timeout
        self._on_progress, self._complete = on_progress, True

    def compare_words(self, words: Sequence[str]) -> ResultList[Change]:
        """The changes of these words, greatest first.

        Raises:
            UnknownWordError: A word has no usage in one of the indexes.
            UsageError: A word has fewer than MIN_USAGES usages.

        """
        self._end = time.monotonic() + self._timeout
        for index in (self._computed.first, self._computed.second):  # before any work
            check_usages(index, words)
        return self._as_result(self._compare(words), words)

    def find_most_changed(self, k: int, min_count: int, *, all_words: bool = False) -> ResultList[Change]:
        """The changes of the `k` words that changed most, of those with `min_count` usages in both.

        Args:
            k: How many words.
            min_count: Usages that a word needs in both indexes.
            all_words: Rank function words and numbers, too.

        """
        screening = self._computed.screening
        start, words = time.monotonic(), screening.words(min_count, all_words=all_words)
        self._end, meter = start + self._timeout / 2, RateMeter("words")
        for word in words:
            if word not in screening.screened and self._is_over():
                self._complete = False
                break
            screening.screen(word)
            self._on_progress(ProgressEvent("ranking", meter.count + 1, len(words), meter.add(1)))
        self._end = start + self._timeout
        return self._as_result(self._compare(screening.top_words(k, words)), words)[:k]

    def _compare(self, words: Sequence[str]) -> list[Change]:
        """The changes of words until time runs out, but of one at least."""
        changes: list[Change] = []
        meter = RateMeter("words")
        for word in words:
            if changes and not self._computed.has_change(word) and self._is_over():
                self._complete = False
                break
            changes.append(self._computed.change(word))
            self._on_progress(ProgressEvent("comparing", len(changes), len(words), meter.add(1)))
        return changes

    def _as_result(self, changes: list[Change], compared: Sequence[str]) -> ResultList[Change]:
        """The changes with what is usual and significant among all words that were compared."""
        changes = judge_changes(changes, self._computed.screening, compared)
        caption = f"{self._computed.first.label} and {self._computed.second.label}"
        return ResultList(sort_changes(changes), caption, complete=self._complete)

    def _is_over(self) -> bool:
        return time.monotonic() > self._end
