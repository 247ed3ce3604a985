"""A model on another device: every verb computes there and gives what it gives on the CPU.

There is no GPU here. The device of `strict_device` stands in for one: it refuses `.numpy()` and every
operation that mixes its tensors with those of the CPU.
"""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import polyseme
import task_files as toys
from builders import SENTENCES, random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo, load
from polyseme.errors import UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.language import find_substitutes, generate, score
from polyseme.model.output import resolve_output
from polyseme.text.vocab import Vocab
from polyseme.torch_layer import ElmoLayer
from strict_device import StrictTensor, strict_device

MODELS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "words": {"chars": None, "words": {"dim": 4}},
    "both": {"words": {"dim": 4}},
    "gru": {"recurrent": {"cell": "gru", "layers": 2, "cells": 6, "outputs": 4, "cell_clip": None}},
    "codepoints": {
        "chars": {"encoding": "codepoints", "max_chars": 12, "dim": 3, "filters": [[1, 2], [2, 3]]}
    },
}


@pytest.fixture(autouse=True)
def backward_in_this_thread() -> Iterator[None]:
    """Autograd starts a thread per device once, maybe before this one was registered."""
    with torch.autograd.set_multithreading_enabled(False):
        yield


@pytest.fixture(params=MODELS)
def pair(request: pytest.FixtureRequest) -> tuple[Elmo, Elmo]:
    """The same model on the CPU and on the other device."""
    made = [Elmo(random_model(small_config(**MODELS[request.param]), softmax=True)) for _ in range(2)]
    return made[0], made[1].to(strict_device())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config(), softmax=True), tmp_path / "model")
    return tmp_path / "model"


def assert_alike(found: Any, wanted: Any) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=1e-4)


def test_the_device_of_the_tests_refuses_implicit_copies():
    there, here = torch.ones(2, 3, device=strict_device()), torch.ones(2, 3)
    for wrong in (lambda: there.numpy(), lambda: there + here, lambda: torch.cat([here, there])):
        with pytest.raises((RuntimeError, TypeError)):
            wrong()
    assert type(there) is StrictTensor
    assert torch.equal((there + there).cpu(), here + here)
    assert there[torch.tensor([1])].shape == (1, 3)  # as with CUDA


# ---- embed ----


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layer": "all"},
        {"layer": [0.2, 0.3, 0.5], "pool": "max"},
        {"layer": "top", "direction": "backward"},
        {"stateful": True},
    ],
    ids=str,
)
def test_vectors_are_those_of_the_cpu(pair, options):
    here, there = pair
    sentences = [*SENTENCES, [], ["the"], *SENTENCES]
    for _ in range(2):  # the second time from the cache, or from the state
        assert_alike(there.embed(sentences, **options), here.embed(sentences, **options))
    assert type(next(there.model.network.parameters()).data) is StrictTensor


def test_outputs_features_and_rows_are_those_of_the_cpu(pair):
    here, there = pair
    for name, values in there.outputs(SENTENCES).items():
        np.testing.assert_allclose(values, here.outputs(SENTENCES)[name], atol=1e-5)
    assert_alike(there.features(SENTENCES, "concat"), here.features(SENTENCES, "concat"))
    spec = resolve_output("top", None, "both", here.config.layers, context=True)
    rows = [torch.zeros(sum(map(len, SENTENCES)), here.config.size) for _ in pair]
    for elmo, out in zip(pair, rows, strict=True):
        with elmo.track_counts() as counts:
            elmo.embed_into(out, SENTENCES, spec, counts)
    torch.testing.assert_close(*rows, atol=1e-5, rtol=0)


def test_a_model_moves_there_and_back(folder):
    elmo = load(folder, device=strict_device())
    assert elmo.device == strict_device()
    assert repr(elmo) == "Elmo(3 layers, 8 values, 'split', 'strict:0')"
    first = elmo.embed(SENTENCES, stateful=True)
    assert elmo.to("cpu") is elmo
    wanted = load(folder)
    assert_alike(first, wanted.embed(SENTENCES, stateful=True))
    assert_alike(elmo.embed(SENTENCES, stateful=True), wanted.embed(SENTENCES, stateful=True))  # state moves


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_rounded_weights_move(folder, precision):
    there, here = load(folder, precision=precision, device=strict_device()), load(folder, precision=precision)
    tolerance = 0.05  # int8 quantises activations too on the CPU
    for ours, theirs in zip(there.embed(SENTENCES), here.embed(SENTENCES), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_a_moved_model_pickles_as_its_path_with_its_device(folder):
    elmo = load(folder, device=strict_device())
    elmo.embed(SENTENCES, stateful=True)
    packed = pickle.dumps(elmo)
    assert len(packed) < 5000
    found = pickle.loads(packed)
    assert found.device == strict_device()
    assert_alike(found.embed(SENTENCES, stateful=True), elmo.embed(SENTENCES, stateful=True))
    assert copy.copy(elmo).device == strict_device()


@pytest.mark.parametrize("device", ["gpu", "", "cuda0"])
def test_an_unknown_device_is_refused(folder, device):
    with pytest.raises(UsageError, match=f"device is '{device}', expected auto, cpu, cuda, cuda:N or mps"):
        load(folder, device=device)


def test_a_missing_gpu_is_refused_before_the_model_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"device is cuda:1, but this machine has no CUDA GPU"):
        load(tmp_path / "nowhere", device="cuda:1")
    elmo = Elmo(random_model(small_config()))
    with pytest.raises(UsageError, match=r"device is cuda, but this machine has no CUDA GPU"):
        elmo.to("cuda")
    assert elmo.to("auto").device == torch.device("cpu")


def test_a_cache_file_is_written_and_read_there(pair, tmp_path):
    vocab = Vocab(["<S>", "</S>", "<UNK>", "the", "bank"])
    here, there = pair
    there.cache.write(tmp_path / "there.hdf5", vocab)
    here.cache.read(tmp_path / "there.hdf5", vocab)
    here.cache.write(tmp_path / "here.hdf5", vocab)
    there.cache.read(tmp_path / "here.hdf5", vocab)
    assert_alike(there.embed(["the bank"]), here.embed(["the bank"]))


# ---- shapes without values ----


def test_a_network_runs_on_the_meta_device_as_far_as_shapes_tell():
    """No value decides a shape in the recurrent stacks: only the lengths do, which stay on the CPU."""
    model = random_model(small_config())
    network = model.network.to("meta")
    positions, lengths = torch.zeros(2, 5, dtype=torch.long), torch.tensor([5, 3])
    with torch.inference_mode():
        output = network.run_stacks(torch.empty(7, 4, device="meta"), positions, lengths)
    assert output.layers().shape == (3, 2, 5, 8)
    assert output.layers().is_meta


# ---- the rest of the library ----

LANGUAGE: dict[str, Callable[[Elmo], Any]] = {
    "score": lambda elmo: [s.mean for s in score(elmo, SENTENCES)],
    "score in order": lambda elmo: [s.mean for s in score(elmo, SENTENCES, stateful=True)],
    "substitutes": lambda elmo: [
        substitute.log_prob
        for substitute in find_substitutes(elmo, "the [bank] failed", 3, context=["the river"]).joint.best
    ],
    "generate": lambda elmo: generate(elmo, "the bank", tokens=5, temperature=0).log_probs,
}


@pytest.mark.parametrize("verb", LANGUAGE)
def test_the_language_model_answers_alike(pair, verb):
    here, there = pair
    assert_alike(LANGUAGE[verb](there), LANGUAGE[verb](here))


def test_word_vectors_are_alike(pair):
    here, there = (polyseme.mean_vectors(elmo, SENTENCES, min_count=1) for elmo in pair)
    assert here.words == there.words
    np.testing.assert_allclose(there.vectors, here.vectors, atol=1e-5)


def test_files_and_folders_of_vectors_are_alike(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the bank failed !\nthe river\n", encoding="utf-8")
    for out in ("one.npz", "folder"):
        results = []
        for device in ("cpu", strict_device()):
            elmo = Elmo(random_model(small_config())).to(device)
            api.embed(elmo, text, tmp_path / str(device) / out, dtype="float32")
            with polyseme.open_vectors(tmp_path / str(device) / out) as vectors:
                results.append([np.array(vectors[number]) for number in range(2)])
        assert_alike(*results)


def test_an_index_is_built_and_searched_there(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the bank failed !\nthe river bank\na bank of the river\n" * 4, encoding="utf-8")
    found = []
    for device in ("cpu", strict_device()):
        elmo = Elmo(random_model(small_config())).to(device)
        index = api.index(elmo, [text], tmp_path / str(device).replace(":", "-"))
        found.append([hit.cosine for hit in index.nearest(index.vector("the bank failed", "bank"), 4)])
    assert_alike(*found)


@pytest.mark.parametrize("fine_tune", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_a_layer_trains_there_as_on_the_cpu(fine_tune, ids):
    losses = []
    for device in ("cpu", strict_device()):
        torch.manual_seed(0)
        layer = ElmoLayer(random_model(small_config()), fine_tune=fine_tune, dropout=0.0)
        head = nn.Linear(8, 1)
        layer, head = layer.to(device), head.to(device)
        optimiser = torch.optim.SGD([*layer.mixes.parameters(), *head.parameters()], lr=0.1)
        batch = layer.batch_to_ids(SENTENCES) if ids else SENTENCES  # ids of the CPU are moved
        values = []
        for _ in range(3):
            optimiser.zero_grad()
            vectors, mask = layer(batch)
            loss = (head(vectors[0]) * mask[..., None]).square().sum()
            loss.backward()
            optimiser.step()
            values.append(loss.item())
        losses.append(values)
    assert losses[0][0] != losses[0][2]
    assert_alike(*losses)


def test_a_server_batches_there(pair):
    from polyseme.server.http.limits import Limits
    from polyseme.server.http.metrics import Metrics
    from polyseme.server.jobs.batching import Batcher

    def ask(elmo: Elmo) -> Any:
        spec = resolve_output("top", None, "both", elmo.config.layers)
        return asyncio.run(Batcher(elmo, Limits(), Metrics()).embed(SENTENCES, spec))

    here, there = pair
    assert_alike(ask(there), ask(here))


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_task_trains_and_predicts_there(tmp_path, monkeypatch, task):
    monkeypatch.setattr("polyseme.training.devices.resolve_device", lambda *_: strict_device())
    files = toys.write(tmp_path)
    suffix = {"classification": "csv", "tagging": "conll"}[task]
    elmo = toys.elmo().to(strict_device())
    trained = polyseme.train(
        task,
        elmo,
        train=files / f"train.{suffix}",
        dev=files / f"dev.{suffix}",
        settings=toys.EPOCH,
    )
    text = ["the", "film", "is", "good"] if task == "tagging" else "the film is good"
    assert trained.predict(text) is not None


def test_a_model_is_saved_from_there(tmp_path):
    model = random_model(small_config(), softmax=True)
    Elmo(model).to(strict_device()).save(tmp_path / "model")
    wanted = Elmo(random_model(small_config(), softmax=True))
    assert_alike(load(tmp_path / "model").embed(SENTENCES), wanted.embed(SENTENCES))


def test_the_command_line_takes_a_device(run, folder):
    vectors = []
    for device in ("cpu", str(strict_device())):
        number = len(vectors)
        for line in (
            ["embed", folder, "text.txt", "--out", f"{number}.npz"],
            ["score", folder, "text.txt"],
            ["substitutes", folder, "the [bank] failed"],
            ["generate", folder, "--tokens", "3"],
            ["index", folder, "text.txt", "--out", f"index{number}"],
        ):
            done = run(*map(str, line), "--device", device)
            assert done.code == 0, done.err
        vectors.append(np.load(f"{number}.npz")["0"])
    assert_alike(*([array] for array in vectors))
    wrong = run("score", str(folder), "text.txt", "--device", "gpu")
    assert wrong.code == 2
    assert "device is 'gpu', expected auto, cpu" in wrong.err


def test_processes_of_a_server_share_the_cpu_alone(folder):
    with pytest.raises(UsageError, match=r"forked share the CPU alone\. Use `workers=1`"):
        polyseme.serve(folder, port=0, workers=2, device=str(strict_device()))
