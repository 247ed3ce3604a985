"""The ASGI application: routes, error handlers, pages and the middleware around them.

server.verbs, server.openai, server.http.pages, server.http.middleware  ->  server.app  ->  server.run, tests
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from importlib.metadata import version
from typing import Any, get_args, get_type_hints

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from polyseme.server.concordances import ConcordanceRoutes
from polyseme.server.evaluation import EvaluationRoutes
from polyseme.server.http import requests
from polyseme.server.http.limits import HttpError, Limits
from polyseme.server.http.middleware import PIECE_BYTES, App, RequestMiddleware, internal_error
from polyseme.server.http.openapi import ERROR_RESPONSES, document_keys, make_response_docs
from polyseme.server.http.pages import CONTENT_POLICY, add_pages
from polyseme.server.http.rendering import SHAPES_HEADER, make_error_response, make_json_response
from polyseme.server.http.requests import ModelName
from polyseme.server.jobs.worker_pool import start_daemon
from polyseme.server.openai import OpenAiRoutes
from polyseme.server.state import INLINE_SIZE, Opened, ServerState
from polyseme.server.verbs import CHUNK_TOKENS, PERSONS_WAIT, VerbRoutes
from polyseme.server.workspace import schemas
from polyseme.server.workspace.corpus_apps import CorpusApps
from polyseme.server.workspace.routes import WorkspaceRoutes
from polyseme.server.workspace.supervisor import Workspace

MAX_ERRORS = 5  # of a request, in one message
MAX_NAME = 50  # characters of an unknown name to compare with those we have
# What other servers call our fields.
SYNONYMS = {
    **dict.fromkeys(("text", "input", "inputs", "sentences", "documents"), ("texts", "text", "sentence")),
    **dict.fromkeys(("texts", "sentence"), ("texts", "text", "sentence")),
    **dict.fromkeys(("top_k", "topk", "n", "limit", "size", "num_results"), ("k",)),
    **dict.fromkeys(("max_tokens", "max_new_tokens", "length"), ("tokens",)),
    **dict.fromkeys(("pooling", "aggregation"), ("pool",)),
    **dict.fromkeys(("query", "term", "token"), ("word",)),
    **dict.fromkeys(("model_id", "model_name"), ("model",)),
    "classifier": ("task",),
}
# Names of all fields of requests. Other strings in the location of an error are members of a union.
FIELDS = frozenset(
    name
    for model in (*vars(requests).values(), *vars(schemas).values())
    if isinstance(model, type) and issubclass(model, BaseModel)
    for name in model.model_fields
) | {"offset", "size"}


def create_app(
    open_models: Callable[[], Opened],
    *,
    limits: Limits | None = None,
    key: str | None = None,
    cors_origins: Sequence[str] = (),
    inline_size: int = INLINE_SIZE,
    chunk_tokens: int = CHUNK_TOKENS,
    persons_wait: float = PERSONS_WAIT,
    piece_bytes: int = PIECE_BYTES,
    workspace: Workspace | None = None,
) -> tuple[App, ServerState]:
    """Create the ASGI application and its state.

    Args:
        open_models: Loads the models; called in a thread when the application starts, and at each reload.
            Until it returns for the first time, requests get 503.
        limits: Limits of requests; None for the defaults.
        key: API key that requests must send; None if they need none.
        cors_origins: Sites whose pages may read responses; "*" for all.
        inline_size: Characters to segment, or numbers to serialise, that need no thread.
        chunk_tokens: Tokens to predict before checking whether the request is gone.
        persons_wait: Seconds that a request waits for the persons of an index.
        piece_bytes: Bytes of a response to write at once.
        workspace: Where users train models on their own text; None if they may not.

    """
    limits = limits or Limits()
    state = ServerState(open_models, limits, inline_size=inline_size)
    make_routes = partial(
        _make_routes,
        key=key is not None,
        workspace=workspace is not None,
        chunk_tokens=chunk_tokens,
        persons_wait=persons_wait,
    )

    closing = [state.close]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        start_daemon("load", state.load)
        if workspace is not None:
            workspace.start()
        yield
        for close in reversed(closing):
            close()

    app = make_routes(state, lifespan=lifespan)
    add_pages(app)
    served: App = app
    if workspace is not None:
        routes = WorkspaceRoutes(workspace)
        routes.add_to(app)
        served = corpora = CorpusApps(app, workspace, make_routes, limits, has_key=key is not None)
        closing += [corpora.close, routes.close, workspace.close]
    wrapped: App = RequestMiddleware(served, state, CONTENT_POLICY, key, piece_bytes=piece_bytes)
    return _allow_origins(wrapped, cors_origins) if cors_origins else wrapped, state


def _make_routes(
    state: ServerState,
    *,
    key: bool,
    workspace: bool,
    chunk_tokens: int,
    persons_wait: float,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """An application with the routes of all verbs, for the models of a state."""
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
    VerbRoutes(state, chunk_tokens=chunk_tokens, persons_wait=persons_wait).add_to(app)
    ConcordanceRoutes(state).add_to(app)
    EvaluationRoutes(state).add_to(app)
    OpenAiRoutes(state).add_to(app)
    _add_status_routes(app, state, key, workspace)
    document_keys(app, key)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


def _allow_origins(app: App, origins: Sequence[str]) -> App:
    """Let pages of other sites read responses; errors too, and browsers ask first without a key."""
    headers = ["X-Request-Id", "Retry-After", SHAPES_HEADER]
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=headers,
    )


def _add_status_routes(app: FastAPI, state: ServerState, key: bool, workspace: bool) -> None:
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
    async def info(model: ModelName = None) -> Response:
        """Describe a model, its indexes and task models, and the limits and other models of the server."""
        catalog = state.models.first if model is None else state.models.get(model)
        server = {"models": list(state.models.catalogs), "limits": asdict(state.limits)}
        return make_json_response(catalog.info | server | {"key": key, "workspace": workspace})

    @app.get("/metrics", response_class=Response, responses=make_response_docs("/metrics"))
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        state.catalog  # noqa: B018
        state.update_cache_metrics()
        return Response(state.metrics.render(), media_type="text/plain; version=0.0.4")


async def _handle_http_error(request: Request, error: Any) -> Response:
    return make_error_response(error, path=request.scope["path"])


async def _handle_invalid(request: Request, problem: Any) -> Response:
    """Say which fields are invalid and why, without repeating their values."""
    return make_error_response(_explain_invalid(request, problem.errors()), path=request.scope["path"])


def _explain_invalid(request: Request, errors: list[dict[str, Any]]) -> HttpError:
    """The error for a body that does not fit its schema."""
    in_body = any(error["loc"][0] == "body" for error in errors)  # not in the address
    if in_body and not _is_json(request):
        return HttpError(
            415,
            "validation",
            "The body was not read as JSON. Send the header Content-Type: application/json.",
        )
    if any(error["type"] == "json_invalid" for error in errors):
        return HttpError(400, "validation", "The body is not JSON.")
    models = _get_body_models(request)
    messages = dict.fromkeys(  # members of a union repeat themselves
        _describe_error(error, models) for error in errors[:MAX_ERRORS]
    )
    more = f" (and {len(errors) - MAX_ERRORS} more)" if len(errors) > MAX_ERRORS else ""
    field = _format_field_path(errors[0]["loc"][1:])
    return HttpError(422, "validation", "; ".join(messages) + more, param=None if field == "body" else field)


def _is_json(request: Request) -> bool:
    """Whether the headers say that the body is JSON; another site's page cannot say so without permission."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind, _, subtype = media_type.partition("/")
    return kind == "application" and (subtype == "json" or subtype.endswith("+json"))


def _get_body_models(request: Request) -> Sequence[type[BaseModel]]:
    """The schemas of the body that the route of a request takes."""
    body = get_type_hints(request.scope["route"].endpoint).get("body")
    return get_args(body) or (body,)


def _describe_error(error: dict[str, Any], models: Sequence[type[BaseModel]]) -> str:
    """Say which field is invalid, and why; the name of an unknown field is the client's and left out."""
    location = error["loc"][1:]
    if error["type"] == "extra_forbidden":
        model = next((model for model in models if model.__name__ in location), models[0])
        return f"{_format_field_path(location[:-1])}: unknown field; {_suggest_field(location[-1], model)}"
    return f"{_format_field_path(location)}: {error['msg'].removeprefix('Value error, ')}"


def _suggest_field(name: str, model: type[BaseModel]) -> str:
    """Suggest the field that a client may have meant, or list all."""
    fields = sorted(model.model_fields, key="model".__eq__)  # which all routes take
    synonym = next((field for field in SYNONYMS.get(name.lower(), ()) if field in fields), None)
    close = get_close_matches(name[:MAX_NAME], fields, n=1)
    guess = synonym or next(iter(close), None)
    return f"did you mean {guess}?" if guess else f"this route takes {', '.join(fields)}"


def _format_field_path(parts: Sequence[str | int]) -> str:
    """The field names and list positions that lead to a value, as `texts.0`."""
    return ".".join(str(part) for part in parts if isinstance(part, int) or part in FIELDS) or "body"


async def _handle_failure(request: Request, problem: Exception) -> Response:
    """Answer an unexpected exception; the middleware logs it."""
    return make_error_response(internal_error(problem), path=request.scope["path"])


async def _handle_framework_error(request: Request, problem: Any) -> Response:
    """Answer errors of the framework: an unknown route, a wrong method."""
    path, message = request.scope["path"], str(problem.detail)
    if problem.status_code == 404:
        routes = [route.path for route in request.app.routes if isinstance(route, APIRoute)]
        close = get_close_matches(path[:MAX_NAME], routes, n=1)
        message = f"No such route; did you mean {close[0]}?" if close else "No such route; /docs lists all."
    elif problem.status_code == 405 and problem.headers:
        message = f"This route takes {problem.headers['Allow']} only."
    error = HttpError(problem.status_code, "not_found" if problem.status_code == 404 else "usage", message)
    return make_error_response(error, problem.headers, path=path)


HANDLERS: dict[type[Exception], Any] = {
    HttpError: _handle_http_error,
    RequestValidationError: _handle_invalid,
    HTTPException: _handle_framework_error,
    Exception: _handle_failure,
}
