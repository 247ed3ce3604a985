"""Choosing the device of a run, and refusing a device that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import training_story as story
from polyseme.errors import UsageError
from polyseme.training.devices import choose_backend, choose_device
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings

PROCESS = ("WORLD_SIZE", "LOCAL_RANK")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch):
    """Return a function that simulates `count` CUDA GPUs and process `local` of `world`."""

    def set_gpus(count: int, world: int = 1, local: int = 0) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        for name, value in zip(PROCESS, (world, local), strict=True):
            monkeypatch.setenv(name, str(value))

    return set_gpus


def test_auto_chooses_a_gpu_if_there_is_one(gpus):
    gpus(0)
    assert choose_device("auto") == torch.device("cpu")
    gpus(2)
    assert choose_device("auto") == torch.device("cuda:0")
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == torch.device("cuda:1")


def test_each_process_on_a_machine_uses_a_different_gpu(gpus):
    gpus(4, world=8, local=3)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda:3")
    with pytest.raises(UsageError, match=r"train.device=cuda gives each its own"):
        choose_device("cuda:1")
    gpus(2, world=8, local=3)
    with pytest.raises(UsageError, match="more processes than GPUs here: use --nproc-per-node 2"):
        choose_device("auto")


def test_a_gpu_that_does_not_exist_is_refused(gpus, monkeypatch: pytest.MonkeyPatch):
    gpus(0)
    with pytest.raises(UsageError, match=r"train.device is cuda, but this machine has no CUDA GPU"):
        choose_device("cuda")
    gpus(2)
    with pytest.raises(UsageError, match="2 CUDA GPUs, numbered from 0"):
        choose_device("cuda:2")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(UsageError, match=r"train.device is mps"):
        choose_device("mps")


def test_processes_communicate_by_nccl_on_gpus_and_by_gloo_otherwise():
    assert choose_backend(torch.device("cuda:1")) == "nccl"
    assert choose_backend(torch.device("cpu")) == "gloo"


def test_a_run_without_its_gpu_is_refused_before_anything_is_written(tmp_path: Path, gpus):
    gpus(0)
    text = story.write(tmp_path / "story.txt", 100)
    config = read_pretrain_settings("tiny", [*story.SETTINGS, "train.device=cuda"])
    with pytest.raises(UsageError, match=r'Or use `train.device="cpu"`'):
        pretrain([text], tmp_path / "model", config, workers=1)
    assert not (tmp_path / "model").exists()


def test_the_device_may_change_when_a_run_is_resumed(tmp_path: Path):
    text = story.write(tmp_path / "story.txt", 100)
    settings = [*story.SETTINGS, "train.epochs=1", "train.save_seconds=0.001"]
    auto, cpu = (read_pretrain_settings("tiny", [*settings, *more]) for more in ((), ("train.device=cpu",)))
    first = pretrain([text], tmp_path / "model", auto, workers=1)
    resumed = pretrain([text], tmp_path / "model", cpu, resume=True, workers=1)
    assert resumed.position.step == first.position.step
    assert resumed.metrics == first.metrics
