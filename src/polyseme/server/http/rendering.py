"""Vectors and the like to the body of a response: JSON, or raw numbers where Accept asks for them.

    server.verbs  ->  server.http.rendering  ->  a response

Raw numbers are little-endian, one array after the other; the header X-Polyseme-Shapes holds their shapes.
JSON has no infinite numbers: among vectors they are refused, elsewhere they are null.
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
from polyseme.server.http.limits import RefusedError, wrong

JSON = "application/json"
RAW = {"application/x-float32": "<f4", "application/x-float16": "<f2"}
SHAPES = "X-Polyseme-Shapes"


def answer(values: Any) -> Response:
    """A JSON response; numbers go straight to text in C."""
    return Response(to_json(values, inf_nan_mode="null"), media_type=JSON)


def answer_parts(**parts: Any) -> Response:
    """A JSON response of members that may be large: bytes are JSON already, other values become so."""
    members = (
        b'"%s":%s' % (name.encode(), part if isinstance(part, bytes) else to_json(part))
        for name, part in parts.items()
    )
    return Response(b"{%s}" % b",".join(members), media_type=JSON)


def numbers(array: Array) -> bytes:
    """An array as JSON, a row at a time, so that other threads have their turn in between."""
    if array.ndim > 1:
        return b"[%s]" % b",".join(map(numbers, array))
    _check_finite(array)
    return to_json(array.tolist())


def listed(arrays: Sequence[Array]) -> bytes:
    """A list of arrays, of whatever shapes, as JSON."""
    return b"[%s]" % b",".join(map(numbers, arrays))


def refused(refusal: RefusedError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response that a refusal is."""
    own = dict(headers or {})
    if refusal.retry_after is not None:
        own["Retry-After"] = str(refusal.retry_after)
    if refusal.status == 401:
        own["WWW-Authenticate"] = 'Basic realm="polyseme"'  # Chromium reads no second scheme behind a comma
    values: dict[str, Any] = {"error": refusal.message, "error_type": refusal.error_type}
    if refusal.code is not None:
        values |= {"code": refusal.code, "values": refusal.values}
    return JSONResponse(values, refusal.status, headers=own)


def wanted(request: Request) -> str | None:
    """The raw type that the Accept header likes best, or None: JSON, unless it is liked less."""
    liked: dict[str, float] = {}
    for part in request.headers.get("accept", "").split(","):
        kind, *parameters = (some.strip().lower() for some in part.split(";"))
        liked[kind] = max(liked.get(kind, 0.0), _quality(parameters))
    best = max((kind for kind in liked if kind in RAW), key=liked.__getitem__, default=None)
    return best if best and liked[best] > 0 and liked[best] >= liked.get(JSON, 0.0) else None


def _quality(parameters: Sequence[str]) -> float:
    """The q of a part of Accept: 1 where it is not said, 0 where it is no number."""
    said = next((one[2:] for one in parameters if one.startswith("q=")), "1")
    try:
        return float(said)
    except ValueError:
        return 0.0


def raw(arrays: Sequence[Array], kind: str) -> Response:
    """Arrays as their bytes."""
    with np.errstate(over="ignore"):  # what is too large for float16 is refused
        narrow = [np.ascontiguousarray(array, RAW[kind]) for array in arrays]
    for array in narrow:
        _check_finite(array)
    shapes = json.dumps([list(array.shape) for array in arrays])
    return Response(b"".join(array.tobytes() for array in narrow), media_type=kind, headers={SHAPES: shapes})


def _check_finite(array: NDArray[np.floating[Any]]) -> None:
    if not np.isfinite(array).all():
        raise wrong("The numbers are too large: choose smaller weights for the layers.")
