"""Prometheus metrics: requests, latencies, queues, batches, tokens, cache hits.

    server.http.middleware, server.jobs, server.verbs, server.state  ->  server.http.metrics  ->  /metrics

With several processes the counts are added up: server.serve sets METRICS_FOLDER.
"""

from __future__ import annotations

import os
import time

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from polyseme.server.http.limits import METRICS_FOLDER

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """The metrics of one application."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "polyseme_requests", "Requests answered", ["route", "status"], registry=registry
        )
        self._seconds = Histogram(
            "polyseme_request_seconds", "Response time", ["route"], buckets=SECONDS, registry=registry
        )
        self._batches = Histogram("polyseme_batch_texts", "Texts per batch", buckets=SIZES, registry=registry)
        self._tokens = Counter("polyseme_tokens", "Tokens processed", registry=registry)
        self._texts = Gauge(
            "polyseme_queue_texts",
            "Texts waiting for a batch",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._jobs = Gauge(
            "polyseme_queue_jobs",
            "Jobs waiting for a thread",
            ["pool"],
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._words = Counter(
            "polyseme_cache_words", "Words looked up in the token cache", ["found"], registry=registry
        )
        self._load_time = Gauge(
            "polyseme_load_time_seconds",
            "When the models were loaded, in seconds since 1970",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._cache_totals = {"yes": 0, "no": 0}

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_batch(self, texts: int, tokens: int) -> None:
        """Count a batch."""
        self._batches.observe(texts)
        self.count_tokens(tokens)

    def count_tokens(self, tokens: int) -> None:
        """Count tokens that a model processes, in a batch or for another job."""
        self._tokens.inc(tokens)

    def set_queued_texts(self, texts: int) -> None:
        """Note how many texts wait for a batch."""
        self._texts.set(texts)

    def set_queued_jobs(self, pool: str, waiting: int) -> None:
        """Note how many jobs wait for a thread of a pool."""
        self._jobs.labels(pool).set(waiting)

    def set_load_time(self) -> None:
        """Note that models were loaded."""
        self._load_time.set(time.time())

    def set_cache_totals(self, hits: int, misses: int) -> None:
        """Note the totals of the token cache."""
        for label, total in (("yes", hits), ("no", misses)):
            self._words.labels(label).inc(max(0, total - self._cache_totals[label]))
            self._cache_totals[label] = total

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        registry = self._registry
        if METRICS_FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return bytes(generate_latest(registry))


def forget_process(pid: int) -> None:
    """Remove the gauges of a process that has ended."""
    if METRICS_FOLDER in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]
