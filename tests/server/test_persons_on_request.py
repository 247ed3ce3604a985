"""The persons of an index are found when they are asked for, and the work outlives its request."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.search.index import Index
from polyseme.server.app import create_app
from polyseme.server.catalog import Catalog

ELMO = Elmo(random_model(small_config()))
TEXT = "Anna said that Peter was ill.\n\nPeter said nothing, and then Anna said no more.\n\n" * 9


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("persons")
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    return api.index(ELMO, folder / "text.txt", folder / "index", segment="en")


def test_a_request_that_waits_too_long_is_told_to_ask_again(index: Index):
    app, state = create_app(lambda: Catalog("toy", None, ELMO, {"one": index}), persons_wait=0.1)
    state.load()
    may_go_on = threading.Event()

    async def ask(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/characters", json={"index": "one"})

    async def run() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x", timeout=60) as client:
            busy = asyncio.create_task(state.persons.run(lambda: may_go_on.wait(20)))
            await asyncio.sleep(0)
            early = await asyncio.gather(ask(client), ask(client))
            waiting = len(state.persons)
            may_go_on.set()
            await busy
            while (late := await ask(client)).status_code == 503:
                await asyncio.sleep(0.01)
            assert waiting == 2  # what occupies the thread, and one search for both requests
            return [*early, late]

    *early, late = asyncio.run(run())
    for response in early:
        assert (response.status_code, response.json().get("code")) == (503, "finding_persons"), response.text
        assert response.headers["retry-after"] == "2"
    assert {person["name"] for person in late.json()["persons"]} == {"Anna", "Peter"}
    state.close()


def test_starting_a_server_finds_no_persons(index: Index):
    _, state = create_app(lambda: Catalog("toy", None, ELMO, {"one": index}))
    state.load()
    assert not state.models.casts._entries
    state.close()
