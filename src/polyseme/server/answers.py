"""Vectors and the like to the body of a response: JSON, or raw numbers where Accept asks for them.

    server.verbs  ->  server.answers  ->  a response

Raw numbers are little-endian, one array after the other; the header X-Polyseme-Shapes holds their shapes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from polyseme.embedder import Array
from polyseme.server.limits import RefusedError

RAW = {"application/x-float32": "<f4", "application/x-float16": "<f2"}
SHAPES = "X-Polyseme-Shapes"


def answer(values: Any) -> Response:
    """A JSON response; numbers go straight to text in C."""
    return Response(to_json(values), media_type="application/json")


def refused(refusal: RefusedError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response that a refusal is."""
    own = dict(headers or {})
    if refusal.retry_after is not None:
        own["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 401:
        own["WWW-Authenticate"] = 'Basic realm="polyseme"'  # Chromium reads no second scheme behind a comma
    values = {"error": refusal.message, "error_type": refusal.error_type}
    return JSONResponse(values, refusal.status, headers=own)


def wanted(request: Request) -> str | None:
    """The raw type that the Accept header asks for, or None: JSON."""
    accepted = request.headers.get("accept", "")
    types = (part.split(";")[0].strip() for part in accepted.split(","))
    return next((kind for kind in types if kind in RAW), None)


def raw(arrays: Sequence[Array], kind: str) -> Response:
    """Arrays as their bytes."""
    body = b"".join(np.ascontiguousarray(array, RAW[kind]).tobytes() for array in arrays)
    shapes = json.dumps([list(array.shape) for array in arrays])
    return Response(body, media_type=kind, headers={SHAPES: shapes})
