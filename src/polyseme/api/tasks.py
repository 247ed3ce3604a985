"""Verbs about tasks: train, predict, probe.

tasks  ->  api.tasks  ->  api
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.tasks.experiment import Experiment, Watch
from polyseme.tasks.experiment import train as train_cells
from polyseme.tasks.probes import Probes
from polyseme.tasks.probes import probe as probe_layers
from polyseme.tasks.protocol import Answer
from polyseme.tasks.report import write_report
from polyseme.tasks.task_model import TaskModel, load_task


def train(
    task: str,
    model: Elmo | str | Path,
    *,
    train: str | Path,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    out: str | Path | None = None,
    config: str | None = None,
    settings: Sequence[str] = (),
    runs: int = 1,
    curve: Sequence[float] = (),
    compare: bool = False,
    without_elmo: bool = False,
    resume: bool = False,
    force: bool = False,
    copy: bool = True,
    vectors: str | Path | None = None,
    watch: Watch | None = None,
) -> TaskModel:
    """Train a task model on files of examples: classification, tagging, pairs or relations.

    model: the ELMo, loaded or as a path. dev: what the best epoch is chosen by, a part of `train` if left
    out. out: a folder for the model, report.md and pictures. config: a preset or a .toml file; settings:
    overrides such as "train.seed=7". runs: seeds, for a mean and a deviation. compare: the same model without
    ELMo, too; without_elmo: only that. curve: shares of the examples, such as 0.1, with and without ELMo.
    resume: go on with what was interrupted. copy: whether the folder gets ELMo and static vectors, or only
    their paths. vectors: a folder where the vectors of a frozen ELMo are kept for other calls.
    The model that is given is the best of those with ELMo on all examples; its `results` are those of all.
    """
    if task == "probes":
        raise UsageError("Probes give a table, not a model: call polyseme.probe(model, train=…).")
    plan = Experiment(task, config, settings, runs, curve, compare, without_elmo)
    trained = train_cells(
        plan,
        model,
        (train, dev, test),
        out,
        resume=resume,
        force=force,
        copy=copy,
        vectors=vectors,
        watch=watch,
    )
    if trained.out is not None:
        write_report(trained, trained.out)
    return trained.model


def probe(
    model: Elmo | str | Path,
    *,
    train: str | Path,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    force: bool = False,
    watch: Watch | None = None,
) -> Probes:
    """What each layer knows of a column of tags: a linear probe for each, and for the mixture of all.

    Files and settings are as those of tagging; what would make a probe more than linear cannot be set.
    out: a folder for the table and a picture. `values` are the accuracies by layer, `baseline` is that of
    each word's most frequent tag.
    """
    return probe_layers(model, (train, dev, test), out, settings=settings, force=force, watch=watch)


def predict(
    model: TaskModel | str | Path,
    path: str | Path,
    *,
    raw: bool = False,
    format: Literal["jsonl", "columns"] = "jsonl",  # noqa: A002  # the word that people look for
    watch: Callable[[int, int], None] | None = None,
) -> Iterator[str]:
    """The answers to the examples of a file, as lines: JSON, or columns as CoNLL has them for tagging.

    The file is one as `train` reads it, whose answers may be missing; or, `raw`, plain text, a line each.
    watch: is told how many examples are answered, and how many there are.
    """
    found = model if isinstance(model, TaskModel) else load_task(model)
    examples = found.read_raw(path) if raw else found.read(path, gold=False)
    done = None if watch is None else partial(_tell, watch, len(examples))
    for answer in found.answers(examples, done):
        yield _columns(answer) if format == "columns" else json.dumps(answer.as_dict(), ensure_ascii=False)


def _tell(watch: Callable[[int, int], None], total: int, done: int) -> None:
    watch(done, total)


def _columns(answer: Answer) -> str:
    """A token and its tag a line, and an empty line behind the sentence."""
    lines = [f"{token}\t{tag}" for token, tag in zip(answer.tokens[0], answer.answer or (), strict=True)]
    return "\n".join([*lines, ""])
