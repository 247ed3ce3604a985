"""The routes of a server for each finished corpus: /corpora/NAME/nearest, /corpora/NAME/info and so on.

    server.workspace.supervisor  ->  server.workspace.corpus_apps  ->  server.state, the routes of server.app

A corpus has a model and an index of its own, so it gets an application of its own with the routes of the
server. It is opened by the first request and closed when others are used more. The middleware of the server
is around all of them: API key, limits, log.

Invariant: a corpus is never closed while it has requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fastapi import FastAPI

from polyseme.elmo import ensure_loaded
from polyseme.errors import PolysemeError
from polyseme.search.index import open_index
from polyseme.server.catalog import Catalog
from polyseme.server.http.limits import HttpError, Limits
from polyseme.server.http.middleware import App, Receive, Scope, Send
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.worker_pool import start_daemon
from polyseme.server.state import ServerState
from polyseme.server.workspace.same_origin import check_same_origin
from polyseme.server.workspace.supervisor import FinishedCorpus, Workspace

PREFIX, ROUTES = "/corpora/", "/workspace"
MAX_OPEN = 3  # corpora in memory
MakeRoutes = Callable[[ServerState], FastAPI]
logger = logging.getLogger(LOGGER)


@dataclass(eq=False)
class OpenCorpus:
    """A corpus in memory."""

    state: ServerState
    app: FastAPI
    version: float
    loaded: asyncio.Event = field(default_factory=asyncio.Event)
    requests: int = 0  # in progress


class CorpusApps:
    """ASGI application around that of the server: sends requests of a corpus to its own application.

    Args:
        app: The application of the server.
        workspace: The workspace.
        make_routes: Makes an application with the routes of a server, for a state.
        limits: Limits of requests.
        has_key: Whether requests need an API key.

    """

    def __init__(
        self, app: App, workspace: Workspace, make_routes: MakeRoutes, limits: Limits, *, has_key: bool
    ) -> None:
        self._app, self._workspace, self._make_routes = app, workspace, make_routes
        self._limits, self._has_key = limits, has_key
        self._open: dict[str, OpenCorpus] = {}  # the least recently used first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path + "/").startswith((PREFIX, f"{ROUTES}/")):
            await self._app(scope, receive, send)
            return
        check_same_origin(scope["headers"], has_key=self._has_key)
        if not path.startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        name, slash, rest = path.removeprefix(PREFIX).partition("/")
        corpus = self._get(self._workspace.locate(name))
        corpus.requests += 1
        try:
            await corpus.loaded.wait()
            self._check_loaded(name, corpus)
            scope["path"] = slash + rest or "/"
            await corpus.app(scope, receive, send)
        finally:
            corpus.requests -= 1
            if not corpus.requests and self._open.get(name) is not corpus:  # a newer version replaced it
                corpus.state.close()
            self._close_unused()

    def _get(self, finished: FinishedCorpus) -> OpenCorpus:
        """The corpus, which is opened in a thread if it is not open in this version."""
        corpus = self._open.pop(finished.name, None)
        if corpus is None or corpus.version != finished.version:
            if corpus is not None and not corpus.requests:
                corpus.state.close()
            corpus = self._begin_to_open(finished)
        self._open[finished.name] = corpus  # now the most recently used
        return corpus

    def _begin_to_open(self, finished: FinishedCorpus) -> OpenCorpus:
        state = ServerState(partial(open_corpus, finished), self._limits)
        corpus = OpenCorpus(state, self._make_routes(state), finished.version)
        loop = asyncio.get_running_loop()

        def note() -> None:
            with suppress(RuntimeError):  # the loop is closed: the server has stopped meanwhile
                loop.call_soon_threadsafe(corpus.loaded.set)

        state.on_load = state.on_load_failure = note
        start_daemon(f"open-{finished.name}", state.load)
        return corpus

    def _check_loaded(self, name: str, corpus: OpenCorpus) -> None:
        """Refuse a corpus that could not be opened; the next request tries again."""
        problem = corpus.state.load_error
        if problem is None:
            return
        if self._open.get(name) is corpus:
            del self._open[name]
        logger.error("a corpus cannot be opened: %s", problem, exc_info=problem)
        if not isinstance(problem, PolysemeError):
            raise problem
        message = "The model or index of this corpus cannot be opened. Cancel it and start it again."
        raise HttpError(409, "conflict", message, code="corpus_damaged")

    def _close_unused(self) -> None:
        """Close the least recently used corpora beyond MAX_OPEN, and those that were deleted."""
        idle = [name for name, corpus in self._open.items() if not corpus.requests]
        kept = {corpus.name for corpus in self._workspace.corpora}
        for name in idle:
            if name not in kept or len(self._open) > MAX_OPEN:
                self._open.pop(name).state.close()

    def close(self) -> None:
        """Close all corpora."""
        for corpus in self._open.values():
            corpus.state.close()
        self._open.clear()


def open_corpus(finished: FinishedCorpus) -> Catalog:
    """Open the model and the index of a corpus; both have its name."""
    elmo = ensure_loaded(finished.model_path)
    index = open_index(finished.index_path, elmo)
    index.elmo  # noqa: B018  # before the first request
    elmo.embed([["."]])  # packs the weights
    return Catalog(finished.name, Path(finished.model_path), elmo, {finished.name: index})
