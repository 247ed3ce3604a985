"""A model on another device: every verb runs there and gives the results of the CPU.

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
    """Autograd starts its thread per device only once, perhaps before this device was registered."""
    with torch.autograd.set_multithreading_enabled(False):
        yield


@pytest.fixture(params=MODELS)
def pair(request: pytest.FixtureRequest) -> tuple[Elmo, Elmo]:
    """The same model on the CPU and on the other device."""
    models = [Elmo(random_model(small_config(**MODELS[request.param]), softmax=True)) for _ in range(2)]
    return models[0], models[1].to(strict_device())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config(), softmax=True), tmp_path / "model")
    return tmp_path / "model"


def assert_close(results: Any, expected: Any) -> None:
    for result, expected_result in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, expected_result, atol=1e-5, rtol=1e-4)


def test_the_device_of_the_tests_refuses_implicit_copies():
    on_device, on_cpu = torch.ones(2, 3, device=strict_device()), torch.ones(2, 3)
    for copy_implicitly in (
        lambda: on_device.numpy(),
        lambda: on_device + on_cpu,
        lambda: torch.cat([on_cpu, on_device]),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            copy_implicitly()
    assert type(on_device) is StrictTensor
    assert torch.equal((on_device + on_device).cpu(), on_cpu + on_cpu)
    assert on_device[torch.tensor([1])].shape == (1, 3)  # as with CUDA


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
    on_cpu, on_device = pair
    sentences = [*SENTENCES, [], ["the"], *SENTENCES]
    for _ in range(2):  # the second time from the cache, or from the state
        assert_close(on_device.embed(sentences, **options), on_cpu.embed(sentences, **options))
    assert type(next(on_device.model.network.parameters()).data) is StrictTensor


def test_outputs_features_and_rows_are_those_of_the_cpu(pair):
    on_cpu, on_device = pair
    for name, values in on_device.outputs(SENTENCES).items():
        np.testing.assert_allclose(values, on_cpu.outputs(SENTENCES)[name], atol=1e-5)
    assert_close(on_device.features(SENTENCES, "concat"), on_cpu.features(SENTENCES, "concat"))
    spec = resolve_output("top", None, "both", on_cpu.config.layers, context=True)
    rows = [torch.zeros(sum(map(len, SENTENCES)), on_cpu.config.size) for _ in pair]
    for elmo, out in zip(pair, rows, strict=True):
        with elmo.track_counts() as counts:
            elmo.embed_into(out, SENTENCES, spec, counts)
    torch.testing.assert_close(*rows, atol=1e-5, rtol=0)


def test_a_model_moves_to_the_device_and_back(folder):
    elmo = load(folder, device=strict_device())
    assert elmo.device == strict_device()
    assert repr(elmo) == "Elmo(3 layers, 8 values, 'split', 'strict:0')"
    first = elmo.embed(SENTENCES, stateful=True)
    assert elmo.to("cpu") is elmo
    expected = load(folder)
    assert_close(first, expected.embed(SENTENCES, stateful=True))
    assert_close(
        elmo.embed(SENTENCES, stateful=True), expected.embed(SENTENCES, stateful=True)
    )  # state moves


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_quantised_weights_can_be_moved(folder, precision):
    on_device = load(folder, precision=precision, device=strict_device()).embed(SENTENCES)
    on_cpu = load(folder, precision=precision).embed(SENTENCES)
    for vectors, expected in zip(on_device, on_cpu, strict=True):
        np.testing.assert_allclose(vectors, expected, atol=0.05)  # on the CPU int8 quantises activations, too


def test_a_moved_model_pickles_as_its_path_with_its_device(folder):
    elmo = load(folder, device=strict_device())
    elmo.embed(SENTENCES, stateful=True)
    pickled = pickle.dumps(elmo)
    assert len(pickled) < 5000
    unpickled = pickle.loads(pickled)
    assert unpickled.device == strict_device()
    assert_close(unpickled.embed(SENTENCES, stateful=True), elmo.embed(SENTENCES, stateful=True))
    assert copy.copy(elmo).device == strict_device()


@pytest.mark.parametrize("device", ["gpu", "", "cuda0"])
def test_an_unknown_device_is_refused(folder, device):
    with pytest.raises(UsageError, match=f"device is '{device}', expected auto, cpu, cuda, cuda:N or mps"):
        load(folder, device=device)


def test_a_missing_gpu_is_an_error_before_the_model_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"device is cuda:1, but this machine has no CUDA GPU"):
        load(tmp_path / "nowhere", device="cuda:1")
    elmo = Elmo(random_model(small_config()))
    with pytest.raises(UsageError, match=r"device is cuda, but this machine has no CUDA GPU"):
        elmo.to("cuda")
    assert elmo.to("auto").device == torch.device("cpu")


def test_a_cache_file_is_written_and_read_on_the_device(pair, tmp_path):
    vocab = Vocab(["<S>", "</S>", "<UNK>", "the", "bank"])
    on_cpu, on_device = pair
    on_device.cache.write(tmp_path / "device.hdf5", vocab)
    on_cpu.cache.read(tmp_path / "device.hdf5", vocab)
    on_cpu.cache.write(tmp_path / "cpu.hdf5", vocab)
    on_device.cache.read(tmp_path / "cpu.hdf5", vocab)
    assert_close(on_device.embed(["the bank"]), on_cpu.embed(["the bank"]))


# ---- shapes without values ----


def test_the_stacks_run_on_the_meta_device():
    """In the recurrent stacks no shape depends on a value, only on the lengths, which stay on the CPU."""
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
def test_the_language_model_gives_the_results_of_the_cpu(pair, verb):
    on_cpu, on_device = pair
    assert_close(LANGUAGE[verb](on_device), LANGUAGE[verb](on_cpu))


def test_word_vectors_are_those_of_the_cpu(pair):
    on_cpu, on_device = (polyseme.mean_vectors(elmo, SENTENCES, min_count=1) for elmo in pair)
    assert on_cpu.words == on_device.words
    np.testing.assert_allclose(on_device.vectors, on_cpu.vectors, atol=1e-5)


def test_files_and_folders_of_vectors_are_those_of_the_cpu(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the bank failed !\nthe river\n", encoding="utf-8")
    for out in ("file.npz", "folder"):
        results = []
        for device in ("cpu", strict_device()):
            elmo = Elmo(random_model(small_config())).to(device)
            api.embed(elmo, text, tmp_path / str(device) / out, dtype="float32")
            with polyseme.open_vectors(tmp_path / str(device) / out) as vectors:
                results.append([np.array(vectors[number]) for number in range(2)])
        assert_close(*results)


def test_an_index_is_built_and_searched_on_the_device(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the bank failed !\nthe river bank\na bank of the river\n" * 4, encoding="utf-8")
    cosines = []
    for device in ("cpu", strict_device()):
        elmo = Elmo(random_model(small_config())).to(device)
        index = api.index(elmo, [text], tmp_path / str(device).replace(":", "-"))
        cosines.append(
            [usage.cosine for usage in index.nearest(index.query_vector("bank", "the bank failed"), 4)]
        )
    assert_close(*cosines)


@pytest.mark.parametrize("fine_tune", [False, True])
@pytest.mark.parametrize("ids", [False, True])
def test_a_layer_trains_on_the_device_as_on_the_cpu(fine_tune, ids):
    losses = []
    for device in ("cpu", strict_device()):
        torch.manual_seed(0)
        layer = ElmoLayer(random_model(small_config()), fine_tune=fine_tune, dropout=0.0)
        head = nn.Linear(8, 1)
        layer, head = layer.to(device), head.to(device)
        optimiser = torch.optim.SGD([*layer.mixes.parameters(), *head.parameters()], lr=0.1)
        batch = layer.batch_to_ids(SENTENCES) if ids else SENTENCES  # the layer moves ids from the CPU
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
    assert_close(*losses)


def test_the_batcher_of_a_server_runs_on_the_device(pair):
    from polyseme.server.http.limits import Limits
    from polyseme.server.http.metrics import Metrics
    from polyseme.server.jobs.batching import Batcher

    def embed(elmo: Elmo) -> Any:
        spec = resolve_output("top", None, "both", elmo.config.layers)
        return asyncio.run(Batcher(Limits(), Metrics()).embed(elmo, SENTENCES, spec))

    on_cpu, on_device = pair
    assert_close(embed(on_device), embed(on_cpu))


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_a_task_trains_and_predicts_on_the_device(tmp_path, monkeypatch, task):
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


def test_a_model_can_be_saved_from_the_device(tmp_path):
    model = random_model(small_config(), softmax=True)
    Elmo(model).to(strict_device()).save(tmp_path / "model")
    expected = Elmo(random_model(small_config(), softmax=True))
    assert_close(load(tmp_path / "model").embed(SENTENCES), expected.embed(SENTENCES))


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
    assert_close(*([array] for array in vectors))
    refused = run("score", str(folder), "text.txt", "--device", "gpu")
    assert refused.code == 2
    assert "device is 'gpu', expected auto, cpu" in refused.err


def test_several_server_processes_are_refused_on_a_device(folder):
    with pytest.raises(UsageError, match=r"forked share the CPU alone\. Use `workers=1`"):
        polyseme.serve(folder, port=0, workers=2, device=str(strict_device()))
