"""Verbs about models and vectors: info, convert, embed.

api  ->  cli.models  ->  a person's terminal
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli.options import (
    MODEL,
    AsJson,
    BatchTokens,
    Force,
    ModelPath,
    Options,
    Precision,
    Segment,
    Stateful,
    TextPaths,
    count_of,
    parse_layer,
)
from polyseme.errors import UsageError

if TYPE_CHECKING:
    from polyseme.api import Embedded
    from polyseme.elmo import Elmo


def info(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help=MODEL)] = None,
    options: Options = None,
    as_json: AsJson = False,
    runtime: Annotated[
        bool, typer.Option("--runtime", help="Say what runs models on this machine, and why.")
    ] = False,
) -> None:
    """Say what a model is, or how models run here."""
    from polyseme import api
    from polyseme.formats.models.bundled import bundled_names

    if model is None and not runtime:
        raise UsageError(f"info needs a MODEL (in the box: {', '.join(bundled_names())}), or --runtime.")
    facts: dict[str, Any] = {"facts": {}} if model is None else api.info(model, options)
    if runtime:
        facts["runtime"] = api.runtime()
        facts["facts"] |= facts["runtime"]
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


def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Any model.")],
    target: Annotated[Path, typer.Argument(metavar="DST", help="A new folder, or a new .hdf5 file.")],
    to: Annotated[str, typer.Option(help="native or hdf5.")] = "native",
    precision: Annotated[
        str | None,
        typer.Option(help="fp32, bf16 or int8 (smaller native folders); as in SRC if left out."),
    ] = None,
    tables: Annotated[
        bool, typer.Option("--tables", help="With bf16 or int8: words, characters and softmax, too.")
    ] = False,
    options: Options = None,
    force: Force = False,
) -> None:
    """Write a model in another format."""
    from polyseme import api

    chosen: Any = to  # checked there
    api.convert(source, target, to=chosen, precision=precision, tables=tables, options=options, force=force)
    print(f"{source} -> {target} ({to})")


def embed(
    model: ModelPath,
    text: TextPaths,
    out: Annotated[
        Path,
        typer.Option(
            help="x.hdf5, x.npz, x.parquet or x.safetensors; without an ending a folder, for bulk work."
        ),
    ],
    layer: Annotated[
        str, typer.Option(help="mean, top, all, a number from 0, or weights: 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4")
    ] = "mean",
    pool: Annotated[
        str | None, typer.Option(help="One vector a sentence: mean, max, first, last or sum.")
    ] = None,
    direction: Annotated[str, typer.Option(help="both, forward or backward.")] = "both",
    segment: Segment = None,
    stateful: Stateful = False,
    batch_tokens: BatchTokens = 4096,
    precision: Precision = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32 or float16. [default: float32, float16 for a folder]")
    ] = None,
    format: Annotated[  # noqa: A002  # the word that people look for
        str, typer.Option(help="Of the files of a folder: safetensors, parquet, npz or hdf5.")
    ] = "safetensors",
    shard: Annotated[
        str, typer.Option(help="Do the i-th of n shares of a folder: i/n, such as 1/4.")
    ] = "1/1",
    shard_mb: Annotated[int, typer.Option(min=1, help="About the size of a file of a folder, in MiB.")] = 256,
    engine: Annotated[str, typer.Option(help="local, or ray: a Ray cluster does all shares.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster. [default: this machine]")] = None,
    actors: Annotated[
        int | None, typer.Option(min=1, help="Processes of Ray, each with a model. [default: the cores]")
    ] = None,
    options: Options = None,
    force: Force = False,
) -> None:
    """Write the vectors of texts to a file or a folder.

    A folder is written in files of bounded size; the same command goes on where it was killed.
    """
    from polyseme import api, load
    from polyseme.bulk_embedding import check_embed_target

    check_embed_target(out, dtype=dtype, shard=shard, stateful=stateful, engine=engine, force=force)
    elmo = load(model, options, precision=precision, batch_tokens=batch_tokens)
    done = api.embed(
        model if engine == "ray" else elmo,
        text,
        out,
        layer=parse_layer(layer),
        pool=pool,  # type: ignore[arg-type]
        direction=direction,  # type: ignore[arg-type]
        segment=segment,
        stateful=stateful,
        dtype=dtype,  # type: ignore[arg-type]
        format=format,  # type: ignore[arg-type]
        shard=shard,
        shard_bytes=shard_mb << 20,
        batch_tokens=batch_tokens,
        precision=precision,
        engine=engine,  # type: ignore[arg-type]
        address=address,
        actors=actors,
        options=options,
        force=force,
        progress=True,
    )
    _say_embedded(done, elmo, segment)


def _say_embedded(done: Embedded, elmo: Elmo, segment: str | None) -> None:
    """What was written, and whether words were cut."""
    print(f"{done.out}: {count_of(done.sentences, 'sentence')}, {count_of(done.tokens, 'token')}")
    if done.cut and elmo.config.chars:
        raw = (segment or elmo.config.segment) == "split" and done.cut * 10 >= done.tokens
        advice = " Is the text raw? Then say --segment en, zh or auto." if raw else ""
        cut = count_of(done.cut, "token")
        print(f"Cut: {cut}, longer than the {elmo.config.chars.longest} that the model reads.{advice}")
