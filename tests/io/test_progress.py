"""Progress events: on a terminal, as plain lines, in a notebook, to a callback, or nowhere."""

import io
import re
import sys
from contextlib import suppress
from types import ModuleType

import pytest
from rich.console import Console

from polyseme.io import progress as progress_module
from polyseme.io.progress import (
    ProgressDisplay,
    ProgressEvent,
    RateMeter,
    ignore_progress,
    is_interactive,
    open_progress,
)

HALF = ProgressEvent("embedding", 50, 100, "12 tokens, 3/s")
MESSAGE = ProgressEvent("training", message="epoch 1: F1 [0.9]")


class Clock:
    """A clock that advances only on request."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


def use_console(monkeypatch, **options):
    """Replace the console that progress is shown on."""
    console = Console(width=100, record=True, file=io.StringIO(), **options)
    monkeypatch.setattr(progress_module, "Console", lambda stderr: console)
    return console


def test_a_terminal_shows_a_bar(monkeypatch):
    console = use_console(monkeypatch, force_terminal=True)
    with open_progress(None, delay=0) as on_progress:
        on_progress(HALF)
    assert re.search(r"embedding: 12 tokens, 3/s ━+.* 50% 0:00:0\d", console.export_text())


def test_a_message_is_shown_verbatim_on_a_terminal(monkeypatch):
    console = use_console(monkeypatch, force_terminal=True)
    with open_progress(None) as on_progress:
        on_progress(MESSAGE)
    assert "epoch 1: F1 [0.9]" in console.export_text()


def test_a_notebook_shows_a_bar(monkeypatch):
    shown = []

    class Output:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def clear_output(self, *, wait):
            pass

        def close(self):
            shown.append("closed")

    widgets, display = ModuleType("ipywidgets"), ModuleType("IPython.display")
    vars(widgets)["Output"], vars(display)["display"] = Output, shown.append
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress_module, "find_spec", lambda name: object())
    monkeypatch.setattr("rich.jupyter.display", lambda segments, text: shown.append(text))
    use_console(monkeypatch, force_jupyter=True)
    assert is_interactive()
    with open_progress(None, delay=0) as on_progress:
        on_progress(HALF)
    assert isinstance(shown[0], Output)
    assert shown[-1] == "closed"
    assert "" not in shown  # an empty output would stay in the notebook


def test_a_notebook_without_ipywidgets_shows_plain_lines(monkeypatch, capsys, clock):
    use_console(monkeypatch, force_jupyter=True)
    monkeypatch.setattr(progress_module, "find_spec", lambda name: None)
    with open_progress(None) as on_progress:
        clock.now += 10
        on_progress(HALF)
        on_progress(MESSAGE)
    assert capsys.readouterr().err == "embedding: 12 tokens, 3/s, 50%, 0 s left\nepoch 1: F1 [0.9]\n"


def test_without_a_terminal_nothing_is_shown_unless_asked(capsys):
    assert not is_interactive()
    for quiet in (None, False):
        with open_progress(quiet) as on_progress:
            assert on_progress is ignore_progress
            on_progress(MESSAGE)
    assert capsys.readouterr() == ("", "")


def test_false_shows_nothing_on_a_terminal(monkeypatch):
    console = use_console(monkeypatch, force_terminal=True)
    with open_progress(False) as on_progress:
        on_progress(MESSAGE)
    assert console.export_text() == ""


def test_plain_lines_come_every_few_seconds_with_the_time_left(capsys, clock):
    with open_progress(True) as on_progress:
        on_progress(ProgressEvent("embedding", 0, 100))
        clock.now += 9
        on_progress(ProgressEvent("embedding", 20, 100))
        clock.now += 1
        on_progress(ProgressEvent("embedding", 25, 100, "12 tokens"))
        clock.now += 10
        on_progress(ProgressEvent("embedding", 40, None))
    assert capsys.readouterr() == ("", "embedding: 12 tokens, 25%, 30 s left\nembedding\n")


def test_the_time_left_is_measured_per_stage(capsys, clock):
    with open_progress(True) as on_progress:
        on_progress(ProgressEvent("reading", 1, 100))
        clock.now += 1000
        on_progress(ProgressEvent("training", 0, 100))
        clock.now += 10
        on_progress(ProgressEvent("training", 50, 100))
    assert capsys.readouterr().err.splitlines()[-1] == "training, 50%, 10 s left"


def test_messages_are_plain_lines_without_a_terminal(capsys):
    with open_progress(True) as on_progress:
        on_progress(MESSAGE)
    assert capsys.readouterr() == ("", "epoch 1: F1 [0.9]\n")


def test_a_callback_receives_the_events(capsys):
    events = []
    with open_progress(events.append) as on_progress:
        on_progress(HALF)
        on_progress(MESSAGE)
    assert events == [HALF, MESSAGE]
    assert capsys.readouterr() == ("", "")


def test_the_bar_stops_when_the_work_fails(monkeypatch):
    use_console(monkeypatch, force_terminal=True)
    with suppress(KeyError), open_progress(None) as on_progress:
        raise KeyError
    assert isinstance(on_progress, ProgressDisplay)
    assert on_progress._bar is not None
    assert not on_progress._bar.live.is_started


def test_a_rate_is_counted_from_the_start(clock):
    meter = RateMeter()
    clock.now += 2
    assert meter.add(1000) == "1,000 tokens, 500/s"
    clock.now += 2
    assert meter.add(5000) == "6,000 tokens, 1,500/s"
