"""Files and an ELMo to a trained task: one run, or many seeds, sizes, with and without ELMo.

    tasks.task_model, tasks.trainable, training.loop  ->  tasks.experiment  ->  tasks.report, api

A cell is one training: with or without ELMo, a share of the training examples, a seed. Each has a folder
below OUT/runs; what is finished is not done again when the same call goes on with `resume`.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from polyseme.elmo import Elmo, load
from polyseme.errors import DataError, UsageError
from polyseme.io.atomic import new_file
from polyseme.tasks import run_folder as folders
from polyseme.tasks.data.tag_schemes import spans_of
from polyseme.tasks.examples import Example, Tokens, cutter, part, split
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader, absolute_path
from polyseme.tasks.run_folder import RUNS, VECTORS
from polyseme.tasks.settings import TaskConfig, read_task_config
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.task_model import NO_PATH, TASKS, TaskModel, Where, check_layer, make_stored, restore
from polyseme.tasks.trainable import TaskTrainable
from polyseme.tasks.vector_store import VectorStore
from polyseme.text.fingerprint import checksum, digest
from polyseme.text.static_vectors import read_vectors
from polyseme.training.checkpoint import Position, weights_of
from polyseme.training.devices import choose_device
from polyseme.training.loop import CHECKPOINTS, METRICS, Loop, Metrics

RESULT, WEIGHTS = "result.json", "weights.safetensors"
Watch = Callable[[str, Position, Metrics], None]  # of a cell, or of "vectors": with the share that is "done"


@dataclass(frozen=True)
class Run:
    """One training."""

    elmo: bool
    share: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{'with' if self.elmo else 'without'}-{self.share:.6g}-{self.seed}"


@dataclass(frozen=True)
class RunResult:
    """What one training found."""

    cell: Run
    examples: int
    dev: dict[str, float]
    test: dict[str, float]  # empty where there is no test file
    main: str  # the figure that counts
    epochs: int
    seconds: float
    shares: list[Any] = field(default_factory=list)  # of the layers, for each mixture
    gammas: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class TaskData:
    """The examples of a task."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]

    def sentences(self) -> list[Tokens]:
        """All sentences, of all files."""
        return [
            s for some in (self.train, self.dev, self.test) for example in some for s in example.sentences
        ]

    def counts(self) -> dict[str, Any]:
        """What is in the files, for `dry_run`: examples, tokens, and labels, or spans of each type."""
        found: dict[str, Any] = {}
        for name in ("train", "dev", "test"):
            examples: list[Example] = getattr(self, name)
            labels: Counter[str] = Counter()
            for example in examples:
                gold = example.gold
                if example.scheme != "none":
                    labels.update(span.label for span in spans_of(gold))
                elif isinstance(gold, str | tuple):
                    labels.update([gold] if isinstance(gold, str) else gold)
            tokens = sum(len(s) for example in examples for s in example.sentences)
            found[name] = {"examples": len(examples), "tokens": tokens, "labels": dict(labels.most_common())}
        return found


@dataclass(frozen=True)
class TrainedTask:
    """What `train` gives: the best model of the whole training set, and all results."""

    model: TaskModel
    results: list[RunResult]
    data: TaskData
    out: Path | None
    scores: Scores | None = None  # of the model on test, or dev, where there is a folder for a report

    @property
    def best(self) -> RunResult:
        """The result of the model that is kept."""
        return best_of(self.results)


def best_of(results: Sequence[RunResult]) -> RunResult:
    """The best on dev of the runs over all examples, with ELMo where there are such."""
    elmo = any(result.cell.elmo for result in results)
    full = [r for r in results if r.cell.elmo == elmo and r.cell.share == 1.0]
    return max(full, key=lambda result: result.dev[result.main])


@dataclass(frozen=True)
class Experiment:
    """What is to be trained, and how."""

    task: str
    config: str | None = None  # a preset or a .toml file
    settings: Sequence[str] = ()
    runs: int = 1  # seeds
    curve: Sequence[float] = ()  # shares of the training examples
    compare: bool = False  # without ELMo, too
    without_elmo: bool = False  # only without

    def cells(self, seed: int) -> list[Run]:
        """All trainings, the whole ones first."""
        if self.runs < 1:
            raise UsageError(f"runs is {self.runs}, expected 1 or more.")
        for share in self.curve:
            if not 0 < share <= 1:
                raise UsageError(
                    f"A share of the curve is {share:g}, expected more than 0 and at most 1 (100%)."
                )
        shares = sorted({1.0, *self.curve}, reverse=True)
        kinds = [False] if self.without_elmo else [True, False] if self.compare or self.curve else [True]
        seeds = range(seed, seed + self.runs)
        return [Run(elmo, share, number) for share in shares for elmo in kinds for number in seeds]


def prepare(
    plan: Experiment, elmo: Elmo, train: str | Path, dev: str | Path | None, test: str | Path | None
) -> tuple[TaskConfig, TaskData, str]:
    """Settings, examples and segmentation, all checked; labels and spans must fit the training file."""
    config = read_task_config(plan.task, plan.config, plan.settings)
    check_layer(config.input, elmo)
    if config.input.static:
        static = {"static": absolute_path(config.input.static)}
        config = config.model_copy(update={"input": config.input.model_copy(update=static)})
        read_vectors(str(config.input.static), only=(), limit=1)  # refused here, before any training
    choose_device(config.train.device)
    if config.input.elmo == "none" and plan.compare:
        raise UsageError(
            "input.elmo is none: there is no ELMo to compare with. Leave out that setting, or --compare."
        )
    task, cut = TASKS[plan.task], cutter(config.data.segment or elmo.config.segment)
    examples = task.read(str(train), config, cut)
    if len(examples) < 2:
        raise DataError(f"{train}: {len(examples)} examples. There is nothing to learn from.")
    if plan.task == "tagging":
        config = Tagging.settled(config, examples)
    held: list[Example] = []
    if dev is None:
        examples, held = split(examples, config.data.dev_share, config.train.seed)
    else:
        held = task.read(str(dev), config, cut)
    data = TaskData(examples, held, task.read(str(test), config, cut) if test is not None else [])
    known = task(config, task.learn(data.train, config))
    for some, path in ((data.dev, dev), (data.test, test)):
        if path is not None and not some:
            raise DataError(f"{path}: no examples in it.")
        known.check(some)
    return config, data, config.data.segment or elmo.config.segment


def train(
    plan: Experiment,
    model: Elmo | str | Path,
    files: tuple[str | Path, str | Path | None, str | Path | None],  # training, dev, test
    out: str | Path | None = None,
    *,
    resume: bool = False,
    force: bool = False,
    copy: bool = True,
    vectors: str | Path | None = None,
    watch: Watch | None = None,
) -> TrainedTask:
    """Train all cells of a plan; the best model is written to `out`, if that is given.

    vectors: a folder where the vectors of a frozen ELMo are kept for other calls, too.
    """
    elmo = model if isinstance(model, Elmo) else load(model)
    where = Where(elmo, None if isinstance(model, Elmo) else str(model))
    config, data, segment = prepare(plan, elmo, *files)
    plan = replace(plan, without_elmo=plan.without_elmo or config.input.elmo == "none")
    if out is not None and not (copy or where.path or plan.without_elmo or config.input.tune == "full"):
        raise UsageError(NO_PATH)
    with ExitStack() as stack:
        noted = _noted(plan, config, data, elmo) if out is not None else {}
        folder = _folder(out, stack, noted, resume=resume, force=force)
        kept = Path(vectors).expanduser() if vectors is not None else folder / VECTORS
        job = _ExperimentRunner(plan, config, data, where, segment, folder, kept, watch)
        results = [job.result(cell) for cell in plan.cells(config.train.seed)]
        chosen = best_of(results)
        found = job.model(chosen.cell)
        restore(found.network, folder / RUNS / chosen.cell.name / WEIGHTS)
        found.network.eval()
        found.results = results
        found.scores = {"main": chosen.main, "dev": chosen.dev, "test": chosen.test}
        scores = None
        if out is not None:
            found.write_into(folder, copy=copy)
            scores = found.judge(data.test or data.dev)
        job.close(remove=vectors is None)
        return TrainedTask(found, results, data, folder if out is not None else None, scores)


def _folder(
    out: str | Path | None, stack: ExitStack, plan: dict[str, str], *, resume: bool, force: bool
) -> Path:
    """The folder to work in; one that holds another plan is not gone on with."""
    if out is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="polyseme-")))
    folder = Path(out).expanduser()
    if resume:
        folders.go_on(folder, plan)
    else:
        folders.begin(folder, plan, force=force)
    return folder


def _noted(plan: Experiment, config: TaskConfig, data: TaskData, elmo: Elmo) -> dict[str, str]:
    """What plan.json keeps, so that a run goes on with the same only."""
    static = config.input.static
    return {
        "settings": digest(config.model_dump(mode="json")),
        "examples": folders.hash_examples((data.train, data.dev, data.test)),
        "sizes or seeds": digest([asdict(cell) for cell in plan.cells(0)]),
        "model": "" if plan.without_elmo else elmo.model.fingerprint(),
        "static vectors": checksum(Path(static)) if static else "",
    }


def _read_result(path: Path) -> RunResult | None:
    """What an earlier call found; None where that did not come to its end."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        return RunResult(**{**values, "cell": Run(**values["cell"])})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


class _ExperimentRunner:
    """The trainings of one call: they share examples and stored vectors."""

    def __init__(
        self,
        plan: Experiment,
        config: TaskConfig,
        data: TaskData,
        where: Where,
        segment: str,
        folder: Path,
        vectors: Path,
        watch: Watch | None,
    ) -> None:
        self._plan, self._config, self._data, self._where = plan, config, data, where
        self._segment, self._folder, self._vectors, self._watch = segment, folder, vectors, watch
        self._device = choose_device(config.train.device)
        self._stored: VectorStore | None = None

    def _config_of(self, cell: Run) -> TaskConfig:
        config = self._config if cell.elmo else self._config.without_elmo()
        return config.model_copy(update={"train": config.train.model_copy(update={"seed": cell.seed})})

    def model(self, cell: Run) -> TaskModel:
        """An untrained model for a cell, with the words of its examples."""
        config = self._config_of(cell)
        examples = self._examples(cell)
        where = self._where if config.input.elmo != "none" else Where(None)
        stored = self._stored_of(config) if where.elmo is not None else None
        sentences = (sentence for example in examples for sentence in example.sentences)
        reader = TokenReader.learn(config.input, sentences, stored)
        reader.need(self._data.sentences())
        task_type = TASKS[config.task]
        task = task_type(config, task_type.learn(self._data.train, config))
        torch.manual_seed(config.train.seed)
        network = task.network(Featurizer(reader, where.elmo), examples)
        return TaskModel(task, network, reader, where, self._device, self._segment)

    def _examples(self, cell: Run) -> list[Example]:
        return self._data.train if cell.share == 1.0 else part(self._data.train, cell.share, cell.seed)

    def _stored_of(self, config: TaskConfig) -> VectorStore | None:
        """What keeps the vectors of all sentences; they are computed before the first training."""
        if self._stored is None:
            self._stored = make_stored(config.input, self._where.elmo)
        return self._stored

    def _embedded(self, done: float) -> None:
        if self._watch is not None:
            self._watch("vectors", Position(), {"done": done})

    def result(self, cell: Run) -> RunResult:
        """Train a cell, or read what an earlier call found."""
        place = self._folder / RUNS / cell.name
        known = _read_result(place / RESULT)
        if known is not None:
            return known
        place.mkdir(parents=True, exist_ok=True)
        model, examples = self.model(cell), self._examples(cell)
        found = self._train(cell, model, examples, place)
        shutil.rmtree(place / CHECKPOINTS, ignore_errors=True)
        with new_file(place / RESULT, force=True) as new:
            new.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
        return found

    def _train(self, cell: Run, model: TaskModel, examples: list[Example], place: Path) -> RunResult:
        config = model.config
        if model.reader.stored is not None:
            model.reader.stored.add(self._data.sentences(), self._vectors, self._embedded)
        work = TaskTrainable(model.task, model.network, model.reader, examples, self._data.dev, self._device)
        total = round(config.train.epochs * len(examples) / cell.share**0.5)  # a few are read more often
        tell = self._watch or (lambda name, position, figures: None)
        loop = Loop(
            work,
            config.train.for_loop(),
            place,
            total,
            on_metrics=lambda at, figures: tell(cell.name, at, figures | {"done": at.tokens / total}),
            slower={"stack.inputs.layer.network.": config.train.elmo_rate / config.train.rate},
        )
        if not loop.resume():
            (place / METRICS).unlink(missing_ok=True)
        loop.run()
        save_file(weights_of(model.network), place / WEIGHTS)
        model.network.eval()
        dev = work.scores  # the loop's last validation is of the best weights
        test = model.judge(self._data.test).figures if self._data.test else {}
        return RunResult(
            cell,
            len(examples),
            dev.figures,
            test,
            dev.main,
            loop.position.epoch,
            loop.position.seconds,
            [mix.shares for mix in model.mixes],
            [float(mix.gamma.detach()) for mix in model.mixes],
        )

    def close(self, *, remove: bool) -> None:
        """Let go of the stored vectors; they are removed where nobody asked to keep them."""
        if self._stored is not None:
            self._stored.close()
        if remove:
            shutil.rmtree(self._vectors, ignore_errors=True)
