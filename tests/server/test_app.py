"""The application in this process, with a small random model: limits, errors and metrics."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme import api
from polyseme.cli import serving
from polyseme.elmo import Elmo
from polyseme.language.generation import ForwardReader
from polyseme.server import verbs
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog
from polyseme.server.http import rendering, request_log
from polyseme.server.http.limits import Limits
from polyseme.server.jobs import worker_pool
from polyseme.server.state import ServerState
from polyseme.tasks.task_model import TaskModel

ELMO = Elmo(random_model(small_config(), softmax=True))
RUNNER = asyncio.Runner()  # an application needs one event loop for all its requests


@pytest.fixture(scope="module", autouse=True)
def close_event_loop():
    yield
    RUNNER.close()


class InProcessServer:
    """An application with its model loaded; `sizes` are arguments of `create_app`."""

    def __init__(
        self,
        sizes: dict[str, Any] | None = None,
        elmo: Elmo = ELMO,
        task: TaskModel | None = None,
        **limits: Any,
    ) -> None:
        catalog = Catalog("toy", None, elmo, tasks={} if task is None else {"task": task})
        self.app, self.state = create_app(lambda: catalog, limits=Limits(**limits), **(sizes or {}))
        self.state.load()

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://x", timeout=60)

    def post(self, route: str, body: Any, **options: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            async with self.client() as client:
                return await client.post(route, json=body, **options)

        return RUNNER.run(send())


@pytest.fixture
def release_score(monkeypatch: pytest.MonkeyPatch):
    """/score waits until this event is set."""
    release = threading.Event()
    monkeypatch.setattr(api, "score", lambda *_, **__: release.wait(60) and [])
    yield release
    release.set()


async def until(condition: Callable[[], object]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition never held")


def assert_error(response: httpx.Response, status: int, error_type: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert set(response.json()) - {"code", "values"} == {"error", "error_type"}
    assert response.json()["error_type"] == error_type


def test_slow_requests_do_not_delay_vectors(release_score: threading.Event):
    server = InProcessServer()

    async def send_requests() -> None:
        async with server.client() as client:
            slow = [asyncio.ensure_future(client.post("/score", json={"texts": ["a"]})) for _ in range(4)]
            await until(lambda: len(server.state.queries) == 4)
            for route in ("/embed", "/embed_all", "/tokenize"):
                assert (await client.post(route, json={"texts": ["the bank"]})).status_code == 200
            assert not any(request.done() for request in slow)
            release_score.set()
            assert {response.status_code for response in await asyncio.gather(*slow)} == {200}

    RUNNER.run(send_requests())


def test_requests_that_timed_out_count_until_their_thread_ends(release_score: threading.Event):
    server = InProcessServer(timeout=2)
    assert_error(server.post("/score", {"texts": ["a"]}), 504, "timeout")
    assert len(server.state.queries) == 1
    release_score.set()
    RUNNER.run(until(lambda: len(server.state.queries) == 0))


def test_an_abandoned_request_stops_after_its_current_batch(monkeypatch: pytest.MonkeyPatch):
    elmo, scored, release = Elmo(ELMO.model, batch_tokens=6), [], threading.Event()
    server, compute = InProcessServer(elmo=elmo, timeout=2), elmo.compute_layers

    def compute_slowly(sentences: list[list[str]], **options: Any) -> Any:
        scored.append(sentences)
        release.wait(60)
        return compute(sentences, **options)

    monkeypatch.setattr(elmo, "compute_layers", compute_slowly)
    assert_error(server.post("/score", {"texts": ["a", "bank", "of", "the", "river"]}), 504, "timeout")
    release.set()
    RUNNER.run(until(lambda: len(server.state.queries) == 0))
    assert [len(sentences) for sentences in scored] == [2]


def test_scores_do_not_depend_on_the_batch_size():
    texts = {"texts": ["the bank of the river", "bank", "", "the river", "a bank"]}
    at_once = InProcessServer().post("/score", texts).json()["scores"]
    batched = Elmo(ELMO.model, batch_tokens=3)
    chunked = InProcessServer(elmo=batched).post("/score", texts).json()["scores"]
    assert [score["tokens"] for score in chunked] == [score["tokens"] for score in at_once]
    np.testing.assert_allclose(
        [score["mean"] for score in chunked], [score["mean"] for score in at_once], rtol=1e-5
    )


def test_an_abandoned_generation_stops_after_its_current_word(monkeypatch: pytest.MonkeyPatch):
    server, release, words = InProcessServer(timeout=1), threading.Event(), list[Any]()
    read_words = ForwardReader.read_words

    def read_slowly(reader: ForwardReader, new: list[str]) -> Any:
        words.append(new)
        release.wait(60)
        return read_words(reader, new)

    monkeypatch.setattr(ForwardReader, "read_words", read_slowly)
    body = {"tokens": 500, "stop_at_end": False}
    assert_error(server.post("/generate", body), 504, "timeout")
    release.set()
    RUNNER.run(until(lambda: len(server.state.analyses) == 0))
    assert len(words) == 1


@pytest.fixture(scope="module")
def classifier() -> TaskModel:
    rows = [("the bank", "money"), ("the river", "water"), ("a bank", "money"), ("of the river", "water")]
    return polyseme.train("classification", ELMO, train=rows, dev=rows, settings=["train.epochs=1"])


def test_an_abandoned_prediction_stops_after_its_current_chunk(
    monkeypatch: pytest.MonkeyPatch, classifier: TaskModel
):
    server, decoded, release = (
        InProcessServer({"chunk_tokens": 4}, task=classifier, timeout=2),
        [],
        threading.Event(),
    )
    network, decode = classifier.network, classifier.network.decode

    def decode_slowly(batch: Any) -> Any:
        decoded.append(batch)
        release.wait(60)
        return decode(batch)

    monkeypatch.setattr(network, "decode", decode_slowly)
    assert_error(server.post("/predict", {"texts": ["a", "bank", "of", "the", "river"]}), 504, "timeout")
    release.set()
    RUNNER.run(until(lambda: len(server.state.queries) == 0))
    assert [len(batch) for batch in decoded] == [2]


@pytest.mark.parametrize("chunk_tokens", [1, 2048])
def test_predictions_are_those_of_the_function(classifier: TaskModel, chunk_tokens: int):
    texts = ["the bank of the river", "bank", "the river", "a bank"]
    server = InProcessServer({"chunk_tokens": chunk_tokens}, task=classifier)
    predictions = server.post("/predict", {"texts": texts}).json()["predictions"]
    lines = [json.loads(line) for line in polyseme.predict(classifier, texts, plain_text=True)]
    assert [prediction["tokens"] for prediction in predictions] == [line["tokens"] for line in lines]
    for prediction, line in zip(predictions, lines, strict=True):
        assert prediction["probabilities"] == pytest.approx(line["probabilities"], rel=1e-4)


def test_large_responses_are_not_rendered_on_the_event_loop(monkeypatch: pytest.MonkeyPatch):
    threads = []
    to_json = rendering.to_json
    monkeypatch.setattr(
        rendering,
        "to_json",
        lambda *a, **k: (threads.append(threading.current_thread()), to_json(*a, **k))[1],
    )
    server, long_text = InProcessServer(), "the bank " * 150
    for route in ("/embed_all", "/tokenize", "/score", "/similarity"):
        assert server.post(route, {"texts": [long_text, long_text]}).status_code == 200
    server = InProcessServer({"inline_size": 0})
    assert server.post("/v1/embeddings", {"input": "the bank", "model": "toy"}).status_code == 200
    assert server.post("/embed", {"texts": ["the bank"]}).status_code == 200
    assert threads
    assert threading.main_thread() not in threads


def test_the_numbers_of_a_response_are_limited():
    server = InProcessServer(response_values=100)
    assert server.post("/embed_all", {"texts": ["the bank"]}).status_code == 200
    for body in ({"texts": ["the bank"] * 10}, {"texts": ["the bank of the river"], "layer": "all"}):
        assert_error(server.post("/embed_all", body), 413, "too_large")
    assert_error(server.post("/similarity", {"texts": ["the " * 11, "bank " * 11]}), 413, "too_large")


def test_the_length_of_texts_to_tokenize_is_limited():
    assert_error(InProcessServer(max_tokens=3).post("/tokenize", {"texts": ["a b c d"]}), 413, "too_large")


def test_after_a_request_ran_out_of_memory_the_next_one_succeeds(monkeypatch: pytest.MonkeyPatch):
    def run_out_of_memory(*_: object, **__: object) -> None:
        raise MemoryError

    server = InProcessServer()
    with monkeypatch.context() as patch:
        patch.setattr(api, "score", run_out_of_memory)
        assert_error(server.post("/score", {"texts": ["a"]}), 503, "memory")
        patch.setattr(verbs, "choose_raw_type", run_out_of_memory)  # on the event loop
        assert_error(server.post("/embed", {"texts": ["a"]}), 503, "memory")
    assert server.post("/score", {"texts": ["a"]}).status_code == 200


def test_an_internal_error_is_logged_without_the_text_of_the_request(monkeypatch: pytest.MonkeyPatch, caplog):
    def broken_score(_: object, sentences: list[list[str]], **__: object) -> None:
        raise KeyError(sentences[0][0])

    monkeypatch.setattr(api, "score", broken_score)
    from polyseme.server.http.request_log import JsonFormatter

    with caplog.at_level(logging.INFO, "polyseme.server"):
        assert_error(InProcessServer().post("/score", {"texts": ["secret"]}), 500, "internal")
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert all({"time", "level"} <= set(line) for line in lines)
    (failure,) = [line for line in lines if line["level"] == "error"]
    assert failure["failure"] == "KeyError"
    assert "broken_score" in failure["traceback"]
    assert "secret" not in json.dumps(lines)


def test_too_many_concurrent_requests_are_refused_but_not_health_checks(release_score: threading.Event):
    server = InProcessServer(concurrent=2)

    async def send_requests() -> None:
        async with server.client() as client:
            slow = [asyncio.ensure_future(client.post("/score", json={"texts": ["a"]})) for _ in range(2)]
            await until(lambda: len(server.state.queries) == 2)
            third = await client.post("/embed", json={"texts": ["a"]})
            assert_error(third, 429, "busy")
            assert int(third.headers["retry-after"]) >= 1
            assert {(await client.get("/health")).status_code for _ in range(5)} == {200}
            release_score.set()
            assert {response.status_code for response in await asyncio.gather(*slow)} == {200}
            assert (await client.post("/embed", json={"texts": ["a"]})).status_code == 200

    RUNNER.run(send_requests())


def test_health_checks_do_not_count_as_concurrent_requests():
    server = InProcessServer(concurrent=1)

    async def send_requests() -> None:
        never = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await never.wait()
            return {"type": "http.disconnect"}

        async def ignore(_: object) -> None:
            return None

        scope = {"type": "http", "method": "GET", "path": "/health", "headers": []}
        slow = asyncio.ensure_future(server.app(scope, receive, ignore))  # its body never arrives
        await asyncio.sleep(0.05)
        async with server.client() as client:
            assert (await client.post("/embed", json={"texts": ["a"]})).status_code == 200
        slow.cancel()

    RUNNER.run(send_requests())


def test_requests_get_503_while_the_model_loads():
    finish_loading = threading.Event()

    def load() -> Catalog:
        finish_loading.wait(60)
        return Catalog("toy", None, ELMO)

    app, state = create_app(load)
    server = InProcessServer()
    server.app, server.state = app, state
    loading = threading.Thread(target=state.load)
    loading.start()
    response = server.post("/embed", {"texts": ["a"]})
    finish_loading.set()
    loading.join()
    assert_error(response, 503, "loading")
    assert int(response.headers["retry-after"]) >= 1
    assert server.post("/embed", {"texts": ["a"]}).status_code == 200


def test_a_draining_server_refuses_new_requests_and_after_the_grace_period_all(
    release_score: threading.Event,
):
    server = InProcessServer()

    async def send_requests() -> None:
        async with server.client() as client:
            slow = asyncio.ensure_future(client.post("/score", json={"texts": ["a"]}))
            await until(lambda: len(server.state.queries) == 1)
            server.state.draining = True
            for response in (await client.get("/health"), await client.post("/embed", json={"texts": ["a"]})):
                assert_error(response, 503, "draining")
                assert response.headers["connection"] == "close"
            assert not slow.done()
            server.state.grace_over.set()
            assert_error(await slow, 503, "draining")

    RUNNER.run(send_requests())


def asgi_client(message: dict[str, Any], sent: list[dict[str, Any]]) -> tuple[Any, Any]:
    """`receive` and `send` of an ASGI client that sends one message; the responses go to `sent`."""
    messages = [message]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(dict(message))

    return receive, send


def post_scope(route: str) -> dict[str, Any]:
    """The ASGI scope of a request with a JSON body."""
    return {
        "type": "http",
        "method": "POST",
        "path": route,
        "raw_path": route.encode(),
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    }


def test_a_request_cancelled_by_the_shutdown_gets_503(release_score: threading.Event):
    server = InProcessServer()
    sent: list[dict[str, Any]] = []

    async def send_requests() -> None:
        receive, send = asgi_client(
            {"type": "http.request", "body": b'{"texts": ["a"]}', "more_body": False}, sent
        )
        scope = post_scope("/score")
        request = asyncio.ensure_future(server.app(scope, receive, send))
        await until(lambda: len(server.state.queries) == 1)
        server.state.draining = True
        request.cancel()
        await request

    RUNNER.run(send_requests())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error_type"] == "draining"


def test_a_body_that_arrives_too_slowly_is_refused():
    server = InProcessServer(timeout=0.2)
    sent: list[dict[str, Any]] = []

    async def send_requests() -> None:
        receive, send = asgi_client({"type": "http.request", "body": b"{", "more_body": True}, sent)
        await server.app({"type": "http", "method": "POST", "path": "/embed", "headers": []}, receive, send)

    RUNNER.run(send_requests())
    assert sent[0]["status"] == 408
    assert set(json.loads(sent[1]["body"])) == {"error", "error_type"}


def test_openai_clients_get_vectors_to_compare_texts_by_where_the_model_has_them():
    pools: list[tuple[bool, Any]] = [(False, "mean"), (True, "sentence")]
    for is_fitted, pool in pools:
        elmo = Elmo(random_model(small_config()))
        if is_fitted:
            elmo.fit_sentences(["the bank failed", "the river", "of the bank !"])
        server = InProcessServer()
        server.app, server.state = create_app(partial(Catalog, "toy", None, elmo))
        server.state.load()
        response = server.post("/v1/embeddings", {"input": "the bank", "model": "toy"})
        expected = elmo.embed("the bank", pool=pool)
        np.testing.assert_allclose(response.json()["data"][0]["embedding"], expected, atol=1e-5)
        for joined in ("mean", "concat"):
            body = {"texts": ["the bank"], "pool": joined}
            values = server.post("/embed", body).json()["vectors"][0]
            np.testing.assert_allclose(values, elmo.embed("the bank", pool=joined), atol=1e-5)


@pytest.mark.parametrize("outputs", [4, 1024])
def test_openai_clients_may_send_the_size_of_the_vectors_or_null(outputs: int):
    config = small_config(recurrent={"cells": outputs, "outputs": outputs})
    server = InProcessServer()
    server.app, server.state = create_app(lambda: Catalog("toy", None, Elmo(random_model(config))))
    server.state.load()
    body = {"input": "the bank", "model": "toy", "encoding_format": None, "user": None}
    for size in (2 * outputs, None):
        response = server.post("/v1/embeddings", body | {"dimensions": size})
        assert response.status_code == 200, response.text
        assert len(response.json()["data"][0]["embedding"]) == 2 * outputs
    for wrong in (0, 2 * outputs + 1, "8"):
        response = server.post("/v1/embeddings", body | {"dimensions": wrong})
        assert (response.status_code, response.json()["error"]["param"]) == (400, "dimensions")


def test_vectors_of_fewer_dimensions_have_length_1_and_without_words_stay_zero():
    body = {"input": ["the bank", ""], "model": "toy", "dimensions": 3}
    rows = InProcessServer().post("/v1/embeddings", body).json()["data"]
    expected = ELMO.embed("the bank", pool="mean")[:3]
    np.testing.assert_allclose(rows[0]["embedding"], expected / np.linalg.norm(expected), atol=1e-6)
    assert rows[1]["embedding"] == [0, 0, 0]


def test_many_inputs_leave_room_for_other_requests_in_the_queue(monkeypatch: pytest.MonkeyPatch):
    server, queued = InProcessServer(max_texts=4, queue=6), list[int]()
    embed = server.state.embed

    async def count_texts(sentences: Any, spec: Any) -> Any:
        queued.append(len(sentences))
        return await embed(sentences, spec)

    monkeypatch.setattr(server.state, "embed", count_texts)
    response = server.post("/v1/embeddings", {"input": ["the bank"] * 30, "model": "toy"})
    assert len(response.json()["data"]) == 30
    assert queued == [4] * 7 + [2]


@pytest.mark.parametrize(
    ("limits", "body", "status", "kind", "code"),
    [
        ({"max_tokens": 2}, {"input": "a b c", "model": "toy"}, 413, "invalid_request_error", "too_long"),
        (
            {"max_inputs": 1},
            {"input": ["a", "b"], "model": "toy"},
            413,
            "invalid_request_error",
            "too_many_texts",
        ),
        (
            {"response_values": 4},
            {"input": "a", "model": "toy"},
            413,
            "invalid_request_error",
            "answer_too_large",
        ),
        ({"body_bytes": 5}, {"input": "a", "model": "toy"}, 413, "invalid_request_error", "body_too_large"),
        ({"concurrent": 0}, {"input": "a", "model": "toy"}, 429, "rate_limit_error", "rate_limit_exceeded"),
    ],
)
def test_errors_of_limits_have_the_format_of_openai(
    limits: dict[str, Any], body: Any, status: int, kind: str, code: str
):
    response = InProcessServer(**limits).post("/v1/embeddings", body)
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"}
    error = response.json()["error"]
    assert (error["type"], error["code"]) == (kind, code)
    assert error["message"]


def test_a_wrong_key_has_the_format_of_openai():
    response = InProcessServer({"key": "s3cret"}).post("/v1/embeddings", {"input": "a", "model": "toy"})
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("route", "body", "fields"),
    [
        ("/v1/embeddings", {"input": 7, "model": "toy"}, {"input"}),
        ("/v1/embeddings", {"input": ["a", 7], "model": "toy"}, {"input", "input.1"}),
        ("/embed", {"texts": ["a"], "layer": -1}, {"layer"}),
        ("/embed", {"texts": ["a"], "layer": [1, "x", 2]}, {"layer", "layer.1"}),
        ("/predict", {"texts": ["a", ["b"]]}, {"texts.1"}),
        ("/embed", {"texts": ["a", 7]}, {"texts.1"}),
    ],
)
def test_validation_errors_name_the_fields_of_the_request(route: str, body: Any, fields: set[str]):
    response = InProcessServer().post(route, body)
    if route.startswith("/v1/"):
        assert response.status_code == 400
        errors = response.json()["error"]["message"].split("; ")
    else:
        assert_error(response, 422, "validation")
        errors = response.json()["error"].split("; ")
    assert {error.partition(":")[0] for error in errors} == fields, errors
    assert len(errors) == len(set(errors))


def test_an_unknown_key_is_not_repeated_in_the_error():
    key = "s3cret" * 10_000
    response = InProcessServer().post("/embed", {"texts": ["a"], key: 1})
    assert_error(response, 422, "validation")
    assert "s3cret" not in response.text
    assert len(response.text) < 500


@pytest.mark.parametrize("layer", [[1e308, 1e308, -1e308], [1e39, 0, 0], [1e6, 1e7, 0]])
def test_weights_that_overflow_are_refused(layer: list[float]):
    assert_error(InProcessServer().post("/embed", {"texts": ["the bank"], "layer": layer}), 422, "validation")


def test_numbers_too_large_for_float16_are_refused():
    body = {"texts": ["the bank"], "layer": [1e6, 1e6, 1e6]}
    response = InProcessServer().post("/embed", body, headers={"Accept": "application/x-float16"})
    assert_error(response, 422, "usage")
    assert np.isfinite(InProcessServer().post("/embed", body).json()["vectors"]).all()


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/x-float32", "application/x-float32"),
        ("application/x-float32;q=0", "application/json"),
        ("application/x-float32;q=0.1, application/json", "application/json"),
        ("application/json;q=0.5, application/x-float16;q=0.6", "application/x-float16"),
        ("application/x-float16;q=0.1, application/x-float32;q=0.2", "application/x-float32"),
        ("application/x-float32;q=much", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_the_accept_header_selects_the_format(accept: str, content_type: str):
    response = InProcessServer().post("/embed", {"texts": ["the bank"]}, headers={"Accept": accept})
    assert response.headers["content-type"] == content_type


@pytest.mark.parametrize(("name", "dtype", "tolerance"), [("float32", "<f4", 0), ("float16", "<f2", 1e-3)])
def test_raw_vectors_equal_those_in_json(name: str, dtype: str, tolerance: float):
    server, body = InProcessServer(), {"texts": ["the bank", "", "a river"]}
    response = server.post("/embed", body, headers={"Accept": f"application/x-{name}"})
    assert json.loads(response.headers["x-polyseme-shapes"]) == [[3, ELMO.config.size]]
    vectors = np.frombuffer(response.content, dtype).reshape(3, -1)
    np.testing.assert_allclose(vectors, server.post("/embed", body).json()["vectors"], atol=tolerance)


def test_health_answers_head_requests_and_a_trailing_slash_is_not_found():
    server = InProcessServer()

    async def send_requests() -> None:
        async with server.client() as client:
            head = await client.head("/health")
            assert head.status_code == 200
            assert head.headers["content-type"] == "application/json"
            assert_error(await client.post("/embed/", json={"texts": ["a"]}), 404, "not_found")
            assert_error(await client.get("/health/"), 404, "not_found")

    RUNNER.run(send_requests())


def test_a_large_response_is_sent_in_pieces():
    body = {"texts": ["the bank of the river"]}
    expected = InProcessServer().post("/embed_all", body).content
    server = InProcessServer({"piece_bytes": 100})
    assert server.post("/embed_all", body).content == expected
    sent: list[dict[str, Any]] = []
    receive, send = asgi_client(
        {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}, sent
    )

    async def send_request() -> None:
        await server.app(post_scope("/embed_all"), receive, send)

    RUNNER.run(send_request())
    pieces = [message.get("body", b"") for message in sent]
    assert max(map(len, pieces)) == 100
    assert b"".join(pieces) == expected


def test_metrics_count_tokens_batches_queue_and_cache():
    server = InProcessServer()

    async def send_requests() -> dict[str, float]:
        async with server.client() as client:
            for _ in range(2):
                await client.post("/embed", json={"texts": ["the bank failed", "a river"]})
            text = (await client.get("/metrics")).text
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if not line.startswith("#")
        }

    metrics = RUNNER.run(send_requests())
    assert metrics["polyseme_tokens_total"] == 10
    assert metrics["polyseme_batch_texts_sum"] == 4
    assert metrics["polyseme_queue_texts"] == 0
    assert metrics['polyseme_cache_words_total{found="yes"}'] >= 5
    assert metrics['polyseme_requests_total{route="/embed",status="200"}'] == 2


@pytest.mark.parametrize(
    ("route", "body", "tokens"),
    [
        ("/embed", {"texts": ["the bank failed", "a river"]}, 5),
        ("/embed_all", {"texts": ["the bank failed"]}, 3),
        ("/similarity", {"texts": ["the bank", "a river"]}, 4),
        ("/v1/embeddings", {"input": "the bank", "model": "toy"}, 2),
        ("/score", {"texts": ["the bank failed", "a river"]}, 5),
        ("/substitutes", {"sentence": "the [bank] failed"}, 3),
        ("/substitutes", {"tokens": ["the", "bank"], "position": 1}, 2),
        ("/generate", {"prompt": "the bank", "tokens": 3, "stop_at_end": False}, 5),
        ("/tokenize", {"texts": ["the bank"]}, 0),  # segmented, not embedded
        ("/substitutes", {"sentence": "the bank failed"}, 0),
    ],
)
def test_every_route_counts_the_tokens_it_processes(route: str, body: Any, tokens: int):
    server = InProcessServer()
    server.post(route, body)
    assert f"polyseme_tokens_total {tokens}.0" in server.state.metrics.render().decode()


def test_requests_that_wait_for_a_thread_show_in_a_gauge(release_score: threading.Event):
    server = InProcessServer()

    def waiting(pool: str) -> float:
        name = f'polyseme_queue_jobs{{pool="{pool}"}} '
        lines = server.state.metrics.render().decode().splitlines()
        return float(next(line for line in lines if line.startswith(name)).removeprefix(name))

    async def send_requests() -> None:
        assert waiting("queries") == waiting("analyses") == 0
        async with server.client() as client:
            slow = [asyncio.ensure_future(client.post("/score", json={"texts": ["a"]})) for _ in range(5)]
            await until(lambda: waiting("queries") == 3)  # two run
            slow[-1].cancel()
            await until(lambda: waiting("queries") == 2)
            release_score.set()
            await asyncio.gather(*slow, return_exceptions=True)
        assert waiting("queries") == waiting("analyses") == 0

    RUNNER.run(send_requests())


def test_cache_hits_are_counted_after_each_request():
    server = InProcessServer()
    totals: list[tuple[int, int]] = []
    server.state.metrics.set_cache_totals = lambda hits, misses: totals.append((hits, misses))  # type: ignore[method-assign]
    server.post("/embed", {"texts": ["the bank"]})
    assert totals


def test_the_queue_gauge_falls_when_a_waiting_request_is_cancelled(monkeypatch: pytest.MonkeyPatch):
    release = threading.Event()
    embed_tokens = Elmo.embed_tokens
    monkeypatch.setattr(Elmo, "embed_tokens", lambda *a, **k: (release.wait(60), embed_tokens(*a, **k))[1])
    server = InProcessServer(queue=4)
    state: ServerState = server.state

    async def send_requests() -> None:
        async with server.client() as client:
            first = asyncio.ensure_future(client.post("/embed", json={"texts": ["a"]}))
            await until(lambda: b"polyseme_batch_texts_count 1.0" in state.metrics.render())
            second = asyncio.ensure_future(client.post("/embed", json={"texts": ["a"] * 4}))
            await until(lambda: len(state.batcher) == 4)
            assert b"polyseme_queue_texts 4.0" in state.metrics.render()
            assert_error(await client.post("/embed", json={"texts": ["a"]}), 429, "busy")
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            await until(lambda: len(state.batcher) == 0)
            assert b"polyseme_queue_texts 0.0" in state.metrics.render()
            release.set()
            assert (await first).status_code == 200

    RUNNER.run(send_requests())


def test_every_limit_is_a_documented_option_of_the_command(monkeypatch: pytest.MonkeyPatch):
    options = inspect.signature(serving.serve).parameters
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    for name, default in asdict(Limits()).items():
        assert options[name].default == default, name
        assert f"| `--{name.replace('_', '-')}` |" in page
    passed: list[Limits] = []
    monkeypatch.setattr(polyseme, "serve", lambda *_, limits, **__: passed.append(limits))
    monkeypatch.setattr(request_log, "configure_logging", lambda: None)
    monkeypatch.setattr(worker_pool, "has_running_threads", lambda: False)
    values: dict[str, Any] = {name: number for number, name in enumerate(asdict(Limits()), start=1)}
    serving.serve("toy", None, **values)
    assert passed == [Limits(**values)]
