"""The explorer's files, and /docs from the OpenAPI schema; both need nothing from any other host.

server/explorer/, app.openapi()  ->  server.http.pages  ->  a browser
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from polyseme.server.http.rendering import JSON

EXPLORER = Path(__file__).parents[1] / "explorer"
INLINE = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)


def content_policy() -> str:
    """Everything from here, nothing inline but the page's import map, which is known by its hash."""
    maps = INLINE.findall((EXPLORER / "index.html").read_text(encoding="utf-8"))
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in maps]
    scripts = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in digests)])
    return (
        f"default-src 'self'; script-src {scripts}; style-src 'self'; img-src 'self' data: blob:; "
        "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


def add_pages(app: FastAPI) -> None:
    """The page at /, its files at /explorer, the routes at /docs."""

    @app.get("/", include_in_schema=False)
    async def explorer() -> FileResponse:
        return FileResponse(EXPLORER / "index.html", headers={"Cache-Control": "no-cache"})

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(docs_page(app.openapi()), media_type="text/html; charset=utf-8")

    app.mount("/explorer", StaticFiles(directory=EXPLORER), name="explorer")


def docs_page(schema: dict[str, Any]) -> str:
    """All routes of an OpenAPI schema as a page."""
    parts = []
    for path, methods in sorted(schema["paths"].items()):
        for method, route in methods.items():
            parts.append(f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(route.get('description') or route.get('summary', ''))}</p>")
            body = route.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
            if body:
                parts.append(_fields(_resolved(body, schema)))
            parts.append(_answer(route["responses"]["200"]["content"], schema))
            parts.append("</section>")
    title = f"{escape(schema['info']['title'])} {escape(schema['info']['version'])}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}: routes</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<link rel="stylesheet" href="/explorer/docs.css">'
        f"<main><h1>{title}</h1><p>{escape(schema['info'].get('description', ''))} "
        '<a href="/openapi.json">openapi.json</a> · <a href="/">explorer</a></p>'
        f"{''.join(parts)}</main></html>"
    )


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A part of a schema, its reference followed."""
    name = part.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = schema["components"]["schemas"][name] if name else part
    return found


def _answer(content: dict[str, Any], schema: dict[str, Any]) -> str:
    """The fields of an answer as a table, and its other forms."""
    others = f"<code>{escape(', '.join(kind for kind in content if kind != JSON))}</code>"
    if JSON not in content:
        return f"<p>Gives {others}.</p>"
    rows = "".join(
        f"<tr><td><code>{escape(place)}</code></td><td>{escape(_kind(field))}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for place, field in _places(content[JSON]["schema"], schema)
    )
    found = f"<table><tr><th>answer</th><th>value</th><th></th></tr>{rows}</table>"
    return found if len(content) == 1 else f"{found}<p>Or, where Accept asks for it: {others}.</p>"


def _places(
    part: dict[str, Any], schema: dict[str, Any], at: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """All fields of an answer, with those of the objects in it: `tokens`, `tokens[][].text`."""
    found = _resolved(part, schema)
    for one in found.get("anyOf", ()):
        yield from _places(one, schema, at)
    if "items" in found:
        yield from _places(found["items"], schema, f"{at}[]")
    for name, field in found.get("properties", {}).items():
        place = f"{at}.{name}".lstrip(".")
        yield place, field
        yield from _places(field, schema, place)


def _fields(body: dict[str, Any]) -> str:
    """The fields of a request as a table."""
    needed = set(body.get("required", ()))
    rows = []
    for name, field in body.get("properties", {}).items():
        default = "" if name in needed else json.dumps(field.get("default"), ensure_ascii=False)
        about = field.get("description", "")
        rows.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(_kind(field))}</td>"
            f"<td>{'needed' if name in needed else f'<code>{escape(default)}</code>'}</td>"
            f"<td>{escape(about)}</td></tr>"
        )
    return f"<table><tr><th>key</th><th>value</th><th>if left out</th><th></th></tr>{''.join(rows)}</table>"


def _kind(field: dict[str, Any]) -> str:
    """What a field may hold, in words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_kind(one) for one in field["anyOf"]))
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    if "$ref" in field:
        return "object"
    return str(field.get("const", field.get("type", "any")))
