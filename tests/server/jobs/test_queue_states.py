"""The queue of texts, by random sequences of requests that come, wait and vanish."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders import random_model, small_config
from polyseme.elmo import Array, Elmo
from polyseme.model.output import resolve_output
from polyseme.server.http.limits import HttpError, Limits
from polyseme.server.http.metrics import Metrics
from polyseme.server.jobs.batching import Batcher

ELMO = Elmo(random_model(small_config()))
WORDS = ("the", "bank", "river")
QUEUE = 6
SPECS = [resolve_output(layer, None, "both", 3) for layer in ("top", "mean")]  # type: ignore[arg-type]


class Requests(RuleBasedStateMachine):
    """Requests to a batcher with a queue of QUEUE texts."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.batcher = Batcher(Limits(queue=QUEUE, batch_tokens=64, batch_wait=0.0), Metrics())
        self.waiting: list[tuple[asyncio.Task[list[Array]], list[list[str]], int]] = []

    async def _start(self, sentences: list[list[str]], spec: int) -> asyncio.Task[list[Array]]:
        task = asyncio.ensure_future(self.batcher.embed(ELMO, sentences, SPECS[spec]))
        await asyncio.sleep(0)
        return task

    @rule(
        sentences=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=5), min_size=1, max_size=4),
        spec=st.integers(0, 1),
    )
    def send(self, sentences: list[list[str]], spec: int) -> None:
        """A request comes; it is refused only if its texts did not fit into the queue.

        What does not fit when it comes may fit a moment later, when the batcher has taken others. The queue
        is never too long: see the invariant.
        """
        room = QUEUE - len(self.batcher)
        task = self.loop.run_until_complete(self._start(sentences, spec))
        if len(sentences) > room and task.done():
            with pytest.raises(HttpError, match="Too many texts"):
                self.loop.run_until_complete(task)
        else:
            self.waiting.append((task, sentences, spec))

    @rule(number=st.integers(0, 20))
    def vanish(self, number: int) -> None:
        """A client disconnects: its texts leave the queue."""
        if self.waiting:
            task, _, _ = self.waiting.pop(number % len(self.waiting))
            task.cancel()
            self.loop.run_until_complete(asyncio.sleep(0))

    @rule()
    def wait_a_moment(self) -> None:
        self.loop.run_until_complete(asyncio.sleep(0.001))

    @rule()
    def finish(self) -> None:
        """Every request that waits gets the vectors of its own texts."""
        for task, sentences, spec in self.waiting:
            arrays = self.loop.run_until_complete(asyncio.wait_for(task, 60))
            layer = ("top", "mean")[spec]
            for array, expected in zip(arrays, ELMO.embed(sentences, layer=layer), strict=True):  # type: ignore[arg-type]
                np.testing.assert_allclose(array, expected, atol=1e-5)
        self.waiting.clear()

    @invariant()
    def the_queue_is_bounded(self) -> None:
        assert 0 <= len(self.batcher) <= QUEUE

    def teardown(self) -> None:
        self.finish()
        self.loop.run_until_complete(asyncio.sleep(0))
        assert len(self.batcher) == 0
        self.batcher.close()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()


TestRequests = Requests.TestCase
TestRequests.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
