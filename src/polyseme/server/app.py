"""All rooms of the server in one application: routes, errors, pages, the guard around them.

server.verbs, server.openai, server.http.pages, server.http.middleware  ->  server.app  ->  server.run, tests
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from polyseme.server.catalog import Catalog
from polyseme.server.http import requests
from polyseme.server.http.limits import Limits, RefusedError
from polyseme.server.http.middleware import Guard, unforeseen
from polyseme.server.http.openapi import REFUSALS, answers_of, describe_keys
from polyseme.server.http.pages import add_pages, content_policy
from polyseme.server.http.rendering import answer, refused
from polyseme.server.jobs.worker_pool import start_daemon
from polyseme.server.openai import OpenAi
from polyseme.server.state import ServerState
from polyseme.server.verbs import Verbs

SHOWN = 5  # mistakes of a request that are told
# The names of all values of requests: what else a place is said to have are kinds of a union, not keys.
FIELDS = frozenset(
    name
    for model in vars(requests).values()
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name in model.model_fields
)


def create_app(
    load: Callable[[], Catalog], *, limits: Limits | None = None, key: str | None = None
) -> tuple[Guard, ServerState]:
    """The application and its state; what `load` gives is served from when it is there."""
    state = ServerState(load, limits or Limits())

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        start_daemon("load", state.prepare)
        yield
        state.close()

    app = FastAPI(
        title="Polyseme",
        version=version("polyseme"),
        description="Contextual word vectors, and what can be known from them.",
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        responses=REFUSALS,
        redirect_slashes=False,  # a redirection has not the form of our answers
    )
    app.state.polyseme = state
    Verbs(state).add_to(app)
    OpenAi(state).add_to(app)
    _add_facts(app, state, key is not None)
    add_pages(app)
    describe_keys(app, key is not None)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return Guard(app, state, content_policy(), key), state


def _add_facts(app: FastAPI, state: ServerState, key: bool) -> None:
    """What is served, whether it is ready, what was counted."""

    @app.head("/health", include_in_schema=False)
    @app.get("/health", response_class=Response, responses=answers_of("/health"))
    async def health() -> Response:
        """Whether requests are answered."""
        if state.problem is not None:
            raise RefusedError(503, "loading", "Loading failed; the log tells why.")
        state.served  # noqa: B018  # a refusal while it is loading
        return answer({"status": "ready"})

    @app.get("/info", response_class=Response, responses=answers_of("/info"))
    async def info() -> Response:
        """The model, the indexes, the tasks, the limits, and whether requests need a key."""
        return answer(state.served.info | {"limits": asdict(state.limits), "key": key})

    @app.get("/metrics", response_class=Response, responses=answers_of("/metrics"))
    async def metrics() -> Response:
        """Counts for Prometheus."""
        state.served  # noqa: B018
        state.count_cache()
        return Response(state.metrics.text(), media_type="text/plain; version=0.0.4")


async def _refused(request: Request, refusal: Any) -> Response:
    return refused(refusal)


async def _invalid(request: Request, problem: Any) -> Response:
    """Which values are wrong and why, without the values."""
    errors = problem.errors()
    if any(error["type"] == "json_invalid" for error in errors):
        return refused(RefusedError(400, "validation", "The body is not JSON."))
    said = list(dict.fromkeys(_mistake(error) for error in errors[:SHOWN]))  # kinds of a union say the same
    more = f" (and {len(errors) - SHOWN} more)" if len(errors) > SHOWN else ""
    return refused(RefusedError(422, "validation", "; ".join(said) + more))


def _mistake(error: dict[str, Any]) -> str:
    """Where a value is wrong, and why; the name of an unknown key was sent, and is not repeated."""
    place = error["loc"][1:]
    if error["type"] == "extra_forbidden":
        return f"{_place(place[:-1])}: a key that is not known"
    return f"{_place(place)}: {error['msg']}"


def _place(parts: Sequence[str | int]) -> str:
    """The keys and numbers that lead to a value."""
    return ".".join(str(part) for part in parts if isinstance(part, int) or part in FIELDS) or "body"


async def _failed(request: Request, problem: Exception) -> Response:
    """What nobody foresaw; the guard logs it."""
    return refused(unforeseen(problem))


async def _http(request: Request, problem: Any) -> Response:
    """What the framework refuses: an unknown route, a wrong method."""
    kind = "not_found" if problem.status_code == 404 else "usage"
    return refused(RefusedError(problem.status_code, kind, str(problem.detail)), problem.headers)


HANDLERS: dict[type[Exception], Any] = {
    RefusedError: _refused,
    RequestValidationError: _invalid,
    HTTPException: _http,
    Exception: _failed,
}
