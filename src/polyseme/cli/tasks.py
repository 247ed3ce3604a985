"""The commands train and predict.

api  ->  cli.tasks  ->  the terminal
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.options import MODEL, Encoding, Force
from polyseme.errors import UsageError
from polyseme.tasks.table import TASKS

if TYPE_CHECKING:
    from polyseme.tasks.metrics import Scores
    from polyseme.tasks.task_model import TaskModel

NOT_FOR_PROBES = (
    "--config",
    "--runs",
    "--curve",
    "--compare",
    "--without-elmo",
    "--no-copy",
    "--resume",
    "--vectors",
)
NEEDS_OUT = "train needs --out, a new folder for the model (or --dry-run)."
ElmoPath = Annotated[str | None, typer.Option("--elmo", help="The ELMo of a task folder, if it has moved.")]
StaticPath = Annotated[
    str | None,
    typer.Option("--static", help="The static vectors of a task folder, if they have moved."),
]


def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help=f"{', '.join(TASKS)} or probes.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    train: Annotated[str, typer.Option(help="Training examples.")],
    dev: Annotated[
        str | None,
        typer.Option(help="Validation examples; by default a part of --train."),
    ] = None,
    test: Annotated[str | None, typer.Option(help="Examples to evaluate the model on.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the model and its report.")] = None,
    config: Annotated[str | None, typer.Option(help="A preset of the task, or a .toml file.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as train.seed=7; can be repeated.")
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of seeds, for mean and standard deviation.",
            show_default="3 with --compare, else 1",
        ),
    ] = None,
    curve: Annotated[
        str | None,
        typer.Option(help="Shares of the training examples, such as 1%,10%,100%, with and without ELMo."),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Also train without ELMo, and TF-IDF with logistic regression.")
    ] = False,
    without_elmo: Annotated[bool, typer.Option("--without-elmo", help="Train only without ELMo.")] = False,
    copy: Annotated[
        bool,
        typer.Option(
            "--copy/--no-copy",
            help="Copy ELMo and static vectors into the folder, or store their paths only.",
        ),
    ] = True,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted training.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all files and print counts; train nothing.")
    ] = False,
    vectors: Annotated[Path | None, typer.Option(help="Folder to cache ELMo vectors for later runs.")] = None,
    encoding: Encoding = "auto",
    force: Force = False,
) -> None:
    """Train a task model on labelled examples."""
    from polyseme import api

    overrides, shares = tuple(settings or ()), _parse_shares(curve)
    if task == "probes":
        several = runs is not None and runs > 1
        values = (
            config,
            several,
            curve,
            compare,
            without_elmo,
            not copy,
            resume,
            vectors,
        )
        unknown = [name for name, value in zip(NOT_FOR_PROBES, values, strict=True) if value]
        if unknown:
            raise UsageError(f"train probes has no {unknown[0]}. Leave it out.")
    if dry_run:
        _print_counts(task, model, train, dev, test, config, overrides, shares, encoding)
        return
    if out is None:
        raise UsageError(NEEDS_OUT)
    if task == "probes":
        probes = api.probe(
            model,
            train=train,
            dev=dev,
            test=test,
            out=out,
            settings=overrides,
            force=force,
            encoding=encoding,
            progress=True,
        )
        print(probes.table())
        return
    trained = api.train(
        task,
        model,
        train=train,
        dev=dev,
        test=test,
        out=out,
        config=config,
        settings=overrides,
        runs=runs,
        curve=shares,
        compare=compare,
        without_elmo=without_elmo,
        resume=resume,
        force=force,
        copy=copy,
        vectors=vectors,
        encoding=encoding,
        progress=True,
    )
    _print_results(trained, "test" if test else "dev")
    plots = ", ".join(("", *sorted(file.name for file in out.glob("*.png"))))
    print(f"\n{out}: the model, report.md, report.json{plots}")


def _print_results(trained: TaskModel, part: str) -> None:
    """Print the table of all runs, how much ELMo adds, and the layers that are used."""
    from polyseme.tasks.experiment import choose_best
    from polyseme.tasks.report import advise, describe_elmo_effect, describe_mixes, render_results

    results, baseline = trained.results, trained.baseline
    layers = describe_mixes(choose_best(results), trained.settings.input)[1:]
    advice = [*describe_elmo_effect(results, part), *advise(results, baseline, part)]
    print("\n\n".join([render_results(results, baseline), *advice, *layers]))


def predict(
    model: Annotated[Path, typer.Argument(metavar="TASK", help="A folder that train wrote.")],
    data: Annotated[str, typer.Argument(metavar="FILE", help="Examples; their labels may be missing.")],
    question: Annotated[
        list[str] | None,
        typer.Option(help="A question about FILE, a text or a folder of texts; can be repeated."),
    ] = None,
    format: Annotated[  # noqa: A002
        str, typer.Option(help="jsonl; or a format of the task, such as columns for tagging.")
    ] = "jsonl",
    plain_text: Annotated[
        bool,
        typer.Option(
            "--plain-text",
            help="FILE is plain text with one example per line; for pairs, two texts separated by a tab.",
        ),
    ] = False,
    elmo: ElmoPath = None,
    static: StaticPath = None,
    encoding: Encoding = "auto",
) -> None:
    """Predict the labels of the examples in a file; print one line per example."""
    from polyseme import api

    progress = not sys.stdout.isatty()  # on a terminal the predictions themselves show it
    lines = api.predict(
        model,
        data,
        question=question or None,
        format=format,
        plain_text=plain_text,
        elmo=elmo,
        static=static,
        encoding=encoding,
        progress=progress,
    )
    for line in lines:
        print(line)


def print_scores(scores: Scores) -> None:
    """Print the scores of a task, and those of its labels."""
    from polyseme.tasks.report import render_labels

    for name, value in scores.metrics.items():
        print(f"{name}\t{value:.4f}")
    if scores.rows:
        print("\n" + render_labels(scores))
    for note in scores.notes:
        print(f"\n{note}")


def _parse_shares(text: str | None) -> list[float]:
    """`1%,10%,100%` or `0.01,0.1,1` as shares."""
    if text is None:
        return []
    try:
        return [
            float(part.removesuffix("%")) / (100 if part.endswith("%") else 1) for part in text.split(",")
        ]
    except ValueError:
        raise UsageError(f"--curve {text}: expected shares such as 1%,10%,100%.") from None


def _print_counts(
    task: str,
    model: str,
    train: str,
    dev: str | None,
    test: str | None,
    config: str | None,
    settings: tuple[str, ...],
    curve: list[float],
    encoding: str,
) -> None:
    """Print what `--dry-run` finds: all files are read and checked."""
    from polyseme import api

    counts = api.count_examples(
        task,
        model,
        train=train,
        dev=dev,
        test=test,
        config=config,
        settings=settings,
        curve=curve,
        encoding=encoding,
    )
    print(f"raw text is segmented as {counts.segment}")
    for name, counted in counts.sets.items():
        labels = ", ".join(f"{label} {count:,}" for label, count in list(counted.labels.items())[:20])
        print(f"{name}: {counted.examples:,} examples, {counted.tokens:,} tokens; {labels or 'no labels'}")
