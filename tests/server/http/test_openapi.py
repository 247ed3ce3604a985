"""openapi.json tells what is answered: the answers of all routes are held against it."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog

jsonschema = pytest.importorskip("jsonschema")
TEXTS = ["曹操大怒。", "天色将晚，人马困乏。"]
MARKED = {"tokens": ["玄德", "将", "兵"], "position": 1}
BOTH = {"first": "one-index", "second": "other-index"}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/tokenize", {"texts": TEXTS}),
    ("/embed", {"texts": TEXTS}),
    ("/embed_all", {"texts": [*TEXTS, ""]}),
    ("/embed_all", {"texts": TEXTS, "layer": "all"}),
    ("/score", {"texts": [*TEXTS, ""]}),
    ("/substitutes", {**MARKED, "k": 3}),
    ("/substitutes", {"tokens": ["玄德", "不存在的词语"], "position": 1, "k": 3}),
    ("/nearest", {"word": "曹操", "k": 3}),
    ("/nearest", {**MARKED, "word": "将", "k": 3}),
    ("/nearest", {**MARKED, "word": "将", "k": 3, "layers": True}),
    ("/senses", {"word": "将"}),
    ("/change", {**BOTH, "k": 3}),
    ("/change", {**BOTH, "words": ["曹操"]}),
    ("/similarity", {"texts": TEXTS}),
    ("/similarity", {"texts": ["", "曹操"]}),
    ("/predict", {"texts": ["这家酒店很好。"]}),
    ("/v1/embeddings", {"input": TEXTS, "model": "zh-classic"}),
    ("/v1/embeddings", {"input": "曹操", "model": "zh-classic", "encoding_format": "base64"}),
]
FACTS = ("/health", "/info", "/metrics", "/v1/models")


@pytest.fixture(scope="module")
def schema(client: httpx.Client) -> dict[str, Any]:
    found = client.get("/openapi.json").json()
    for name, part in found["components"]["schemas"].items():
        if name != "ErrorResponse":
            part.setdefault("additionalProperties", False)  # what is not described is found, too
    return found


def check(answer: httpx.Response, schema: dict[str, Any], method: str, path: str) -> None:
    """Hold an answer against its description."""
    told = schema["paths"][path][method]["responses"][str(answer.status_code)]["content"]
    wanted = told[answer.headers["content-type"].split(";")[0]]["schema"]
    values = answer.text if "string" in wanted.get("type", "") else answer.json()
    whole = {**wanted, "components": schema["components"]}
    jsonschema.Draft202012Validator(whole).validate(values)


@pytest.mark.parametrize(("route", "values"), ASKED)
def test_answers_are_as_they_are_described(client: httpx.Client, schema: dict, route: str, values: dict):
    answer = client.post(route, json=values)
    assert answer.status_code == 200, answer.text
    check(answer, schema, "post", route)


@pytest.mark.parametrize("route", FACTS)
def test_facts_are_as_they_are_described(client: httpx.Client, schema: dict, route: str):
    check(client.get(route), schema, "get", route)


def test_refusals_and_raw_numbers_are_described(client: httpx.Client, schema: dict):
    for body in ({"texts": 7}, {"texts": ["a"] * 33}):
        check(client.post("/embed", json=body), schema, "post", "/embed")
    for kind in ("application/x-float32", "application/x-float16"):
        answer = client.post("/embed_all", json={"texts": TEXTS}, headers={"Accept": kind})
        told = schema["paths"]["/embed_all"]["post"]["responses"]["200"]
        assert answer.headers["content-type"] in told["content"]
        assert set(told["headers"]) == {"X-Polyseme-Shapes"}


def test_every_route_is_described_and_asked_here(schema: dict):
    assert set(schema["paths"]) == {route for route, _ in ASKED} | set(FACTS)
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert all(one["content"] for one in operation["responses"].values())
            assert "408" in operation["responses"]


def test_the_page_of_routes_shows_the_fields_of_answers(client: httpx.Client):
    page = client.get("/docs").text
    for field in ("tokens[][].text", "usages[].sentence", "changes[].prototype", "complete", "model.curves"):
        assert f"<code>{field}</code>" in page, field
    assert "application/x-float16" in page


@pytest.mark.parametrize("key", [None, "s3cret"])
def test_keys_are_described_and_needed_where_there_is_one(key: str | None):
    app, _ = create_app(lambda: Catalog("toy", None, Elmo(random_model(small_config()))), key=key)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get("/openapi.json", headers={"X-API-Key": key or ""})

    schema = asyncio.run(ask()).json()
    assert schema["components"]["securitySchemes"]["bearer"] == {
        "type": "http",
        "scheme": "bearer",
        "description": "Authorization: Bearer KEY",
    }
    assert schema["components"]["securitySchemes"]["header"]["name"] == "X-API-Key"
    assert bool(schema.get("security")) == (key is not None)
    if key:
        assert schema["paths"]["/health"]["get"]["security"] == []
        assert {"bearer": []} in schema["security"]
