"""TensorBoard logs of a run."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme
import training_story as story
from polyseme.errors import MissingExtraError
from polyseme.training.checkpoint import Position


def records(content: bytes) -> Iterator[bytes]:
    """Yield the records of an event file: length, checksum, content, checksum."""
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        yield content[12 : 12 + length]
        content = content[12 + length + 4 :]


def events(folder: Path) -> Iterator[tuple[int, str, float]]:
    """Yield the step, tag and value of each logged value."""
    from tensorboardX.proto.event_pb2 import Event

    for file in sorted(folder.glob("events.*")):
        for event in map(Event.FromString, records(file.read_bytes())):
            yield from ((event.step, value.tag, value.simple_value) for value in event.summary.value)


def test_loss_rate_gradient_speed_and_perplexities_are_logged(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    text = story.write(tmp_path / "story.txt", 300)
    received = []
    result = polyseme.pretrain(
        [text],
        tmp_path / "model",
        "tiny",
        settings=story.SETTINGS,
        tensorboard=True,
        on_metrics=lambda position, metrics: received.append((position.step, dict(metrics))),
    )
    logged = list(events(tmp_path / "model" / "tensorboard"))
    names = ("train/loss", "train/rate", "train/gradient", "train/tokens_per_second")
    assert {tag for _, tag, _ in logged} == {
        *names,
        *(f"perplexity/{n}" for n in ("forward", "backward", "mean")),
    }
    assert [step for step, tag, _ in logged if tag == "train/loss"] == list(
        range(20, result.position.step + 1, 20)
    )
    losses = {step: value for step, tag, value in logged if tag == "train/loss"}
    assert all(
        losses[step] == pytest.approx(f["loss"]) for step, f in received if "loss" in f and step in losses
    )
    assert all(value > 0 for _, tag, value in logged if tag == "train/tokens_per_second")


def test_a_log_starts_with_a_mark_that_removes_events_after_the_checkpoint(tmp_path: Path):
    pytest.importorskip("tensorboardX")
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    from polyseme.training.tensorboard_log import TensorBoardLog

    with TensorBoardLog(tmp_path) as board:
        board.log(Position(step=20, tokens=100, seconds=1.0), {"loss": 2.0})
    (file,) = (tmp_path / "tensorboard").glob("events.*")
    assert SessionLog.START in [
        Event.FromString(part).session_log.status for part in records(file.read_bytes())
    ]


def test_a_missing_tensorboard_is_reported_before_the_text_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(
        MissingExtraError, match=r'TensorBoard logging needs tensorboardX: pip install "polyseme\[tensorb'
    ):
        polyseme.pretrain([tmp_path / "no.txt"], tmp_path / "model", "tiny", tensorboard=True)
    assert not (tmp_path / "model").exists()
