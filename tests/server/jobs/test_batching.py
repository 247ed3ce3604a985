"""Batches: who shares one, who is left out, and what happens when memory runs out."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.model.output import resolve_output
from polyseme.server.http.limits import HttpError, Limits
from polyseme.server.http.metrics import Metrics
from polyseme.server.jobs.batching import Batcher


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


def spec(elmo: Elmo, layer: str | int = "top"):
    return resolve_output(layer, None, "both", elmo.config.layers)


def test_texts_that_arrive_together_share_batches(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    sizes = []
    whole = Elmo.embed_tokens
    monkeypatch.setattr(Elmo, "embed_tokens", lambda *a, **k: (sizes.append(len(a[1])), whole(*a, **k))[1])
    batcher = Batcher(elmo, Limits(), Metrics())
    sentences = [["a", "b"], ["c"], ["d", "e", "f"]] * 5

    async def ask() -> list:
        first = asyncio.ensure_future(batcher.embed(sentences[:1], spec(elmo)))
        await asyncio.sleep(0)
        others = [batcher.embed([sentence], spec(elmo)) for sentence in sentences[1:]]
        return [*(await first), *(one[0] for one in await asyncio.gather(*others))]

    found = asyncio.run(ask())
    for vectors, sentence in zip(found, sentences, strict=True):
        np.testing.assert_allclose(vectors, elmo.embed([sentence], layer="top")[0], atol=1e-6)
    assert max(sizes[: len(sizes) - len(sentences)]) > 5


def test_a_batch_larger_than_the_models_own_budget_runs_at_once(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    widths = []
    run_batch = Elmo.run_batch
    monkeypatch.setattr(Elmo, "run_batch", lambda *a, **k: (widths.append(len(a[1])), run_batch(*a, **k))[1])
    batcher = Batcher(elmo, Limits(batch_tokens=2 * elmo.batch_tokens, queue=10_000), Metrics())
    sentences = [["a", "b"]] * (elmo.batch_tokens // 4 + 10)
    asyncio.run(batcher.embed(sentences, spec(elmo)))
    assert widths == [len(sentences)]


def test_other_layers_are_other_batches(elmo: Elmo):
    batcher = Batcher(elmo, Limits(), Metrics())

    layers: tuple[int | str, ...] = (0, 1, 0, "top")

    async def ask() -> list[Any]:
        return await asyncio.gather(*(batcher.embed([["a"]], spec(elmo, n)) for n in layers))

    for found, layer in zip(asyncio.run(ask()), layers, strict=True):
        np.testing.assert_allclose(found[0], elmo.embed([["a"]], layer=layer)[0], atol=1e-6)


def test_a_full_queue_refuses(elmo: Elmo):
    batcher = Batcher(elmo, Limits(queue=3), Metrics())
    with pytest.raises(HttpError) as refused:
        asyncio.run(batcher.embed([["a"]] * 4, spec(elmo)))
    assert (refused.value.status, refused.value.retry_after) == (429, 1)


def test_without_memory_a_batch_is_split_and_the_rest_goes_on(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    whole = Elmo.embed_tokens

    def small(self, tokens, *rest, **more):
        if len(tokens) > 2 or any("large" in sentence for sentence in tokens):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return whole(self, tokens, *rest, **more)

    monkeypatch.setattr(Elmo, "embed_tokens", small)
    batcher = Batcher(elmo, Limits(), Metrics())

    async def ask() -> tuple[Any, Any]:
        return await asyncio.gather(
            batcher.embed([["a"], ["b"], ["c"], ["d"]], spec(elmo)),
            batcher.embed([["large"]], spec(elmo)),
            return_exceptions=True,
        )

    fine, refused = asyncio.run(ask())
    assert len(fine) == 4
    assert isinstance(refused, HttpError)
    assert refused.status == 503


def test_another_error_reaches_the_one_who_asked(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    def broken(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Elmo, "embed_tokens", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        asyncio.run(Batcher(elmo, Limits(), Metrics()).embed([["a"]], spec(elmo)))
