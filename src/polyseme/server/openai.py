"""OpenAI's embeddings API, for programs written for it: /v1/embeddings, /v1/models.

    server.http.requests  ->  server.openai  ->  server.jobs.batching

A vector is that of /embed with pool "sentence", which compares texts best, or "mean" if the model has none.
"""

from __future__ import annotations

import base64

import numpy as np
from fastapi import FastAPI, Response

from polyseme.choices import Pool
from polyseme.elmo import Array
from polyseme.server.http.limits import invalid, not_found
from polyseme.server.http.openapi import make_response_docs
from polyseme.server.http.rendering import array_to_json, make_json_response, make_json_response_from_parts
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
        ):
            docs = make_response_docs(route)
            app.add_api_route(route, handler, methods=[method], response_class=Response, responses=docs)

    async def embeddings(self, body: OpenAiRequest) -> Response:
        """Embed texts, one vector each."""
        catalog = self._state.catalog
        size = catalog.elmo.config.size
        if body.model != catalog.name:
            raise not_found(f"No such model; this server has {catalog.name}.")
        if body.dimensions not in (None, size):
            raise invalid(f"dimensions must be {size}, the size of this model's vectors.")
        texts = [body.input] if isinstance(body.input, str) else body.input
        pool: Pool = "mean" if catalog.elmo.model.pooling is None else "sentence"
        plan = await self._state.plan_embedding(texts, pool=pool)
        vectors = await self._state.batcher.embed(*plan)
        usage = {"prompt_tokens": plan.tokens, "total_tokens": plan.tokens}

        def render() -> Response:
            items = [_to_json(number, vector, body.encoding_format) for number, vector in enumerate(vectors)]
            data = b"[%s]" % b",".join(items)
            return make_json_response_from_parts(object="list", data=data, model=catalog.name, usage=usage)

        return await self._state.run_light(render, len(vectors) * size)

    async def models(self) -> Response:
        """List the model of this server."""
        model = {"id": self._state.catalog.name, "object": "model", "created": 0, "owned_by": "polyseme"}
        return make_json_response({"object": "list", "data": [model]})


def _to_json(number: int, vector: Array, encoding: str | None) -> bytes:
    """One vector as JSON: numbers, or their bytes in base64."""
    if encoding != "base64":
        return b'{"object":"embedding","index":%d,"embedding":%s}' % (number, array_to_json(vector))
    encoded = base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes())
    return b'{"object":"embedding","index":%d,"embedding":"%s"}' % (number, encoded)
