"""State of a running server: the loaded models, its threads, its metrics, and the checks of limits.

server.app  ->  server.state  ->  server.verbs, server.openai, server.http.middleware
"""

from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence, Sized
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

from polyseme.choices import Direction, Pool
from polyseme.elmo import Array, EmbeddingPlan
from polyseme.errors import PolysemeError
from polyseme.model.output import Layer, OutputSpec
from polyseme.search.index import Index
from polyseme.server.catalog import Catalog
from polyseme.server.http.limits import Limits, invalid, loading, too_large
from polyseme.server.http.metrics import Metrics
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.batching import Batcher
from polyseme.server.jobs.worker_pool import WorkerPool, start_daemon
from polyseme.server.served_models import ServedModels
from polyseme.server.usage_layers import UsageLayers

INLINE_SIZE = 1024  # characters to segment, or numbers to serialise, that take less time than a thread switch
Result = TypeVar("Result")
Opened = Catalog | ServedModels  # one model, or several
Handler = Callable[..., Awaitable[Result]]
logger = logging.getLogger(LOGGER)


class PinnedModels:
    """The models of one request: the same until it ends, whatever is loaded meanwhile.

    Attributes:
        models: All of them; None after the request, so that nothing that outlives it (a connection, an
            abandoned job) keeps them in memory.
        chosen: The one that the request means; None after the request.

    """

    def __init__(self, models: ServedModels, chosen: Catalog) -> None:
        self.models: ServedModels | None = models
        self.chosen: Catalog | None = chosen

    def release(self) -> None:
        """Forget the models."""
        self.models = self.chosen = None


PINNED: ContextVar[PinnedModels | None] = ContextVar("PINNED", default=None)  # of the request that runs


class ServerState:
    """State of one application.

    There are four pools, so that short work never waits for long work: `light_jobs` segments texts and
    serialises responses, `queries` runs what takes milliseconds (scores, neighbours, predictions), `analyses`
    what takes seconds (senses, change, maps, generated text), `persons` what is known of persons.

    Args:
        open_models: Loads the models; called in a thread when the server starts, and at each `reload`.
        limits: Limits of requests.
        inline_size: Characters to segment, or numbers to serialise, that need no thread.

    """

    def __init__(
        self, open_models: Callable[[], Opened], limits: Limits, *, inline_size: int = INLINE_SIZE
    ) -> None:
        self._open_models, self._inline_size = open_models, inline_size
        self.limits, self.metrics = limits, Metrics()
        self.light_jobs = WorkerPool("light", 2)
        self.queries = WorkerPool("queries", 2, limits.queue, self.metrics.set_queued_jobs)
        self.analyses = WorkerPool("analyses", 1, limits.queue, self.metrics.set_queued_jobs)
        self.persons = WorkerPool("persons", 1, limits.queue, self.metrics.set_queued_jobs)
        self.draining = False  # new requests are refused
        self.grace_over = asyncio.Event()  # requests in progress are given up, too
        self.load_error: Exception | None = None
        self.on_load: Callable[[], object] = lambda: None
        self.on_load_failure: Callable[[], None] = lambda: None
        self.retiring = False  # connections are closed after their next response
        self._models: ServedModels | None = None
        self.batcher = Batcher(self.limits, self.metrics)
        self._reload_wanted = threading.Event()
        self._reloading = threading.Lock()

    def load(self) -> None:
        """Load the models, then compute what the first requests would otherwise wait for."""
        try:
            if self._models is None:
                self.adopt(self._open_models())
            if not self.draining:  # stopped while it was loading
                self.on_load()
        except Exception as problem:
            self.load_error = problem
            self.on_load_failure()
            return
        self._warm_up(self.models)

    def reload(self) -> None:
        """Load the models again, in a thread; requests in progress keep those that they began with."""
        self._reload_wanted.set()
        start_daemon("reload", self._reload)

    def _reload(self) -> None:
        """Load the models again, one thread at a time; if that fails, those that are loaded stay."""
        with self._reloading:
            if not self._reload_wanted.is_set() or self._models is None:
                return  # an earlier thread has seen this wish, too, or the first loading goes on
            self._reload_wanted.clear()
            try:
                opened = _as_models(self._open_models())
                self._warm_up(opened)  # before requests come
                self.adopt(opened)
            except PolysemeError as problem:
                logger.error("reloading failed, the models stay as they are: %s", problem)
            except Exception:
                logger.exception("reloading failed, the models stay as they are")
            else:
                logger.info("reloaded: %s", ", ".join(opened.catalogs))

    def adopt(self, opened: Opened) -> None:
        """Serve these models from the next request on."""
        self._models = _as_models(opened)
        self.metrics.set_load_time()

    def _warm_up(self, models: ServedModels) -> None:
        for catalog in models.catalogs.values():
            for index in catalog.indexes.values():
                catalog.usage_layers(index).warm_up()
                index.sort_usages()

    def choose_model(self, handler: Handler[Result]) -> Handler[Result]:
        """Wrap the handler of a route: `catalog` is then that of the model that its request means."""

        @functools.wraps(handler)  # FastAPI reads its signature
        async def handle(**arguments: Any) -> Result:
            models = self.models
            pinned = PinnedModels(models, models.choose(arguments.get("body")))
            token = PINNED.set(pinned)
            try:
                return await handler(**arguments)
            finally:
                PINNED.reset(token)
                pinned.release()

        return handle

    @property
    def models(self) -> ServedModels:
        """The models, of the request if there is one; an HttpError while they are being loaded."""
        pinned = PINNED.get()
        models = self._models if pinned is None or pinned.models is None else pinned.models
        if models is None:
            raise loading()
        return models

    @property
    def catalog(self) -> Catalog:
        """The model that the request means, or the first; an HttpError while models are being loaded."""
        pinned = PINNED.get()
        return self.models.first if pinned is None or pinned.chosen is None else pinned.chosen

    async def embed(self, sentences: Sequence[list[str]], spec: OutputSpec) -> list[Array]:
        """Embed sentences with the model of the request, together with those of other requests."""
        return await self.batcher.embed(self.catalog.elmo, sentences, spec)

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
            vectors += await self.embed(plan.sentences[start : start + portion], plan.spec)
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
        return self.catalog.usage_layers(index)

    def update_cache_metrics(self) -> None:
        """Update the metrics of the token caches."""
        if self._models is not None:
            counts = [catalog.elmo.cache.counts for catalog in self._models.catalogs.values()]
            self.metrics.set_cache_totals(
                sum(count.hits for count in counts), sum(count.misses for count in counts)
            )

    def close(self) -> None:
        """Let the threads end."""
        for pool in (self.light_jobs, self.queries, self.analyses, self.persons):
            pool.close()
        self.batcher.close()


def _as_models(opened: Opened) -> ServedModels:
    return opened if isinstance(opened, ServedModels) else ServedModels([opened])
