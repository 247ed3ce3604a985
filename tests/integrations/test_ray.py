"""Bulk embedding on a local Ray: the folder is the same, also when an actor is killed."""

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


def test_actors_get_names_and_paths_that_mean_the_same_on_every_machine(model, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = bulk_embedding.BulkSettings()
    for given, expected in (("en-classic", "en-classic"), ("model", str(model))):
        path, options, cluster, work = on_ray.worker_arguments(
            given, Path("options.json"), ["text.txt"], Path("out"), settings, CLUSTER
        )
        assert (path, options, cluster) == (expected, str(tmp_path / "options.json"), CLUSTER)
        assert work == {"texts": [str(text)], "folder": tmp_path / "out", "bulk": settings}
    text.write_text("The bank failed.\n", encoding="utf-8")
    row = on_ray.Worker("en-classic", None, CLUSTER, work)({"part": 1})
    assert (row["problem"], row["tokens"]) == ("", 4)


def test_what_ray_cannot_do_is_refused(model, text, tmp_path):
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
    monkeypatch.setattr(on_ray, "load", lambda *given, **more: loads.append(1) or polyseme.load(given[0]))
    plan = bulk_embedding.BulkSettings(shard_bytes=5000, part=bulk_embedding.Part(1, 3))
    worker = on_ray.Worker(
        str(model), None, CLUSTER, {"texts": [text], "folder": tmp_path / "out", "bulk": plan}
    )
    rows = [worker({"part": number}) for number in (1, 2, 3)]
    assert loads == [1]
    assert sum(row["sentences"] for row in rows) == len(polyseme.open_vectors(tmp_path / "out")) == 20_000


def test_an_actors_error_comes_back_as_one_line(model, tmp_path):
    work = {"texts": ["nowhere.txt"], "folder": tmp_path / "out", "bulk": bulk_embedding.BulkSettings()}
    assert "no such file" in on_ray.Worker(str(model), None, CLUSTER, work)({"part": 1})["problem"]
    assert "no such file" in on_ray.Worker("nowhere", None, CLUSTER, work)({"part": 1})["problem"]


def test_an_address_at_which_nobody_listens_is_refused_at_once(model, text, tmp_path):
    pytest.importorskip("ray")
    for address in ("127.0.0.1:1", "ray://127.0.0.1:1"):
        with pytest.raises(UsageError, match=f"{address}: no Ray cluster answers"):
            api.embed(model, text, tmp_path / "out", engine="ray", address=address)


def kill_an_actor(folder: Path, killed: list[int], through: threading.Event) -> None:
    """Kill one actor of this process' Ray as soon as there is a shard, however long that takes."""
    from ray._private.state import actors

    while not through.wait(0.02):
        pids = [actor["Pid"] for actor in actors().values() if actor["State"] == "ALIVE" and actor["Pid"]]
        if pids and folder.is_dir() and any(folder.glob("shard*")):
            os.kill(pids[0], signal.SIGKILL)
            killed.append(pids[0])
            return


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_every_sentence_is_written_once_although_an_actor_is_killed(model, text, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(on_ray, "MIN_PARTS", 8)
    options: dict[str, Any] = {"shard_mb": 2000 / 2**20, "batch_tokens": 64}
    killed: list[int] = []
    through = threading.Event()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    try:
        killer = threading.Thread(target=kill_an_actor, args=(tmp_path / "out", killed, through))
        killer.start()
        done = api.embed(model, text, tmp_path / "out", engine="ray", actors=2, **options)
        through.set()
        killer.join()
    finally:
        through.set()
        ray.shutdown()
    assert killed
    assert done.sentences == 20_000
    api.embed(model, text, tmp_path / "alone", **options)
    with (
        polyseme.open_vectors(tmp_path / "out") as found,
        polyseme.open_vectors(tmp_path / "alone") as wanted,
    ):
        assert len(found) == len(wanted) == 20_000
        assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))
    shards = sorted(path.name for path in tmp_path.glob("out/shard*"))
    assert shards == sorted(path.name for path in tmp_path.glob("alone/shard*"))
