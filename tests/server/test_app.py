"""The application in this process, over a small random model: limits, errors, info and metrics."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.cli import serving
from polyseme.elmo import Elmo
from polyseme.server import state, verbs
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog
from polyseme.server.http import middleware, rendering, request_log
from polyseme.server.http.limits import Limits
from polyseme.server.jobs import worker_pool
from polyseme.server.state import ServerState

ELMO = Elmo(random_model(small_config(), softmax=True))
RUNNER = asyncio.Runner()  # an application lives in one loop


@pytest.fixture(scope="module", autouse=True)
def _end():
    yield
    RUNNER.close()


class Asked:
    """An application, and questions to it."""

    def __init__(self, **limits: Any) -> None:
        self.app, self.state = create_app(lambda: Catalog("toy", None, ELMO), limits=Limits(**limits))
        self.state.load()

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://x", timeout=60)

    def post(self, route: str, values: Any, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with self.client() as client:
                return await client.post(route, json=values, **more)

        return RUNNER.run(ask())


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch):
    """/score waits until the event is set."""
    free = threading.Event()
    monkeypatch.setattr(verbs, "score", lambda *_: free.wait(60) and [])
    yield free
    free.set()


async def until(fits: Callable[[], object]) -> None:
    for _ in range(2000):
        if fits():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never was so")


def assert_refused(answer: httpx.Response, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json()) - {"code", "values"} == {"error", "error_type"}
    assert answer.json()["error_type"] == kind


def test_slow_questions_do_not_hold_up_vectors(blocked: threading.Event):
    asked = Asked()

    async def ask() -> None:
        async with asked.client() as client:
            slow = [asyncio.ensure_future(client.post("/score", json={"texts": ["a"]})) for _ in range(4)]
            await until(lambda: len(asked.state.queries) == 4)
            for route in ("/embed", "/embed_all", "/tokenize"):
                assert (await client.post(route, json={"texts": ["the bank"]})).status_code == 200
            assert not any(one.done() for one in slow)
            blocked.set()
            assert {one.status_code for one in await asyncio.gather(*slow)} == {200}

    RUNNER.run(ask())


def test_given_up_questions_count_until_their_thread_ends(blocked: threading.Event):
    asked = Asked(timeout=2)
    assert_refused(asked.post("/score", {"texts": ["a"]}), 504, "timeout")
    assert len(asked.state.queries) == 1
    blocked.set()
    RUNNER.run(until(lambda: len(asked.state.queries) == 0))


def test_a_question_that_nobody_waits_for_ends_with_its_part(monkeypatch: pytest.MonkeyPatch):
    asked, begun, free = Asked(timeout=2), [], threading.Event()

    def slow(_: Elmo, sentences: list[list[str]]) -> list[Any]:
        begun.append(sentences)
        free.wait(60)
        return []

    monkeypatch.setattr(verbs, "CHUNK_TOKENS", 2)
    monkeypatch.setattr(verbs, "score", slow)
    assert_refused(asked.post("/score", {"texts": ["a", "bank", "of", "the", "river"]}), 504, "timeout")
    free.set()
    RUNNER.run(until(lambda: len(asked.state.queries) == 0))
    assert begun == [[["a"], ["bank"]]]


def test_scores_in_parts_are_those_of_the_whole(monkeypatch: pytest.MonkeyPatch):
    texts = {"texts": ["the bank of the river", "bank", "", "the river", "a bank"]}
    asked = Asked()
    whole = asked.post("/score", texts).json()["scores"]
    monkeypatch.setattr(verbs, "CHUNK_TOKENS", 3)
    parts = asked.post("/score", texts).json()["scores"]
    assert [one["tokens"] for one in parts] == [one["tokens"] for one in whole]
    np.testing.assert_allclose([one["mean"] for one in parts], [one["mean"] for one in whole], rtol=1e-5)


def test_large_answers_are_not_written_by_the_thread_that_listens(monkeypatch: pytest.MonkeyPatch):
    writers = []
    whole = rendering.to_json
    monkeypatch.setattr(
        rendering, "to_json", lambda *a, **k: (writers.append(threading.current_thread()), whole(*a, **k))[1]
    )
    asked, long = Asked(), "the bank " * 150
    for route in ("/embed_all", "/tokenize", "/score", "/similarity"):
        assert asked.post(route, {"texts": [long, long]}).status_code == 200
    monkeypatch.setattr(state, "INLINE_SIZE", 0)
    given = {"input": "the bank", "model": "toy"}
    assert asked.post("/v1/embeddings", given).status_code == 200
    assert asked.post("/embed", {"texts": ["the bank"]}).status_code == 200
    assert writers
    assert threading.main_thread() not in writers


def test_an_answer_has_a_limit_of_numbers():
    asked = Asked(response_values=100)
    assert asked.post("/embed_all", {"texts": ["the bank"]}).status_code == 200
    for values in ({"texts": ["the bank"] * 10}, {"texts": ["the bank of the river"], "layer": "all"}):
        assert_refused(asked.post("/embed_all", values), 413, "too_large")
    assert_refused(asked.post("/similarity", {"texts": ["the " * 11, "bank " * 11]}), 413, "too_large")


def test_texts_to_tokenize_have_a_limit():
    assert_refused(Asked(max_tokens=3).post("/tokenize", {"texts": ["a b c d"]}), 413, "too_large")


def test_without_memory_a_question_is_refused_and_the_next_answered(monkeypatch: pytest.MonkeyPatch):
    def none(*_: object) -> None:
        raise MemoryError

    asked = Asked()
    with monkeypatch.context() as now:
        now.setattr(verbs, "score", none)
        assert_refused(asked.post("/score", {"texts": ["a"]}), 503, "memory")
        now.setattr(verbs, "accepted_raw_type", none)  # on the thread that listens
        assert_refused(asked.post("/embed", {"texts": ["a"]}), 503, "memory")
    assert asked.post("/score", {"texts": ["a"]}).status_code == 200


def test_a_bug_is_told_in_our_form_and_logged_without_text(monkeypatch: pytest.MonkeyPatch, caplog):
    def broken(_: object, sentences: list[list[str]]) -> None:
        raise KeyError(sentences[0][0])

    monkeypatch.setattr(verbs, "score", broken)
    from polyseme.server.http.request_log import JsonFormatter

    with caplog.at_level(logging.INFO, "polyseme.server"):
        assert_refused(Asked().post("/score", {"texts": ["secret"]}), 500, "internal")
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert all({"time", "level"} <= set(line) for line in lines)
    (failure,) = [line for line in lines if line["level"] == "error"]
    assert failure["failure"] == "KeyError"
    assert "broken" in failure["traceback"]
    assert "secret" not in json.dumps(lines)


def test_too_many_requests_at_once_are_refused_but_health_is_not(blocked: threading.Event):
    asked = Asked(concurrent=2)

    async def ask() -> None:
        async with asked.client() as client:
            slow = [asyncio.ensure_future(client.post("/score", json={"texts": ["a"]})) for _ in range(2)]
            await until(lambda: len(asked.state.queries) == 2)
            more = await client.post("/embed", json={"texts": ["a"]})
            assert_refused(more, 429, "busy")
            assert int(more.headers["retry-after"]) >= 1
            assert {(await client.get("/health")).status_code for _ in range(5)} == {200}
            blocked.set()
            assert {one.status_code for one in await asyncio.gather(*slow)} == {200}
            assert (await client.post("/embed", json={"texts": ["a"]})).status_code == 200

    RUNNER.run(ask())


def test_health_takes_no_place_of_another_request():
    asked = Asked(concurrent=1)

    async def ask() -> None:
        never = asyncio.Event()

        async def waits() -> dict[str, Any]:
            await never.wait()
            return {"type": "http.disconnect"}

        async def drop(_: object) -> None:
            return None

        scope = {"type": "http", "method": "GET", "path": "/health", "headers": []}
        slow = asyncio.ensure_future(asked.app(scope, waits, drop))  # its body does not come
        await asyncio.sleep(0.05)
        async with asked.client() as client:
            assert (await client.post("/embed", json={"texts": ["a"]})).status_code == 200
        slow.cancel()

    RUNNER.run(ask())


def test_a_server_that_loads_says_so():
    free = threading.Event()

    def load() -> Catalog:
        free.wait(60)
        return Catalog("toy", None, ELMO)

    app, state = create_app(load)
    asked = Asked()
    asked.app, asked.state = app, state
    loading = threading.Thread(target=state.load)
    loading.start()
    refused = asked.post("/embed", {"texts": ["a"]})
    free.set()
    loading.join()
    assert_refused(refused, 503, "loading")
    assert int(refused.headers["retry-after"]) >= 1
    assert asked.post("/embed", {"texts": ["a"]}).status_code == 200


def test_a_server_that_stops_says_so_to_new_requests_and_at_the_end_to_all(blocked: threading.Event):
    asked = Asked()

    async def ask() -> None:
        async with asked.client() as client:
            slow = asyncio.ensure_future(client.post("/score", json={"texts": ["a"]}))
            await until(lambda: len(asked.state.queries) == 1)
            asked.state.draining = True
            for answer in (await client.get("/health"), await client.post("/embed", json={"texts": ["a"]})):
                assert_refused(answer, 503, "draining")
                assert answer.headers["connection"] == "close"
            assert not slow.done()
            asked.state.grace_over.set()
            assert_refused(await slow, 503, "draining")

    RUNNER.run(ask())


def client(body: dict[str, Any], sent: list[dict[str, Any]]) -> tuple[Any, Any]:
    """An ASGI client that gives `body` and then nothing more; what it is sent goes to `sent`."""
    given = [body]

    async def receive() -> dict[str, Any]:
        if given:
            return given.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(dict(message))

    return receive, send


def test_a_request_that_is_cancelled_by_the_end_is_told_so(blocked: threading.Event):
    asked = Asked()
    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        receive, send = client(
            {"type": "http.request", "body": b'{"texts": ["a"]}', "more_body": False}, sent
        )
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/score",
            "raw_path": b"/score",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        work = asyncio.ensure_future(asked.app(scope, receive, send))
        await until(lambda: len(asked.state.queries) == 1)
        asked.state.draining = True
        work.cancel()
        await work

    RUNNER.run(ask())
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["error_type"] == "draining"


def test_a_body_that_comes_too_slowly_is_refused():
    asked = Asked(timeout=0.2)
    sent: list[dict[str, Any]] = []

    async def ask() -> None:
        receive, send = client({"type": "http.request", "body": b"{", "more_body": True}, sent)
        await asked.app({"type": "http", "method": "POST", "path": "/embed", "headers": []}, receive, send)

    RUNNER.run(ask())
    assert sent[0]["status"] == 408
    assert set(json.loads(sent[1]["body"])) == {"error", "error_type"}


@pytest.mark.parametrize("outputs", [4, 1024])
def test_openai_clients_may_ask_for_the_size_of_the_vectors_and_send_null(outputs: int):
    config = small_config(recurrent={"cells": outputs, "outputs": outputs})
    asked = Asked()
    asked.app, asked.state = create_app(lambda: Catalog("toy", None, Elmo(random_model(config))))
    asked.state.load()
    given = {"input": "the bank", "model": "toy", "encoding_format": None, "user": None}
    for size in (2 * outputs, None):
        answer = asked.post("/v1/embeddings", given | {"dimensions": size})
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["data"][0]["embedding"]) == 2 * outputs
    for wrong in (0, 2 * outputs + 1, "8"):
        assert asked.post("/v1/embeddings", given | {"dimensions": wrong}).status_code == 422


@pytest.mark.parametrize(
    ("route", "values", "places"),
    [
        ("/v1/embeddings", {"input": 7, "model": "toy"}, {"input"}),
        ("/v1/embeddings", {"input": ["a", 7], "model": "toy"}, {"input", "input.1"}),
        ("/embed", {"texts": ["a"], "layer": -1}, {"layer"}),
        ("/embed", {"texts": ["a"], "layer": [1, "x", 2]}, {"layer", "layer.1"}),
        ("/predict", {"texts": ["a", ["b"]]}, {"texts.1"}),
        ("/embed", {"texts": ["a", 7]}, {"texts.1"}),
    ],
)
def test_mistakes_have_the_places_of_a_request_not_of_our_types(route: str, values: Any, places: set[str]):
    answer = Asked().post(route, values)
    assert_refused(answer, 422, "validation")
    said = answer.json()["error"].split("; ")
    assert {one.partition(":")[0] for one in said} == places, said
    assert len(said) == len(set(said))


def test_an_unknown_key_is_not_repeated():
    key = "s3cret" * 10_000
    answer = Asked().post("/embed", {"texts": ["a"], key: 1})
    assert_refused(answer, 422, "validation")
    assert "s3cret" not in answer.text
    assert len(answer.text) < 500


@pytest.mark.parametrize("layer", [[1e308, 1e308, -1e308], [1e39, 0, 0], [1e6, 1e7, 0]])
def test_weights_that_no_number_can_hold_are_refused(layer: list[float]):
    assert_refused(Asked().post("/embed", {"texts": ["the bank"], "layer": layer}), 422, "validation")


def test_numbers_too_large_for_float16_are_refused():
    given = {"texts": ["the bank"], "layer": [1e6, 1e6, 1e6]}
    answer = Asked().post("/embed", given, headers={"Accept": "application/x-float16"})
    assert_refused(answer, 422, "usage")
    assert np.isfinite(Asked().post("/embed", given).json()["vectors"]).all()


@pytest.mark.parametrize(
    ("accept", "kind"),
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
def test_accept_says_what_is_liked_best(accept: str, kind: str):
    answer = Asked().post("/embed", {"texts": ["the bank"]}, headers={"Accept": accept})
    assert answer.headers["content-type"] == kind


@pytest.mark.parametrize(("kind", "dtype", "far"), [("float32", "<f4", 0), ("float16", "<f2", 1e-3)])
def test_raw_numbers_are_those_of_the_json(kind: str, dtype: str, far: float):
    asked, given = Asked(), {"texts": ["the bank", "", "a river"]}
    found = asked.post("/embed", given, headers={"Accept": f"application/x-{kind}"})
    assert json.loads(found.headers["x-polyseme-shapes"]) == [[3, ELMO.config.size]]
    vectors = np.frombuffer(found.content, dtype).reshape(3, -1)
    np.testing.assert_allclose(vectors, asked.post("/embed", given).json()["vectors"], atol=far)


def test_health_answers_head_and_a_slash_too_many_is_told_in_our_form():
    asked = Asked()

    async def ask() -> None:
        async with asked.client() as client:
            head = await client.head("/health")
            assert head.status_code == 200
            assert head.headers["content-type"] == "application/json"
            assert_refused(await client.post("/embed/", json={"texts": ["a"]}), 404, "not_found")
            assert_refused(await client.get("/health/"), 404, "not_found")

    RUNNER.run(ask())


def test_a_large_answer_goes_in_pieces(monkeypatch: pytest.MonkeyPatch):
    wanted = Asked().post("/embed_all", {"texts": ["the bank of the river"]}).content
    monkeypatch.setattr(middleware, "PIECE_BYTES", 100)
    pieces: list[bytes] = []
    whole = middleware._ResponseSender.send

    async def count(self: Any, message: Any) -> None:
        send = self._send

        async def noted(part: Any) -> None:
            pieces.append(part.get("body", b""))
            await send(part)

        self._send = noted
        await whole(self, message)
        self._send = send

    monkeypatch.setattr(middleware._ResponseSender, "send", count)
    assert Asked().post("/embed_all", {"texts": ["the bank of the river"]}).content == wanted
    assert max(map(len, pieces)) == 100
    assert b"".join(pieces) == wanted


def test_queue_tokens_batches_and_the_cache_are_counted():
    asked = Asked()

    async def ask() -> dict[str, float]:
        async with asked.client() as client:
            for _ in range(2):
                await client.post("/embed", json={"texts": ["the bank failed", "a river"]})
            text = (await client.get("/metrics")).text
        return {
            line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in text.splitlines()
            if not line.startswith("#")
        }

    counted = RUNNER.run(ask())
    assert counted["polyseme_tokens_total"] == 10
    assert counted["polyseme_batch_texts_sum"] == 4
    assert counted["polyseme_queue_texts"] == 0
    assert counted['polyseme_cache_words_total{found="yes"}'] >= 5
    assert counted['polyseme_requests_total{route="/embed",status="200"}'] == 2


@pytest.mark.parametrize(
    ("route", "values", "tokens"),
    [
        ("/embed", {"texts": ["the bank failed", "a river"]}, 5),
        ("/embed_all", {"texts": ["the bank failed"]}, 3),
        ("/similarity", {"texts": ["the bank", "a river"]}, 4),
        ("/v1/embeddings", {"input": "the bank", "model": "toy"}, 2),
        ("/score", {"texts": ["the bank failed", "a river"]}, 5),
        ("/substitutes", {"sentence": "the [bank] failed"}, 3),
        ("/substitutes", {"tokens": ["the", "bank"], "position": 1}, 2),
        ("/tokenize", {"texts": ["the bank"]}, 0),  # cut, not read
        ("/substitutes", {"sentence": "the bank failed"}, 0),
    ],
)
def test_tokens_are_counted_whatever_reads_them(route: str, values: Any, tokens: int):
    asked = Asked()
    asked.post(route, values)
    assert f"polyseme_tokens_total {tokens}.0" in asked.state.metrics.render().decode()


def test_questions_that_wait_for_a_thread_show_in_a_gauge(blocked: threading.Event):
    asked = Asked()

    def waiting(threads: str) -> float:
        name = f'polyseme_queue_jobs{{pool="{threads}"}} '
        lines = asked.state.metrics.render().decode().splitlines()
        return float(next(line for line in lines if line.startswith(name)).removeprefix(name))

    async def ask() -> None:
        assert waiting("queries") == waiting("analyses") == 0
        async with asked.client() as client:
            slow = [asyncio.ensure_future(client.post("/score", json={"texts": ["a"]})) for _ in range(5)]
            await until(lambda: waiting("queries") == 3)  # two run
            slow[-1].cancel()
            await until(lambda: waiting("queries") == 2)
            blocked.set()
            await asyncio.gather(*slow, return_exceptions=True)
        assert waiting("queries") == waiting("analyses") == 0

    RUNNER.run(ask())


def test_cache_hits_are_counted_with_each_request():
    asked = Asked()
    counted: list[tuple[int, int]] = []
    asked.state.metrics.set_cache_totals = lambda hits, misses: counted.append((hits, misses))  # type: ignore[method-assign]
    asked.post("/embed", {"texts": ["the bank"]})
    assert counted


def test_a_full_queue_shows_in_the_gauge_and_those_who_leave_free_it(monkeypatch: pytest.MonkeyPatch):
    free = threading.Event()
    whole = Elmo.embed_tokens
    monkeypatch.setattr(Elmo, "embed_tokens", lambda *a, **k: (free.wait(60), whole(*a, **k))[1])
    asked = Asked(queue=4)
    state: ServerState = asked.state

    async def ask() -> None:
        async with asked.client() as client:
            first = asyncio.ensure_future(client.post("/embed", json={"texts": ["a"]}))
            await until(lambda: b"polyseme_batch_texts_count 1.0" in state.metrics.render())
            second = asyncio.ensure_future(client.post("/embed", json={"texts": ["a"] * 4}))
            await until(lambda: len(state.batcher) == 4)
            assert b"polyseme_queue_texts 4.0" in state.metrics.render()
            assert_refused(await client.post("/embed", json={"texts": ["a"]}), 429, "busy")
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            await until(lambda: len(state.batcher) == 0)
            assert b"polyseme_queue_texts 0.0" in state.metrics.render()
            free.set()
            assert (await first).status_code == 200

    RUNNER.run(ask())


def test_every_limit_is_an_option_of_the_command_and_in_the_docs(monkeypatch: pytest.MonkeyPatch):
    options = inspect.signature(serving.serve).parameters
    page = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")
    for name, default in asdict(Limits()).items():
        assert options[name].default == default, name
        assert f"| `--{name.replace('_', '-')}` |" in page
    given: list[Limits] = []
    monkeypatch.setattr(polyseme, "serve", lambda *_, limits, **__: given.append(limits))
    monkeypatch.setattr(request_log, "configure_logging", lambda: None)
    monkeypatch.setattr(worker_pool, "has_running_threads", lambda: False)
    values: dict[str, Any] = {name: number for number, name in enumerate(asdict(Limits()), start=1)}
    serving.serve("toy", None, **values)
    assert given == [Limits(**values)]
