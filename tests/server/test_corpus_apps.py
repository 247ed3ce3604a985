"""Finished corpora of a workspace in one process: opened once, closed when others are used more."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.server import app as application
from polyseme.server.catalog import Catalog
from polyseme.server.http.limits import Limits
from polyseme.server.workspace import corpus_apps
from polyseme.server.workspace.corpus_folder import CorpusFolder
from polyseme.server.workspace.schemas import JobSettings
from polyseme.server.workspace.supervisor import Workspace
from workspaces import NOVEL

NAMES = ("one", "two", "three", "four", "five")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five finished corpora with the same index."""
    root = tmp_path_factory.mktemp("corpora")
    (root / "novel.txt").write_text(NOVEL, encoding="utf-8")
    polyseme.index("zh-classic", root / "novel.txt", root / "index")
    for name in NAMES:
        corpus = CorpusFolder.create(root / "texts" / name, name)
        shutil.copytree(root / "index", corpus.index)
        settings = JobSettings(train=False, base="zh-classic")
        corpus.change(state="ready", queued=time.time(), settings=settings)
    return root / "texts"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of corpora in the order in which they are opened."""
    names: list[str] = []
    open_corpus = corpus_apps.open_corpus

    def note(finished: corpus_apps.FinishedCorpus) -> Catalog:
        names.append(finished.name)
        return open_corpus(finished)

    monkeypatch.setattr(corpus_apps, "open_corpus", note)
    return names


@pytest.fixture
def workspace(folder: Path) -> Iterator[Workspace]:
    corpora = Workspace(folder, Limits(), {})
    yield corpora
    corpora.close()


def ask(workspace: Workspace, *rounds: list[str] | Callable[[], None]) -> list[int]:
    """Look up a word in corpora, all of a round at once, or call a round; returns the statuses."""
    app, _ = application.create_app(
        lambda: Catalog("toy", None, Elmo(random_model(small_config()))),
        workspace=workspace,
        limits=Limits(timeout=300),  # for busy machines
    )

    async def send() -> list[int]:
        transport = httpx.ASGITransport(app=app)
        statuses = []
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            for names in rounds:
                if callable(names):
                    names()
                    continue
                requests = (
                    client.post(f"/corpora/{name}/nearest", json={"word": "曹操", "k": 2}) for name in names
                )
                statuses += [response.status_code for response in await asyncio.gather(*requests)]
        return statuses

    return asyncio.run(send())


def test_requests_at_the_same_time_open_a_corpus_once(workspace: Workspace, opened: list[str]):
    assert ask(workspace, ["one", "one", "two", "one"]) == [200] * 4
    assert sorted(opened) == ["one", "two"]


def test_the_least_recently_used_corpus_is_closed(workspace: Workspace, opened: list[str]):
    rounds = [["one"], ["two"], ["three"], ["one"], ["four"], ["one"], ["two"]]
    assert ask(workspace, *rounds) == [200] * len(rounds)
    assert opened == ["one", "two", "three", "four", "two"]


def test_more_corpora_than_fit_are_open_while_they_have_requests(workspace: Workspace, opened: list[str]):
    assert ask(workspace, list(NAMES), list(NAMES)) == [200] * 10
    assert set(opened) == set(NAMES)


def test_a_corpus_that_was_made_again_is_opened_again(workspace: Workspace, opened: list[str]):
    def make_again() -> None:
        workspace.get("one").change(queued=time.time())

    assert ask(workspace, ["one"], ["one"], make_again, ["one"], ["one"]) == [200] * 4
    assert opened == ["one", "one"]
