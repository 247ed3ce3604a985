"""Any number of threads gives the same bits: directions, batch parts and highways run in parallel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest
import torch

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.model.fast.kernels import native
from polyseme.model.fast.parallel import count_cores, keep_torch_on_one_core, run_parallel, use_one_core

SENTENCES = [[f"word{number % 7}"] * (number % 6) for number in range(23)]


@pytest.fixture
def set_threads():
    """Set the number of torch threads, until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.skipif(
    not native.is_available(), reason="torch rounds products differently for other numbers of rows"
)
def test_vectors_and_states_are_the_same_bits_for_any_number_of_threads(set_threads):
    results = []
    for count in (1, 2, 5, 8):
        set_threads(count)
        elmo = Elmo(random_model(small_config()))
        layers, state = elmo.compute_layers(SENTENCES)
        again, after = elmo.compute_layers(SENTENCES[::-1], state)
        results.append(
            [layers, again, *(part for direction in after for layer in direction for part in layer)]
        )
    for result in results[1:]:
        assert all(torch.equal(*pair) for pair in zip(results[0], result, strict=True))


@torch.no_grad()
def test_results_come_in_the_order_of_the_tasks(set_threads):
    set_threads(3)
    assert run_parallel([partial(pow, n, 2) for n in range(20)]) == [n * n for n in range(20)]
    assert run_parallel([torch.get_num_threads] * 2) == [1, 1]  # one core for each
    assert torch.get_num_threads() == 3


def test_one_core_for_torch_in_a_thread_leaves_other_threads_and_parallel_tasks_alone(set_threads):
    set_threads(3)
    numbers: dict[str, tuple[int, int]] = {}

    def record(name: str, start: Callable[[], object]) -> None:
        start()
        numbers[name] = torch.get_num_threads(), count_cores()

    for name, start in (("one core", use_one_core), ("later", int)):
        thread = threading.Thread(target=record, args=(name, start))
        thread.start()
        thread.join()
    assert numbers == {"one core": (1, 3), "later": (3, 3)}
    assert torch.get_num_threads() == count_cores() == 3


@torch.no_grad()
def test_the_last_native_task_runs_in_the_calling_thread(set_threads):
    set_threads(2)
    first, *others, last = run_parallel([threading.get_ident] * 5, native=True)
    assert last == threading.get_ident() not in (first, *others)


@torch.no_grad()
@pytest.mark.parametrize("native_tasks", [False, True])
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_in_a_thread_is_raised_after_all_tasks_have_ended(set_threads, native_tasks, failing):
    set_threads(2)
    results: list[int] = []
    tasks = [lambda n=n: results.append(1 // (n - failing)) for n in (0, 1)]
    with pytest.raises(ZeroDivisionError):
        run_parallel(tasks, native=native_tasks)
    assert not native_tasks or len(results) == 1


def test_weights_changed_without_a_version_counter_are_used_by_the_next_call():
    elmo = Elmo(random_model(small_config()))
    before = elmo.compute_layers([["a", "b"]])[0]
    for weight in elmo.model.network.parameters():
        weight.data.mul_(0.5)  # changes no version counter
    after, fresh = elmo.compute_layers([["a", "b"]])[0], Elmo(elmo.model).compute_layers([["a", "b"]])[0]
    assert torch.equal(after, fresh)
    assert not torch.equal(before, after)


@torch.no_grad()
def test_torch_keeps_to_one_core_inside_the_block_only(set_threads):
    set_threads(3)
    with keep_torch_on_one_core():
        assert (torch.get_num_threads(), count_cores()) == (1, 3)
        names = run_parallel([lambda: threading.current_thread().name] * 3)
        assert names[-1] == threading.current_thread().name
        assert names[0] != names[-1]
    assert (torch.get_num_threads(), count_cores()) == (3, 3)
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert numbers == [3]
