"""More threads change no bit: directions, parts of a batch and highways run side by side."""

from __future__ import annotations

import threading
from functools import partial

import pytest
import torch

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.model.fast.kernels import native
from polyseme.model.fast.parallel import run_parallel

SENTENCES = [[f"word{place % 7}"] * (place % 6) for place in range(23)]


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.skipif(not native.is_available(), reason="torch's own products may round by the number of rows")
def test_vectors_and_states_are_the_same_bits_for_any_number_of_threads(threads):
    found = []
    for count in (1, 2, 5, 8):
        threads(count)
        elmo = Elmo(random_model(small_config()))
        layers, state = elmo.compute_layers(SENTENCES)
        again, after = elmo.compute_layers(SENTENCES[::-1], state)
        found.append([layers, again, *(part for half in after for pair in half for part in pair)])
    for other in found[1:]:
        assert all(torch.equal(*both) for both in zip(found[0], other, strict=True))


@torch.no_grad()
def test_results_come_in_the_order_of_the_tasks(threads):
    threads(3)
    assert run_parallel([partial(pow, n, 2) for n in range(20)]) == [n * n for n in range(20)]
    assert run_parallel([torch.get_num_threads] * 2) == [1, 1]  # one core each
    assert torch.get_num_threads() == 3


@torch.no_grad()
def test_the_last_native_task_runs_in_the_calling_thread(threads):
    threads(2)
    first, *others, last = run_parallel([threading.get_ident] * 5, native=True)
    assert last == threading.get_ident() not in (first, *others)


@torch.no_grad()
@pytest.mark.parametrize("native_tasks", [False, True])
@pytest.mark.parametrize("wrong", [0, 1])
def test_an_error_in_a_thread_is_raised_when_all_are_through(threads, native_tasks, wrong):
    threads(2)
    through = []
    works = [lambda n=n: through.append(1 // (n - wrong)) for n in (0, 1)]
    with pytest.raises(ZeroDivisionError):
        run_parallel(works, native=native_tasks)
    assert not native_tasks or len(through) == 1


def test_weights_written_to_behind_torchs_back_are_seen_by_the_next_call():
    elmo = Elmo(random_model(small_config()))
    before = elmo.compute_layers([["a", "b"]])[0]
    for weight in elmo.model.network.parameters():
        weight.data.mul_(0.5)  # raises no version counter
    after, fresh = elmo.compute_layers([["a", "b"]])[0], Elmo(elmo.model).compute_layers([["a", "b"]])[0]
    assert torch.equal(after, fresh)
    assert not torch.equal(before, after)
