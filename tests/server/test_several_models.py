"""Several models in one server: each request names its own, by the model or by its index or task model."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import openai
import pytest

import polyseme
from browsing import CHROMIUM, Visit
from waiting import until

ENGLISH = "the bank failed .\nhe sat on the river bank .\nthe river was wide .\n" * 8


@pytest.fixture(scope="module")
def english_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("english")
    (root / "text.txt").write_text(ENGLISH, encoding="utf-8")
    polyseme.index("en-classic", root / "text.txt", root / "english-index")
    return root / "english-index"


@pytest.fixture(scope="module")
def both(folders: tuple[Path, ...], english_index: Path, start_server) -> Iterator:
    """A server of two models; the indexes and the task of the second are given before it."""
    server = start_server("en-classic", *folders, english_index, "zh-classic").wait()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def ask(both) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=both.address, timeout=60) as client:
        yield client


def embed(client: httpx.Client, body: dict) -> np.ndarray:
    return np.array(client.post("/embed", json=body).raise_for_status().json()["vectors"][0])


def test_each_route_uses_the_model_that_a_request_names(ask: httpx.Client):
    for name in ("en-classic", "zh-classic"):
        vector = embed(ask, {"texts": ["曹操 the bank"], "model": name})
        expected = polyseme.load(name).embed("曹操 the bank", pool="mean")
        np.testing.assert_allclose(vector, expected, atol=1e-6)
    first = embed(ask, {"texts": ["the bank"]})
    np.testing.assert_allclose(first, polyseme.load("en-classic").embed("the bank", pool="mean"), atol=1e-6)
    tokens = [
        ask.post("/tokenize", json={"texts": ["曹操大怒。"], "model": name}).json()["tokens"][0]
        for name in ("en-classic", "zh-classic")
    ]
    assert tokens[0] != tokens[1]


def test_requests_of_both_models_at_the_same_time_get_their_own_vectors(both):
    elmos = {name: polyseme.load(name) for name in ("en-classic", "zh-classic")}

    def send(number: int) -> None:
        name = ("en-classic", "zh-classic")[number % 2]
        body = {"texts": [f"the bank {number}"], "model": name}
        vector = httpx.post(f"{both.address}/embed", json=body, timeout=60).json()["vectors"][0]
        np.testing.assert_allclose(vector, elmos[name].embed(f"the bank {number}", pool="mean"), atol=1e-6)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(48)))


def test_an_index_or_a_task_brings_its_model(ask: httpx.Client):
    assert ask.post("/nearest", json={"word": "曹操", "index": "one-index"}).status_code == 200
    usages = {"word": "将", "tokens": ["玄德", "将", "兵"], "position": 1, "index": "one-index"}
    assert ask.post("/nearest", json={**usages, "layers": True}).status_code == 200
    assert ask.post("/senses", json={"word": "bank", "index": "english-index"}).status_code == 200
    assert ask.post("/senses", json={"word": "bank"}).status_code == 200  # of the first model
    assert ask.post("/predict", json={"task": "reviews", "texts": ["这家酒店很好。"]}).status_code == 200
    chinese = {"first": "one-index", "second": "other-index", "words": ["曹操"]}
    assert ask.post("/change", json=chinese).status_code == 200


def test_what_does_not_belong_together_is_refused_with_the_names(ask: httpx.Client):
    def error(route: str, **body: object) -> tuple[int, str, dict]:
        response = ask.post(route, json=body)
        values = response.json()
        return response.status_code, values["code"], values["values"]

    assert error("/embed", texts=["a"], model="gone") == (
        404,
        "model_missing",
        {"names": ["en-classic", "zh-classic"]},
    )
    both = {"names": ["zh-classic", "en-classic"]}
    assert error("/senses", word="将", index="one-index", model="en-classic") == (422, "models_differ", both)
    assert error("/change", first="english-index", second="one-index") == (422, "models_differ", both)
    missing = error("/senses", word="将", index="gone")
    assert missing[:2] == (404, "index_missing")
    assert set(missing[2]["names"]) == {"one-index", "other-index", "english-index"}
    response = ask.post("/predict", json={"texts": ["a"]})
    assert (response.status_code, response.json()["code"]) == (422, "no_task")
    assert "zh-classic" in response.json()["error"]


def test_the_clients_of_openai_and_tei_choose_a_model(both, open_ai, ask: httpx.Client):
    client = open_ai(both.address)
    assert [model.id for model in client.models.list()] == ["en-classic", "zh-classic"]
    assert client.models.retrieve("zh-classic").id == "zh-classic"
    for name in ("en-classic", "zh-classic"):
        response = client.embeddings.create(model=name, input="曹操 the bank")
        assert response.model == name
        tei = ask.post("/embed", json={"inputs": "曹操 the bank", "model": name, "normalize": False}).json()
        np.testing.assert_allclose(response.data[0].embedding, tei[0], atol=1e-6)
    with pytest.raises(openai.NotFoundError) as problem:
        client.embeddings.create(model="gone", input="a")
    assert (problem.value.code, problem.value.param) == ("model_not_found", "model")
    assert "en-classic, zh-classic" in problem.value.message


def test_info_describes_each_model_and_names_all(ask: httpx.Client):
    first, second = (ask.get("/info", params=model).json() for model in ({}, {"model": "zh-classic"}))
    assert first["models"] == second["models"] == ["en-classic", "zh-classic"]
    assert (first["model"]["name"], second["model"]["name"]) == ("en-classic", "zh-classic")
    assert [index["name"] for index in first["indexes"]] == ["english-index"]
    assert [index["name"] for index in second["indexes"]] == ["one-index", "other-index"]
    assert [task["name"] for task in second["tasks"]] == ["reviews"]
    missing = ask.get("/info", params={"model": "gone"})
    assert (missing.status_code, missing.json()["code"]) == (404, "model_missing")


def test_python_serves_several_models_in_the_same_way():
    def run(address: object) -> None:
        elmo = polyseme.load("zh-classic")
        polyseme.serve("en-classic", elmo, port=0, started=address.put)  # type: ignore[attr-defined]

    context = multiprocessing.get_context("fork")
    addresses = context.Queue()
    process = context.Process(target=run, args=(addresses,))
    process.start()
    address = addresses.get(timeout=60)
    models = httpx.get(f"{address}/v1/models", timeout=60).json()["data"]
    assert [model["id"] for model in models] == ["en-classic", "zh-classic"]
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    process.join(60)
    until(lambda: process.exitcode == 0)
    with pytest.raises(OSError):  # noqa: PT011  # nothing listens
        socket.create_connection(address.removeprefix("http://").split(":"), timeout=5)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
def test_the_page_reads_the_model_that_is_chosen(both, browser):
    visit = Visit(browser, both.address)
    visit.go("#/senses?word=bank")
    chooser = visit.page.get_by_label("Model", exact=True)
    assert chooser.input_value() == "en-classic"
    assert '"model"' not in visit.code("curl")
    visit.expects_failures = True  # the other model has no index with this word
    chooser.select_option("zh-classic")
    visit.page.get_by_text("This word does not occur").wait_for()
    assert "model=zh-classic" in visit.page.url
    assert "word=bank" in visit.page.url
    visit.expects_failures = False
    visit.go(f"#/senses?word={quote('将')}&model=zh-classic")
    assert '"model":"zh-classic"' in visit.code("curl")
    visit.page.get_by_role("link", name="Sentence", exact=True).click()
    visit.page.wait_for_url("**/#/sentence?**model=zh-classic**")
    visit.expects_failures = True
    visit.go("#/model?model=none")
    visit.page.get_by_role("link", name="Use the first model").click()
    visit.page.get_by_role("heading", name="en-classic").first.wait_for()
    visit.close()
