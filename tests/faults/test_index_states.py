"""An index, by random sequences of texts that are added, of kills, and of calls that are repeated."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import polyseme
from faults.readers import small_elmo
from kill_points import is_killed
from polyseme.errors import FormatError, UsageError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
TEXTS = ("the old bank\n", "the river rose\n", "a boat and a bank\n", "nobody came\n")


class Additions(RuleBasedStateMachine):
    """An index to which texts are added, while the process is killed now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.added: set[int] = set()
        self.begun: int | None = None  # the text whose addition was killed
        for number, text in enumerate(TEXTS):
            (self.folder / f"{number}.txt").write_text(text, encoding="utf-8")

    def _add(self, number: int) -> None:
        path, out = self.folder / f"{number}.txt", self.folder / "index"
        polyseme.index(small_elmo(), path, out, add=bool(self.added))

    @rule(number=st.integers(0, len(TEXTS) - 1))
    def add(self, number: int) -> None:
        """Add a text, or go on with the one whose addition was killed."""
        number = number if self.begun is None else self.begun
        if number in self.added:
            with suppress(UsageError):  # the text is in it already: nothing may change
                self._add(number)
            return
        self._add(number)
        self.added.add(number)
        self.begun = None

    @rule(number=st.integers(0, len(TEXTS) - 1), point=st.integers(1, 40))
    def add_and_kill(self, number: int, point: int) -> None:
        """Add a text, and kill the process before one of its changes to the disk."""
        number = number if self.begun is None else self.begun
        if number in self.added:
            return
        if is_killed(lambda: self._add(number), point):
            self.begun = number
        else:
            self.added.add(number)
            self.begun = None

    @invariant()
    def the_index_holds_what_was_added(self) -> None:
        if self.begun is not None:  # may be the old one, the new one, or not finished
            with suppress(FormatError):
                polyseme.open_index(self.folder / "index")
        elif self.added:
            index = polyseme.open_index(self.folder / "index")
            words = [word for number in self.added for word in TEXTS[number].split()]
            assert len(index) == len(words)
            assert set(index.words.words) == set(words)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestAdditions = Additions.TestCase
TestAdditions.settings = settings(max_examples=8, stateful_step_count=8, deadline=None)
