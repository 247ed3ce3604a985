"""What is counted, for Prometheus: requests, latencies, the queues, batches, tokens, cache hits.

server.http.middleware, server.jobs.batching, server.verbs, server.state
->  server.http.metrics  ->  /metrics

With several processes the counts of all are added: server.serve sets SHARED.
"""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from polyseme.server.http.limits import SHARED

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The counts of one application."""

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        self._requests = Counter(
            "polyseme_requests", "Requests answered", ["route", "status"], registry=self._own
        )
        self._seconds = Histogram(
            "polyseme_request_seconds", "Time to answer", ["route"], buckets=SECONDS, registry=self._own
        )
        self._batches = Histogram(
            "polyseme_batch_texts", "Texts of a batch", buckets=SIZES, registry=self._own
        )
        self._tokens = Counter("polyseme_tokens", "Tokens read", registry=self._own)
        self._queue = Gauge(
            "polyseme_queue_texts", "Texts that wait", registry=self._own, multiprocess_mode="livesum"
        )
        self._questions = Gauge(
            "polyseme_queue_questions",
            "Questions that wait for a thread",
            ["threads"],
            registry=self._own,
            multiprocess_mode="livesum",
        )
        self._words = Counter(
            "polyseme_cache_words", "Words looked up in the token cache", ["found"], registry=self._own
        )
        self._seen = {"yes": 0, "no": 0}

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch(self, texts: int, tokens: int) -> None:
        """A batch begins."""
        self._batches.observe(texts)
        self.read(tokens)

    def read(self, tokens: int) -> None:
        """So many tokens are given to a model, in a batch or for a question."""
        self._tokens.inc(tokens)

    def queue(self, texts: int) -> None:
        """So many texts wait now."""
        self._queue.set(texts)

    def questions(self, threads: str, waiting: int) -> None:
        """So many questions wait now for threads of that name."""
        self._questions.labels(threads).set(waiting)

    def cache(self, hits: int, misses: int) -> None:
        """The totals of the token cache."""
        for found, total in (("yes", hits), ("no", misses)):
            self._words.labels(found).inc(max(0, total - self._seen[found]))
            self._seen[found] = total

    def text(self) -> bytes:
        """All counts, as Prometheus reads them."""
        registry = self._own
        if SHARED in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))


def forget_process(number: int) -> None:
    """A process is gone: what waited in it does not wait any more."""
    if SHARED in os.environ:
        mark_process_dead(number)  # type: ignore[no-untyped-call]
