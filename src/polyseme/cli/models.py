"""The commands info, doctor, convert, embed, cache and sample.

api  ->  cli.models  ->  the terminal
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.choices import Direction, Engine, ModelFormat, Pool, SavedPrecision, VectorDtype, VectorFormat
from polyseme.cli.options import (
    LAYER,
    MODEL,
    AsJson,
    BatchTokens,
    Device,
    Encoding,
    Force,
    ModelPath,
    Options,
    Precision,
    Segment,
    Stateful,
    TextPaths,
    format_count,
    parse_layer,
)

if TYPE_CHECKING:
    from polyseme.api import EmbedResult

LONG_TOKENS_SHARE = 0.1  # of truncated tokens, above which text that counts as tokenised is probably not


def info(
    model: ModelPath,
    options: Options = None,
    as_json: AsJson = False,
) -> None:
    """Describe a model."""
    from polyseme import api

    values = api.info(model, options=options, progress=True)
    if as_json:
        print(json.dumps(values, ensure_ascii=False, indent=2))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in values["facts"].items():
        table.add_row(Text(name, style="bold"), Text(value))  # Text, because brackets are not markup here
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def doctor(as_json: AsJson = False) -> None:
    """Check this installation, and describe it for a bug report; exits with 1 if something is broken."""
    from polyseme import api

    report = api.doctor(progress=True)
    print(json.dumps(report.as_dict(), ensure_ascii=False, indent=2) if as_json else report)
    if not report.healthy:
        raise typer.Exit(1)


def convert(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=MODEL)],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, or a new .hdf5 or .onnx file.")],
    to: Annotated[
        ModelFormat | None,
        typer.Option(
            help="native: a folder of Polyseme; hdf5: as bilm-tf and AllenNLP; onnx: for onnxruntime.",
            show_default="by the ending of OUT",
        ),
    ] = None,
    precision: Annotated[
        SavedPrecision | None,
        typer.Option(help="Precision of the weights of a native folder.", show_default="that of SOURCE"),
    ] = None,
    tables: Annotated[
        bool,
        typer.Option("--tables", help="With bf16 or int8: also round words, characters and softmax."),
    ] = False,
    options: Options = None,
    force: Force = False,
) -> None:
    """Write a model in another format or precision."""
    from polyseme import api

    written = api.convert(
        source,
        out,
        to=to,
        precision=precision,
        tables=tables,
        options=options,
        force=force,
        progress=True,
    )
    print(f"{source} -> {out} ({written})")


def embed(
    model: ModelPath,
    texts: TextPaths,
    out: Annotated[
        Path,
        typer.Option(help="A new .hdf5, .npz, .parquet or .safetensors file; without an ending, a folder."),
    ],
    layer: Annotated[str, typer.Option(help=f"concat (layers joined), all, {LAYER}")] = "mean",
    pool: Annotated[Pool | None, typer.Option(help="One vector per sentence, by this pooling.")] = None,
    direction: Annotated[Direction, typer.Option(help="Direction of the language model.")] = "both",
    segment: Segment = None,
    encoding: Encoding = "auto",
    stateful: Stateful = False,
    batch_tokens: BatchTokens = 4096,
    precision: Precision = None,
    device: Device = "cpu",
    dtype: Annotated[
        VectorDtype | None, typer.Option(help="Number type.", show_default="float32, for a folder float16")
    ] = None,
    format: Annotated[  # noqa: A002  # the word that people look for
        VectorFormat, typer.Option(help="Format of the files of a folder.")
    ] = "safetensors",
    shard: Annotated[
        str, typer.Option(help="Write only part i of n of a folder, as i/n: 1/4, 2/4, …")
    ] = "1/1",
    shard_mb: Annotated[float, typer.Option(help="Approximate size of a file of a folder, in MiB.")] = 256.0,
    engine: Annotated[
        Engine, typer.Option(help="ray: distribute the parts of a folder over a Ray cluster.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="Address of the Ray cluster.", show_default="start Ray on this machine")
    ] = None,
    actors: Annotated[
        int | None,
        typer.Option(min=1, help="Ray actors, each with its own model.", show_default="one per core"),
    ] = None,
    options: Options = None,
    force: Force = False,
) -> None:
    """Write the vectors of texts to a file or a folder.

    A folder is written in files of bounded size; the same command resumes it after an interruption.
    """
    from polyseme import api

    written = api.embed(
        model,
        texts,
        out,
        layer=parse_layer(layer),
        pool=pool,
        direction=direction,
        segment=segment,
        encoding=encoding,
        stateful=stateful,
        batch_tokens=batch_tokens,
        precision=precision,
        device=device,
        dtype=dtype,
        format=format,
        shard=shard,
        shard_mb=shard_mb,
        engine=engine,
        address=address,
        actors=actors,
        options=options,
        force=force,
        progress=True,
    )
    _print_embedded(written, segment)


def _print_embedded(written: EmbedResult, segment: str | None) -> None:
    """Print what was written, and whether tokens were truncated."""
    counts = f"{format_count(written.sentences, 'sentence')}, {format_count(written.tokens, 'token')}"
    print(f"{written.out}: {counts}")
    if written.truncated:
        is_raw = segment in (None, "split") and written.truncated >= LONG_TOKENS_SHARE * written.tokens
        advice = " If the text is not tokenised, use --segment en, zh or auto." if is_raw else ""
        print(f"{format_count(written.truncated, 'token')} longer than the model reads: truncated.{advice}")


def cache(
    model: ModelPath,
    vocab: Annotated[
        str, typer.Argument(metavar="VOCAB", help="One word per line, among them <S>, </S> and <UNK>.")
    ],
    out: Annotated[Path, typer.Option(help="A new .hdf5 file.")],
    options: Options = None,
    device: Device = "cpu",
    force: Force = False,
) -> None:
    """Write the context-independent vectors of a vocabulary, in the format of bilm-tf."""
    from polyseme import api

    count = api.cache(model, vocab, out, options=options, device=device, force=force, progress=True)
    print(f"{out}: {format_count(count, 'word')}")


def sample(
    name: Annotated[str, typer.Argument(metavar="NAME", help="sanguo, kjv, sotu or moby-dick.")],
    split: Annotated[
        Path | None,
        typer.Option(help="A new folder for a file per document and a table of metadata: sotu, sanguo."),
    ] = None,
    force: Force = False,
) -> None:
    """Print a sample corpus, which is downloaded once and verified; or write its documents to a folder."""
    from polyseme import api

    text = api.sample(name, split=split, force=force, progress=True)
    if split is None:
        sys.stdout.buffer.write(text.encode("utf-8"))
        return
    count = sum(1 for _ in (split.expanduser() / "texts").iterdir())
    print(f"{split}: {format_count(count, 'document')} in texts, and metadata.tsv")
