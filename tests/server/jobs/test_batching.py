"""Batches: which texts share one, a full queue, and running out of memory."""

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
    embed_tokens = Elmo.embed_tokens
    monkeypatch.setattr(
        Elmo, "embed_tokens", lambda *a, **k: (sizes.append(len(a[1])), embed_tokens(*a, **k))[1]
    )
    batcher = Batcher(Limits(), Metrics())
    sentences = [["a", "b"], ["c"], ["d", "e", "f"]] * 5

    async def embed() -> list:
        first = asyncio.ensure_future(batcher.embed(elmo, sentences[:1], spec(elmo)))
        await asyncio.sleep(0)
        rest = [batcher.embed(elmo, [sentence], spec(elmo)) for sentence in sentences[1:]]
        return [*(await first), *(vectors[0] for vectors in await asyncio.gather(*rest))]

    for vectors, sentence in zip(asyncio.run(embed()), sentences, strict=True):
        np.testing.assert_allclose(vectors, elmo.embed([sentence], layer="top")[0], atol=1e-6)
    assert max(sizes[: len(sizes) - len(sentences)]) > 5


def test_a_batch_larger_than_that_of_the_model_runs_at_once(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    widths = []
    run_batch = Elmo.run_batch
    monkeypatch.setattr(Elmo, "run_batch", lambda *a, **k: (widths.append(len(a[1])), run_batch(*a, **k))[1])
    batcher = Batcher(Limits(batch_tokens=2 * elmo.batch_tokens, queue=10_000), Metrics())
    sentences = [["a", "b"]] * (elmo.batch_tokens // 4 + 10)
    asyncio.run(batcher.embed(elmo, sentences, spec(elmo)))
    assert widths == [len(sentences)]


def test_different_layers_run_in_different_batches(elmo: Elmo):
    batcher = Batcher(Limits(), Metrics())

    layers: tuple[int | str, ...] = (0, 1, 0, "top")

    async def embed() -> list[Any]:
        return await asyncio.gather(*(batcher.embed(elmo, [["a"]], spec(elmo, n)) for n in layers))

    for vectors, layer in zip(asyncio.run(embed()), layers, strict=True):
        np.testing.assert_allclose(vectors[0], elmo.embed([["a"]], layer=layer)[0], atol=1e-6)


def test_a_full_queue_refuses_texts(elmo: Elmo):
    batcher = Batcher(Limits(queue=3), Metrics())
    with pytest.raises(HttpError) as error:
        asyncio.run(batcher.embed(elmo, [["a"]] * 4, spec(elmo)))
    assert (error.value.status, error.value.retry_after) == (429, 1)


def test_a_batch_that_runs_out_of_memory_is_split(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    embed_tokens = Elmo.embed_tokens

    def embed_few_tokens(self, tokens, *args, **kwargs):
        if len(tokens) > 2 or any("large" in sentence for sentence in tokens):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
        return embed_tokens(self, tokens, *args, **kwargs)

    monkeypatch.setattr(Elmo, "embed_tokens", embed_few_tokens)
    batcher = Batcher(Limits(), Metrics())

    async def embed() -> tuple[Any, Any]:
        return await asyncio.gather(
            batcher.embed(elmo, [["a"], ["b"], ["c"], ["d"]], spec(elmo)),
            batcher.embed(elmo, [["large"]], spec(elmo)),
            return_exceptions=True,
        )

    vectors, error = asyncio.run(embed())
    assert len(vectors) == 4
    assert isinstance(error, HttpError)
    assert error.status == 503


def test_an_unexpected_error_reaches_the_caller(elmo: Elmo, monkeypatch: pytest.MonkeyPatch):
    def broken(*_, **__):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Elmo, "embed_tokens", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        asyncio.run(Batcher(Limits(), Metrics()).embed(elmo, [["a"]], spec(elmo)))
