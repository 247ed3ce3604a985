"""Bulk embedding on a local Ray: the folder is the same as without Ray, even if an actor is killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme import api, bulk_embedding
from polyseme.elmo import Elmo
from polyseme.errors import MissingExtraError, UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.integrations import ray as on_ray

CLUSTER = on_ray.Cluster(batch_tokens=64)

LINES = [" ".join(f"w{(7 * n + k) % 50}" for k in range(n % 9)) for n in range(20_000)]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config()), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def test_without_ray_the_command_to_install_it_is_named(model, text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'The engine ray needs ray: pip install "polyseme\[ray\]"'):
        api.embed(model, text, tmp_path / "out", engine="ray")
    assert not (tmp_path / "out").exists()


def test_actors_get_absolute_paths_and_names_of_bundled_models(model, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = bulk_embedding.BulkSettings()
    for name, expected in (("en-classic", "en-classic"), ("model", str(model))):
        path, options, cluster, work = on_ray.make_worker_arguments(
            name, Path("options.json"), ["text.txt"], Path("out"), settings, CLUSTER
        )
        assert (path, options, cluster) == (expected, str(tmp_path / "options.json"), CLUSTER)
        assert work == {"texts": [str(text)], "folder": tmp_path / "out", "bulk": settings}
    text.write_text("The bank failed.\n", encoding="utf-8")
    row = on_ray.Worker("en-classic", None, CLUSTER, work)({"part": 1})
    assert (row["problem"], row["tokens"]) == ("", 4)


def test_files_shards_loaded_models_and_unknown_engines_are_refused(model, text, tmp_path):
    for out, shard in (("x.npz", None), ("out", "1/2")):
        options: dict[str, Any] = {} if shard is None else {"shard": shard}
        with pytest.raises(UsageError, match="the engine ray writes a whole folder"):
            api.embed(model, text, tmp_path / out, engine="ray", **options)
    with pytest.raises(UsageError, match="needs the path of a model"):
        api.embed(Elmo(random_model(small_config())), text, tmp_path / "out", engine="ray")
    with pytest.raises(UsageError, match="engine is 'spark', expected local or ray"):
        api.embed(model, text, tmp_path / "out", engine="spark")  # type: ignore[arg-type]


def test_an_actor_loads_the_model_once_for_all_its_parts(model, text, tmp_path, monkeypatch):
    loads = []
    monkeypatch.setattr(on_ray, "load", lambda model, *_, **__: loads.append(1) or polyseme.load(model))
    settings = bulk_embedding.BulkSettings(shard_bytes=5000, part=bulk_embedding.Part(1, 3))
    worker = on_ray.Worker(
        str(model), None, CLUSTER, {"texts": [text], "folder": tmp_path / "out", "bulk": settings}
    )
    rows = [worker({"part": number}) for number in (1, 2, 3)]
    assert loads == [1]
    assert sum(row["sentences"] for row in rows) == len(polyseme.open_vectors(tmp_path / "out")) == 20_000


def test_an_error_in_an_actor_is_returned_as_a_message(model, tmp_path):
    work = {"texts": ["nowhere.txt"], "folder": tmp_path / "out", "bulk": bulk_embedding.BulkSettings()}
    assert "no such file" in on_ray.Worker(str(model), None, CLUSTER, work)({"part": 1})["problem"]
    assert "no such file" in on_ray.Worker("nowhere", None, CLUSTER, work)({"part": 1})["problem"]


def test_an_address_without_a_ray_cluster_is_refused_at_once(model, text, tmp_path):
    pytest.importorskip("ray")
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with pytest.raises(UsageError, match=f"{address}: no Ray cluster answers"):
            api.embed(model, text, tmp_path / "out", engine="ray", address=address)


def kill_an_actor(folder: Path, killed: list[int], finished: threading.Event) -> None:
    """Kill one actor of this process' Ray as soon as the folder has a shard."""
    from ray._private.state import actors

    while not finished.wait(0.02):
        pids = [actor["Pid"] for actor in actors().values() if actor["State"] == "ALIVE" and actor["Pid"]]
        if pids and folder.is_dir() and any(folder.glob("shard*")):
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])
            return


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # warnings of Ray
def test_every_sentence_is_written_once_even_if_an_actor_is_killed(model, text, tmp_path):
    ray = pytest.importorskip("ray")
    bulk = bulk_embedding.BulkSettings(shard_bytes=2000)
    cluster = on_ray.Cluster(actors=2, batch_tokens=64, min_parts=8)
    killed: list[int] = []
    finished = threading.Event()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    try:
        killer = threading.Thread(target=kill_an_actor, args=(tmp_path / "out", killed, finished))
        killer.start()
        counts = on_ray.embed_on_ray(model, None, [text], tmp_path / "out", bulk, cluster)
        finished.set()
        killer.join()
    finally:
        finished.set()
        ray.shutdown()
    assert killed
    assert counts.sentences == 20_000
    api.embed(model, text, tmp_path / "local", shard_mb=2000 / 2**20, batch_tokens=64)
    with (
        polyseme.open_vectors(tmp_path / "out") as vectors,
        polyseme.open_vectors(tmp_path / "local") as expected,
    ):
        assert len(vectors) == len(expected) == 20_000
        assert all(np.array_equal(left, right) for left, right in zip(vectors, expected, strict=True))
    shards = sorted(path.name for path in tmp_path.glob("out/shard*"))
    assert shards == sorted(path.name for path in tmp_path.glob("local/shard*"))
