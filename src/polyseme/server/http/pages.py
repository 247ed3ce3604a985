"""The explorer's files, and /docs made from the OpenAPI schema. Neither loads anything from another host.

server/explorer/, app.openapi()  ->  server.http.pages  ->  a browser
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response

from polyseme.server.http.explorer_files import ExplorerFiles
from polyseme.server.http.rendering import JSON

EXPLORER = Path(__file__).parents[1] / "explorer"
# Everything from this server, nothing inline.
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def add_pages(app: FastAPI) -> None:
    """Add the explorer at /, its files at /explorer, and the documentation of the routes at /docs."""
    files = ExplorerFiles(EXPLORER)

    @app.get("/", include_in_schema=False)
    async def explorer() -> Response:
        headers = {"Cache-Control": "no-cache"}
        return Response(files.page, media_type="text/html; charset=utf-8", headers=headers)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(render_docs(app.openapi()), media_type="text/html; charset=utf-8")

    app.mount("/explorer", files, name="explorer")


def render_docs(schema: dict[str, Any]) -> str:
    """An HTML page with all routes of an OpenAPI schema."""
    parts = []
    for path, methods in sorted(schema["paths"].items()):
        for method, route in methods.items():
            parts.append(f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(route.get('description') or route.get('summary', ''))}</p>")
            body = route.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema")
            for alternative in body.get("oneOf", [body]) if body else ():
                parts.append(_render_request_table(_resolve(alternative, schema)))
            parts.append(_render_response_table(route["responses"]["200"]["content"], schema))
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


def _resolve(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Follow the reference of a part of a schema, if it is one."""
    name = part.get("$ref", "").rpartition("/")[2]
    resolved: dict[str, Any] = schema["components"]["schemas"][name] if name else part
    return resolved


def _render_response_table(content: dict[str, Any], schema: dict[str, Any]) -> str:
    """The fields of a response as a table, and its other media types."""
    names = ", ".join(media_type for media_type in content if media_type != JSON)
    other_types = f"<code>{escape(names)}</code>"
    if JSON not in content:
        return f"<p>Returns {other_types}.</p>"
    rows = "".join(
        f"<tr><td><code>{escape(path)}</code></td><td>{escape(_name_type(field))}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for path, field in _list_fields(content[JSON]["schema"], schema)
    )
    table = f"<table><tr><th>response</th><th>type</th><th></th></tr>{rows}</table>"
    if len(content) == 1:
        return table
    return f"{table}<p>Or, if the Accept header asks for it: {other_types}.</p>"


def _list_fields(
    part: dict[str, Any], schema: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, dict[str, Any]]]:
    """All fields of a response, nested ones included: `tokens`, `tokens[][].text`."""
    resolved = _resolve(part, schema)
    for alternative in resolved.get("anyOf", ()):
        yield from _list_fields(alternative, schema, prefix)
    if "items" in resolved:
        yield from _list_fields(resolved["items"], schema, f"{prefix}[]")
    for name, field in resolved.get("properties", {}).items():
        path = f"{prefix}.{name}".lstrip(".")
        yield path, field
        yield from _list_fields(field, schema, path)


def _render_request_table(body: dict[str, Any]) -> str:
    """The fields of a request as a table."""
    required = set(body.get("required", ()))
    rows = []
    for name, field in body.get("properties", {}).items():
        default = "" if name in required else json.dumps(field.get("default"), ensure_ascii=False)
        rows.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(_name_type(field))}</td>"
            f"<td>{'required' if name in required else f'<code>{escape(default)}</code>'}</td>"
            f"<td>{escape(field.get('description', ''))}</td></tr>"
        )
    return f"<table><tr><th>field</th><th>type</th><th>default</th><th></th></tr>{''.join(rows)}</table>"


def _name_type(field: dict[str, Any]) -> str:
    """The type of a field, in words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(map(_name_type, field["anyOf"])))
    if "enum" in field:
        return ", ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_name_type(field.get('items', {}))}"
    if "$ref" in field:
        return "object"
    return str(field.get("const", field.get("type", "any")))
