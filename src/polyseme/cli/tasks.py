"""Verbs about tasks: train, predict.

api  ->  cli.tasks  ->  a person's terminal
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from polyseme.cli.options import MODEL, Force
from polyseme.errors import UsageError

if TYPE_CHECKING:
    from polyseme.tasks.task_model import TaskModel
    from polyseme.training.checkpoint import Position
    from polyseme.training.loop import Metrics

NOT_OF_PROBES = (
    "--config",
    "--runs",
    "--curve",
    "--compare",
    "--without-elmo",
    "--link",
    "--resume",
    "--vectors",
)
NEEDS_OUT = "train needs --out, a new folder for the model (or --dry-run)."
Elsewhere = Annotated[
    str | None, typer.Option("--model", help="The ELMo of a task folder, if it does not lie where it did.")
]
StaticElsewhere = Annotated[
    str | None, typer.Option("--static", help="The static vectors of a task folder, if they do not, either.")
]


def train(
    task: Annotated[str, typer.Argument(help="classification, tagging, pairs, relations or probes.")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL)],
    train: Annotated[str, typer.Option(help="Examples to learn from.")],
    dev: Annotated[
        str | None, typer.Option(help="Examples to choose the best epoch by; a part of --train if left out.")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Examples to judge the result by.")] = None,
    out: Annotated[Path | None, typer.Option(help="A new folder for the model and its report.")] = None,
    config: Annotated[str | None, typer.Option(help="A preset of the task, or a .toml file.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as train.seed=7; several times.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Seeds: gives mean and deviation.")] = 1,
    curve: Annotated[
        str | None, typer.Option(help="Shares of the examples, such as 1%,10%,100%, with and without ELMo.")
    ] = None,
    compare: Annotated[bool, typer.Option("--compare", help="Train the same without ELMo, too.")] = False,
    without_elmo: Annotated[
        bool, typer.Option("--without-elmo", help="Train the same model without ELMo.")
    ] = False,
    link: Annotated[
        bool, typer.Option("--link", help="Note where ELMo and static vectors lie; do not copy them.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what was interrupted.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check all files and print counts; train nothing.")
    ] = False,
    vectors: Annotated[
        Path | None, typer.Option(help="A folder that keeps ELMo's vectors for other calls.")
    ] = None,
    force: Force = False,
) -> None:
    """Train a task model on files of examples."""
    from polyseme import api

    chosen, files = tuple(settings or ()), (train, dev, test)
    if task == "probes":
        values = (config, runs > 1, curve, compare, without_elmo, link, resume, vectors)
        given = [name for name, value in zip(NOT_OF_PROBES, values, strict=True) if value]
        _probe(model, files, out, chosen, given, force=force, dry_run=dry_run)
        return
    if dry_run:
        _print_counts(task, model, config, chosen, files, _shares(curve))
        return
    if out is None:
        raise UsageError(NEEDS_OUT)
    with _TaskProgress() as show:
        trained = api.train(
            task,
            model,
            train=train,
            dev=dev,
            test=test,
            out=out,
            config=config,
            settings=chosen,
            runs=runs,
            curve=_shares(curve),
            compare=compare,
            without_elmo=without_elmo,
            resume=resume,
            force=force,
            copy=not link,
            vectors=vectors,
            watch=show.step,
        )
    _print_results(trained, "test" if test else "dev")
    drawn = ", ".join(("", *sorted(place.name for place in out.glob("*.png"))))
    print(f"\n{out}: the model, report.md, report.json{drawn}")


def _print_results(trained: TaskModel, part: str) -> None:
    """The table of all trainings, what ELMo adds, and the layers that are read."""
    from polyseme.tasks.experiment import best_of
    from polyseme.tasks.report import difference, layer_text, results_table

    results = trained.results
    layers = layer_text(best_of(results), trained.config.input)[1:]
    print("\n\n".join([results_table(results), *difference(results, part), *layers]))


def _probe(
    model: str,
    files: tuple[str, str | None, str | None],
    out: Path | None,
    settings: tuple[str, ...],
    given: list[str],
    *,
    force: bool,
    dry_run: bool,
) -> None:
    """What `train probes` does; `given`: options that it does not know, and refuses."""
    from polyseme import api
    from polyseme.tasks.probes import probe_settings

    if given:
        raise UsageError(f"train probes knows no {given[0]}. Leave it out.")
    if dry_run:
        _print_counts("tagging", model, None, probe_settings(settings), files)
        return
    if out is None:
        raise UsageError(NEEDS_OUT)
    train, dev, test = files
    with _TaskProgress() as show:
        found = api.probe(
            model, train=train, dev=dev, test=test, out=out, settings=settings, force=force, watch=show.step
        )
    print(found.table())


def predict(
    folder: Annotated[Path, typer.Argument(metavar="TASK", help="A folder that train wrote.")],
    text: Annotated[str, typer.Argument(metavar="FILE", help="Examples; their answers may be missing.")],
    format: Annotated[str, typer.Option(help="jsonl, or columns for tagging.")] = "jsonl",  # noqa: A002
    raw: Annotated[
        bool, typer.Option("--raw", help="FILE is plain text, a line each; of pairs, two with a tab between.")
    ] = False,
    model: Elsewhere = None,
    static: StaticElsewhere = None,
) -> None:
    """Answer the examples of a file, a line each."""
    from polyseme import api, load_task
    from polyseme.io.progress import ProgressEvent, open_progress

    if format not in ("jsonl", "columns"):
        raise UsageError(f"--format {format}: expected jsonl or columns.")
    found = load_task(folder, model, static=static)
    if format == "columns" and found.config.task != "tagging":
        raise UsageError("--format columns is for tagging. Leave it out.")
    chosen: Any = format  # checked above
    if sys.stdout.isatty():  # the answers themselves show how far it is
        for line in api.predict(found, text, format=chosen, raw=raw):
            print(line)
        return
    with open_progress(True) as on_progress:

        def watch(done: int, total: int) -> None:
            on_progress(ProgressEvent("answering", done, total))

        for line in api.predict(found, text, format=chosen, raw=raw, watch=watch):
            print(line)


def print_scores(folder: str, text: str, model: str | None, static: str | None, *, as_json: bool) -> None:
    """What `evaluate` prints for a task folder."""
    from polyseme import load_task
    from polyseme.io.progress import ProgressEvent, open_progress
    from polyseme.tasks.report import label_table

    found = load_task(folder, model, static=static)
    examples = found.read(text)
    with open_progress(True) as on_progress:
        scores = found.judge(
            examples, lambda done: on_progress(ProgressEvent("answering", done, len(examples)))
        )
    if as_json:
        print(json.dumps(scores.as_dict(), ensure_ascii=False, indent=2))
        return
    for name, value in scores.figures.items():
        print(f"{name}\t{value:.4f}")
    if scores.rows:
        print("\n" + label_table(scores))


def _shares(text: str | None) -> list[float]:
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
    config: str | None,
    settings: tuple[str, ...],
    files: tuple[str, str | None, str | None],
    curve: Sequence[float] = (),
) -> None:
    """What `--dry-run` prints: all files are read and checked."""
    from polyseme import load
    from polyseme.tasks.experiment import Experiment, prepare

    plan = Experiment(task, config, settings, curve=curve)
    plan.cells(0)  # refuses shares that are none
    _, data, segment = prepare(plan, load(model), *files)
    print(f"texts are cut as {segment}")
    for part, found in data.counts().items():
        labels = ", ".join(f"{label} {count:,}" for label, count in list(found["labels"].items())[:20])
        print(f"{part}: {found['examples']:,} examples, {found['tokens']:,} tokens; {labels or 'no labels'}")


class _TaskProgress:
    """A line for each epoch, and how far it is on the way."""

    def __init__(self) -> None:
        from polyseme.io.progress import ProgressDisplay, ProgressEvent

        self._bar, self._event = ProgressDisplay(), ProgressEvent

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)

    def step(self, name: str, position: Position, figures: Metrics) -> None:
        """A step or a validation is done, or some vectors are."""
        if "loss" in figures or name == "vectors":
            loss = f"loss {figures['loss']:.3f}" if "loss" in figures else ""
            self._bar(self._event(name, figures["done"], 1.0, loss))
            return
        known = [f"{key} {value:.4f}" for key, value in figures.items() if key not in ("score", "done")]
        self._bar(self._event(name, message=f"{name}: epoch {position.epoch}: {', '.join(known)}"))
