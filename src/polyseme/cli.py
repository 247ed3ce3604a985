"""The command line: parses, calls api, prints.

    api  ->  cli  ->  a person's terminal

A user's mistake is one line on standard error and exit code 2; anything else is a bug and shows its
traceback. torch is loaded only inside the verbs, so that `polyseme --help` answers at once.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from polyseme.errors import PolysemeError, UsageError

app = typer.Typer(
    name="polyseme",
    help="ELMo for your own text: contextual word vectors from any published model or your own.",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A model folder, a zip or an .hdf5 file.")]
Options = Annotated[
    str | None, typer.Option(help="The options.json of an .hdf5 file, if it does not lie beside it.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
STOPPED = 130  # what a shell says of a program stopped by Ctrl-C


@app.callback()
def _verbs(
    version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", is_eager=True)
    ] = False,
) -> None:
    """ELMo for your own text: contextual word vectors from any published model or your own."""
    if version:
        from importlib.metadata import version as installed

        print(f"polyseme {installed('polyseme')}")
        raise typer.Exit


@app.command()
def info(
    model: ModelPath,
    options: Options = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Say what a model is."""
    from polyseme import api

    facts = api.info(model, options)
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts["facts"].items():
        table.add_row(Text(name, style="bold"), Text(value))  # as they are: brackets are no markup
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Any model.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="A new folder, or a new .hdf5 file.")],
    to: Annotated[str, typer.Option(help="native or hdf5.")] = "native",
    options: Options = None,
    force: Force = False,
) -> None:
    """Write a model in another format."""
    from polyseme import api

    api.convert(source, target, to=to, options=options, force=force)  # type: ignore[arg-type]
    print(f"{source} -> {target} ({to})")


@app.command()
def embed(
    model: ModelPath,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A file, a folder, .gz, .zst, or - (stdin).")],
    out: Annotated[Path, typer.Option(help="x.hdf5, x.npz or x.parquet.")],
    layer: Annotated[
        str, typer.Option(help="mean, top, all, a number from 0, or weights: 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4")
    ] = "mean",
    pool: Annotated[
        str | None, typer.Option(help="One vector a sentence: mean, max, first, last or sum.")
    ] = None,
    direction: Annotated[str, typer.Option(help="both, forward or backward.")] = "both",
    segment: Annotated[
        str | None, typer.Option(help="split, en, zh, zh-char or auto; as the model was trained if left out.")
    ] = None,
    stateful: Annotated[
        bool, typer.Option("--stateful", help="Carry the state from sentence to sentence, as bilm-tf does.")
    ] = False,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Tokens in a batch.")] = 4096,
    dtype: Annotated[str, typer.Option(help="float32 or float16.")] = "float32",
    options: Options = None,
    force: Force = False,
) -> None:
    """Write the vectors of a text to a file."""
    from polyseme import api, load
    from polyseme.progress import Progress

    api.check_embed_target(out, dtype=dtype, force=force)
    elmo = load(model, options, batch_tokens=batch_tokens)
    with Progress(text) as progress:
        done = api.embed(
            elmo,
            text,
            out,
            layer=parse_layer(layer),
            pool=pool,  # type: ignore[arg-type]
            direction=direction,  # type: ignore[arg-type]
            segment=segment,
            stateful=stateful,
            dtype=dtype,  # type: ignore[arg-type]
            force=force,
            watch=progress.read,
            count=progress.embedded,
        )
    print(f"{done.out}: {count_of(done.sentences, 'sentence')}, {count_of(done.tokens, 'token')}")
    if done.cut and elmo.config.chars:
        raw = (segment or elmo.config.segment) == "split" and done.cut * 10 >= done.tokens
        advice = " Is the text raw? Then say --segment en, zh or auto." if raw else ""
        cut = count_of(done.cut, "token")
        print(f"Cut: {cut}, longer than the {elmo.config.chars.longest} that the model reads.{advice}")


def count_of(number: int, thing: str) -> str:
    """`1 sentence`, `2,000 sentences`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def parse_layer(text: str) -> Any:
    """`mean`, `2`, `0.2,0.3,0.5` or `0.2,0.3,0.5*1.4` as `Elmo.embed` takes it."""
    if "," not in text:
        return int(text) if text.isdecimal() else text
    weights, _, gamma = text.partition("*")
    try:
        return [float(weight) for weight in weights.split(",")], float(gamma or 1)
    except ValueError:
        raise UsageError(
            f"--layer {text}: expected weights such as 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4."
        ) from None


def main() -> None:
    """Run the command line; the entry point of the `polyseme` program."""
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    try:
        code = app(prog_name="polyseme", standalone_mode=False)
    except PolysemeError as problem:
        _refuse(str(problem))
    except typer.TyperException as problem:  # a verb or an option that there is not, or a wrong value
        _refuse(problem.format_message(), getattr(problem, "ctx", None))
    if code == STOPPED:
        print("polyseme: stopped.", file=sys.stderr)
    sys.exit(code)


def _refuse(message: str, context: typer.Context | None = None) -> NoReturn:
    """End with one line that says what is wrong, and where the help is."""
    if not message.strip():  # no verb at all: the help is printed already
        sys.exit(2)
    line = " ".join(message.splitlines())
    if context is not None:
        line += f"{'' if line[-1] in '.?!' else '.'} See {context.command_path} --help."
    print(f"polyseme: {line}", file=sys.stderr)
    sys.exit(2)
