"""Responses: JSON, or raw numbers if the Accept header asks for them.

    server.verbs, server.openai  ->  server.http.rendering  ->  a response

Raw numbers are little-endian, one array after the other; the header X-Polyseme-Shapes holds their shapes.
JSON has no infinite numbers: in vectors they are an error, elsewhere they become null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from numpy.typing import NDArray
from pydantic_core import to_json

from polyseme.elmo import Array
from polyseme.server.http.limits import HttpError, invalid

JSON = "application/json"
RAW_TYPES = {"application/x-float32": "<f4", "application/x-float16": "<f2"}
SHAPES_HEADER = "X-Polyseme-Shapes"
OPENAI_ROUTES = "/v1/"
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
OPENAI_NAMES = {"model_missing": "model_not_found"}  # of our codes


def make_json_response(values: Any) -> Response:
    """A JSON response; pydantic_core serialises numbers in native code."""
    return Response(to_json(values, inf_nan_mode="null"), media_type=JSON)


def make_json_response_from_parts(**parts: Any) -> Response:
    """A JSON object with large members: bytes are JSON already, other values are serialised."""
    members = (
        b'"%s":%s' % (name.encode(), part if isinstance(part, bytes) else to_json(part))
        for name, part in parts.items()
    )
    return Response(b"{%s}" % b",".join(members), media_type=JSON)


def shorten(vector: Array, size: int | None) -> Array:
    """The first `size` values of a vector, scaled to length 1; all of it, as it is, if there is no size."""
    if size is None:
        return vector
    values = vector[:size].astype(np.float64)  # the squares of float32 may overflow
    length = np.linalg.norm(values)
    return (values / length if length else values).astype(np.float32)


def array_to_json(array: Array) -> bytes:
    """An array as JSON, row by row, so that other threads can run in between."""
    if array.ndim > 1:
        return b"[%s]" % b",".join(map(array_to_json, array))
    _check_finite(array)
    return to_json(array.tolist())


def arrays_to_json(arrays: Sequence[Array]) -> bytes:
    """A list of arrays, of any shapes, as JSON."""
    return b"[%s]" % b",".join(map(array_to_json, arrays))


def make_error_response(
    error: HttpError, headers: Mapping[str, str] | None = None, *, path: str = ""
) -> JSONResponse:
    """The response for an error; to a request of OpenAI's API in its format."""
    all_headers = dict(headers or {})
    if error.retry_after is not None:
        all_headers["Retry-After"] = str(error.retry_after)
    if error.status == 401:  # one scheme only: Chromium does not read a second one after a comma
        all_headers["WWW-Authenticate"] = 'Basic realm="polyseme"'
    if path.startswith(OPENAI_ROUTES):
        return _make_openai_error(error, all_headers)
    values: dict[str, Any] = {"error": error.message, "error_type": error.error_type}
    if error.code is not None:
        values |= {"code": error.code, "values": error.values}
    return JSONResponse(values, error.status, headers=all_headers)


def _make_openai_error(error: HttpError, headers: Mapping[str, str]) -> JSONResponse:
    """An error as OpenAI writes it, whose clients show the message; an invalid request has status 400."""
    status = 400 if error.status == 422 else error.status
    kind = (
        "rate_limit_error" if status == 429 else "invalid_request_error" if status < 500 else "server_error"
    )
    values = {
        "message": error.message,
        "type": kind,
        "param": error.param,
        "code": OPENAI_NAMES.get(error.code or "", error.code) or OPENAI_CODES.get(status),
    }
    return JSONResponse({"error": values}, status, headers=dict(headers))


def choose_raw_type(request: Request) -> str | None:
    """The raw type that the Accept header prefers to JSON, or None for JSON."""
    qualities = parse_qualities(request.headers.get("accept", ""))
    best = max((kind for kind in qualities if kind in RAW_TYPES), key=qualities.__getitem__, default=None)
    return best if best and 0 < qualities[best] >= qualities.get(JSON, 0.0) else None


def parse_qualities(header: str) -> dict[str, float]:
    """How much a client wants each entry of an Accept header, from 0 to 1."""
    qualities: dict[str, float] = {}
    for part in header.split(","):
        name, *parameters = (field.strip().lower() for field in part.split(";"))
        qualities[name] = max(qualities.get(name, 0.0), _parse_quality(parameters))
    return qualities


def _parse_quality(parameters: Sequence[str]) -> float:
    """The q of an Accept entry: 1 if absent, 0 if it is not a number."""
    text = next((parameter[2:] for parameter in parameters if parameter.startswith("q=")), "1")
    try:
        return float(text)
    except ValueError:
        return 0.0


def make_raw_response(arrays: Sequence[Array], media_type: str) -> Response:
    """Arrays as bytes."""
    with np.errstate(over="ignore"):  # values too large for float16 are an error below
        converted = [np.ascontiguousarray(array, RAW_TYPES[media_type]) for array in arrays]
    for array in converted:
        _check_finite(array)
    shapes = json.dumps([list(array.shape) for array in arrays])
    body = b"".join(array.tobytes() for array in converted)
    return Response(body, media_type=media_type, headers={SHAPES_HEADER: shapes})


def _check_finite(array: NDArray[np.floating[Any]]) -> None:
    if not np.isfinite(array).all():
        raise invalid("The numbers are too large: use smaller layer weights.")
