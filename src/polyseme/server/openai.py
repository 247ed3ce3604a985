"""The same vectors under OpenAI's names, so that programs written for it work: /v1/embeddings, /v1/models.

    server.http.requests  ->  server.openai  ->  server.jobs.batching

A vector is the mean over the words of the mean of the layers, as /embed gives it.
"""

from __future__ import annotations

import base64

import numpy as np
from fastapi import FastAPI, Response

from polyseme.elmo import Array
from polyseme.model.output import resolve_output
from polyseme.server.http.limits import missing, wrong
from polyseme.server.http.openapi import answers_of
from polyseme.server.http.rendering import answer, answer_parts, numbers
from polyseme.server.http.requests import OpenAiRequest
from polyseme.server.state import ServerState


class OpenAi:
    """The handlers of /v1."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def add_to(self, app: FastAPI) -> None:
        """All routes."""
        for route, handler, method in (
            ("/v1/embeddings", self.embeddings, "POST"),
            ("/v1/models", self.models, "GET"),
        ):
            told = answers_of(route)
            app.add_api_route(route, handler, methods=[method], response_class=Response, responses=told)

    async def embeddings(self, asked: OpenAiRequest) -> Response:
        """One vector a text."""
        served = self._state.served
        if asked.model != served.name:
            raise missing(f"There is no such model; there is {served.name}.")
        if asked.dimensions not in (None, served.elmo.config.size):
            raise wrong(f"dimensions is wrong: the vectors have {served.elmo.config.size}.")
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        sentences = await self._state.cut(texts)
        spec = resolve_output("mean", "mean", "both", served.elmo.config.layers)
        vectors = await self._state.batcher.vectors(sentences, spec)
        used = sum(map(len, sentences))
        usage = {"prompt_tokens": used, "total_tokens": used}

        def write() -> Response:
            rows = [_row(number, vector, asked.encoding_format) for number, vector in enumerate(vectors)]
            data = b"[%s]" % b",".join(rows)
            return answer_parts(object="list", data=data, model=served.name, usage=usage)

        return await self._state.quickly(write, len(vectors) * served.elmo.config.size)

    async def models(self) -> Response:
        """The one model that is served."""
        one = {"id": self._state.served.name, "object": "model", "created": 0, "owned_by": "polyseme"}
        return answer({"object": "list", "data": [one]})


def _row(number: int, vector: Array, form: str | None) -> bytes:
    """One vector as JSON: numbers, or their bytes in base64."""
    if form != "base64":
        return b'{"object":"embedding","index":%d,"embedding":%s}' % (number, numbers(vector))
    coded = base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes())
    return b'{"object":"embedding","index":%d,"embedding":"%s"}' % (number, coded)
