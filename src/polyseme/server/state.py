"""State of a running server: the loaded models, its threads, its metrics, and the checks of limits.

server.app  ->  server.state  ->  server.verbs, server.openai, server.http.middleware
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Sized
from typing import Literal, TypeVar

from polyseme.choices import Direction, Pool
from polyseme.elmo import Array, EmbeddingPlan
from polyseme.errors import PolysemeError
from polyseme.model.output import Layer
from polyseme.search.index import Index
from polyseme.server.catalog import Catalog
from polyseme.server.change_cache import ChangeCache
from polyseme.server.http.limits import Limits, invalid, loading, too_large
from polyseme.server.http.metrics import Metrics
from polyseme.server.jobs.batching import Batcher
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.server.usage_layers import UsageLayers

INLINE_SIZE = 1024  # characters to segment, or numbers to serialise, that take less time than a thread switch
Result = TypeVar("Result")


class ServerState:
    """State of one application.

    There are three pools, so that short work never waits for long work: `light_jobs` segments texts and
    serialises responses, `queries` runs what takes milliseconds (scores, neighbours, predictions), `analyses`
    what takes seconds (senses, change, maps, generated text).

    Args:
        open_catalog: Loads the models; called once, in a thread, when the server starts.
        limits: Limits of requests.
        inline_size: Characters to segment, or numbers to serialise, that need no thread.

    """

    def __init__(
        self, open_catalog: Callable[[], Catalog], limits: Limits, *, inline_size: int = INLINE_SIZE
    ) -> None:
        self._open_catalog, self._inline_size = open_catalog, inline_size
        self.limits, self.metrics = limits, Metrics()
        self.light_jobs = WorkerPool("light", 2)
        self.queries = WorkerPool("queries", 2, limits.queue, self.metrics.set_queued_jobs)
        self.analyses = WorkerPool("analyses", 1, limits.queue, self.metrics.set_queued_jobs)
        self.draining = False  # new requests are refused
        self.grace_over = asyncio.Event()  # requests in progress are given up, too
        self.load_error: Exception | None = None
        self.on_load: Callable[[], None] = lambda: None
        self.on_load_failure: Callable[[], None] = lambda: None
        self._catalog: Catalog | None = None
        self._batcher: Batcher | None = None
        self.changes = ChangeCache()
        self._usage_layers: dict[int, UsageLayers] = {}

    def load(self) -> None:
        """Load the models, then compute what the first requests would otherwise wait for."""
        try:
            catalog = self._open_catalog()
            self._batcher = Batcher(catalog.elmo, self.limits, self.metrics)
            self._catalog = catalog
            self.on_load()
        except Exception as problem:
            self.load_error = problem
            self.on_load_failure()
            return
        for index in catalog.indexes.values():
            self.usage_layers(index).warm_up()

    @property
    def catalog(self) -> Catalog:
        """The models; an HttpError while they are being loaded."""
        if self._catalog is None:
            raise loading()
        return self._catalog

    @property
    def batcher(self) -> Batcher:
        """Embeds texts; an HttpError while the model is being loaded."""
        if self._batcher is None:
            raise loading()
        return self._batcher

    async def segment(self, texts: Sequence[str], segmentation: str | None = None) -> list[list[str]]:
        """Segment each text as one sentence; an HttpError for too many or too long texts."""
        self.check_count(texts)
        elmo = self.catalog.elmo
        sentences = await self.run_light(
            lambda: [elmo.token_texts(text, segmentation) for text in texts], sum(map(len, texts))
        )
        for tokens in sentences:
            self.check_length(tokens)
        return sentences

    async def plan_embedding(
        self,
        texts: Sequence[str],
        *,
        layer: Layer = "mean",
        pool: Pool | None = None,
        direction: Direction = "both",
        max_texts: int | None = None,
        keep: Literal["first", "last"] | None = None,
    ) -> EmbeddingPlan:
        """Plan what `Elmo.embed` would compute for texts.

        Args:
            texts: The texts.
            layer: As in `Elmo.embed`.
            pool: As in `Elmo.embed`.
            direction: As in `Elmo.embed`.
            max_texts: How many texts there may be; None for the limit of most requests.
            keep: The tokens to keep of a text that is too long; None refuses it.

        Raises:
            HttpError: For too many or too long texts, or a layer that the model does not have.

        """
        self.check_count(texts, max_texts)
        elmo = self.catalog.elmo
        try:
            plan = await self.run_light(
                lambda: elmo.plan_embedding(texts, layer=layer, pool=pool, direction=direction),
                sum(map(len, texts)),
            )
        except PolysemeError:
            layers = elmo.config.layers
            raise invalid(f"layer must be a number below {layers}, or {layers} weights.") from None
        if keep is not None:
            limit = self.limits.max_tokens
            kept = slice(limit) if keep == "first" else slice(-limit, None)
            return plan._replace(sentences=[tokens[kept] for tokens in plan.sentences])
        for tokens in plan.sentences:
            self.check_length(tokens)
        return plan

    async def embed_many(self, plan: EmbeddingPlan) -> list[Array]:
        """Embed the texts of a plan, `max_texts` at a time, so that other requests run in between."""
        portion, vectors = self.limits.max_texts, list[Array]()
        for start in range(0, len(plan.sentences), portion):
            vectors += await self.batcher.embed(plan.sentences[start : start + portion], plan.spec)
        return vectors

    async def run_light(self, function: Callable[[], Result], size: int) -> Result:
        """Call `function`: here if `size` (characters or numbers) is small, else in a thread."""
        return function() if size <= self._inline_size else await self.light_jobs.run(function)

    def check_count(self, texts: Sized, limit: int | None = None) -> None:
        """Refuse more texts than a request may have: `limit`, or as many as most requests."""
        count, limit = len(texts), self.limits.max_texts if limit is None else limit
        if count > limit:
            message = f"{count} texts, at most {limit} per request."
            raise too_large(message, "too_many_texts", count=count, limit=limit)

    def check_length(self, tokens: Sized) -> None:
        """Refuse a text with more tokens than it may have."""
        count, limit = len(tokens), self.limits.max_tokens
        if count > limit:
            message = f"A text of {count} tokens, at most {limit}."
            raise too_large(message, "too_long", count=count, limit=limit)

    def check_total(self, count: int) -> None:
        """Refuse texts of many sentences with more tokens than a request of single sentences may have."""
        limit = self.limits.max_texts * self.limits.max_tokens
        if count > limit:
            message = f"{count} tokens, at most {limit} per request."
            raise too_large(message, "too_long_together", count=count, limit=limit)

    def check_values(self, count: int) -> None:
        """Refuse a response of more numbers than it may have."""
        limit = self.limits.response_values
        if count > limit:
            message = f"A response of {count:,} numbers, at most {limit:,}. Send fewer texts."
            raise too_large(message, "answer_too_large", count=count, limit=limit)

    def usage_layers(self, index: Index) -> UsageLayers:
        """All layers of an index's usages."""
        return self._usage_layers.setdefault(id(index), UsageLayers(self.catalog.elmo, index))

    def update_cache_metrics(self) -> None:
        """Update the metrics of the token cache."""
        if self._catalog is not None:
            counts = self._catalog.elmo.cache.counts
            self.metrics.set_cache_totals(counts.hits, counts.misses)

    def close(self) -> None:
        """Let the threads end."""
        for pool in (self.light_jobs, self.queries, self.analyses):
            pool.close()
        if self._batcher is not None:
            self._batcher.close()
