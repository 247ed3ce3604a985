"""The files of the explorer, kept in memory and compressed once: a page loads some sixty of them.

server/explorer/  ->  server.http.explorer_files  ->  server.http.pages
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polyseme.server.http.compression import MIN_BYTES, TEXT_TYPES, accepts_gzip

TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".LICENSE": "text/plain"}  # of any system


class StoredFile(NamedTuple):
    """A file: as it is, compressed (None if that would save little), its type and its version."""

    content: bytes
    compressed: bytes | None
    media_type: str
    version: str


class ExplorerFiles:
    """An ASGI application that serves the files of a folder.

    Args:
        folder: The folder; its files are read now.

    """

    def __init__(self, folder: Path) -> None:
        files = (path for path in sorted(folder.rglob("*")) if path.is_file())
        self._files: Mapping[str, StoredFile] = {
            path.relative_to(folder).as_posix(): _read_file(path) for path in files
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        name = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/")
        file = self._files.get(name)
        if file is None:
            raise HTTPException(404)
        headers = Headers(scope=scope)
        answer = {"ETag": file.version, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if headers.get("if-none-match") == file.version:
            response = Response(status_code=304, headers=answer)
        elif file.compressed is not None and accepts_gzip(
            {"accept-encoding": headers.get("accept-encoding", "").encode("latin-1")}
        ):
            answer["Content-Encoding"] = "gzip"
            response = Response(file.compressed, headers=answer, media_type=file.media_type)
        else:
            response = Response(file.content, headers=answer, media_type=file.media_type)
        await response(scope, receive, send)


def _read_file(path: Path) -> StoredFile:
    content = path.read_bytes()
    guessed = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain"
    is_text = guessed.encode().startswith(TEXT_TYPES) and len(content) >= MIN_BYTES
    compressed = gzip.compress(content, mtime=0) if is_text else None
    return StoredFile(content, compressed, guessed, f'"{hashlib.sha256(content).hexdigest()[:24]}"')
