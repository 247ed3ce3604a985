"""Texts that arrive together are read together: batches by token budget, in two lanes.

    server.verbs  ->  server.jobs.batching  ->  embedder, in threads of its own

A lane is a queue and a thread. Long texts have one lane, short ones the other, so that nobody with a short
text waits for a long one. A batch holds texts that want the same choice of layers, in the order of arrival,
within the token budget; a free lane begins at once, a busy one waits a moment for more texts to join.
What must not change: the vectors of a text do not depend on who shares its batch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from polyseme.elmo import Array, Elmo
from polyseme.model.output import OutputSpec
from polyseme.server.http.limits import Limits, RefusedError, busy, no_memory
from polyseme.server.http.metrics import Metrics
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.training.out_of_memory import is_out_of_memory

LONG = 128  # tokens: longer texts take the second lane
FRAME = 2  # <S> and </S>
logger = logging.getLogger(__name__)


@dataclass(eq=False)
class Waiting:
    """A text in a queue."""

    tokens: list[str]
    spec: OutputSpec
    answer: asyncio.Future[Array]

    @property
    def width(self) -> int:
        """Tokens that the model reads."""
        return len(self.tokens) + FRAME


class Lane:
    """A queue of texts and the thread that reads them."""

    def __init__(self, name: str, elmo: Elmo, limits: Limits, metrics: Metrics) -> None:
        self._elmo, self._limits, self._metrics = elmo, limits, metrics
        self._thread = WorkerPool(name, 1)
        self._queue: deque[Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, texts: Sequence[Waiting]) -> None:
        """Put texts into the queue; the lane wakes up if it slept."""
        self._queue.extend(texts)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())

    def remove(self, texts: Collection[Waiting]) -> None:
        """Take texts that nobody waits for any more out of the queue."""
        self._queue = deque(text for text in self._queue if text not in texts)

    async def _work(self) -> None:
        """Read batches until the queue is empty."""
        while self._queue:
            batch = self._take()
            if batch:
                await self._answer(batch)
            if self._queue and self._tokens() < self._limits.batch_tokens:
                await asyncio.sleep(self._limits.batch_wait)  # those who were just answered may ask again

    def _tokens(self) -> int:
        return sum(text.width for text in self._queue)

    def _take(self) -> list[Waiting]:
        """The next batch; texts that nobody waits for any more are dropped."""
        batch: list[Waiting] = []
        others: deque[Waiting] = deque()
        width = 0
        while self._queue:
            text = self._queue.popleft()
            if text.answer.done():
                continue
            wider = max(width, text.width)
            if batch and wider * (len(batch) + 1) > self._limits.batch_tokens:
                others.append(text)
                break
            if batch and text.spec != batch[0].spec:
                others.append(text)
                continue
            batch.append(text)
            width = wider
        others.extend(self._queue)
        self._queue = others
        return batch

    async def _answer(self, batch: list[Waiting]) -> None:
        tokens = [text.tokens for text in batch]
        self._metrics.batch(len(batch), sum(map(len, tokens)))
        try:
            found = await self._thread.run(lambda: self._read(tokens, batch[0].spec))
        except Exception as problem:
            logger.exception("a batch failed")
            for text in batch:
                if not text.answer.done():
                    text.answer.set_exception(problem)
            return
        for text, vectors in zip(batch, found, strict=True):
            if text.answer.done():
                continue
            if isinstance(vectors, RefusedError):
                text.answer.set_exception(vectors)
            else:
                text.answer.set_result(vectors)

    def _read(self, tokens: list[list[str]], spec: OutputSpec) -> list[Array | RefusedError]:
        """The vectors of token lists; where memory runs out, of one half after the other."""
        try:
            with self._elmo.track_counts() as counts:
                budget = self._limits.batch_tokens
                return list(self._elmo.embed_tokens(tokens, spec, counts, batch_tokens=budget))
        except (MemoryError, RuntimeError) as problem:
            if not is_out_of_memory(problem):
                raise
        if len(tokens) == 1:
            return [no_memory()]
        half = len(tokens) // 2
        return self._read(tokens[:half], spec) + self._read(tokens[half:], spec)

    def close(self) -> None:
        """Let the thread end."""
        self._thread.close()


class Batcher:
    """Both lanes."""

    def __init__(self, elmo: Elmo, limits: Limits, metrics: Metrics) -> None:
        self._limits, self._metrics = limits, metrics
        self._lanes = [Lane(name, elmo, limits, metrics) for name in ("short", "long")]

    def __len__(self) -> int:
        """How many texts wait."""
        return sum(map(len, self._lanes))

    async def vectors(self, sentences: Sequence[list[str]], spec: OutputSpec) -> list[Array]:
        """The chosen vectors of each sentence; a refusal where too many wait already."""
        if len(self) + len(sentences) > self._limits.queue:
            raise busy("Too many texts are waiting. Ask again in a moment.")
        loop = asyncio.get_running_loop()
        texts = [Waiting(tokens, spec, loop.create_future()) for tokens in sentences]
        for number, lane in enumerate(self._lanes):
            own = [text for text in texts if (len(text.tokens) > LONG) == bool(number)]
            if own:
                lane.add(own)
        self._metrics.queue(len(self))
        try:
            return list(await asyncio.gather(*(text.answer for text in texts)))
        finally:
            self._leave(texts)
            self._metrics.queue(len(self))

    def _leave(self, texts: Sequence[Waiting]) -> None:
        """Whoever left, or was refused, frees its places in the queue at once."""
        gone = {text for text in texts if text.answer.cancel() or text.answer.cancelled()}
        if gone:
            for lane in self._lanes:
                lane.remove(gone)

    def close(self) -> None:
        """Let all threads end."""
        for lane in self._lanes:
            lane.close()
