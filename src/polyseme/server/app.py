"""The ASGI application: routes, error handlers, pages and the middleware around them.

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
from polyseme.server.http.limits import HttpError, Limits
from polyseme.server.http.middleware import PIECE_BYTES, RequestMiddleware, internal_error
from polyseme.server.http.openapi import ERROR_RESPONSES, document_keys, make_response_docs
from polyseme.server.http.pages import add_pages, make_content_policy
from polyseme.server.http.rendering import make_error_response, make_json_response
from polyseme.server.jobs.worker_pool import start_daemon
from polyseme.server.openai import OpenAiRoutes
from polyseme.server.state import INLINE_SIZE, ServerState
from polyseme.server.verbs import CHUNK_TOKENS, VerbRoutes

MAX_ERRORS = 5  # of a request, in one message
# Names of all fields of requests. Other strings in the location of an error are members of a union.
FIELDS = frozenset(
    name
    for model in vars(requests).values()
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name in model.model_fields
)


def create_app(
    open_catalog: Callable[[], Catalog],
    *,
    limits: Limits | None = None,
    key: str | None = None,
    inline_size: int = INLINE_SIZE,
    chunk_tokens: int = CHUNK_TOKENS,
    piece_bytes: int = PIECE_BYTES,
) -> tuple[RequestMiddleware, ServerState]:
    """Create the ASGI application and its state.

    Args:
        open_catalog: Loads the models; called in a thread when the application starts. Until it returns,
            requests get 503.
        limits: Limits of requests; None for the defaults.
        key: API key that requests must send; None if they need none.
        inline_size: Characters to segment, or numbers to serialise, that need no thread.
        chunk_tokens: Tokens to predict before checking whether the request is gone.
        piece_bytes: Bytes of a response to write at once.

    """
    state = ServerState(open_catalog, limits or Limits(), inline_size=inline_size)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        start_daemon("load", state.load)
        yield
        state.close()

    app = FastAPI(
        title="Polyseme",
        version=version("polyseme"),
        description="Contextual word vectors, and analyses based on them.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        responses=ERROR_RESPONSES,
        redirect_slashes=False,  # a redirect would not have the format of our responses
    )
    app.state.polyseme = state
    VerbRoutes(state, chunk_tokens=chunk_tokens).add_to(app)
    OpenAiRoutes(state).add_to(app)
    _add_status_routes(app, state, key is not None)
    add_pages(app)
    document_keys(app, key is not None)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return RequestMiddleware(app, state, make_content_policy(), key, piece_bytes=piece_bytes), state


def _add_status_routes(app: FastAPI, state: ServerState, key: bool) -> None:
    """Add /health, /info and /metrics."""

    @app.head("/health", include_in_schema=False)
    @app.get("/health", response_class=Response, responses=make_response_docs("/health"))
    async def health() -> Response:
        """Tell whether the server is ready."""
        if state.load_error is not None:
            raise HttpError(503, "loading", "Loading failed; see the server's log.")
        state.catalog  # noqa: B018  # raises while it is loading
        return make_json_response({"status": "ready"})

    @app.get("/info", response_class=Response, responses=make_response_docs("/info"))
    async def info() -> Response:
        """Describe the model, indexes, task models and limits, and whether requests need a key."""
        return make_json_response(state.catalog.info | {"limits": asdict(state.limits), "key": key})

    @app.get("/metrics", response_class=Response, responses=make_response_docs("/metrics"))
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        state.catalog  # noqa: B018
        state.update_cache_metrics()
        return Response(state.metrics.render(), media_type="text/plain; version=0.0.4")


async def _handle_http_error(request: Request, error: Any) -> Response:
    return make_error_response(error)


async def _handle_invalid(request: Request, problem: Any) -> Response:
    """Say which fields are invalid and why, without repeating their values."""
    errors = problem.errors()
    if any(error["type"] == "json_invalid" for error in errors):
        return make_error_response(HttpError(400, "validation", "The body is not JSON."))
    messages = dict.fromkeys(
        map(_describe_error, errors[:MAX_ERRORS])
    )  # members of a union repeat themselves
    more = f" (and {len(errors) - MAX_ERRORS} more)" if len(errors) > MAX_ERRORS else ""
    return make_error_response(HttpError(422, "validation", "; ".join(messages) + more))


def _describe_error(error: dict[str, Any]) -> str:
    """Say which field is invalid, and why; the name of an unknown field is the client's and left out."""
    location = error["loc"][1:]
    if error["type"] == "extra_forbidden":
        return f"{_format_field_path(location[:-1])}: unknown field"
    return f"{_format_field_path(location)}: {error['msg']}"


def _format_field_path(parts: Sequence[str | int]) -> str:
    """The field names and list positions that lead to a value, as `texts.0`."""
    return ".".join(str(part) for part in parts if isinstance(part, int) or part in FIELDS) or "body"


async def _handle_failure(request: Request, problem: Exception) -> Response:
    """Answer an unexpected exception; the middleware logs it."""
    return make_error_response(internal_error(problem))


async def _handle_framework_error(request: Request, problem: Any) -> Response:
    """Answer errors of the framework: an unknown route, a wrong method."""
    error_type = "not_found" if problem.status_code == 404 else "usage"
    error = HttpError(problem.status_code, error_type, str(problem.detail))
    return make_error_response(error, problem.headers)


HANDLERS: dict[type[Exception], Any] = {
    HttpError: _handle_http_error,
    RequestValidationError: _handle_invalid,
    HTTPException: _handle_framework_error,
    Exception: _handle_failure,
}
