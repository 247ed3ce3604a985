"""Verbs about tasks: train, probe, predict, evaluate.

tasks  ->  api.tasks  ->  api
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import UsageError
from polyseme.io.progress import OnProgress, ProgressOption, ignore_progress, open_progress
from polyseme.tasks.data.sources import Data, name_encoding
from polyseme.tasks.experiment import Experiment, Files, SetCounts, count_sets, prepare
from polyseme.tasks.experiment import train as train_experiment
from polyseme.tasks.metrics import Scores
from polyseme.tasks.probes.probes import Probes, make_probe
from polyseme.tasks.probes.probes import probe as probe_layers
from polyseme.tasks.protocol import AnyTask, Example, Prediction
from polyseme.tasks.report import write_report
from polyseme.tasks.task_model import CHUNK_TOKENS, TaskModel, load_task

NO_TEXT: dict[str, Any] = {"tokens": []}  # the values of an example without text
PROBES = "probes"  # trained as a task, but not a model


def train(
    task: str | type[AnyTask],
    model: Elmo | str | Path,
    *,
    train: Data,
    dev: Data | None = None,
    test: Data | None = None,
    out: str | Path | None = None,
    config: str | None = None,
    settings: Sequence[str] = (),
    runs: int | None = None,
    curve: Sequence[float] = (),
    compare: bool = False,
    without_elmo: bool = False,
    resume: bool = False,
    force: bool = False,
    copy: bool = True,
    vectors: str | Path | None = None,
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> TaskModel:
    """Train a task model.

    Args:
        task: "classification", "tagging", "pairs", "relations", "roles", "coref", "answers", "translate" or
            "summarise"; or a class that follows `polyseme.tasks.protocol.Task`.
        model: The ELMo, loaded or as a path.
        train: Training examples: a path, a DataFrame of pandas or polars (columns by the settings `data.*`),
            or an iterable of (text, label), (tokens, tags) or (text, text, label), as the task has it.
        dev: Validation examples, which choose the best epoch; by default a part of `train`.
        test: Examples to evaluate the model on.
        out: A folder for the model, report.md and plots.
        config: A preset or a .toml file; None is the preset of the task.
        settings: Overrides such as "train.seed=7".
        runs: The number of seeds, for mean and standard deviation; None is 3 with `compare`, else 1.
        curve: Shares of the training examples, such as 0.1, each with and without ELMo.
        compare: Also train the same network without ELMo, and TF-IDF with logistic regression if an example
            has one label; the report says how certain the difference is, and which model to use.
        without_elmo: Train only the network without ELMo.
        resume: Continue the interrupted training in `out`.
        force: Replace an earlier training in `out`.
        copy: Copy ELMo and static vectors into `out`, instead of storing their paths.
        vectors: A folder that caches the vectors of a frozen ELMo for later calls.
        encoding: The encoding of the files; "auto" detects it for each.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The best model with ELMo on all examples; its `results` are those of all runs.

    Raises:
        DataError: If examples cannot be read; the message begins with `file:line`.
        ConfigError: If a setting is wrong.
        UsageError: If arguments do not fit.

    Example:
        >>> tagger = polyseme.train("tagging", "en", train="train.conll", dev="dev.conll")
        >>> rows = [("great film", "pos"), ("dull", "neg"), …]
        >>> classifier = polyseme.train("classification", elmo, train=rows)

    """
    if task == PROBES:
        raise UsageError("Probes give a table, not a model: call `polyseme.probe(model, train=…)`.")
    experiment = Experiment(task, config, settings, runs, curve, compare, without_elmo)
    with open_progress(progress) as on_progress:
        trained = train_experiment(
            experiment,
            model,
            _name_encodings((train, dev, test), encoding),
            out,
            resume=resume,
            force=force,
            copy=copy,
            vectors=vectors,
            on_trained=write_report,
            progress=on_progress,
        )
    return trained.model


@dataclass(frozen=True)
class DataCounts:
    """Result of `count_examples`: how raw text is segmented, and the counts of each set."""

    segment: str
    sets: dict[str, SetCounts]


def count_examples(
    task: str,
    model: Elmo | str | Path,
    *,
    train: Data,
    dev: Data | None = None,
    test: Data | None = None,
    config: str | None = None,
    settings: Sequence[str] = (),
    curve: Sequence[float] = (),
    encoding: str = "auto",
) -> DataCounts:
    """Read and check everything that `train` needs, without training.

    Args:
        task: As for `train`; also "probes".
        model: The ELMo, loaded or as a path.
        train: As for `train`.
        dev: As for `train`.
        test: As for `train`.
        config: As for `train`.
        settings: As for `train`.
        curve: As for `train`.
        encoding: As for `train`.

    Returns:
        Examples, tokens and labels of each set.

    """
    experiment = make_probe(settings) if task == PROBES else Experiment(task, config, settings, curve=curve)
    elmo = ensure_loaded(model)
    prepared, data, segment = prepare(experiment, elmo, _name_encodings((train, dev, test), encoding))
    return DataCounts(segment, count_sets(prepared, data))


def probe(
    model: Elmo | str | Path,
    *,
    train: Data,
    dev: Data | None = None,
    test: Data | None = None,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    force: bool = False,
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> Probes:
    """Train a linear classifier of tags on each layer, and on the mix of all layers.

    Args:
        model: The ELMo, loaded or as a path.
        train: Tagged examples, as `polyseme.train("tagging", …)` takes them.
        dev: Validation examples, which choose the best epoch; by default a part of `train`.
        test: Examples to evaluate on.
        out: A folder for the table and a plot.
        settings: Overrides of `data.*` and `train.*`; those that make a probe nonlinear are refused.
        force: Replace what is in `out`.
        encoding: As for `train`.
        progress: As for `train`.

    Returns:
        `values`, the accuracy by layer, and `baseline`, that of the most frequent tag of each word.

    Raises:
        DataError: If examples cannot be read; the message begins with `file:line`.
        ConfigError: If a setting is wrong.
        UsageError: If `out` exists, or a setting would make a probe nonlinear.

    Example:
        >>> probes = polyseme.probe("en", train="train.conll", test="test.conll")
        >>> print(probes.table())

    """
    with open_progress(progress) as on_progress:
        return probe_layers(
            model,
            _name_encodings((train, dev, test), encoding),
            out,
            settings=settings,
            force=force,
            progress=on_progress,
        )


@dataclass(frozen=True, eq=False)
class PredictionPlan:
    """The examples to predict, read and checked.

    Attributes:
        model: The task model.
        examples: In the order of the data.

    """

    model: TaskModel
    examples: list[Example]

    def run(
        self, progress: OnProgress = ignore_progress, *, chunk_tokens: int = CHUNK_TOKENS
    ) -> Iterator[Prediction | None]:
        """Yield a prediction per example; None for an example without text.

        Args:
            progress: Receives a `ProgressEvent` after each chunk; an exception that it raises ends the work.
            chunk_tokens: Tokens of a chunk.

        """
        return self.model.iterate_predictions(self.examples, progress, chunk_tokens=chunk_tokens)


def plan_prediction(
    model: TaskModel | str | Path,
    data: Data,
    *,
    plain_text: bool = False,
    elmo: Elmo | str | Path | None = None,
    static: str | Path | None = None,
    encoding: str = "auto",
) -> PredictionPlan:
    """Read and check what `predict` predicts, without predicting.

    A server checks the lengths of the examples before it runs the plan.

    Args:
        model: As in `predict`.
        data: As in `predict`.
        plain_text: As in `predict`.
        elmo: As in `predict`.
        static: As in `predict`.
        encoding: As in `predict`.

    Returns:
        The examples, and `run`, which predicts.

    Raises:
        DataError: As in `predict`.

    """
    loaded = model if isinstance(model, TaskModel) else load_task(model, elmo, static=static)
    named = name_encoding(data, encoding)
    if not plain_text:
        examples = loaded.read(named, labelled=False)
    elif isinstance(named, str | Path):
        examples = loaded.read_plain_text(named)
    else:
        examples = loaded.parse_all(named)
    return PredictionPlan(loaded, examples)


def predict(
    model: TaskModel | str | Path,
    data: Data,
    *,
    question: str | Sequence[str] | None = None,
    plain_text: bool = False,
    format: str = "jsonl",  # noqa: A002  # as the option is named
    elmo: Elmo | str | Path | None = None,
    static: str | Path | None = None,
    encoding: str = "auto",
    progress: ProgressOption = None,
) -> Iterator[str]:
    """Predict for the examples of a file or a list, as lines of text.

    `TaskModel.predict` takes texts and returns objects.

    Args:
        model: A task model, or its folder.
        data: Examples as `train` takes them; their labels may be missing.
        question: For answers: one question, or several, about `data`, which is then a text file (also HTML
            or EPUB) or a folder of them. The best passages are found first, then read.
        plain_text: Whether `data` has only texts: a file with one example per line (for pairs, two texts
            separated by a tab), or an iterable of texts (for pairs, of tuples).
        format: "jsonl"; or "columns" for tagging, "frames" for roles, "characters" or "html" for coref,
            "text" or "html" for answers.
        elmo: The ELMo of the folder, if it has moved.
        static: The static vectors of the folder, if they have moved.
        encoding: The encoding of a file; "auto" detects it.
        progress: As for `train`.

    Yields:
        A prediction per example, as JSON or in columns; a blank line of a file has an empty prediction.

    Raises:
        UsageError: If the task has no such format.
        DataError: If the examples cannot be read, or a text of an iterable is empty.

    Example:
        >>> for line in polyseme.predict("models/reviews", ["great film", "dull"], plain_text=True):
        ...     print(line)

    """
    loaded = model if isinstance(model, TaskModel) else load_task(model, elmo, static=static)
    task = loaded.task
    if format not in task.output_formats:
        raise UsageError(
            f"{task.name} has no format {format!r}: choose {' or '.join(task.output_formats)} as `format`."
        )
    with open_progress(progress) as on_progress:
        if question is None:
            plan = plan_prediction(loaded, data, plain_text=plain_text, encoding=encoding)
            predictions = plan.run(on_progress)
        else:
            named = name_encoding(data, encoding)
            if plain_text or not isinstance(named, str | Path):
                raise UsageError("`question` is about a file or folder of text: leave out `plain_text`.")
            asked = [question] if isinstance(question, str) else list(question)
            predictions = iter(loaded.ask(asked, named, on_progress))
        for prediction in predictions:
            if format == "jsonl":
                yield json.dumps(describe_prediction(prediction), ensure_ascii=False)
            else:
                yield "" if prediction is None else task.format(prediction, format)


def describe_prediction(prediction: Prediction | None) -> dict[str, Any]:
    """A prediction as values for JSON; an example without text has no tokens."""
    return NO_TEXT if prediction is None else prediction.as_dict()


def _name_encodings(files: Files, encoding: str) -> Files:
    train, dev, test = files
    return (
        name_encoding(train, encoding),
        None if dev is None else name_encoding(dev, encoding),
        None if test is None else name_encoding(test, encoding),
    )


def evaluate_task(
    model: TaskModel | str | Path, data: Data, *, encoding: str = "auto", progress: ProgressOption = None
) -> Scores:
    """Score a task model on labelled examples.

    Args:
        model: A task model, or its folder.
        data: Examples as `train` takes them.
        encoding: The encoding of a file; "auto" detects it.
        progress: As for `train`.

    """
    loaded = model if isinstance(model, TaskModel) else load_task(model)
    with open_progress(progress) as on_progress:
        return loaded.score_examples(loaded.read(name_encoding(data, encoding)), on_progress)
