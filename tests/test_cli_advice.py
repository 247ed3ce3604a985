"""The command line translates the advice of library errors from Python arguments to flags."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer

from polyseme.cli.errors import collect_flags, translate_advice
from polyseme.errors import UsageError
from programs import run_program


@pytest.fixture(scope="module")
def flags():
    """The flags of a small program."""
    app = typer.Typer()

    @app.command()
    def index(
        model: str,
        texts: str,
        out: str,
        layer: Annotated[str, typer.Option()] = "top",
        min_count: Annotated[int, typer.Option()] = 1,
        force: Annotated[bool, typer.Option("--force")] = False,
        stop_at_end: Annotated[bool, typer.Option("--stop-at-end/--go-on")] = True,
    ) -> None:
        """Index."""

    @app.command("map")
    def map_usages(out: Annotated[str, typer.Option()]) -> None:
        """Map."""

    return collect_flags(app)


@pytest.mark.parametrize(
    ("advice", "shown"),
    [
        ("Pass `force=True` to overwrite it.", "Pass --force to overwrite it."),
        ("Lower `min_count`.", "Lower --min-count."),
        ("Use `min_count=5`.", "Use --min-count 5."),
        ("Set `layer='mean'`.", "Set --layer mean."),
        ("Set `layer=…`.", "Set --layer …."),
        ("Leave out `force`, or use `stop_at_end=False`.", "Leave out --force, or use --go-on."),
        ("Pass `force=False`.", "Pass without --force."),
        ("Draw it: `polyseme.map_usages(words, out=file)`.", "Draw it: polyseme map WORDS --out FILE."),
        (
            "Make one: `polyseme.index(model, texts, out, layer=2, force=True)`.",
            "Make one: polyseme index MODEL TEXTS OUT --layer 2 --force.",
        ),
    ],
)
def test_python_advice_becomes_flags(flags, advice, shown):
    assert translate_advice(advice, flags, "index") == shown


def test_arguments_that_the_command_does_not_have_stay_in_python(flags):
    advice = "Pass `device='cpu'`, or call `mean_vectors(model, sentences)` or `polyseme.load(path)`."
    assert translate_advice(advice, flags, "index") == advice
    assert translate_advice("Pass `force=True`.", flags, "map") == "Pass `force=True`."
    assert translate_advice("Pass `force=True`.", flags) == "Pass `force=True`."


def test_the_program_shows_flags_in_place_of_arguments(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise UsageError("x: exists already. Pass `force=True` to overwrite it.")

    monkeypatch.setattr("polyseme.api.convert", refuse)
    ran = run_program("convert", "one", "x")
    assert (ran.code, ran.err) == (2, "polyseme: x: exists already. Pass --force to overwrite it.\n")
