"""Bulk embedding on a Ray cluster: Ray Data distributes parts; each actor loads the model once.

    bulk_embedding  ->  integrations.ray  ->  api

A row of the dataset is a part of the folder. If an actor is killed, Ray gives its part to another one,
which keeps the shards that are on disk. So every sentence is written exactly once, and the folder is the
same as without Ray.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polyseme.bulk_embedding import BulkSettings, embed_folder
from polyseme.elmo import BATCH_TOKENS, Counts, Elmo, load
from polyseme.errors import PolysemeError, UsageError, require
from polyseme.formats.models.open import make_portable
from polyseme.formats.vectors import manifest
from polyseme.formats.vectors.manifest import Part
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter, ignore_progress

MIN_PARTS = 64  # of a new folder, or four per actor: many, so that actors finish together
OBJECT_STORE_BYTES = 128 << 20  # of a local Ray; only numbers and counts pass through it


class Worker:
    """Runs in an actor: loads the model once, then embeds one part per call."""

    def __init__(self, model: str, options: str | None, cluster: Cluster, work: dict[str, Any]) -> None:
        self._work = work
        self._elmo: Elmo | None = None
        self._problem = ""
        try:
            self._elmo = load(model, options, precision=cluster.precision, batch_tokens=cluster.batch_tokens)
        except PolysemeError as problem:
            self._problem = str(problem)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Embed a part; a PolysemeError is returned as its message."""
        counts, problem = Counts(), self._problem
        if self._elmo is not None:
            bulk: BulkSettings = self._work["bulk"]
            part = Part(int(row["part"]), bulk.part.of)
            try:
                counts = embed_folder(
                    self._elmo, self._work["texts"], self._work["folder"], replace(bulk, part=part)
                )
            except PolysemeError as error:
                problem = str(error)
        result = {"sentences": counts.sentences, "tokens": counts.tokens, "truncated": counts.truncated}
        return result | {"problem": problem, "actor": os.getpid()}


@dataclass(frozen=True)
class Cluster:
    """A Ray cluster, and how its actors run the model."""

    address: str | None = None  # None: this machine
    actors: int | None = None  # None: one per core
    batch_tokens: int = BATCH_TOKENS
    precision: str | None = None
    min_parts: int = MIN_PARTS


def embed_on_ray(
    model: str | Path,
    options: str | Path | None,
    texts: Sequence[str | Path],
    folder: Path,
    bulk: BulkSettings,
    cluster: Cluster,
    *,
    force: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Counts:
    """Write the vectors of `texts` into `folder` with the actors of a Ray cluster.

    Args:
        model: A path that every machine of the cluster can read, or the name of a bundled model.
        options: The options.json of an .hdf5 file; None if it has its usual name.
        texts: Files and folders of text that every machine can read.
        folder: The output, which every machine can write.
        bulk: Settings of the folder; its part is ignored.
        cluster: The cluster, or this machine.
        force: Remove what an earlier run wrote.
        on_progress: Receives progress events.

    Returns:
        Counts of the whole folder.

    """
    ray = require("ray", "ray", "The engine ray")
    data = require("ray.data", "ray", "The engine ray")
    if force:
        manifest.remove_output(folder)
    with _connected(ray, cluster):
        n_actors = cluster.actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        n_parts = _count_parts(folder) or max(cluster.min_parts, 4 * n_actors)
        settings = replace(bulk, part=Part(1, n_parts))
        arguments = make_worker_arguments(model, options, texts, folder, settings, cluster)
        data.DataContext.get_current().enable_progress_bars = False
        rows = data.from_items([{"part": n} for n in range(1, n_parts + 1)], override_num_blocks=n_parts)
        results = rows.map(
            Worker,
            fn_constructor_args=arguments,
            compute=data.ActorPoolStrategy(size=min(n_actors, n_parts)),
            num_cpus=1,
        )
        return _sum(results.iter_rows(), n_parts, on_progress)


def make_worker_arguments(
    model: str | Path,
    options: str | Path | None,
    texts: Sequence[str | Path],
    folder: Path,
    bulk: BulkSettings,
    cluster: Cluster,
) -> tuple[str, str | None, Cluster, dict[str, Any]]:
    """Arguments of `Worker`; paths are absolute because an actor has its own working folder.

    The name of a bundled model stays a name: every machine has its own copy.
    """
    work = {
        "texts": [_make_absolute(text) for text in texts],
        "folder": Path(_make_absolute(folder)),
        "bulk": bulk,
    }
    return make_portable(model), None if options is None else _make_absolute(options), cluster, work


def _make_absolute(path: str | Path) -> str:
    return os.path.abspath(os.path.expanduser(path))


def _sum(rows: Iterable[dict[str, Any]], n_parts: int, on_progress: OnProgress) -> Counts:
    total, meter = Counts(), RateMeter()
    for n_done, row in enumerate(rows, start=1):
        if row["problem"]:
            raise UsageError(row["problem"])
        total.sentences += row["sentences"]
        total.tokens += row["tokens"]
        total.truncated += row["truncated"]
        on_progress(ProgressEvent("embedding", n_done, n_parts, meter.add(row["tokens"])))
    return total


def _count_parts(folder: Path) -> int | None:
    """The number of parts that a folder was begun with."""
    return next((header.part.of for header in manifest.read_headers(folder).values()), None)


@contextmanager
def _connected(ray: Any, cluster: Cluster) -> Iterator[None]:
    """Connect to Ray: to the one of this process, at the cluster's address, or started for this call."""
    if ray.is_initialized():
        yield
        return
    _check_address(cluster.address)
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors are reported by us
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    settings: dict[str, Any] = {"address": cluster.address, "log_to_driver": False, "logging_level": "error"}
    if cluster.address is None:
        settings |= {
            "num_cpus": cluster.actors,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
        }
    try:
        ray.init(**settings)
    except ConnectionError as problem:
        raise UsageError(
            f"{cluster.address}: no Ray cluster answers ({problem}). Check the `address`."
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


def _check_address(address: str | None) -> None:
    """Refuse an address where nothing listens at once; Ray would try for minutes."""
    match = re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address or "")
    if not match:
        return
    try:
        socket.create_connection((match[1], int(match[2])), timeout=10).close()
    except OSError as problem:
        raise UsageError(
            f"{address}: no Ray cluster answers ({problem.strerror}). Check the `address`."
        ) from None
