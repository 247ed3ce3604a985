"""The embeddings of text-embeddings-inference, for programs written for it: /embed with `inputs`.

    server.verbs  ->  server.tei  ->  server.jobs.batching

A vector is that of /v1/embeddings. The response is a list of vectors and nothing else.
"""

from __future__ import annotations

from fastapi import Response

from polyseme.choices import Pool
from polyseme.server.http.limits import invalid
from polyseme.server.http.rendering import JSON, arrays_to_json, shorten
from polyseme.server.http.requests import TeiRequest
from polyseme.server.state import ServerState


async def embed_for_tei(state: ServerState, body: TeiRequest) -> Response:
    """Embed texts, one vector each."""
    elmo, limits = state.catalog.elmo, state.limits
    size = body.dimensions or elmo.config.size
    if size > elmo.config.size:
        raise invalid(f"dimensions must be at most {elmo.config.size}, the size of this model's vectors.")
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    state.check_values(len(texts) * size)
    pool: Pool = "mean" if elmo.model.pooling is None else "sentence"
    cuts_end = (body.truncation_direction or "Right").lower() == "right"
    plan = await state.plan_embedding(
        texts,
        pool=pool,
        max_texts=limits.max_inputs,
        keep=None if not body.truncate else "first" if cuts_end else "last",
    )
    vectors = await state.embed_many(plan)

    def render() -> Response:
        rows = [vector[:size] if body.normalize is False else shorten(vector, size) for vector in vectors]
        return Response(arrays_to_json(rows), media_type=JSON)

    return await state.run_light(render, len(texts) * elmo.config.size)
