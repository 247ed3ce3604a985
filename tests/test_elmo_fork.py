"""An Elmo in worker processes: they return within a time limit and give the parent's vectors bit for bit.

In other batches than the parent's, too, if the C library runs; torch rounds by the size of the batch. Each
program runs in a separate process with several torch threads, since the tests use one.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from builders import ROUNDING, random_model, small_config
from polyseme.formats.models.save import save_pretrained
from waiting import until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
SECONDS = 120  # the limit for one program; without the fix it never ends
SETUP = (
    f"ROUNDING = {ROUNDING}"
    + """
import multiprocessing, os, sys, threading
import numpy as np, torch
torch.set_num_threads(2)
import polyseme

elmo = polyseme.load(sys.argv[1])
SENTENCES = [["the", "bank", "failed"], ["river", "bank"] * 30, ["a"]] * 20

def same(left, right):
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right))

def same_in_other_batches(left, right):
    pairs = zip(left, right, strict=True)
    return all(np.allclose(a, b, rtol=0, atol=ROUNDING) for a, b in pairs)

def use_openmp():
    (torch.randn(600, 600) @ torch.randn(600, 600)).tanh()
"""
)


def run(tmp_path: Path, code: str) -> str:
    """Run SETUP and `code` in a new process with a saved model, and return what it prints."""
    save_pretrained(random_model(small_config()), tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SETUP + code, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("embed_first", [False, True])
def test_a_forked_child_embeds_and_gives_the_same_bits(tmp_path, embed_first):
    code = f"""
use_openmp()
if {embed_first}:
    elmo.embed(SENTENCES)
child = os.fork()
if child == 0:
    use_openmp()
    np.savez(sys.argv[1] + ".npz", *elmo.embed(SENTENCES))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(same(list(np.load(sys.argv[1] + ".npz").values()), elmo.embed(SENTENCES)))
"""
    assert run(tmp_path, code) == "True"


def test_a_multiprocessing_pool_of_forked_workers_embeds(tmp_path):
    code = """
use_openmp()
expected = elmo.embed(SENTENCES)
with multiprocessing.get_context("fork").Pool(2) as pool:
    results = pool.map(embed_in_worker, [SENTENCES, SENTENCES])
print(all(same(vectors, expected) for vectors in results))
"""
    assert (
        run(tmp_path, "def embed_in_worker(sentences):\n    return elmo.embed(sentences)\n" + code) == "True"
    )


def test_a_dataset_with_forked_workers_embeds(tmp_path):
    code = """
class Vectors(torch.utils.data.Dataset):
    def __len__(self):
        return len(SENTENCES)

    def __getitem__(self, number):
        return elmo.embed([SENTENCES[number]])[0]

use_openmp()
expected = elmo.embed(SENTENCES)
loader = torch.utils.data.DataLoader(
    Vectors(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
)
print(same_in_other_batches([vectors.numpy() for vectors in loader], expected))
"""
    assert run(tmp_path, code) == "True"


def test_a_child_is_not_blocked_if_another_thread_held_the_locks(tmp_path):
    code = """
from polyseme.model import bilm
from polyseme.model.fast import parallel
expected = elmo.embed(SENTENCES)
held, done = threading.Event(), threading.Event()

def hold():
    with elmo.cache._lock, bilm._packing, parallel._lock:
        held.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    os._exit(0 if same(elmo.embed(SENTENCES), expected) else 1)
code = os.waitpid(child, 0)[1]
done.set()
thread.join()
print(code)
"""
    assert run(tmp_path, code) == "0"


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_joblib_workers_embed(tmp_path, backend):
    code = f"""
import joblib

use_openmp()
expected = elmo.embed(SENTENCES)
parallel = joblib.Parallel(n_jobs=2, backend={backend!r})
results = parallel(joblib.delayed(elmo.embed)(SENTENCES) for _ in range(2))
print(all(same(vectors, expected) for vectors in results))
"""
    assert run(tmp_path, code) == "True"


def test_spawned_workers_of_a_data_loader_embed(tmp_path):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    program = tmp_path / "program.py"
    program.write_text(
        SETUP.replace("elmo = polyseme.load(sys.argv[1])", "")
        + """
class Vectors(torch.utils.data.Dataset):
    def __init__(self, elmo):
        self.elmo = elmo

    def __len__(self):
        return len(SENTENCES)

    def __getitem__(self, number):
        return self.elmo.embed([SENTENCES[number]])[0]

if __name__ == "__main__":
    elmo = polyseme.load(sys.argv[1])
    expected = elmo.embed(SENTENCES)
    loader = torch.utils.data.DataLoader(
        Vectors(elmo), batch_size=None, num_workers=2, multiprocessing_context="spawn", timeout=60
    )
    print(same_in_other_batches([vectors.numpy() for vectors in loader], expected))
"""
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), str(tmp_path / "model")],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


@pytest.mark.skipif(find_spec("datasets") is None, reason="datasets is not installed")
def test_a_hugging_face_dataset_with_processes_embeds(tmp_path):
    code = """
import datasets

datasets.disable_progress_bars()
use_openmp()
texts = [" ".join(tokens) for tokens in SENTENCES]
expected = elmo.embed(texts, pool="mean")
rows = datasets.Dataset.from_dict({"text": texts})
done = rows.map(lambda batch: {"vector": elmo.embed(batch["text"], pool="mean")}, batched=True, num_proc=2)
assert np.array_equal(elmo.embed(rows["text"], pool="mean"), expected)
print(np.allclose(np.array(done["vector"]), expected))
"""
    assert run(tmp_path, code) == "True"


@pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn is not installed")
def test_a_preforked_web_server_embeds(tmp_path):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    (tmp_path / "service.py").write_text(
        """
import json, os
import torch
torch.set_num_threads(2)
import polyseme

elmo = polyseme.load("model")
elmo.embed([["the", "bank"]] * 40)  # the thread pools of the parent are running when it forks
parent = os.getpid()

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    vectors = elmo.embed([["the", "bank"]] * 40)
    return [json.dumps({"forked": os.getpid() != parent, "shape": vectors[39].shape}).encode()]
"""
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", address, "service:app"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(tmp_path)},
    )

    def request() -> dict[str, object] | None:
        try:
            with urllib.request.urlopen(f"http://{address}/", timeout=20) as response:
                return json.load(response)
        except OSError:
            return None

    try:
        until(request)
        assert [request() for _ in range(4)] == [{"forked": True, "shape": [2, 8]}] * 4
    finally:
        server.terminate()
        try:
            server.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()  # or its open pipe fails a later test
            server.communicate()
            raise
