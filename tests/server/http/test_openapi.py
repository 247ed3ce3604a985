"""The responses of all routes match openapi.json."""

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
SENSES = [
    {"word": "将", "sentence": sentence, "sense": sense}
    for sense, sentence in (
        *(("general", f"玄德拜关羽为[将]{end}") for end in ("。", "！", "，众人喜。")),
        *(("soon", f"天色[将]{end}") for end in ("晚。", "明。", "晚，人困。")),
    )
]
BOTH = {"first": "one-index", "second": "other-index"}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
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
    ("/characters", {}),
    ("/characters", {"index": "one-index", "k": 2, "documents": "1"}),
    ("/timeline", {"word": "将"}),
    ("/timeline", {"word": "将", "by": "document", "groups": True}),
    ("/timeline", {"word": "欲"}),
    ("/concordance", {"word": "将"}),
    ("/concordance", {"word": "将", "sort": "sense", "k": 2, "start": 1, "documents": "1"}),
    ("/concordance", {"word": "将", "sort": "similarity", "usage": 3, "collocate": "天色", "by": "document"}),
    ("/collocates", {"word": "将"}),
    ("/collocates", {"word": "将", "senses": True, "all_words": True, "k": 3}),
    ("/passage", {"usage": 5, "sentences": 2}),
    ("/change", {**BOTH, "k": 3}),
    ("/change", {**BOTH, "words": ["曹操"]}),
    ("/similarity", {"texts": TEXTS}),
    ("/similarity", {"texts": [*TEXTS, *TEXTS]}),
    ("/similarity", {"texts": TEXTS, "index": "one-index"}),
    ("/summarise", {"text": "曹操大怒。玄德走了。将军出马。", "sentences": 2}),
    ("/generate", {"prompt": "却说", "tokens": 5, "seed": 1}),
    ("/evaluate", {"texts": TEXTS}),
    ("/evaluate", {"examples": [["这家酒店很好。", "好评"], ["很差。", "差评"]]}),
    ("/disambiguate", {"train": SENSES, "test": SENSES[:2]}),
    ("/disambiguate", {"train": SENSES, "test": [{"word": "马", "sentence": "[马]鸣。"}]}),
    ("/map", {"words": ["将", "曹操"]}),
    ("/predict", {"texts": ["这家酒店很好。"]}),
    ("/v1/embeddings", {"input": TEXTS, "model": "zh-classic"}),
    ("/v1/embeddings", {"input": "曹操", "model": "zh-classic", "encoding_format": "base64"}),
]
MODEL_ROUTE = "/v1/models/{model}"
STATUS_ROUTES = ("/health", "/info", "/metrics", "/v1/models")


@pytest.fixture(scope="module")
def schema(client: httpx.Client) -> dict[str, Any]:
    document = client.get("/openapi.json").json()
    for name, part in document["components"]["schemas"].items():
        if name != "ErrorResponse":
            part.setdefault("additionalProperties", False)  # so that undocumented fields are errors
    return document


def check(response: httpx.Response, schema: dict[str, Any], method: str, path: str) -> None:
    """Validate a response against its schema."""
    content = schema["paths"][path][method]["responses"][str(response.status_code)]["content"]
    expected = content[response.headers["content-type"].split(";")[0]]["schema"]
    values = response.text if "string" in expected.get("type", "") else response.json()
    validator = jsonschema.Draft202012Validator({**expected, "components": schema["components"]})
    validator.validate(values)


@pytest.mark.parametrize(("route", "body"), REQUESTS)
def test_responses_match_their_schema(client: httpx.Client, schema: dict, route: str, body: dict):
    response = client.post(route, json=body)
    assert response.status_code == 200, response.text
    check(response, schema, "post", route)


@pytest.mark.parametrize("route", STATUS_ROUTES)
def test_status_routes_match_their_schema(client: httpx.Client, schema: dict, route: str):
    check(client.get(route), schema, "get", route)


def test_the_route_of_one_model_matches_its_schema(client: httpx.Client, schema: dict):
    (model,) = client.get("/v1/models").json()["data"]
    check(client.get(f"/v1/models/{model['id']}"), schema, "get", MODEL_ROUTE)


@pytest.mark.parametrize(("route", "body"), REQUESTS)
def test_null_and_fractions_are_taken_exactly_where_the_schema_has_them(
    client: httpx.Client, schema: dict, route: str, body: dict
):
    request = schema["paths"][route]["post"]["requestBody"]["content"]["application/json"]["schema"]
    options = [option["$ref"].rpartition("/")[2] for option in request.get("oneOf", [request])]
    properties = schema["components"]["schemas"][options[-1 if "inputs" in body else 0]]["properties"]
    for name, part in properties.items():
        fits = jsonschema.Draft202012Validator({**part, "components": schema["components"]}).is_valid
        for value in (None, 1.5):
            refused = client.post(route, json=body | {name: value}).status_code in (400, 422)
            assert refused or fits(value), (name, value)
            # A value may be refused beside others of the body, but never alone where the schema allows it.
            assert not (refused and value is None and fits(value)) or name in body, name


def test_errors_and_raw_vectors_are_documented(client: httpx.Client, schema: dict):
    for body in ({"texts": 7}, {"texts": ["a"] * 33}):
        check(client.post("/embed", json=body), schema, "post", "/embed")
    for media_type in ("application/x-float32", "application/x-float16"):
        response = client.post("/embed_all", json={"texts": TEXTS}, headers={"Accept": media_type})
        documented = schema["paths"]["/embed_all"]["post"]["responses"]["200"]
        assert response.headers["content-type"] in documented["content"]
        assert set(documented["headers"]) == {"X-Polyseme-Shapes"}


def test_every_route_is_documented_and_tested_here(schema: dict):
    assert set(schema["paths"]) == {route for route, _ in REQUESTS} | {*STATUS_ROUTES, MODEL_ROUTE}
    for methods in schema["paths"].values():
        for operation in methods.values():
            assert all(documented["content"] for documented in operation["responses"].values())
            assert "408" in operation["responses"]


def test_the_docs_page_shows_the_fields_of_responses(client: httpx.Client):
    page = client.get("/docs").text
    for field in ("tokens[][].text", "usages[].sentence", "changes[].prototype", "complete", "model.curves"):
        assert f"<code>{field}</code>" in page, field
    assert "application/x-float16" in page


@pytest.mark.parametrize("key", [None, "s3cret"])
def test_the_api_key_is_documented_and_required_if_there_is_one(key: str | None):
    app, _ = create_app(lambda: Catalog("toy", None, Elmo(random_model(small_config()))), key=key)

    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get("/openapi.json", headers={"X-API-Key": key or ""})

    schema = asyncio.run(send()).json()
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
