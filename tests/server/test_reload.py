"""SIGHUP loads the models again: no request fails, and a failed reload changes nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import pty
import signal
import sys
import threading
import time
import weakref
from collections import Counter
from pathlib import Path

import httpx
import numpy as np
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog
from waiting import until

TEXT = "the bank failed"


def write_model(path: Path, seed: int) -> np.ndarray:
    """Write a model, or replace it, and return its vector of TEXT."""
    model = random_model(small_config(), seed=seed)
    save_pretrained(model, path, force=True)
    return Elmo(model).embed(TEXT, pool="mean")


def ask(client: httpx.Client) -> np.ndarray:
    response = client.post("/embed", json={"texts": [TEXT]})
    assert response.status_code == 200, response.text
    return np.array(response.json()["vectors"][0], np.float32)


class Clients(threading.Thread):
    """A client that sends one request after the other on one connection, and notes all that fails."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self.address, self.vectors, self.failures = address, list[np.ndarray](), list[BaseException]()
        self.ended = threading.Event()

    def run(self) -> None:
        with httpx.Client(base_url=self.address, timeout=60) as client:
            while not self.ended.is_set():
                try:
                    self.vectors.append(ask(client))
                except (httpx.HTTPError, AssertionError) as problem:
                    self.failures.append(problem)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_fails_while_a_replaced_model_is_loaded(start, tmp_path: Path, workers: str):
    known = [write_model(tmp_path / "model", 0)]
    server = start(tmp_path / "model", "--workers", workers).wait()
    before = server.children
    clients = [Clients(server.address) for _ in range(5)]
    for client in clients:
        client.start()
    for seed in (1, 2, 3):
        known.append(write_model(tmp_path / "model", seed))
        server.process.send_signal(signal.SIGHUP)

        def is_new() -> bool:
            with httpx.Client(base_url=server.address, timeout=60) as client:
                return all(np.allclose(ask(client), known[-1], atol=1e-6) for _ in range(6))

        until(is_new, message=lambda: server.log)
    for client in clients:
        client.ended.set()
        client.join(60)
    assert [client.failures for client in clients] == [[]] * len(clients)
    vectors = np.stack([vector for client in clients for vector in client.vectors])
    distances = np.abs(vectors[:, None] - np.stack(known)).max(axis=2)
    assert distances.min(axis=1).max() < 1e-5  # each vector is of one model, never a mixture
    assert set(Counter(distances.argmin(axis=1).tolist())) == {0, 1, 2, 3}
    if workers == "2":
        until(lambda: len(server.children) == 2)  # the old ones have ended
        assert not set(before) & set(server.children)
    assert server.stop()[0] == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_reload_that_fails_keeps_the_models_and_says_why(start, tmp_path: Path, workers: str):
    old = write_model(tmp_path / "model", 0)
    server = start(tmp_path / "model", "--workers", workers).wait()
    weights = tmp_path / "model" / "model.safetensors"
    weights.rename(tmp_path / "away")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("reloading failed")
    with httpx.Client(base_url=server.address, timeout=60) as client:
        np.testing.assert_allclose(ask(client), old, atol=1e-6)
        (tmp_path / "away").rename(weights)
        new = write_model(tmp_path / "model", 1)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: np.allclose(ask(client), new, atol=1e-6), message=lambda: server.log)
    code, log = server.stop()
    assert code == 0
    assert "Traceback" not in log
    assert str(tmp_path / "model") in next(line for line in log.splitlines() if "reloading failed" in line)


def test_a_server_of_several_processes_can_be_stopped_while_it_loads_again(start, tmp_path: Path):
    write_model(tmp_path / "model", 0)
    slow_reload = (
        "import sys, time, polyseme.server.run as run\nopen_models, calls = run.open_models, []\n"
        "def open_slowly(*a, **k):\n    calls.append(1)\n    if len(calls) > 1:\n"
        "        print('loading again', file=sys.stderr, flush=True)\n        time.sleep(600)\n"
        "    return open_models(*a, **k)\nrun.open_models = open_slowly"
    )
    server = start(tmp_path / "model", "--workers", "2", "--grace", "2", setup_code=slow_reload).wait()
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_log("loading again")
    assert httpx.get(f"{server.address}/health", timeout=60).status_code == 200
    start_time = time.monotonic()
    assert server.stop()[0] == 0
    assert time.monotonic() - start_time < 60


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_server_ends_with_its_terminal(tmp_path: Path, workers: str):
    write_model(tmp_path / "model", 0)
    log = tmp_path / "log"
    log.touch()
    command = [sys.executable, "-m", "polyseme", "serve", str(tmp_path / "model"), "--port", "0"]
    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup, whose children survive
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
        os.execv(sys.executable, [*command, "--workers", workers])
    until(lambda: "http://" in log.read_text())
    os.kill(child, signal.SIGHUP)  # the terminal is there: this is a wish to load again
    until(lambda: "reloaded" in log.read_text())
    os.close(terminal)
    status = 0

    def has_ended() -> bool:
        nonlocal status
        pid, status = os.waitpid(child, os.WNOHANG)
        return pid == child

    until(has_ended)
    assert os.waitstatus_to_exitcode(status) == 0, log.read_text()


class Reloading:
    """An application whose models are loaded anew by each reload."""

    def __init__(self) -> None:
        self.loaded: list[weakref.ref[Elmo]] = []
        self.app, self.state = create_app(self.load)
        self.state.load()

    def load(self) -> Catalog:
        elmo = Elmo(random_model(small_config(), seed=len(self.loaded), softmax=True))
        self.loaded.append(weakref.ref(elmo))
        return Catalog("toy", None, elmo)

    def reload(self) -> None:
        count = len(self.loaded)
        self.state.reload()
        until(lambda: len(self.loaded) > count and self.state.catalog.elmo is self.loaded[-1]())

    async def post(self, route: str, body: dict) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post(route, json=body)


def test_models_that_are_served_no_more_leave_memory():
    server = Reloading()
    with asyncio.Runner() as runner:
        for _ in range(3):
            response = runner.run(server.post("/embed", {"texts": [TEXT]}))
            assert response.status_code == 200
            server.reload()
    gc.collect()
    until(lambda: [reference() is None for reference in server.loaded] == [True, True, True, False])


def test_a_request_in_progress_keeps_the_models_that_it_began_with(monkeypatch: pytest.MonkeyPatch):
    server, began, go_on = Reloading(), threading.Event(), threading.Event()
    seen: list[bool] = []

    def wait(elmo: Elmo, *_: object, **__: object) -> list:
        began.set()
        assert go_on.wait(60)
        seen.append(server.state.catalog.elmo is elmo)
        return []

    monkeypatch.setattr(api, "score", wait)

    async def run() -> None:
        request = asyncio.ensure_future(server.post("/score", {"texts": [TEXT]}))
        assert await asyncio.to_thread(began.wait, 60)
        await asyncio.to_thread(server.reload)
        go_on.set()
        assert (await request).status_code == 200

    asyncio.run(run())
    assert seen == [True]


def test_wishes_to_reload_while_it_reloads_are_fulfilled_once_more():
    calls, go_on = [], threading.Event()

    def load() -> Catalog:
        calls.append(1)
        assert len(calls) != 2 or go_on.wait(60)
        return Catalog("toy", None, Elmo(random_model(small_config())))

    _, state = create_app(load)
    state.load()
    for _ in range(5):
        state.reload()
        until(lambda: len(calls) == 2)
    go_on.set()
    until(lambda: len(calls) == 3)
    state.reload()
    until(lambda: len(calls) == 4)


def test_an_unexpected_failure_of_a_reload_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture):
    problems: list[Exception] = [KeyError("a bug"), UsageError("wrong")]
    outcomes: list[Catalog | Exception] = [
        Catalog("toy", None, Elmo(random_model(small_config()))),
        *problems,
    ]

    def load() -> Catalog:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def list_failures() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.levelno == logging.ERROR]

    _, state = create_app(load)
    state.load()
    for _ in problems:
        state.reload()
        until(lambda: len(list_failures()) == len(problems) - len(outcomes))
    assert [record.exc_info is not None for record in list_failures()] == [True, False]
    assert state.catalog.name == "toy"
