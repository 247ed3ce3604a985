"""The command line: parses, calls api, prints.

    api  ->  cli  ->  a person's terminal

A user's mistake is one line on standard error and exit code 2; anything else is a bug and shows its
traceback. torch is loaded only inside the verbs, so that `polyseme --help` answers at once.
"""

from __future__ import annotations

import logging
import sys
from typing import Annotated, NoReturn

import typer

from polyseme.cli import caching, language, models, pretraining, serving, tasks, words
from polyseme.cli.errors import collect_flags, translate_advice
from polyseme.errors import PolysemeError

STOPPED = 130  # what a shell says of a program stopped by Ctrl-C
VERBS = (
    pretraining.pretrain,
    models.embed,
    tasks.train,
    tasks.predict,
    models.info,
    models.convert,
    caching.cache,
    language.evaluate,
    language.score,
    language.substitutes,
    language.generate,
    words.index,
    words.nearest,
    words.similarity,
    words.senses,
    words.disambiguate,
    words.map_words,
    words.change,
    serving.serve,
    pretraining.sample,
)
NAMES = {"map_words": "map"}  # verbs whose names Python has taken


def program() -> typer.Typer:
    """The program with all its verbs."""
    app = typer.Typer(
        name="polyseme",
        no_args_is_help=True,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        callback=_polyseme,
    )
    for verb in VERBS:
        app.command(NAMES.get(verb.__name__))(verb)
    return app


def _polyseme(
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", is_eager=True)
    ] = False,
) -> None:
    """ELMo for your own text: contextual word vectors from any published model or your own."""
    if version:
        from importlib.metadata import version as installed

        print(f"polyseme {installed('polyseme')}")
        raise typer.Exit


def main() -> None:
    """Run the command line; the entry point of the `polyseme` program."""
    said = logging.StreamHandler()
    said.addFilter(lambda record: record.name != "polyseme.elmo")  # the verbs tell what was cut, in sum
    logging.basicConfig(level=logging.WARNING, format="polyseme: %(message)s", handlers=[said])
    app = program()
    try:
        code = app(prog_name="polyseme", standalone_mode=False)
    except PolysemeError as problem:
        message = translate_advice(str(problem), collect_flags(app), _find_command(app))
        _refuse(message, code=problem.exit_code)
    except typer.TyperException as problem:  # a verb or an option that there is not, or a wrong value
        _refuse(problem.format_message(), getattr(problem, "ctx", None))
    if code == STOPPED:
        print("polyseme: stopped.", file=sys.stderr)
    sys.exit(code)


def _find_command(app: typer.Typer) -> str | None:
    """The name of the command that the arguments ask for."""
    names = collect_flags(app)
    return next((argument for argument in sys.argv[1:] if argument in names), None)


def _refuse(message: str, context: typer.Context | None = None, code: int = 2) -> NoReturn:
    """End with one line that says what is wrong, and where the help is."""
    if not message.strip():  # no verb at all: the help is printed already
        sys.exit(2)
    line = " ".join(message.splitlines())
    if context is not None:
        line += f"{'' if line[-1] in '.?!' else '.'} See {context.command_path} --help."
    print(f"polyseme: {line}", file=sys.stderr)
    sys.exit(code)
