"""The command line: parses, calls api, prints.

    api  ->  cli  ->  the terminal

A user's mistake is one line on standard error and exit code 2; anything else is a bug and shows its
traceback. Commands import torch when they run, so that `polyseme --help` is fast.
"""

from __future__ import annotations

import errno
import logging
import sys
from typing import Annotated, NoReturn

import typer

from polyseme.cli import (
    books,
    concordances,
    indexing,
    language,
    meanings,
    models,
    neighbours,
    pretraining,
    serving,
    summaries,
    tasks,
)
from polyseme.cli.errors import collect_flags, translate_advice
from polyseme.errors import PolysemeError

STOPPED = 130  # exit code of shells for a program that Ctrl-C stopped
COMMANDS = {  # by the panel of `polyseme --help` that lists them
    "Models": (pretraining.pretrain, models.info, models.convert, models.cache, models.sample, models.doctor),
    "Vectors": (models.embed,),
    "Tasks": (tasks.train, tasks.predict, summaries.summarise),
    "Language model": (language.evaluate, language.score, language.substitutes, language.generate),
    "Words in a corpus": (
        books.book,
        books.characters,
        indexing.index,
        concordances.concordance,
        concordances.collocates,
        concordances.passage,
        neighbours.nearest,
        neighbours.similarity,
        meanings.senses,
        meanings.timeline,
        meanings.map_usages,
        meanings.change,
        meanings.disambiguate,
        indexing.export,
    ),
    "Server": (serving.serve,),
}
NAMES = {"map_usages": "map"}  # commands whose names Python has taken


def make_app() -> typer.Typer:
    """Make the program with all its commands."""
    app = typer.Typer(
        name="polyseme",
        no_args_is_help=True,
        invoke_without_command=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        callback=_polyseme,
        epilog="Try it without training: polyseme nearest en economy",
    )
    for panel, commands in COMMANDS.items():
        for command in commands:
            app.command(NAMES.get(command.__name__), rich_help_panel=panel)(command)
    return app


def _polyseme(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """ELMo for your own text: contextual word vectors from your own or any published model."""
    if version:
        from importlib.metadata import version as read_version

        print(f"polyseme {read_version('polyseme')}")
        raise typer.Exit


def main() -> None:
    """Run the command line; the entry point of the `polyseme` program."""
    handler = logging.StreamHandler()
    handler.addFilter(lambda record: record.name != "polyseme.elmo")  # commands print what was truncated
    logging.basicConfig(level=logging.WARNING, format="polyseme: %(message)s", handlers=[handler])
    app = make_app()
    try:
        code = app(prog_name="polyseme", standalone_mode=False)
    except PolysemeError as problem:
        message = translate_advice(str(problem), collect_flags(app), _find_command(app))
        _refuse(message, code=problem.exit_code)
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        file = f"{problem.filename}: " if problem.filename else ""
        _refuse(f"{file}writing failed ({problem.strerror}). Free space, or choose another path.")
    except typer.TyperException as problem:  # an unknown command or option, or a wrong value
        _refuse(problem.format_message(), getattr(problem, "ctx", None))
    if code == STOPPED:
        print("polyseme: stopped.", file=sys.stderr)
    sys.exit(code)


def _find_command(app: typer.Typer) -> str | None:
    """The name of the command in the arguments."""
    names = collect_flags(app)
    return next((argument for argument in sys.argv[1:] if argument in names), None)


def _refuse(message: str, context: typer.Context | None = None, code: int = 2) -> NoReturn:
    """Exit with a one-line error."""
    if not message.strip():  # no command at all: the help has been printed
        sys.exit(2)
    line = " ".join(message.splitlines()).replace(": Value error, ", ": ")  # as typer words a wrong choice
    if context is not None:
        line += f"{'' if line[-1] in '.?!' else '.'} See {context.command_path} --help."
    print(f"polyseme: {line}", file=sys.stderr)
    sys.exit(code)
