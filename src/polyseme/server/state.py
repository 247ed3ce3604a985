"""What the rooms of a running server share: the served models, once they are loaded, and its counters.

server.app  ->  server.state  ->  server.verbs, server.openai, server.http.middleware
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Sized
from typing import TypeVar

from polyseme.search.index import Index
from polyseme.server.catalog import Catalog
from polyseme.server.http.limits import Limits, RefusedError, too_large
from polyseme.server.http.metrics import Metrics
from polyseme.server.jobs.batching import Batcher
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.server.usage_layers import Layers
from polyseme.server.word_change import IndexPairs

SMALL = 1024  # characters to cut, or numbers to write, that take less time than to wake a thread
Result = TypeVar("Result")


class ServerState:
    """One application's state. `load` is called once, in a thread, when the server starts.

    quick: threads that cut texts and write answers, where these are not small, for all routes. asking:
    threads for questions that take a moment. studying: the one for those that take seconds. Nobody waits for
    work of a slower kind.
    """

    def __init__(self, load: Callable[[], Catalog], limits: Limits) -> None:
        self._load = load
        self.limits, self.metrics = limits, Metrics()
        self.quick = WorkerPool("quick", 2)
        self.asking = WorkerPool("asking", 2, limits.queue, self.metrics.questions)
        self.studying = WorkerPool("studying", 1, limits.queue, self.metrics.questions)
        self.draining = False  # nothing new is taken on
        self.ending = asyncio.Event()  # nor is anything finished
        self.problem: Exception | None = None  # why loading failed
        self.failed: Callable[[], None] = lambda: None  # told when it did
        self._served: Catalog | None = None
        self._batcher: Batcher | None = None
        self.pairs = IndexPairs()
        self._layers: dict[int, Layers] = {}

    def prepare(self) -> None:
        """Load everything; when that is served, make ready what the first question would wait for."""
        try:
            served = self._load()
            self._batcher = Batcher(served.elmo, self.limits, self.metrics)
            self._served = served
        except Exception as problem:
            self.problem = problem
            self.failed()
            return
        for index in served.indexes.values():
            self.layers(index).warm()

    @property
    def served(self) -> Catalog:
        """What is served; a refusal while it is being loaded."""
        if self._served is None:
            raise RefusedError(503, "loading", "The model is being loaded.", retry_after=2)
        return self._served

    @property
    def batcher(self) -> Batcher:
        """What reads texts; a refusal while the model is being loaded."""
        if self._batcher is None:
            raise RefusedError(503, "loading", "The model is being loaded.", retry_after=2)
        return self._batcher

    async def cut(self, texts: Sequence[str], segment: str | None = None) -> list[list[str]]:
        """Texts to tokens, in a thread; too many texts, or one that is too long, are refused."""
        self.check_count(texts)
        elmo = self.served.elmo
        found = await self.quickly(
            lambda: [elmo.token_texts(text, segment) for text in texts], sum(map(len, texts))
        )
        for tokens in found:
            self.check_length(tokens)
        return found

    async def quickly(self, do: Callable[[], Result], size: int) -> Result:
        """What `do` gives; in a thread, where `size` characters or numbers would hold up all others."""
        return do() if size <= SMALL else await self.quick.run(do)

    def check_count(self, texts: Sized) -> None:
        """Refuse more texts than a request may have."""
        if len(texts) > self.limits.max_texts:
            most = self.limits.max_texts
            raise too_large(
                f"{len(texts)} texts, at most {most} a request.",
                "too_many_texts",
                count=len(texts),
                most=most,
            )

    def check_length(self, tokens: Sized) -> None:
        """Refuse a text with more tokens than it may have."""
        if len(tokens) > self.limits.max_tokens:
            count, most = len(tokens), self.limits.max_tokens
            raise too_large(f"A text of {count} tokens, at most {most}.", "too_long", count=count, most=most)

    def check_total(self, count: int) -> None:
        """Refuse texts of many sentences that have more tokens than those of a request of single ones may."""
        most = self.limits.max_texts * self.limits.max_tokens
        if count > most:
            raise too_large(
                f"{count} tokens, at most {most} a request.", "too_long_together", count=count, most=most
            )

    def check_values(self, count: int) -> None:
        """Refuse an answer of more numbers than it may have."""
        most = self.limits.answer_values
        if count > most:
            raise too_large(
                f"An answer of {count:,} numbers, at most {most:,}. Ask for fewer texts.",
                "answer_too_large",
                count=count,
                most=most,
            )

    def layers(self, index: Index) -> Layers:
        """All layers of an index's usages."""
        return self._layers.setdefault(id(index), Layers(self.served.elmo, index))

    def count_cache(self) -> None:
        """Note how often words were found in the token cache."""
        if self._served is not None:
            counts = self._served.elmo.cache.counts
            self.metrics.cache(counts.hits, counts.misses)

    def close(self) -> None:
        """Let the threads end."""
        for threads in (self.quick, self.asking, self.studying):
            threads.close()
        if self._batcher is not None:
            self._batcher.close()
