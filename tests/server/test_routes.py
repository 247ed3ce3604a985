"""Routes return what the library returns, and refuse invalid requests with the right status."""

from __future__ import annotations

import base64
import json
import re
from functools import partial
from pathlib import Path
from typing import Any, Literal

import httpx
import numpy as np
import pytest

import polyseme
from polyseme.server.usage_layers import UsageLayers

TEXTS = ["曹操大怒。", "天色将晚，人马困乏。", ""]


@pytest.fixture(scope="module")
def elmo() -> polyseme.Elmo:
    return polyseme.load("zh-classic")


def post(client: httpx.Client, route: str, **body) -> dict:
    response = client.post(route, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def test_tokens_have_offsets(client: httpx.Client):
    (tokens,) = post(client, "/tokenize", texts=["曹操大怒。"])["tokens"]
    assert [token["text"] for token in tokens] == ["曹操", "大怒", "。"]
    assert (tokens[1]["start"], tokens[1]["end"]) == (2, 4)


@pytest.mark.parametrize("layer", ["mean", "top", 0, [0.2, 0.3, 0.5]])
def test_vectors_equal_those_of_the_library(client: httpx.Client, elmo: polyseme.Elmo, layer):
    pooled = post(client, "/embed", texts=TEXTS, layer=layer, pool="max")
    np.testing.assert_allclose(pooled["vectors"], elmo.embed(TEXTS, layer=layer, pool="max"), atol=1e-6)
    per_token = post(client, "/embed_all", texts=TEXTS, layer=layer)
    assert per_token["tokens"] == [elmo.token_texts(text) for text in TEXTS]
    for vectors, expected in zip(per_token["vectors"], elmo.embed(TEXTS, layer=layer), strict=True):
        np.testing.assert_allclose(np.array(vectors, np.float32).reshape(expected.shape), expected, atol=1e-6)


def test_joined_layers_can_be_requested(client: httpx.Client, elmo: polyseme.Elmo):
    pooled = post(client, "/embed", texts=TEXTS, layer="concat")
    np.testing.assert_allclose(pooled["vectors"], elmo.embed(TEXTS, layer="concat", pool="mean"), atol=1e-6)
    assert pooled["size"] == len(pooled["vectors"][0]) == elmo.config.layers * elmo.config.size


def test_all_layers_can_be_requested(client: httpx.Client, elmo: polyseme.Elmo):
    (layers,) = post(client, "/embed_all", texts=TEXTS[:1], layer="all")["vectors"]
    np.testing.assert_allclose(layers, elmo.embed(TEXTS[0], layer="all"), atol=1e-6)


@pytest.mark.parametrize(("name", "dtype"), [("float32", "<f4"), ("float16", "<f2")])
def test_the_accept_header_selects_raw_vectors(client: httpx.Client, elmo: polyseme.Elmo, name, dtype):
    headers = {"Accept": f"application/x-{name}"}
    response = client.post("/embed_all", json={"texts": TEXTS}, headers=headers)
    assert response.headers["content-type"] == f"application/x-{name}"
    shapes = json.loads(response.headers["x-polyseme-shapes"])
    values, start = np.frombuffer(response.content, dtype), 0
    for shape, expected in zip(shapes, elmo.embed(TEXTS), strict=True):
        stop = start + int(np.prod(shape))
        np.testing.assert_allclose(values[start:stop].reshape(shape), expected, atol=1e-3)
        start = stop
    assert start == len(values)


def test_scores_equal_those_of_the_library_and_substitutes_take_text_or_tokens(
    client: httpx.Client, elmo: polyseme.Elmo
):
    (score,) = post(client, "/score", texts=["曹操大怒。"])["scores"]
    (expected,) = polyseme.language.score(elmo, ["曹操大怒。"])
    assert score["mean"] == pytest.approx(expected.totals[2], abs=1e-4)
    assert len(score["token_scores"]) == len(score["tokens"]) == 3
    by_text = post(client, "/substitutes", sentence="曹操 [大怒] 。", k=3)
    by_position = post(client, "/substitutes", tokens=["曹操", "大怒", "。"], position=1, k=3)
    assert by_text == by_position
    counts = {"大喜": 100_000}
    discounted = post(client, "/substitutes", sentence="曹操 [大怒] 。", k=3, counts=counts)
    expected_words = polyseme.substitutes(elmo, "曹操 [大怒] 。", 3, counts=counts).joint.best
    assert [c["word"] for c in discounted["joint"]["best"]] == [c.word for c in expected_words]
    assert len(by_text["joint"]["best"]) == 3
    assert 0 < by_text["forward"]["best"][0]["probability"] < 1


def test_nearest_returns_words_or_with_a_context_usages(client: httpx.Client):
    words = post(client, "/nearest", word="曹操", k=3)["words"]
    assert len(words) == 3
    nearest = post(client, "/nearest", word="将", context="玄德拜关羽为将。", k=5)["usages"][0]
    assert nearest["sentence"] == "玄德拜关羽为将。"
    assert nearest["sentence"][nearest["start"] : nearest["stop"]] == "将"
    assert nearest["document"] == "one.txt"
    same_word = post(client, "/nearest", word="将", tokens=["玄德", "将", "兵"], position=1, same_word=True)[
        "usages"
    ]
    assert {usage["word"] for usage in same_word} == {"将"}
    words = post(client, "/nearest", word="大将", index="other-index", k=2)["words"]
    assert len(words) == 2


def test_dot_products_of_layers_give_the_cosine_of_any_mix(client: httpx.Client):
    response = post(client, "/nearest", word="将", context="玄德拜关羽为将。", k=3, layers=True)
    of_query, usage = np.array(response["query"]["own"]), response["usages"][0]
    for weights in ([1, 0, 0], [0, 0, 1], [0.2, 0.3, 0.5]):
        w = np.array(weights)
        of_usage, cross = np.array(usage["own"]), np.array(usage["cross"])
        cosine = (w @ cross @ w) / np.sqrt((w @ of_query @ w) * (w @ of_usage @ w))
        assert cosine == pytest.approx(1, abs=0.01)  # the sentence itself is in the index


def test_candidates_for_mixes_include_the_nearest_in_the_token_layer(client: httpx.Client, folders, elmo):
    """Compare with the token layer of every usage in the index."""
    index = polyseme.open_index(folders[0], elmo)
    usages = [index.usage(number) for number in range(len(index))]
    vectors = [elmo.embed([[usage.word]], layer=0)[0][0] for usage in usages]  # without context
    spaces = UsageLayers(elmo, index).spaces
    for word, text in (("将", "玄德拜关羽为将。"), ("困乏", "人马困乏。"), ("张飞", "张飞大怒。")):
        response = post(client, "/nearest", word=word, context=text, k=6, layers=True)
        query = elmo.embed([[word]], layer=0)[0]
        best = np.sort(spaces[0].to_directions(np.array(vectors)) @ spaces[0].to_directions(query)[0])[::-1][
            :6
        ]
        rows = response["usages"] + response["others"]
        products = np.array([[row["own"][0][0], row["cross"][0][0]] for row in rows])
        cosines = products[:, 1] / np.sqrt(products[:, 0] * response["query"]["own"][0][0])
        np.testing.assert_allclose(np.sort(cosines)[::-1][:6], best, atol=1e-4)
        plain = post(client, "/nearest", word=word, context=text, k=6)["usages"]
        assert [row["cosine"] for row in response["usages"]] == [row["cosine"] for row in plain]
        locations = [(row["line"], row["start"]) for row in rows]
        assert len(set(locations)) == len(locations)
    same_word = post(
        client, "/nearest", word="将", context="玄德拜关羽为将。", k=6, layers=True, same_word=True
    )
    assert same_word["others"] == []


def test_texts_of_several_sentences_are_segmented_like_the_index(client: httpx.Client):
    text = "曹操大怒，欲斩此将。\n孙权大喜，重赏诸将。曹操将兵三十万来攻。"
    (tokens,) = post(client, "/tokenize", texts=[text], index="one-index")["tokens"]
    assert [token["text"] for token in tokens] == [text[token["start"] : token["end"]] for token in tokens]
    sentences = [[token for token in tokens if token["sentence"] == number] for number in range(3)]
    assert [sentence[0]["text"] for sentence in sentences] == ["曹操", "孙权", "曹操"]
    for sentence in sentences:
        words = [token["text"] for token in sentence]
        (best,) = post(client, "/nearest", word=words[0], tokens=words, position=0, k=1)["usages"]
        assert best["cosine"] > 0.99
        assert best["sentence"] == text[sentence[0]["start"] : sentence[-1]["end"]]


def test_the_length_limit_of_a_text_applies_to_its_sentences(client: httpx.Client):
    (tokens,) = post(client, "/tokenize", texts=["曹操大怒。" * 1000])["tokens"]
    assert (len(tokens), tokens[-1]["sentence"]) == (3000, 999)
    for text, code, limit in (
        ("字 " * 2001, "too_long", 2000),
        ("曹操大怒。" * 22_000, "too_long_together", 64_000),
    ):
        response = client.post("/tokenize", json={"texts": [text]})
        assert (response.status_code, response.json()["error_type"]) == (413, "too_large")
        assert (response.json()["code"], response.json()["values"]["limit"]) == (code, limit)


def test_errors_have_a_code_and_values(client: httpx.Client):
    def error(route: str, **body) -> tuple[str, dict]:
        response = client.post(route, json=body).json()
        return response["code"], response["values"]

    assert error("/nearest", word="曹操操") == ("word_missing", {"near": ["曹操"]})
    assert error("/senses", word="曹操", index="gone")[0] == "index_missing"
    assert error("/nearest", word="大", context="曹操大怒。")[0] == "no_token"
    indexes = {"first": "one-index", "second": "other-index"}
    assert error("/change", words=["曹操", "曹操操"], **indexes) == (
        "word_missing",
        {"near": ["曹操"], "number": 2},
    )
    code, values = error("/change", words=["烧毁"], **indexes)
    assert (code, values["count"] < values["minimum"]) == ("too_few_usages", True)


def test_senses_come_with_a_map_of_the_usages(client: httpx.Client):
    response = post(client, "/senses", word="将", max_senses=3)
    assert sum(sense["count"] for sense in response["senses"]) == len(response["usages"])
    assert {usage["sense"] for usage in response["usages"]} == set(range(len(response["senses"])))
    assert all(np.isfinite([usage["x"], usage["y"]]).all() for usage in response["usages"])


def test_senses_name_documents_without_their_paths(client: httpx.Client):
    response = client.post("/senses", json={"word": "将", "max_senses": 3})
    result = response.json()
    assert result["documents"] == {"one.txt": sum(sense["count"] for sense in result["senses"])}
    for sense in result["senses"]:
        assert set(sense["documents"]) == {"one.txt"}
    assert "/" not in response.text


def test_change_ranks_no_punctuation(client: httpx.Client, folders):
    response = post(client, "/change", first="one-index", second="other-index", k=3)
    assert response == {"changes": [], "complete": True}  # only 。 is frequent in both
    assert polyseme.change(*folders[:2]) == []


def test_change_compares_a_word_between_two_indexes(client: httpx.Client):
    changes = post(client, "/change", first="one-index", second="other-index", words=["曹操"])["changes"]
    assert changes[0]["word"] == "曹操"
    assert 0 <= changes[0]["shift_p"] <= 1


def test_change_names_a_word_with_too_few_usages_by_its_number(client: httpx.Client):
    values = {"first": "one-index", "second": "other-index", "words": ["曹操", "困乏"]}
    response = client.post("/change", json=values)
    assert response.status_code == 422
    assert "Word 2 of 2 has 4 usages in the first index: at least 5 are needed." in response.json()["error"]


def test_similarity_compares_texts_and_their_tokens(client: httpx.Client):
    response = post(client, "/similarity", texts=["曹操大怒。", "曹操大喜。"])
    assert np.array(response["matrix"]).shape == (3, 3)
    assert response["cosine"] > 0.5
    assert client.post("/similarity", json={"texts": ["", "曹操大怒"]}).json()["code"] == "no_tokens"


def test_similarity_compares_words_by_their_mean_vectors_unless_a_layer_is_named(client: httpx.Client):
    words, elmo = ["曹操", "玄德"], polyseme.load("zh-classic")
    by_mean, by_layer = (
        post(client, "/similarity", texts=words, **options) for options in ({}, {"layer": "mean"})
    )
    assert (by_mean["kind"], by_layer["kind"]) == ("words", "sentences")
    assert by_mean["cosine"] == pytest.approx(polyseme.similarity(elmo, *words).cosine, abs=1e-5)
    assert by_layer["cosine"] == pytest.approx(
        polyseme.similarity(elmo, *words, layer="mean").cosine, abs=1e-5
    )
    assert (by_mean["tokens"], np.shape(by_mean["matrix"])) == ([["曹操"], ["玄德"]], (1, 1))
    error = client.post("/similarity", json={"texts": ["曹操", "xyzzy"]})
    assert (error.status_code, error.json()["code"]) == (404, "word_missing")
    assert error.json()["values"]["number"] == 2


def test_similarity_compares_several_texts_in_the_space_of_an_index(
    client: httpx.Client, folders, elmo: polyseme.Elmo
):
    texts = ["曹操大怒。", "天色将晚。", "曹操大喜。"]
    response = post(client, "/similarity", texts=texts, index="one-index")
    expected = polyseme.similarity(polyseme.open_index(folders[0], elmo), *texts)
    np.testing.assert_allclose(response["cosines"], expected.cosines, atol=1e-5)
    assert (response["odd_one_out"], response["matrix"]) == (expected.odd_one_out, None)
    wrong_layer = client.post("/similarity", json={"texts": texts, "index": "one-index", "layer": 0})
    assert wrong_layer.json()["code"] == "other_layer"


def test_nearest_usages_equal_those_of_the_library(client: httpx.Client, folders, elmo: polyseme.Elmo):
    sentence = "将军，此将甚勇。"
    response = post(client, "/nearest", word="将", context=sentence, k=4, layer="top")["usages"]
    expected = polyseme.nearest(polyseme.open_index(folders[0], elmo), "将", 4, context=sentence)
    assert [usage["cosine"] for usage in response] == pytest.approx([u.cosine for u in expected], abs=1e-5)
    assert [usage["sentence"] for usage in response] == [usage.sentence for usage in expected]
    for context in ({"context": sentence}, {}):
        error = client.post("/nearest", json={"word": "将", "layer": 0, **context})
        assert (error.status_code, error.json()["code"]) == (422, "other_layer")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_vectors_of_one_direction_are_half_as_long(
    client: httpx.Client, elmo: polyseme.Elmo, direction: Literal["forward", "backward"]
):
    response = post(client, "/embed", texts=TEXTS[:2], direction=direction)
    expected = elmo.embed(TEXTS[:2], pool="mean", direction=direction)
    assert response["size"] == expected.shape[1] == elmo.config.size // 2
    np.testing.assert_allclose(response["vectors"], expected, atol=1e-5)
    tokens = post(client, "/embed_all", texts=TEXTS[:1], direction=direction)["vectors"][0]
    np.testing.assert_allclose(tokens, elmo.embed(TEXTS[0], direction=direction), atol=1e-5)


def test_change_takes_the_arguments_of_the_library(client: httpx.Client, folders, elmo: polyseme.Elmo):
    indexes = [polyseme.open_index(folder, elmo) for folder in folders[:2]]
    response = post(client, "/change", first="one-index", second="other-index", min_count=5, seed=3, k=2)
    expected = polyseme.change(indexes[0], indexes[1], min_count=5, seed=3, k=2)
    assert [change["word"] for change in response["changes"]] == [change.word for change in expected]
    assert [change["p"] for change in response["changes"]] == [change.p for change in expected]
    assert len(expected) > 0


@pytest.mark.parametrize("layer", ["top", "mean"])
@pytest.mark.parametrize(
    "texts", [["曹操大怒。", "玄德拜关羽为将。"], ["曹操[大怒]。", "玄德拜关羽为[将]。"]]
)
def test_similarity_equals_that_of_the_library(client: httpx.Client, texts: list[str], layer: str):
    expected = polyseme.similarity(polyseme.load("zh-classic"), *texts, layer=layer).cosine
    assert post(client, "/similarity", texts=texts, layer=layer)["cosine"] == pytest.approx(
        expected, abs=1e-5
    )


def test_brackets_in_only_one_of_two_texts_are_refused(client: httpx.Client):
    assert client.post("/similarity", json={"texts": ["曹操[大怒]。", "将"]}).status_code == 422


def test_brackets_mark_the_word_in_its_context(client: httpx.Client):
    marked = post(client, "/nearest", word="将", context="玄德[将]兵", k=3)["usages"]
    assert (
        marked == post(client, "/nearest", word="将", tokens=["玄德", "将", "兵"], position=1, k=3)["usages"]
    )


def test_words_can_be_added_and_subtracted(client: httpx.Client):
    words = post(client, "/nearest", word="曹操", like=["将"], unlike=["大怒"], k=2)["words"]
    assert {word["word"] for word in words}.isdisjoint({"曹操", "将", "大怒"})


def test_predict_returns_probabilities_of_the_labels(client: httpx.Client):
    (prediction,) = post(client, "/predict", texts=["这家酒店很好。"])["predictions"]
    assert sum(prediction["probabilities"].values()) == pytest.approx(1, abs=1e-3)


def test_nearest_and_predict_count_their_tokens(client: httpx.Client):
    def count() -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith("polyseme_tokens_total")).split()[1])

    before = count()
    post(client, "/nearest", word="将", tokens=["玄德", "将", "兵"], position=1)
    post(client, "/predict", texts=["曹操大怒。"])
    assert count() > before + 3


def test_a_head_request_for_health_has_no_body(client: httpx.Client):
    response = client.head("/health")
    assert response.status_code == 200
    assert response.content == b""
    assert client.get("/health").json() == {"status": "ready"}  # on the same connection


def test_info_metrics_and_docs_describe_the_server(client: httpx.Client):
    info = client.get("/info").json()
    assert info["model"]["name"] == "zh-classic"
    assert [index["name"] for index in info["indexes"]] == ["one-index", "other-index"]
    assert info["tasks"][0]["task"] == "classification"
    assert info["limits"]["max_texts"] == 32
    assert "polyseme_requests_total" in client.get("/metrics").text
    page = client.get("/docs").text
    assert "POST /embed" in page
    assert "https://" not in page


def test_the_openai_client_reads_both_encodings(server, open_ai, elmo: polyseme.Elmo):
    client = open_ai(server.address)
    assert [model.id for model in client.models.list()] == ["zh-classic"]
    expected = elmo.embed(TEXTS[:2], layer="mean", pool="mean")
    for encoding in ("float", "base64"):
        response = client.embeddings.create(model="zh-classic", input=TEXTS[:2], encoding_format=encoding)
        vectors = [row.embedding for row in response.data]
        if encoding == "base64":
            vectors = [np.frombuffer(base64.b64decode(vector), "<f4") for vector in vectors]
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
    by_default = client.embeddings.create(model="zh-classic", input=TEXTS[0])  # the client requests base64
    np.testing.assert_allclose(by_default.data[0].embedding, expected[0], atol=1e-6)
    assert by_default.usage.total_tokens == 3
    short = client.embeddings.create(model="zh-classic", input=TEXTS[:2], dimensions=100)
    first = expected[:, :100] / np.linalg.norm(expected[:, :100], axis=1, keepdims=True)
    np.testing.assert_allclose([row.embedding for row in short.data], first, atol=1e-6)
    model = client.models.retrieve("zh-classic")
    assert model.created == int((Path(polyseme.__file__).parent / "bundled" / "zh-classic").stat().st_mtime)


def test_the_openai_client_shows_what_is_wrong(server, open_ai):
    openai = pytest.importorskip("openai")
    client = open_ai(server.address, max_retries=0)
    create = partial(client.embeddings.create, model="zh-classic")
    wrong: list[tuple[Any, dict[str, Any], Any, str | None, str | None]] = [
        (
            openai.NotFoundError,
            {"model": "gpt", "input": "x"},
            "this server has zh-classic",
            "model_not_found",
            "model",
        ),
        (openai.BadRequestError, {"input": [[11, 7]]}, "token ids instead of text", None, "input"),
        (openai.BadRequestError, {"input": [11, 7]}, "token ids instead of text", None, "input"),
        (
            openai.BadRequestError,
            {"input": "x", "dimensions": 9999},
            "dimensions must be at most",
            None,
            "dimensions",
        ),
        (openai.BadRequestError, {"input": "x", "dimensions": 0}, "dimensions: ", None, "dimensions"),
        (openai.BadRequestError, {"input": []}, "input: ", None, "input"),
        (openai.APIStatusError, {"input": ["x"] * 2049}, "2049 texts, at most 2048", "too_many_texts", None),
    ]
    for kind, arguments, message, code, param in wrong:
        with pytest.raises(kind, match=re.escape(message)) as caught:
            create(**arguments)
        assert (caught.value.code, caught.value.param) == (code, param), arguments
        assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError, match="this server has zh-classic"):
        client.models.retrieve("gpt")
    with pytest.raises(openai.NotFoundError, match="No such route"):
        client.chat.completions.create(model="zh-classic", messages=[])


def test_the_openai_client_may_send_2048_texts(server, open_ai, elmo: polyseme.Elmo):
    client = open_ai(server.address, max_retries=0)
    texts = [TEXTS[number % 2] for number in range(2048)]
    rows = client.embeddings.create(model="zh-classic", input=texts).data
    assert [row.index for row in rows] == list(range(2048))
    expected = elmo.embed(TEXTS[:2], layer="mean", pool="mean")
    np.testing.assert_allclose([row.embedding for row in rows[-2:]], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("route", "body", "message"),
    [
        ("/embed", {"text": ["a"]}, "did you mean texts?"),
        ("/embed", {"text": ["a"]}, "texts: Field required"),
        ("/embed", {"texts": ["a"], "layers": "top"}, "did you mean layer?"),
        ("/embed", {"texts": ["a"], "xyz": 1}, "this route takes texts, layer, pool, direction, model"),
        ("/nearest", {"word": "曹操", "top_k": 3}, "did you mean k?"),
        ("/nearest", {"query": "曹操"}, "did you mean word?"),
        ("/substitutes", {"text": "曹操[大怒]。"}, "did you mean sentence?"),
        ("/summarise", {"texts": "曹操大怒。"}, "did you mean text?"),
    ],
)
def test_an_unknown_field_is_answered_with_the_right_name(
    client: httpx.Client, route: str, body: dict, message: str
):
    response = client.post(route, json=body)
    assert response.status_code == 422
    assert message in response.json()["error"]


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded", "json"])
def test_a_body_without_its_content_type_is_told_which_header_to_send(client: httpx.Client, content_type):
    headers = {} if content_type is None else {"content-type": content_type}
    for route, read in (
        ("/embed", lambda values: values),
        ("/v1/embeddings", lambda values: values["error"]),
    ):
        response = client.post(route, content=b'{"texts": ["a"]}', headers=headers)
        assert response.status_code == 415
        values = read(response.json())
        assert "Content-Type: application/json" in values.get("message", values.get("error"))
    suffixed = {"content-type": "application/vnd.api+json; charset=utf-8"}
    assert client.post("/embed", content=b'{"texts": ["a"]}', headers=suffixed).status_code == 200


def test_unknown_routes_and_methods_are_answered_with_the_right_ones(client: httpx.Client):
    assert "did you mean /embed?" in client.post("/embeds", json={}).json()["error"]
    assert "did you mean /v1/embeddings?" in client.post("/v1/embedding", json={}).json()["error"]["message"]
    assert client.get("/embed").json()["error"] == "This route takes POST only."
    assert "/docs lists all" in client.get("/zzzzzzzzzzz").json()["error"]


def test_generate_continues_a_prompt_as_the_library_does(client: httpx.Client, elmo: polyseme.Elmo):
    response = post(client, "/generate", prompt="却说曹操", tokens=8, seed=3, top_k=50, temperature=0.8)
    expected = polyseme.generate(elmo, "却说曹操", tokens=8, seed=3, top_k=50, temperature=0.8)
    assert (response["text"], response["tokens"]) == (expected.text, expected.tokens)
    np.testing.assert_allclose(response["log_probs"], expected.log_probs, atol=1e-4)
    assert response["ended"] == expected.ended
    without_prompt = post(client, "/generate", tokens=5, stop_at_end=False)
    assert len(without_prompt["tokens"]) == 5


def test_map_places_the_usages_of_words_as_the_library_does(client: httpx.Client, folders, elmo):
    expected = polyseme.map_usages(polyseme.open_index(folders[0], elmo), ["将", "曹操"])
    usages = post(client, "/map", words=["将", "曹操"])["usages"]
    np.testing.assert_allclose([[usage["x"], usage["y"]] for usage in usages], expected.points, atol=1e-4)
    assert [usage["group"] for usage in usages] == expected.groups
    assert {usage["document"] for usage in usages} == {"one.txt"}
    assert {usage["word"] for usage in post(client, "/map", words="将")["usages"]} == {"将"}
    missing = client.post("/map", json={"words": ["将", "曹操操"]}).json()
    assert (missing["code"], missing["values"]) == ("word_missing", {"near": ["曹操"], "number": 2})


INVALID_REQUESTS = [
    ("/embed", {}, 422),
    ("/embed", {"texts": []}, 422),
    ("/embed", {"texts": "one"}, 422),
    ("/embed", {"texts": ["a"], "unknown": 1}, 422),
    ("/embed", {"texts": ["a"] * 33}, 413),
    ("/embed", {"texts": ["字 " * 2100]}, 413),
    ("/embed", {"texts": ["a"], "layer": 7}, 422),
    ("/embed", {"texts": ["a"], "layer": [1.0]}, 422),
    ("/embed", {"texts": ["a"], "layer": "all"}, 422),
    ("/embed", {"texts": [1]}, 422),
    ("/nearest", {"word": "不存在的词语"}, 404),
    ("/nearest", {"word": "曹操", "index": "none"}, 404),
    ("/nearest", {"word": "曹操", "k": 0}, 422),
    ("/nearest", {"word": "曹操", "context": "没有这个人"}, 422),
    ("/nearest", {"word": "将", "context": "将将"}, 422),
    ("/nearest", {"word": "将", "tokens": ["将"], "position": 5}, 422),
    ("/nearest", {"word": "将", "tokens": ["将", "军"], "position": 1}, 422),
    ("/nearest", {"word": "将", "context": "将军", "approximate": True}, 422),
    ("/substitutes", {"sentence": "no mark"}, 422),
    ("/substitutes", {}, 422),
    ("/substitutes", {"sentence": "字 " * 2100 + "[将]"}, 413),
    ("/senses", {"word": "三十万"}, 422),
    ("/change", {"first": "one-index", "second": "none"}, 404),
    ("/predict", {"texts": [["a", "b"]]}, 422),
    ("/predict", {"texts": ["a"], "task": "none"}, 404),
    ("/similarity", {"texts": ["a"]}, 422),
    ("/generate", {"tokens": 0}, 422),
    ("/generate", {"tokens": 1001}, 422),
    ("/generate", {"temperature": -1}, 422),
    ("/generate", {"top_k": 0}, 422),
    ("/generate", {"prompt": "字 " * 2100}, 413),
    ("/map", {"words": []}, 422),
    ("/map", {"words": ["将"], "by": "none"}, 422),
    ("/map", {"words": ["将"], "documents": "none"}, 422),
    ("/map", {"words": ["将"], "method": "umap"}, 422),
    ("/map", {"words": ["将"], "index": "none"}, 404),
]


@pytest.mark.parametrize(("route", "body", "status"), INVALID_REQUESTS)
def test_invalid_requests_get_an_error_without_a_traceback(
    client: httpx.Client, route: str, body: dict, status: int
):
    response = client.post(route, json=body)
    assert response.status_code == status, response.text
    assert set(response.json()) - {"code", "values"} == {"error", "error_type"}
    assert "Traceback" not in response.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{bad", 400),
        (b"", 422),
        (b"[1]", 422),
        (b'{"texts": ["\\ud800"]}', 422),
        (b'{"texts": ["a"], "layer": [NaN, 1, 1]}', 422),
        (b'{"texts": ["a"], "layer": [1e999, 1, 1]}', 422),
        (b'{"texts": ["\xff"]}', 400),
        (b"[" * 100_000, 400),
    ],
)
def test_broken_bodies_are_refused(client: httpx.Client, body: bytes, status: int):
    response = client.post("/embed", content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    assert set(response.json()) - {"code", "values"} == {"error", "error_type"}


def test_errors_do_not_repeat_the_request(client: httpx.Client):
    secret = "密码一二三"
    for route, body in (
        ("/nearest", {"word": secret}),
        ("/nearest", {"word": "将", "context": secret}),
        ("/substitutes", {"sentence": secret}),
        ("/senses", {"word": secret}),
        ("/embed", {"texts": [secret], "layer": secret}),
        ("/embed", {"texts": {secret: 1}}),
        ("/predict", {"texts": ["a"], "task": secret}),
    ):
        response = client.post(route, json=body)
        assert response.status_code >= 400
        assert secret not in response.text, route


def test_unknown_paths_and_methods_are_refused(client: httpx.Client):
    assert client.get("/nothing").json()["error_type"] == "not_found"
    assert client.get("/embed").status_code == 405
    for path in (
        "/explorer/../app.py",
        "/explorer/..%2fapp.py",
        "/explorer/%2e%2e/app.py",
        "/explorer/none.js",
    ):
        assert client.get(path).status_code == 404, path


def test_the_page_asks_for_few_files_which_are_cached_for_good(client: httpx.Client):
    page = client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    addresses = re.findall(r'(?:href|src)="(/explorer/[^"]+)"', page.text)
    assert len(addresses) == 4
    for address in addresses:
        response = client.get(address)
        assert response.headers["cache-control"].endswith("immutable"), address
        assert client.get(address.partition("?")[0]).headers["cache-control"] == "no-cache"
        again = client.get(address, headers={"If-None-Match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_every_response_has_security_headers_and_a_request_id(client: httpx.Client):
    for response in (client.get("/"), client.get("/nothing"), client.post("/embed", json={})):
        assert "default-src 'self'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-request-id"]
    response = client.get("/health", headers={"x-request-id": "abc-1"})
    assert response.headers["x-request-id"] == "abc-1"


def test_summarise_returns_sentences_of_the_text(client: httpx.Client):
    text = "曹操大怒。刘备大喜。却说曹操引兵来攻荆州。刘备走了。"
    summary = post(client, "/summarise", text=text, sentences=2)
    assert len(summary["sentences"]) == 2
    assert all(text[slice(*sentence["offsets"])] == sentence["text"] for sentence in summary["sentences"])
    assert client.post("/summarise", json={"text": " "}).status_code == 422
    assert client.post("/summarise", json={"text": "a", "sentences": 0}).status_code == 422
