"""OpenAI's embeddings API, for programs written for it: /v1/embeddings, /v1/models.

    server.http.requests  ->  server.openai  ->  server.jobs.batching

A vector is that of /embed with pool "sentence", which compares texts best, or "mean" if the model has none.
Errors have OpenAI's format, too (server.http.rendering).
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from fastapi import FastAPI, Response

from polyseme.choices import Pool
from polyseme.elmo import Array
from polyseme.server.catalog import Catalog
from polyseme.server.http.limits import HttpError
from polyseme.server.http.openapi import OPENAI_ERROR_RESPONSES, make_response_docs
from polyseme.server.http.rendering import (
    array_to_json,
    make_json_response,
    make_json_response_from_parts,
    shorten,
)
from polyseme.server.http.requests import OpenAiRequest
from polyseme.server.state import ServerState


class OpenAiRoutes:
    """The routes of /v1."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        for route, handler, method in (
            ("/v1/embeddings", self.embeddings, "POST"),
            ("/v1/models", self.models, "GET"),
            ("/v1/models/{model}", self.model, "GET"),
        ):
            app.add_api_route(
                route,
                self._state.choose_model(handler),
                methods=[method],
                response_class=Response,
                responses=make_response_docs(route) | OPENAI_ERROR_RESPONSES,
            )

    async def embeddings(self, body: OpenAiRequest) -> Response:
        """Embed texts, one vector each."""
        catalog = self._state.catalog
        size = catalog.elmo.config.size
        if body.dimensions is not None and body.dimensions > size:
            message = f"dimensions must be at most {size}, the size of this model's vectors."
            raise HttpError(422, "usage", message, param="dimensions")
        texts = [body.input] if isinstance(body.input, str) else body.input
        pool: Pool = "mean" if catalog.elmo.model.pooling is None else "sentence"
        plan = await self._state.plan_embedding(texts, pool=pool, max_texts=self._state.limits.max_inputs)
        count = len(texts) * (body.dimensions or size)
        self._state.check_values(count)
        vectors = await self._state.embed_many(plan)
        usage = {"prompt_tokens": plan.tokens, "total_tokens": plan.tokens}

        def render() -> Response:
            items = [
                _to_json(number, shorten(vector, body.dimensions), body.encoding_format)
                for number, vector in enumerate(vectors)
            ]
            data = b"[%s]" % b",".join(items)
            return make_json_response_from_parts(object="list", data=data, model=catalog.name, usage=usage)

        return await self._state.run_light(render, len(vectors) * size)

    async def models(self) -> Response:
        """List the models of this server."""
        models = [_describe_model(catalog) for catalog in self._state.models.catalogs.values()]
        return make_json_response({"object": "list", "data": models})

    async def model(self, model: str) -> Response:
        """Describe a model of this server."""
        return make_json_response(_describe_model(self._state.models.get(model)))


def _describe_model(catalog: Catalog) -> dict[str, Any]:
    return {"id": catalog.name, "object": "model", "created": catalog.created, "owned_by": "polyseme"}


def _to_json(number: int, vector: Array, encoding: str | None) -> bytes:
    """One vector as JSON: numbers, or their bytes in base64."""
    if encoding != "base64":
        return b'{"object":"embedding","index":%d,"embedding":%s}' % (number, array_to_json(vector))
    encoded = base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes())
    return b'{"object":"embedding","index":%d,"embedding":"%s"}' % (number, encoded)
