"""Additions to openapi.json: responses, errors and API keys. FastAPI itself describes the requests.

server.http.responses  ->  server.http.openapi  ->  server.app, server.http.pages
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from polyseme.server.http import responses
from polyseme.server.http.middleware import PUBLIC_ROUTES
from polyseme.server.http.rendering import JSON, RAW_TYPES, SHAPES_HEADER

ResponseDocs = dict[int | str, dict[str, Any]]
RESPONSES: dict[str, type[BaseModel]] = {
    "/tokenize": responses.TokenizeResponse,
    "/embed": responses.EmbedResponse,
    "/embed_all": responses.EmbedAllResponse,
    "/score": responses.ScoreResponse,
    "/substitutes": responses.SubstitutesResponse,
    "/nearest": responses.NearestResponse,
    "/senses": responses.SensesResponse,
    "/characters": responses.CharactersResponse,
    "/timeline": responses.TimelineResponse,
    "/concordance": responses.ConcordanceResponse,
    "/collocates": responses.CollocatesResponse,
    "/passage": responses.PassageResponse,
    "/change": responses.ChangeResponse,
    "/similarity": responses.SimilarityResponse,
    "/predict": responses.PredictResponse,
    "/generate": responses.GenerateResponse,
    "/map": responses.MapResponse,
    "/summarise": responses.SummariseResponse,
    "/evaluate": responses.EvaluateResponse,
    "/disambiguate": responses.DisambiguateResponse,
    "/v1/embeddings": responses.OpenAiResponse,
    "/v1/models": responses.OpenAiModelsResponse,
    "/v1/models/{model}": responses.OpenAiModel,
    "/health": responses.HealthResponse,
    "/info": responses.InfoResponse,
}
OTHER_RESPONSES: dict[str, type[BaseModel]] = {  # to another kind of request
    "/embed": responses.TeiResponse,
    "/evaluate": responses.TaskScores,
}
RAW_ROUTES = ("/embed", "/embed_all")  # routes that return raw numbers if the Accept header asks for them
ERROR_RESPONSES: ResponseDocs = {
    status: {"description": description, "model": responses.ErrorResponse}
    for status, description in {
        400: "The body is not JSON",
        401: "The API key is missing or wrong",
        404: "No such index, task, model or word",
        408: "The body arrived too slowly",
        413: "The request exceeds a limit",
        415: "The header Content-Type: application/json is missing",
        422: "The request is not valid",
        429: "The server is too busy",
        503: "The server is loading, shutting down or out of memory",
        504: "The request timed out",
    }.items()
}
OPENAI_ERROR_RESPONSES: ResponseDocs = {
    status: docs | {"model": responses.OpenAiErrorResponse} for status, docs in ERROR_RESPONSES.items()
}
SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "browser": {"type": "http", "scheme": "basic", "description": "The key is the password, with any user."},
}


def make_response_docs(route: str) -> ResponseDocs:
    """The response of a route, for the documentation only: the server does not validate its responses."""
    if route not in RESPONSES:
        return {200: {"description": "Text", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    model = RESPONSES[route]
    docs: dict[str, Any] = {"description": model.__doc__, "model": model}
    if route in OTHER_RESPONSES:
        docs["model"] = model | OTHER_RESPONSES[route]
    if route in RAW_ROUTES:
        raw = {"type": "string", "format": "binary", "description": "Little-endian numbers of all vectors."}
        shapes = {"description": "With raw numbers: their shapes as JSON.", "schema": {"type": "string"}}
        docs["content"] = {JSON: {}} | {media_type: {"schema": raw} for media_type in RAW_TYPES}
        docs["headers"] = {SHAPES_HEADER: shapes}
    return {200: docs}


def document_keys(app: FastAPI, required: bool) -> None:
    """Add to the application's schema how a key is sent and, if one is required, for which routes."""
    make_schema = app.openapi

    def build_openapi() -> dict[str, Any]:
        schema = make_schema()
        schema["components"]["securitySchemes"] = SECURITY_SCHEMES
        if required:
            schema["security"] = [{name: []} for name in SECURITY_SCHEMES]
            for route in PUBLIC_ROUTES:
                for operation in schema["paths"][route].values():
                    operation["security"] = []
        return schema

    app.openapi = build_openapi  # type: ignore[method-assign]  # how FastAPI suggests to extend the schema
