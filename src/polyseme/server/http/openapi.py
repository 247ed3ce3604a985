"""What openapi.json says of answers, refusals and keys, beside the requests that FastAPI describes itself.

server.http.responses  ->  server.http.openapi  ->  server.app, server.http.pages
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from polyseme.server.http import responses
from polyseme.server.http.middleware import OPEN
from polyseme.server.http.rendering import JSON, RAW, SHAPES

Responses = dict[int | str, dict[str, Any]]
RESULTS: dict[str, type[BaseModel]] = {
    "/tokenize": responses.TokenizeResult,
    "/embed": responses.EmbedResult,
    "/embed_all": responses.EmbedAllResult,
    "/score": responses.ScoreResult,
    "/substitutes": responses.SubstitutesResult,
    "/nearest": responses.NearestResult,
    "/senses": responses.SensesResult,
    "/change": responses.ChangeResult,
    "/similarity": responses.SimilarityResult,
    "/predict": responses.PredictResult,
    "/v1/embeddings": responses.OpenAiResult,
    "/v1/models": responses.OpenAiModels,
    "/health": responses.HealthResult,
    "/info": responses.InfoResult,
}
NUMBERS = ("/embed", "/embed_all")  # routes that give raw numbers where Accept asks for them
REFUSALS: Responses = {
    status: {"description": what, "model": responses.Refusal}
    for status, what in {
        400: "No JSON",
        401: "No key, or a wrong one",
        404: "No such index, task, model or word",
        408: "The body came too slowly",
        413: "Too large",
        422: "Not what is expected",
        429: "Too busy",
        503: "Loading or stopping, or not enough memory",
        504: "Too slow",
    }.items()
}
KEYS = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "browser": {"type": "http", "scheme": "basic", "description": "The key is the password; any name."},
}


def answers_of(route: str) -> Responses:
    """The answer of a route, for the description alone: nothing is checked against it while serving."""
    if route not in RESULTS:
        return {200: {"description": "Text", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    model = RESULTS[route]
    found: dict[str, Any] = {"description": model.__doc__, "model": model}
    if route in NUMBERS:
        raw = {"type": "string", "format": "binary", "description": "Little-endian numbers, all vectors."}
        shapes = {"description": "With raw numbers: their shapes, as JSON.", "schema": {"type": "string"}}
        found["content"] = {JSON: {}} | {kind: {"schema": raw} for kind in RAW}
        found["headers"] = {SHAPES: shapes}
    return {200: found}


def describe_keys(app: FastAPI, needed: bool) -> None:
    """Let the application's schema say how a key is given, and, where it is needed, for which routes."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        schema = plain()
        schema["components"]["securitySchemes"] = KEYS
        if needed:
            schema["security"] = [{name: []} for name in KEYS]
            for route in OPEN:
                for operation in schema["paths"][route].values():
                    operation["security"] = []
        return schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to add to its schema
