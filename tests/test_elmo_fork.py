"""An Elmo in forked children: they return, within a time limit, and give the parent's vectors bit for bit.

Each program runs in a process of its own, with several torch threads, since the tests use one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders import random_model, small_config
from polyseme.formats.models.save import save_pretrained

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
SECONDS = 120  # the limit for one program; without the fix it never ends
SETUP = """
import multiprocessing, os, sys, threading
import numpy as np, torch
torch.set_num_threads(2)
import polyseme

elmo = polyseme.load(sys.argv[1])
SENTENCES = [["the", "bank", "failed"], ["river", "bank"] * 30, ["a"]] * 20

def same(left, right):
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right))

def use_openmp():
    (torch.randn(600, 600) @ torch.randn(600, 600)).tanh()
"""


def run(tmp_path: Path, code: str) -> str:
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
wanted = elmo.embed(SENTENCES)
with multiprocessing.get_context("fork").Pool(2) as pool:
    found = pool.map(embed_in_worker, [SENTENCES, SENTENCES])
print(all(same(vectors, wanted) for vectors in found))
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
wanted = elmo.embed(SENTENCES)
loader = torch.utils.data.DataLoader(
    Vectors(), batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
)
print(same([vectors.numpy() for vectors in loader], wanted))
"""
    assert run(tmp_path, code) == "True"


def test_a_fork_while_another_thread_holds_the_locks_does_not_block_the_child(tmp_path):
    code = """
from polyseme.model import bilm
from polyseme.model.fast import parallel
wanted = elmo.embed(SENTENCES)
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
    os._exit(0 if same(elmo.embed(SENTENCES), wanted) else 1)
code = os.waitpid(child, 0)[1]
done.set()
thread.join()
print(code)
"""
    assert run(tmp_path, code) == "0"
