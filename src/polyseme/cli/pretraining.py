"""The command pretrain.

api  ->  cli.pretraining  ->  the terminal
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.options import DOCUMENTS, ENCODING, Options

if TYPE_CHECKING:
    from polyseme.training.pretrain import PretrainResult


def pretrain(
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT…", help="Files, folders or globs; also .gz, .zst, .jsonl, .conllu, .html, .epub."
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new folder for the model.")],
    config: Annotated[str, typer.Option(help="A preset (tiny, novel, small, …) or a .toml file.")] = "novel",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as train.seed=7; can be repeated.")
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option(help="Held-out text.", show_default="a part of TEXT is held out")
    ] = None,
    base: Annotated[str | None, typer.Option("--from", help="A model to fine-tune.")] = None,
    words: Annotated[
        Path | None,
        typer.Option(help="Words that the segmentation must know, one per line: word, count, tag."),
    ] = None,
    names: Annotated[
        bool | None,
        typer.Option(
            "--names/--no-names", help="Make English names of several words one token.", show_default="no"
        ),
    ] = None,
    new_vocabulary: Annotated[
        bool, typer.Option("--new-vocabulary", help="With --from: take the vocabulary of the new text.")
    ] = False,
    options: Options = None,
    documents: Annotated[str | None, typer.Option(help=DOCUMENTS, show_default="file")] = None,
    encoding: Annotated[str | None, typer.Option(help=ENCODING, show_default="auto")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace existing output; resume although settings or text differ."),
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that segment text.", show_default="by its size")
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also log to OUT/tensorboard.")] = False,
) -> None:
    """Pretrain an ELMo on text, or fine-tune one."""
    from polyseme import api

    result = api.pretrain(
        texts,
        out,
        config,
        settings=settings or (),
        valid=valid or (),
        base=base,
        words=words,
        names=names,
        options=options,
        new_vocabulary=new_vocabulary,
        documents=documents,
        encoding=encoding,
        resume=resume,
        force=force,
        workers=workers,
        tensorboard=tensorboard,
        progress=True,
    )
    if result.is_first:
        print_pretraining(result)


def print_pretraining(result: PretrainResult) -> None:
    """Print how good the model is, and where it is."""
    metrics = result.metrics
    if result.before is not None:
        print(f"held-out perplexity before fine-tuning: {result.before['mean']:.1f}")
    print(
        f"held-out perplexity {metrics['mean']:.1f} (forward {metrics['forward']:.1f}, backward "
        f"{metrics['backward']:.1f}), {metrics['unknown']:.1%} of its words unknown"
    )
    print(f"{result.folder}: the model, its card README.md, report.html and metrics.jsonl")
