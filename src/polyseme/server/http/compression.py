"""Gzip for responses of text, if the client accepts it.

    server.http.middleware  ->  server.http.compression  ->  the body of a response

Vectors are left as they are: digits shrink to half only, at 10 to 20 ms per megabyte, while the raw numbers
that a client may ask for instead are a fifth.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, MutableMapping
from typing import Any

from polyseme.server.http.rendering import parse_qualities

MIN_BYTES = 1024  # smaller responses fit into one packet anyway
INLINE_BYTES = 1 << 15  # compressed in about half a millisecond; more of them in a thread
LEVEL = 1  # the higher ones take several times as long for a few percent
VECTOR_ROUTES = ("/embed", "/embed_all", "/v1/embeddings")
TEXT_TYPES = (b"text/", b"application/json", b"application/javascript", b"image/svg+xml")


def is_compressible(scope: Mapping[str, Any], start: MutableMapping[str, Any]) -> bool:
    """Whether a response, of which this is the start, is a whole text that nobody has compressed."""
    headers = dict(start.get("headers", ()))
    return (
        start["status"] == 200
        and scope["method"] != "HEAD"
        and scope["path"] not in VECTOR_ROUTES
        and b"content-encoding" not in headers
        and headers.get(b"content-type", b"").startswith(TEXT_TYPES)
    )


def accepts_gzip(headers: Mapping[str, bytes]) -> bool:
    """Whether a client accepts gzip."""
    qualities = parse_qualities(headers.get("accept-encoding", b"").decode("latin-1"))
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def compress(body: bytes) -> bytes:
    """Compress a body."""
    return gzip.compress(body, LEVEL, mtime=0)


def mark_compressed(start: MutableMapping[str, Any], size: int) -> None:
    """Replace the length in the start of a response, and say that the body is compressed."""
    start["headers"] = [
        *((name, value) for name, value in start["headers"] if name != b"content-length"),
        (b"content-length", str(size).encode()),
        (b"content-encoding", b"gzip"),
    ]
