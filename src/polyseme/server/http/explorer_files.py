"""The files of the explorer, kept in memory and compressed once; modules and style sheets are one file each.

    server/explorer/, server.http.bundle  ->  server.http.explorer_files  ->  server.http.pages

index.html names the style sheets, the first module and the modules of bare names. What a browser gets names
the joined files instead, each with its version: such an address is cached for good, and a first visit takes
five requests.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import mimetypes
import re
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polyseme.server.http.bundle import PREFIX, bundle_modules
from polyseme.server.http.compression import MIN_BYTES, TEXT_TYPES, accepts_gzip

PAGE, SCRIPT, STYLES = "index.html", "bundle.js", "bundle.css"
IMPORT_MAP = re.compile(r'\s*<script type="importmap">(.*?)</script>', re.DOTALL)
STYLE_SHEET = re.compile(r'\s*<link rel="stylesheet" href="/explorer/([^"]+)">')
STYLE_SHEETS = re.compile(rf"(?:{STYLE_SHEET.pattern})+")
MODULE = re.compile(r'(?<=<script type="module" src="/explorer/)[^"]+')
ADDRESS = re.compile(r'(?<=[fc]=")/explorer/([^"]+)')
CACHE_FOR_GOOD = "max-age=31536000, immutable"
TYPES = {
    ".js": "text/javascript",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain",
}  # of any system


class StoredFile(NamedTuple):
    """A file: as it is, compressed (None if that would save little), its type and its version."""

    content: bytes
    compressed: bytes | None
    media_type: str
    version: str


class ExplorerFiles:
    """An ASGI application that serves the files of a folder, and the joined ones.

    Args:
        folder: The folder; its files are read now.

    Attributes:
        files: The files by name, the joined ones included.
        page: index.html with the joined files in place of their parts.

    """

    def __init__(self, folder: Path) -> None:
        paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
        contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        page = contents[PAGE].decode()
        contents |= _join_files(page, contents)
        self.files = {name: _store_file(name, content) for name, content in contents.items()}
        self.page = self._name_joined_files(page)

    def _name_joined_files(self, page: str) -> str:
        """The page with the joined files in place of their parts, and the version of each file."""
        page = MODULE.sub(SCRIPT, IMPORT_MAP.sub("", page))
        page = STYLE_SHEETS.sub(f'\n    <link rel="stylesheet" href="{PREFIX}{STYLES}">', page)
        return ADDRESS.sub(lambda match: f"{match[0]}?v={self.files[match[1]].version}", page)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(405, headers={"Allow": "GET, HEAD"})
        name = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/")
        file = self.files.get(name)
        if file is None:
            raise HTTPException(404)
        headers = Headers(scope=scope)
        etag = f'"{file.version}"'
        is_this_version = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("v") == file.version
        caching = CACHE_FOR_GOOD if is_this_version else "no-cache"
        answer = {"ETag": etag, "Cache-Control": caching, "Vary": "Accept-Encoding"}
        if headers.get("if-none-match") == etag:
            response = Response(status_code=304, headers=answer)
        elif file.compressed is not None and accepts_gzip(
            {"accept-encoding": headers.get("accept-encoding", "").encode("latin-1")}
        ):
            answer["Content-Encoding"] = "gzip"
            response = Response(file.compressed, headers=answer, media_type=file.media_type)
        else:
            response = Response(file.content, headers=answer, media_type=file.media_type)
        await response(scope, receive, send)


def _join_files(page: str, contents: dict[str, bytes]) -> dict[str, bytes]:
    """The modules, their source map and the style sheets of a page, each as one file."""
    modules = {name: content.decode() for name, content in contents.items() if name.endswith(".js")}
    [entry], [import_map] = MODULE.findall(page), IMPORT_MAP.findall(page)
    script, source_map = bundle_modules(entry, modules, json.loads(import_map)["imports"])
    styles = b"\n".join(contents[name] for name in STYLE_SHEET.findall(page))
    script += f"//# sourceMappingURL={SCRIPT}.map\n"
    return {SCRIPT: script.encode(), f"{SCRIPT}.map": source_map.encode(), STYLES: styles}


def _store_file(name: str, content: bytes) -> StoredFile:
    suffix = PurePosixPath(name).suffix
    media_type = TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    is_text = media_type.encode().startswith(TEXT_TYPES) and len(content) >= MIN_BYTES
    compressed = gzip.compress(content, mtime=0) if is_text else None
    return StoredFile(content, compressed, media_type, hashlib.sha256(content).hexdigest()[:24])
