"""Each route gives what the library gives, and refuses what is wrong with the right status."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest

import polyseme
from polyseme.server.usage_layers import UsageLayers

TEXTS = ["曹操大怒。", "天色将晚，人马困乏。", ""]


@pytest.fixture(scope="module")
def elmo() -> polyseme.Elmo:
    return polyseme.load("zh-classic")


def ask(client: httpx.Client, route: str, **values) -> dict:
    answer = client.post(route, json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_tokens_have_their_places(client: httpx.Client):
    (tokens,) = ask(client, "/tokenize", texts=["曹操大怒。"])["tokens"]
    assert [token["text"] for token in tokens] == ["曹操", "大怒", "。"]
    assert (tokens[1]["start"], tokens[1]["end"]) == (2, 4)


@pytest.mark.parametrize("layer", ["mean", "top", 0, [0.2, 0.3, 0.5]])
def test_vectors_are_those_of_the_library(client: httpx.Client, elmo: polyseme.Elmo, layer):
    found = ask(client, "/embed", texts=TEXTS, layer=layer, pool="max")
    np.testing.assert_allclose(found["vectors"], elmo.embed(TEXTS, layer=layer, pool="max"), atol=1e-6)
    every = ask(client, "/embed_all", texts=TEXTS, layer=layer)
    assert every["tokens"] == [elmo.token_texts(text) for text in TEXTS]
    for ours, theirs in zip(every["vectors"], elmo.embed(TEXTS, layer=layer), strict=True):
        np.testing.assert_allclose(np.array(ours, np.float32).reshape(theirs.shape), theirs, atol=1e-6)


def test_all_layers_at_once(client: httpx.Client, elmo: polyseme.Elmo):
    (found,) = ask(client, "/embed_all", texts=TEXTS[:1], layer="all")["vectors"]
    np.testing.assert_allclose(found, elmo.embed(TEXTS[0], layer="all"), atol=1e-6)


@pytest.mark.parametrize(("kind", "dtype"), [("float32", "<f4"), ("float16", "<f2")])
def test_raw_numbers_where_accept_asks_for_them(client: httpx.Client, elmo: polyseme.Elmo, kind, dtype):
    headers = {"Accept": f"application/x-{kind}"}
    answer = client.post("/embed_all", json={"texts": TEXTS}, headers=headers)
    assert answer.headers["content-type"] == f"application/x-{kind}"
    shapes = json.loads(answer.headers["x-polyseme-shapes"])
    values, at = np.frombuffer(answer.content, dtype), 0
    for shape, wanted in zip(shapes, elmo.embed(TEXTS), strict=True):
        size = int(np.prod(shape))
        np.testing.assert_allclose(values[at : at + size].reshape(shape), wanted, atol=1e-3)
        at += size
    assert at == len(values)


def test_scores_and_substitutes(client: httpx.Client, elmo: polyseme.Elmo):
    (found,) = ask(client, "/score", texts=["曹操大怒。"])["scores"]
    (wanted,) = polyseme.language.score(elmo, ["曹操大怒。"])
    assert found["mean"] == pytest.approx(wanted.totals[2], abs=1e-4)
    assert len(found["token_scores"]) == len(found["tokens"]) == 3
    by_text = ask(client, "/substitutes", sentence="曹操 [大怒] 。", k=3)
    by_position = ask(client, "/substitutes", tokens=["曹操", "大怒", "。"], position=1, k=3)
    assert by_text == by_position
    assert len(by_text["joint"]["best"]) == 3
    assert 0 < by_text["forward"]["best"][0]["probability"] < 1


def test_nearest_words_and_usages(client: httpx.Client):
    words = ask(client, "/nearest", word="曹操", k=3)["words"]
    assert len(words) == 3
    found = ask(client, "/nearest", word="将", context="玄德拜关羽为将。", k=5)["usages"]
    assert found[0]["sentence"] == "玄德拜关羽为将。"
    assert found[0]["sentence"][found[0]["start"] : found[0]["stop"]] == "将"
    assert found[0]["document"] == "one.txt"
    same = ask(client, "/nearest", word="将", tokens=["玄德", "将", "兵"], position=1, same_word=True)[
        "usages"
    ]
    assert {usage["word"] for usage in same} == {"将"}
    other = ask(client, "/nearest", word="大将", index="other-index", k=2)["words"]
    assert len(other) == 2


def test_products_of_layers_give_the_cosine_of_any_mixture(client: httpx.Client):
    found = ask(client, "/nearest", word="将", context="玄德拜关羽为将。", k=3, layers=True)
    own, first = np.array(found["query"]["own"]), found["usages"][0]
    for weights in ([1, 0, 0], [0, 0, 1], [0.2, 0.3, 0.5]):
        w = np.array(weights)
        theirs, cross = np.array(first["own"]), np.array(first["cross"])
        cosine = (w @ cross @ w) / np.sqrt((w @ own @ w) * (w @ theirs @ w))
        assert cosine == pytest.approx(1, abs=0.01)  # the sentence itself is in the index


def test_candidates_for_mixtures_hold_the_nearest_of_the_token_layer(client: httpx.Client, folders, elmo):
    """Against all layers of all usages: the index's layer and layer 0 miss nothing, for any word."""
    index = polyseme.open_index(folders[0], elmo)
    usages = [index.usage(number) for number in range(len(index))]
    vectors = [elmo.embed([[usage.word]], layer=0)[0][0] for usage in usages]  # without context
    spaces = UsageLayers(elmo, index).spaces
    for word, text in (("将", "玄德拜关羽为将。"), ("困乏", "人马困乏。"), ("张飞", "张飞大怒。")):
        found = ask(client, "/nearest", word=word, context=text, k=6, layers=True)
        query = elmo.embed([[word]], layer=0)[0]
        best = np.sort(spaces[0].to_directions(np.array(vectors)) @ spaces[0].to_directions(query)[0])[::-1][
            :6
        ]
        rows = found["usages"] + found["others"]
        own = np.array([[row["own"][0][0], row["cross"][0][0]] for row in rows])
        cosines = own[:, 1] / np.sqrt(own[:, 0] * found["query"]["own"][0][0])
        np.testing.assert_allclose(np.sort(cosines)[::-1][:6], best, atol=1e-4)
        plain = ask(client, "/nearest", word=word, context=text, k=6)["usages"]
        assert [row["cosine"] for row in found["usages"]] == [row["cosine"] for row in plain]
        places = [(row["line"], row["start"]) for row in rows]
        assert len(set(places)) == len(places)
    same = ask(client, "/nearest", word="将", context="玄德拜关羽为将。", k=6, layers=True, same_word=True)
    assert same["others"] == []


def test_texts_of_several_sentences_are_cut_as_the_index_cuts_them(client: httpx.Client):
    text = "曹操大怒，欲斩此将。\n孙权大喜，重赏诸将。曹操将兵三十万来攻。"
    (tokens,) = ask(client, "/tokenize", texts=[text], index="one-index")["tokens"]
    assert [token["text"] for token in tokens] == [text[token["start"] : token["end"]] for token in tokens]
    sentences = [[one for one in tokens if one["sentence"] == number] for number in range(3)]
    assert [some[0]["text"] for some in sentences] == ["曹操", "孙权", "曹操"]
    for some in sentences:
        words = [token["text"] for token in some]
        (best,) = ask(client, "/nearest", word=words[0], tokens=words, position=0, k=1)["usages"]
        assert best["cosine"] > 0.99
        assert best["sentence"] == text[some[0]["start"] : some[-1]["end"]]


def test_a_long_text_of_short_sentences_is_cut(client: httpx.Client):
    (tokens,) = ask(client, "/tokenize", texts=["曹操大怒。" * 1000])["tokens"]
    assert (len(tokens), tokens[-1]["sentence"]) == (3000, 999)
    for text, code, limit in (
        ("字 " * 2001, "too_long", 2000),
        ("曹操大怒。" * 22_000, "too_long_together", 64_000),
    ):
        answer = client.post("/tokenize", json={"texts": [text]})
        assert (answer.status_code, answer.json()["error_type"]) == (413, "too_large")
        assert (answer.json()["code"], answer.json()["values"]["limit"]) == (code, limit)


def test_refusals_have_a_code_and_values(client: httpx.Client):
    def refused(route: str, **values) -> tuple[str, dict]:
        found = client.post(route, json=values).json()
        return found["code"], found["values"]

    assert refused("/nearest", word="曹操操") == ("word_missing", {"near": ["曹操"]})
    assert refused("/senses", word="曹操", index="gone")[0] == "index_missing"
    assert refused("/nearest", word="大", context="曹操大怒。")[0] == "no_token"
    words = {"first": "one-index", "second": "other-index"}
    assert refused("/change", words=["曹操", "曹操操"], **words) == (
        "word_missing",
        {"near": ["曹操"], "number": 2},
    )
    code, values = refused("/change", words=["烧毁"], **words)
    assert (code, values["count"] < values["minimum"]) == ("too_few_usages", True)


def test_senses_with_a_map(client: httpx.Client):
    found = ask(client, "/senses", word="将", max_senses=3)
    assert sum(sense["count"] for sense in found["senses"]) == len(found["usages"])
    assert {usage["sense"] for usage in found["usages"]} == set(range(len(found["senses"])))
    assert all(np.isfinite([usage["x"], usage["y"]]).all() for usage in found["usages"])


def test_senses_name_documents_without_their_paths(client: httpx.Client):
    answer = client.post("/senses", json={"word": "将", "max_senses": 3})
    found = answer.json()
    assert found["documents"] == {"one.txt": sum(sense["count"] for sense in found["senses"])}
    for sense in found["senses"]:
        assert set(sense["documents"]) == {"one.txt"}
    assert "/" not in answer.text


def test_change_ranks_no_punctuation(client: httpx.Client, folders):
    found = ask(client, "/change", first="one-index", second="other-index", k=3)
    assert found == {"changes": [], "complete": True}  # only 。 is frequent in both
    assert polyseme.change(*folders[:2]) == []


def test_change_between_two_indexes(client: httpx.Client):
    found = ask(client, "/change", first="one-index", second="other-index", words=["曹操"])["changes"]
    assert found[0]["word"] == "曹操"
    assert 0 <= found[0]["shift_p"] <= 1


def test_change_says_by_its_number_which_word_has_too_few_usages(client: httpx.Client):
    values = {"first": "one-index", "second": "other-index", "words": ["曹操", "困乏"]}
    answer = client.post("/change", json=values)
    assert answer.status_code == 422
    assert "Word 2 of 2 has 4 usages in the first index: at least 5 are needed." in answer.json()["error"]


def test_similarity_of_texts_and_words(client: httpx.Client):
    found = ask(client, "/similarity", texts=["曹操大怒。", "曹操大喜。"])
    assert np.array(found["matrix"]).shape == (3, 3)
    assert found["cosine"] > 0.5
    assert ask(client, "/similarity", texts=["", "曹操"])["cosine"] is None


@pytest.mark.parametrize("layer", ["top", "mean"])
@pytest.mark.parametrize(
    "texts", [["曹操大怒。", "玄德拜关羽为将。"], ["曹操[大怒]。", "玄德拜关羽为[将]。"]]
)
def test_the_route_gives_the_similarity_of_the_library(client: httpx.Client, texts: list[str], layer: str):
    expected = polyseme.similarity(polyseme.load("zh-classic"), *texts, layer=layer).cosine
    assert ask(client, "/similarity", texts=texts, layer=layer)["cosine"] == pytest.approx(expected, abs=1e-5)


def test_only_one_text_with_brackets_is_refused(client: httpx.Client):
    assert client.post("/similarity", json={"texts": ["曹操[大怒]。", "将"]}).status_code == 422


def test_brackets_mark_the_word_in_its_context(client: httpx.Client):
    marked = ask(client, "/nearest", word="将", context="玄德[将]兵", k=3)["usages"]
    assert (
        marked == ask(client, "/nearest", word="将", tokens=["玄德", "将", "兵"], position=1, k=3)["usages"]
    )


def test_words_can_be_added_and_subtracted(client: httpx.Client):
    found = ask(client, "/nearest", word="曹操", like=["将"], unlike=["大怒"], k=2)["words"]
    assert {word["word"] for word in found}.isdisjoint({"曹操", "将", "大怒"})


def test_predictions_of_a_task(client: httpx.Client):
    (found,) = ask(client, "/predict", texts=["这家酒店很好。"])["predictions"]
    assert sum(found["probabilities"].values()) == pytest.approx(1, abs=1e-3)


def test_questions_about_sentences_are_counted_by_their_tokens(client: httpx.Client):
    def count() -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next(line for line in lines if line.startswith("polyseme_tokens_total")).split()[1])

    before = count()
    ask(client, "/nearest", word="将", tokens=["玄德", "将", "兵"], position=1)
    ask(client, "/predict", texts=["曹操大怒。"])
    assert count() > before + 3


def test_head_of_health_has_no_body(client: httpx.Client):
    answer = client.head("/health")
    assert answer.status_code == 200
    assert answer.content == b""
    assert client.get("/health").json() == {"status": "ready"}  # on the same connection


def test_facts(client: httpx.Client):
    info = client.get("/info").json()
    assert info["model"]["name"] == "zh-classic"
    assert [index["name"] for index in info["indexes"]] == ["one-index", "other-index"]
    assert info["tasks"][0]["task"] == "classification"
    assert info["limits"]["max_texts"] == 32
    assert "polyseme_requests_total" in client.get("/metrics").text
    page = client.get("/docs").text
    assert "POST /embed" in page
    assert "https://" not in page


def test_the_openai_client_reads_both_forms(server, elmo: polyseme.Elmo):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{server.address}/v1", api_key="any")
    assert [model.id for model in client.models.list()] == ["zh-classic"]
    wanted = elmo.embed(TEXTS[:2], layer="mean", pool="mean")
    for form in ("float", "base64"):
        found = client.embeddings.create(model="zh-classic", input=TEXTS[:2], encoding_format=form)
        vectors = [row.embedding for row in found.data]
        if form == "base64":
            vectors = [np.frombuffer(__import__("base64").b64decode(v), "<f4") for v in vectors]
        np.testing.assert_allclose(vectors, wanted, atol=1e-6)
    by_default = client.embeddings.create(model="zh-classic", input=TEXTS[0])  # the client asks for base64
    np.testing.assert_allclose(by_default.data[0].embedding, wanted[0], atol=1e-6)
    assert by_default.usage.total_tokens == 3
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="gpt", input="x")


WRONG = [
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
    ("/nearest", {"word": "将", "context": "将军", "approximate": True}, 422),
    ("/substitutes", {"sentence": "no mark"}, 422),
    ("/substitutes", {}, 422),
    ("/substitutes", {"sentence": "字 " * 2100 + "[将]"}, 413),
    ("/senses", {"word": "三十万"}, 422),
    ("/change", {"first": "one-index", "second": "none"}, 404),
    ("/predict", {"texts": [["a", "b"]]}, 422),
    ("/predict", {"texts": ["a"], "task": "none"}, 404),
    ("/similarity", {"texts": ["a"]}, 422),
    ("/v1/embeddings", {"input": "a", "model": "zh-classic", "dimensions": 3}, 422),
]


@pytest.mark.parametrize(("route", "values", "status"), WRONG)
def test_wrong_questions_have_a_clear_answer(client: httpx.Client, route: str, values: dict, status: int):
    answer = client.post(route, json=values)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) - {"code", "values"} == {"error", "error_type"}
    assert "Traceback" not in answer.text


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
    answer = client.post("/embed", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert set(answer.json()) - {"code", "values"} == {"error", "error_type"}


def test_errors_do_not_repeat_what_was_sent(client: httpx.Client):
    secret = "密码一二三"
    for route, values in (
        ("/nearest", {"word": secret}),
        ("/nearest", {"word": "将", "context": secret}),
        ("/substitutes", {"sentence": secret}),
        ("/senses", {"word": secret}),
        ("/embed", {"texts": [secret], "layer": secret}),
        ("/embed", {"texts": {secret: 1}}),
        ("/predict", {"texts": ["a"], "task": secret}),
    ):
        answer = client.post(route, json=values)
        assert answer.status_code >= 400
        assert secret not in answer.text, route


def test_other_paths_and_methods(client: httpx.Client):
    assert client.get("/nothing").json()["error_type"] == "not_found"
    assert client.get("/embed").status_code == 405
    for path in (
        "/explorer/../app.py",
        "/explorer/..%2fapp.py",
        "/explorer/%2e%2e/app.py",
        "/explorer/none.js",
    ):
        assert client.get(path).status_code == 404, path


def test_every_answer_has_the_headers_of_a_careful_server(client: httpx.Client):
    for answer in (client.get("/"), client.get("/nothing"), client.post("/embed", json={})):
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-request-id"]
    own = client.get("/health", headers={"x-request-id": "abc-1"})
    assert own.headers["x-request-id"] == "abc-1"
