"""Batches of texts that arrive at the same time, within a token budget, in two lanes.

    server.verbs, server.openai  ->  server.jobs.batching  ->  elmo, in a thread per lane

A lane is a queue and a thread. Long texts have their own lane, so that short ones do not wait for them.
A batch holds texts that ask for the same layers of the same model, in order of arrival. An idle lane starts
at once; a busy one waits a moment for more texts to join.
What must not change: the vectors of a text do not depend on the other texts of its batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from polyseme.elmo import Array, Elmo
from polyseme.model.output import OutputSpec
from polyseme.server.http.limits import HttpError, Limits, busy, out_of_memory
from polyseme.server.http.metrics import Metrics
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.training.out_of_memory import is_out_of_memory

LONG_TEXT_TOKENS = 128  # longer texts use the second lane
BOUNDARY_TOKENS = 2  # <S> and </S>
logger = logging.getLogger(__name__)


@dataclass(eq=False)
class QueuedText:
    """A text in a queue."""

    elmo: Elmo
    tokens: list[str]
    spec: OutputSpec
    vectors: asyncio.Future[Array]

    @property
    def width(self) -> int:
        """Number of tokens that the model processes."""
        return len(self.tokens) + BOUNDARY_TOKENS


class Lane:
    """A queue of texts and the thread that embeds them."""

    def __init__(self, name: str, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._thread = WorkerPool(name, 1)
        self._queue: deque[QueuedText] = deque()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, texts: Sequence[QueuedText]) -> None:
        """Queue texts, and start the lane if it is idle."""
        self._queue.extend(texts)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, texts: Collection[QueuedText]) -> None:
        """Remove texts whose request has ended."""
        self._queue = deque(text for text in self._queue if text not in texts)

    async def _run(self) -> None:
        """Run batches until the queue is empty."""
        while self._queue:
            batch = self._take_batch()
            if batch:
                await self._run_batch(batch)
            if self._queue and self._count_queued_tokens() < self._limits.batch_tokens:
                await asyncio.sleep(self._limits.batch_wait)  # clients with a response may send again

    def _count_queued_tokens(self) -> int:
        return sum(text.width for text in self._queue)

    def _take_batch(self) -> list[QueuedText]:
        """Take the next batch from the queue; drop texts whose request has ended."""
        batch: list[QueuedText] = []
        skipped: deque[QueuedText] = deque()
        width = 0
        while self._queue:
            text = self._queue.popleft()
            if text.vectors.done():
                continue
            new_width = max(width, text.width)
            if batch and new_width * (len(batch) + 1) > self._limits.batch_tokens:
                skipped.append(text)
                break
            if batch and (text.elmo is not batch[0].elmo or text.spec != batch[0].spec):
                skipped.append(text)
                continue
            batch.append(text)
            width = new_width
        skipped.extend(self._queue)
        self._queue = skipped
        return batch

    async def _run_batch(self, batch: list[QueuedText]) -> None:
        """Embed a batch, and set the results or the error of its texts."""
        tokens, elmo, spec = [text.tokens for text in batch], batch[0].elmo, batch[0].spec
        self._metrics.count_batch(len(batch), sum(map(len, tokens)))
        try:
            results = await self._thread.run(lambda: self._embed(elmo, tokens, spec))
        except Exception as problem:
            logger.exception("a batch failed")
            for text in batch:
                if not text.vectors.done():
                    text.vectors.set_exception(problem)
            return
        for text, result in zip(batch, results, strict=True):
            if text.vectors.done():
                continue
            if isinstance(result, HttpError):
                text.vectors.set_exception(result)
            else:
                text.vectors.set_result(result)

    def _embed(self, elmo: Elmo, tokens: list[list[str]], spec: OutputSpec) -> list[Array | HttpError]:
        """Vectors of token lists; if memory runs out, one half after the other."""
        try:
            with elmo.track_counts() as counts:
                budget = self._limits.batch_tokens
                return list(elmo.embed_tokens(tokens, spec, counts, batch_tokens=budget))
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
        if len(tokens) == 1:
            return [out_of_memory()]
        half = len(tokens) // 2
        return self._embed(elmo, tokens[:half], spec) + self._embed(elmo, tokens[half:], spec)

    def close(self) -> None:
        """Let the thread end."""
        self._thread.close()


class Batcher:
    """Embeds texts in two lanes, by length."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._short, self._long = (Lane(name, limits, metrics) for name in ("short", "long"))

    def __len__(self) -> int:
        """Number of waiting texts."""
        return len(self._short) + len(self._long)

    async def embed(self, elmo: Elmo, sentences: Sequence[list[str]], spec: OutputSpec) -> list[Array]:
        """Embed sentences together with those of other requests.

        Args:
            elmo: The model.
            sentences: Token lists.
            spec: Which vectors to return.

        Returns:
            One array per sentence.

        Raises:
            HttpError: If too many texts are waiting, or memory runs out.

        """
        if len(self) + len(sentences) > self._limits.queue:
            raise busy("Too many texts are waiting. Try again in a moment.")
        loop = asyncio.get_running_loop()
        texts = [QueuedText(elmo, tokens, spec, loop.create_future()) for tokens in sentences]
        long = [text for text in texts if len(text.tokens) > LONG_TEXT_TOKENS]
        short = [text for text in texts if len(text.tokens) <= LONG_TEXT_TOKENS]
        for lane, its_texts in ((self._short, short), (self._long, long)):
            if its_texts:
                lane.add(its_texts)
        self._metrics.set_queued_texts(len(self))
        try:
            return list(await asyncio.gather(*(text.vectors for text in texts)))
        finally:
            self._remove(texts)
            self._metrics.set_queued_texts(len(self))

    def _remove(self, texts: Sequence[QueuedText]) -> None:
        """Remove texts that still wait when their request ends."""
        waiting = {text for text in texts if text.vectors.cancel() or text.vectors.cancelled()}
        if waiting:
            self._short.remove(waiting)
            self._long.remove(waiting)

    def close(self) -> None:
        """Let the threads end."""
        self._short.close()
        self._long.close()
