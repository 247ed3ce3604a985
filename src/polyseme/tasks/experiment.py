"""Train a task: one run, or many seeds and sizes, with and without ELMo.

    tasks.task_model, tasks.trainable, training.loop  ->  tasks.experiment  ->  tasks.report, api

A run is one training: with or without ELMo, on a share of the training examples, with a seed. Each has a
folder in OUT/runs; `resume` does not repeat finished runs.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.formats.tensors import write_tensors
from polyseme.io.atomic import new_file
from polyseme.io.checked import read_json
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.tasks.data.sources import Data, open_source
from polyseme.tasks.examples import (
    Segmenter,
    Tokens,
    count_tokens,
    drop_empty,
    hash_examples,
    hold_out,
    sample_examples,
)
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader
from polyseme.tasks.protocol import AnyTask, Example
from polyseme.tasks.run_folder import RUNS, VECTORS, check_resumable, create_folder
from polyseme.tasks.settings import TaskSettings, read_task_settings, replace_in
from polyseme.tasks.significance import score_resamples
from polyseme.tasks.table import find_task
from polyseme.tasks.task_folder import NEEDS_PATH, ElmoSource, find_tuned_prefix, restore_weights
from polyseme.tasks.task_model import TaskModel, check_layer, make_store
from polyseme.tasks.tfidf import NAME as TFIDF
from polyseme.tasks.tfidf import train_baseline
from polyseme.tasks.trainable import TaskTrainable, as_module
from polyseme.tasks.vector_store import VectorStore
from polyseme.text.fingerprint import checksum, digest
from polyseme.text.static_vectors import read_vectors
from polyseme.text.validate import check_path
from polyseme.training.checkpoint import Position, collect_weights
from polyseme.training.devices import choose_device
from polyseme.training.loop import CHECKPOINTS, METRICS, Loop, Metrics, StoppedError, read_metrics

RESULT, WEIGHTS = "result.json", "weights.safetensors"
COMPARED_RUNS = 3  # seeds of a comparison


@dataclass(frozen=True)
class Run:
    """One training."""

    elmo: bool
    share: float  # of the training examples
    seed: int

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{'with' if self.elmo else 'without'}-{self.share:.6g}-{self.seed}"

    @property
    def title(self) -> str:
        """What progress calls it."""
        examples = "" if self.share == 1 else f", {self.share * 100:g}% of the examples"
        return f"{'with' if self.elmo else 'without'} ELMo{examples}, seed {self.seed}"


@dataclass(frozen=True)
class RunResult:
    """The result of a run."""

    run: Run
    examples: int
    dev: dict[str, float]  # metrics
    test: dict[str, float]  # empty if there is no test set
    main: str  # the metric that training maximises
    epochs: int
    seconds: float
    shares: list[Any] = field(default_factory=list)  # of the layers, for each mix
    gammas: list[float] = field(default_factory=list)
    converged: bool = False  # training stopped because dev did not improve, not because its epochs ended
    validations: list[list[float]] = field(default_factory=list)  # epoch and main metric on dev
    resampled: list[float] = field(default_factory=list)  # main metric on draws of the final set


@dataclass(frozen=True)
class TaskData:
    """The examples of an experiment; `test` is None if there is no test set."""

    train: list[Example]
    dev: list[Example]
    test: list[Example] | None

    @property
    def sets(self) -> dict[str, list[Example]]:
        """The sets by name."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: examples for name, examples in named.items() if examples is not None}

    @property
    def final(self) -> tuple[str, list[Example]]:
        """The set that the report is about: test, or dev if there is none."""
        return ("test", self.test) if self.test is not None else ("dev", self.dev)

    def sentences(self) -> list[Tokens]:
        """The sentences of all sets."""
        return [s for examples in self.sets.values() for example in examples for s in example.sentences]


@dataclass(frozen=True)
class SetCounts:
    """What a set holds: examples, tokens, and how often each label occurs."""

    examples: int
    tokens: int
    labels: dict[str, int]


def count_sets(task: AnyTask, data: TaskData) -> dict[str, SetCounts]:
    """Count the examples, tokens and labels of each set."""
    counts = {}
    for name, examples in data.sets.items():
        labels: Counter[str] = Counter()
        for example in examples:
            labels.update(task.count_labels(example))
        counts[name] = SetCounts(len(examples), count_tokens(examples), dict(labels.most_common()))
    return counts


@dataclass(frozen=True)
class TrainedTask:
    """The best model of the whole training set, and the results of all runs."""

    model: TaskModel
    results: list[RunResult]
    data: TaskData
    out: Path | None
    scores: Scores | None = None  # of the model on test, or dev; None without `out`

    @property
    def best(self) -> RunResult:
        """The result of the model."""
        return choose_best(self.results)


def choose_best(results: Sequence[RunResult]) -> RunResult:
    """The best result on dev of the runs on all examples, with ELMo if there are any."""
    elmo = any(result.run.elmo for result in results)
    full = [r for r in results if r.run.elmo == elmo and r.run.share == 1.0]
    return max(full, key=lambda result: result.dev[result.main])


@dataclass(frozen=True)
class Experiment:
    """What to train."""

    task: str | type[AnyTask]
    config: str | None = None  # a preset or a .toml file
    settings: Sequence[str] = ()
    runs: int | None = None  # seeds; None: three to compare, else one
    curve: Sequence[float] = ()  # shares of the training examples
    compare: bool = False  # also without ELMo, and TF-IDF with logistic regression
    without_elmo: bool = False  # only without ELMo

    def list_runs(self, seed: int) -> list[Run]:
        """All runs, those on all examples first."""
        runs = (COMPARED_RUNS if self.compare else 1) if self.runs is None else self.runs
        if runs < 1:
            raise UsageError(f"runs is {runs}, expected 1 or more.")
        for share in self.curve:
            if not 0 < share <= 1:
                raise UsageError(
                    f"A share of the curve is {share:g}, expected more than 0 and at most 1 (100%)."
                )
        shares = sorted({1.0, *self.curve}, reverse=True)
        kinds = [False] if self.without_elmo else [True, False] if self.compare or self.curve else [True]
        seeds = range(seed, seed + runs)
        return [Run(elmo, share, number) for share in shares for elmo in kinds for number in seeds]

    def make_task(self) -> AnyTask:
        """The task with its settings; it has not seen examples yet."""
        task = find_task(self.task)
        return task(read_task_settings(task.name, task.settings_type, self.config, self.settings))


Files = tuple[Data, Data | None, Data | None]  # training, dev, test


def prepare(experiment: Experiment, elmo: Elmo, files: Files) -> tuple[AnyTask, TaskData, str]:
    """Read and check everything that training needs.

    Returns:
        The task with its labels, the examples, and the segmentation of raw text.

    """
    task = _check_settings(experiment.make_task(), experiment, elmo)
    experiment.list_runs(0)  # checks shares and seeds
    train, dev, test = (
        None if data is None else open_source(data, name)
        for data, name in zip(files, ("train", "dev", "test"), strict=True)
    )
    segmenter = Segmenter(task.settings.data.segment or elmo.config.segment, elmo.word_list)
    examples = _read(task, train, segmenter)
    if len(examples) < 2:
        raise DataError(f"{train}: examples to learn from: {len(examples)}, expected at least 2.")
    held_out: list[Example] = []
    if dev is None:
        settings = task.settings
        labels = partial(_list_labels, task)
        examples, held_out = hold_out(examples, labels, settings.data.dev_share, settings.train.seed)
    task = task.learn(examples)
    if dev is not None:
        held_out = _read_checked(task, dev, segmenter)
    tested = None if test is None else _read_checked(task, test, segmenter)
    return task, TaskData(examples, held_out, tested), task.settings.data.segment or elmo.config.segment


def _check_settings(task: AnyTask, experiment: Experiment, elmo: Elmo) -> AnyTask:
    """The task with the absolute path of static vectors; settings that cannot work are refused early."""
    settings = task.settings
    check_layer(settings.input, elmo)
    choose_device(settings.train.device)
    if settings.input.elmo == "none" and experiment.compare:
        raise UsageError(
            "input.elmo is none: there is no ELMo to compare with. Leave out that setting, or `compare`."
        )
    if not settings.input.static:
        return task
    static = str(Path(settings.input.static).expanduser().absolute())
    read_vectors(static, only=(), limit=1)  # fails here, before any training
    return type(task)(replace_in(settings, "input", static=static), task.learned)


def _read(task: AnyTask, source: Any, segmenter: Segmenter) -> list[Example]:
    return drop_empty(task.read(source, segmenter), str(source), task.settings.data.empty)


def _read_checked(task: AnyTask, source: Any, segmenter: Segmenter) -> list[Example]:
    """The examples of a dev or test set, whose labels must be in the training data."""
    examples = _read(task, source, segmenter)
    if not examples:
        raise DataError(f"{source}: no examples in it.")
    task.check(examples)
    return examples


def _list_labels(task: AnyTask, example: Example) -> set[str]:
    return set(task.count_labels(example))


def train(
    experiment: Experiment,
    model: Elmo | str | Path,
    files: Files,
    out: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    copy: bool = True,
    vectors: str | Path | None = None,
    on_trained: Callable[[TrainedTask, Path], object] | None = None,
    progress: OnProgress = ignore_progress,
) -> TrainedTask:
    """Train all runs of an experiment; the best model is written to `out`, if that is not None.

    `on_trained` may add files to `out`, while no other process may write it.
    """
    elmo = ensure_loaded(model)
    source = ElmoSource(elmo, elmo.path)
    task, data, segment = prepare(experiment, elmo, files)
    settings = task.settings
    experiment = replace(experiment, without_elmo=experiment.without_elmo or settings.input.elmo == "none")
    needs_path = not (copy or experiment.without_elmo or settings.input.tune == "full")
    if out is not None and needs_path and not source.path:
        raise UsageError(NEEDS_PATH)
    with ExitStack() as stack:
        plan = _make_plan(experiment, settings, data, elmo) if out is not None else {}
        folder = _open_folder(out, stack, plan, resume=resume, force=force)
        vector_folder = Path(vectors).expanduser() if vectors is not None else folder / VECTORS
        runner = _ExperimentRunner(task, data, source, segment, folder, vector_folder, progress)
        runs = experiment.list_runs(settings.train.seed)
        try:
            results = [runner.run(run, resample=experiment.compare and run.share == 1.0) for run in runs]
        except StoppedError:
            if out is not None:
                raise
            raise StoppedError("Training was stopped. Nothing was saved: it had no `out`.") from None
        best = choose_best(results)
        trained = runner.make_model(best.run)
        restore_weights(trained.network, folder / RUNS / best.run.name / WEIGHTS)
        as_module(trained.network).to(trained.device).eval()
        trained.results = results
        if experiment.compare or experiment.curve:
            progress(ProgressEvent(TFIDF, 0, None))
            trained.baseline = train_baseline(task, data.train, data.dev, data.test)
        trained.scores = {"main": best.main, "dev": best.dev, "test": best.test}
        scores = None
        if out is not None:
            trained.write_into(folder, copy=copy)
            scores = trained.score_examples(data.final[1])
        runner.close(remove=vectors is None)
        result = TrainedTask(trained, results, data, folder if out is not None else None, scores)
        if out is not None and on_trained is not None:
            on_trained(result, folder)
        return result


def _open_folder(
    out: str | Path | None, stack: ExitStack, plan: dict[str, str], *, resume: bool, force: bool
) -> Path:
    """The folder to work in: `out`, or a temporary one."""
    if out is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="polyseme-")))
    folder = Path(check_path(out, "out")).expanduser()
    stack.enter_context(lock_output(folder))
    if resume:
        check_resumable(folder, plan)
    else:
        create_folder(folder, plan, force=force)
    return folder


def _make_plan(experiment: Experiment, settings: TaskSettings, data: TaskData, elmo: Elmo) -> dict[str, str]:
    """Hashes for plan.json: `resume` refuses a different experiment."""
    static = settings.input.static
    return {
        "settings": digest(settings.model_dump(mode="json")),
        "examples": hash_examples(data.sets.values()),
        "sizes or seeds": digest([asdict(run) for run in experiment.list_runs(0)]),
        "model": "" if experiment.without_elmo else elmo.model.fingerprint(),
        "static vectors": checksum(Path(static)) if static else "",
    }


_RESULTS = TypeAdapter(RunResult)


def _read_result(path: Path) -> RunResult | None:
    """The result of a finished run; None if it is not finished."""
    try:
        result = _RESULTS.validate_python(read_json(path))
    except (FormatError, ValueError):
        return None
    metrics = [result.dev, *([result.test] if result.test else [])]
    is_complete = all(math.isfinite(values.get(result.main, math.nan)) for values in metrics)
    return result if is_complete else None


def _read_validations(path: Path, main: str, examples: int) -> list[list[float]]:
    """The epoch and the main metric of each validation, from metrics.jsonl."""
    chosen = [line for line in read_metrics(path) if line.get("event") == "validation"]
    return [[round(line["tokens"] / examples, 2), line[main]] for line in chosen]


class _ExperimentRunner:
    """The runs of one experiment, which share examples and stored vectors."""

    def __init__(
        self,
        task: AnyTask,
        data: TaskData,
        source: ElmoSource,
        segment: str,
        folder: Path,
        vectors: Path,
        progress: OnProgress,
    ) -> None:
        self._task, self._data, self._source = task, data, source
        self._segment, self._folder, self._vectors, self._progress = segment, folder, vectors, progress
        self._device = choose_device(task.settings.train.device)
        self._store: VectorStore | None = None

    def make_model(self, run: Run) -> TaskModel:
        """An untrained model for a run, with the words of its examples."""
        settings = self._task.settings if run.elmo else self._task.settings.without_elmo()
        settings = replace_in(settings, "train", seed=run.seed)
        task = type(self._task)(settings, self._task.learned)
        examples = self._sample_examples(run)
        source = self._source if settings.input.elmo != "none" else ElmoSource(None)
        store = self._get_store(settings) if source.elmo is not None else None
        sentences: Iterable[Tokens] = (s for example in examples for s in example.sentences)
        reader = TokenReader.learn(settings.input, sentences, store)
        reader.load_static(self._data.sentences())
        torch.manual_seed(settings.train.seed)
        network = task.build_network(Featurizer(reader, source.elmo), examples)
        return TaskModel(task, network, source, self._device, self._segment)

    def _sample_examples(self, run: Run) -> list[Example]:
        train = self._data.train
        return train if run.share == 1.0 else sample_examples(train, run.share, run.seed)

    def _get_store(self, settings: TaskSettings) -> VectorStore | None:
        """The vectors of all sentences, which all runs with ELMo share."""
        if self._store is None:
            self._store = make_store(settings.input, self._source.elmo)
        return self._store

    def run(self, run: Run, *, resample: bool = False) -> RunResult:
        """Train a run, or read its result if it is finished; `resample` scores it on draws of examples."""
        folder = self._folder / RUNS / run.name
        finished = _read_result(folder / RESULT)
        if finished is not None:
            return finished
        folder.mkdir(parents=True, exist_ok=True)
        model = self.make_model(run)
        result = self._train(run, model, self._sample_examples(run), folder)
        if resample:
            _, examples = self._data.final
            predictions = model.predict_examples(examples)
            result = replace(result, resampled=score_resamples(model.task, examples, predictions))
        shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
        with new_file(folder / RESULT, force=True) as new:
            new.write_text(json.dumps(asdict(result), indent=1) + "\n", encoding="utf-8")
        return result

    def _train(self, run: Run, model: TaskModel, examples: list[Example], folder: Path) -> RunResult:
        settings, network = model.settings.train, model.network
        store = model.featurizer.reader.store
        if store is not None:
            store.add(self._data.sentences(), self._vectors, self._progress)
        work = TaskTrainable(model.task, network, examples, self._data.dev, self._device)
        total = round(settings.epochs * len(examples) / run.share**0.5)  # few examples: more epochs
        loop = Loop(
            work,
            settings.for_loop(),
            folder,
            total,
            on_metrics=partial(self._report, run.title, total),
            rate_shares={find_tuned_prefix(network): settings.elmo_rate / settings.rate},
        )
        if not loop.resume():
            (folder / METRICS).unlink(missing_ok=True)
        loop.run()
        with new_file(folder / WEIGHTS, force=True) as new:
            write_tensors(new, collect_weights(as_module(network)))
        as_module(network).eval()
        dev = work.scores  # the last validation of the loop uses the best weights
        test = {} if self._data.test is None else model.score_examples(self._data.test).metrics
        return RunResult(
            run,
            len(examples),
            dev.metrics,
            test,
            dev.main,
            loop.position.epoch,
            loop.position.seconds,
            [mix.shares for mix in model.mixes],
            [float(mix.gamma.detach()) for mix in model.mixes],
            loop.is_out_of_patience,
            _read_validations(folder / METRICS, dev.main, len(examples)),
        )

    def _report(self, title: str, total: int, position: Position, metrics: Metrics) -> None:
        """Turn what the loop reports into progress events: steps move the bar, validations are lines."""
        if "loss" in metrics:
            detail = f"loss {metrics['loss']:.3f}"
            self._progress(ProgressEvent(title, position.tokens, total, detail))
            return
        shown = ", ".join(f"{key} {value:.4f}" for key, value in metrics.items() if key != "score")
        message = f"{title}: epoch {position.epoch}: {shown}"
        self._progress(ProgressEvent(title, position.tokens, total, message=message))

    def close(self, *, remove: bool) -> None:
        """Close the stored vectors; remove them unless the user wants to keep them."""
        if self._store is not None:
            self._store.close()
        if remove:
            shutil.rmtree(self._vectors, ignore_errors=True)
