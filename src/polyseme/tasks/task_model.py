"""A trained task: predict, evaluate, save.

tasks.experiment  ->  tasks.task_model  <->  tasks.task_folder
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, Self, overload

import torch

from polyseme.elmo import Elmo
from polyseme.errors import DataError, PolysemeError, UsageError
from polyseme.formats.tensors import write_tensors
from polyseme.io.atomic import new_folder, new_group
from polyseme.io.checked import refuse_damaged
from polyseme.io.html import render_table
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.io.result_list import ResultList
from polyseme.model.device import resolve_device
from polyseme.model.mix import Mix
from polyseme.tasks.data.sources import Data, open_source
from polyseme.tasks.examples import Segmenter, Tokens, count_tokens, drop_empty, is_empty
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader
from polyseme.tasks.protocol import AnyNetwork, AnyTask, DocumentTask, Example
from polyseme.tasks.settings import InputSettings, TaskSettings, replace_in
from polyseme.tasks.static_vectors import COPY, find_static, save_static
from polyseme.tasks.task_folder import (
    CARD,
    ELMO,
    FORMAT,
    HEAD,
    TASK,
    ElmoSource,
    check_head_weights,
    collect_head_weights,
    find_elmo,
    make_task,
    read_head_weights,
    read_task_file,
    save_elmo,
    write_card,
)
from polyseme.tasks.trainable import as_module, decode_examples
from polyseme.tasks.vector_store import VectorStore
from polyseme.text.length_batches import chunk_by_size
from polyseme.text.reading import read_lines
from polyseme.text.validate import check_path, list_values
from polyseme.training.checkpoint import AGAIN

FILES = (TASK, HEAD, ELMO, CARD, COPY)
CHUNK_TOKENS = 16_384  # tokens between two progress events


@dataclass
class TaskModel:
    """A task with its trained network. `polyseme.train` and `polyseme.load_task` make one.

    Attributes:
        task: The task with its settings and labels.
        network: The trained network.
        source: Its ELMo.
        device: Where it computes.
        segment: How it segments raw text.
        scores: Metrics of training on dev and test, for the card.
        results: Of all runs of training (`experiment.RunResult`); empty for a model that was loaded.
        baseline: Scores of TF-IDF with logistic regression (`tfidf.Baseline`), if they were compared.

    """

    task: AnyTask
    network: AnyNetwork
    source: ElmoSource
    device: torch.device
    segment: str
    scores: dict[str, Any] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    baseline: Any = None

    @property
    def settings(self) -> TaskSettings:
        """The settings of the task."""
        return self.task.settings

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it chooses from; empty if it predicts something else."""
        return self.task.labels

    @property
    def featurizer(self) -> Featurizer:
        """What turns tokens into vectors."""
        return self.network.featurizer

    @property
    def mixes(self) -> list[Mix]:
        """The mixes of ELMo's layers: of the input, of the output; none without ELMo."""
        return self.featurizer.all_mixes()

    @property
    def mix(self) -> Mix:
        """The first mix of ELMo's layers."""
        if not self.mixes:
            raise UsageError("This task model has no ELMo, so it has no mix.")
        return self.mixes[0]

    def __repr__(self) -> str:
        shown = f"{', '.join(self.labels[:4])}{', …' if len(self.labels) > 4 else ''}"
        return f"TaskModel({self.task.name}{f': {shown}' if shown else ''})"

    def _repr_html_(self) -> str:
        rows = [("task", self.task.name), ("labels", ", ".join(self.labels[:20])), ("segment", self.segment)]
        for part in ("dev", "test"):
            metrics = self.scores.get(part) or {}
            rows += [(f"{part} {name}", f"{value:.4f}") for name, value in metrics.items()]
        return render_table(["TaskModel", ""], rows)

    @overload
    def predict(self, questions: str | tuple[Any, ...]) -> Any: ...

    @overload
    def predict(self, questions: Iterable[Any]) -> ResultList[Any]: ...

    def predict(self, questions: Any) -> Any:
        """Predict for one question, or for many.

        Args:
            questions: A text, or a tuple of texts for a task with several (a pair); or any iterable of them:
                a list, a Series, an array, a generator. A list of tokens may replace a text; a single one
                must be inside a list: `[["a", "b"]]`.

        Returns:
            A prediction, or a list of them; see the classes of the task.

        Raises:
            UsageError: If this is not a question of the task.
            DataError: If a text is empty or too long.

        Example:
            >>> tagger.predict("Angela Merkel flew to Paris .").spans

        """
        if isinstance(questions, str | tuple):
            return self.predict_examples([self.parse(questions, "the question")])[0]
        return ResultList(self.predict_examples(self.parse_all(questions)))

    def parse_all(self, questions: Iterable[Any]) -> list[Example]:
        """Turn questions into examples.

        Args:
            questions: As in `predict`.

        Returns:
            One example per question.

        Raises:
            UsageError: If an element is not a question of the task.
            DataError: If a text is empty or too long.

        """
        values = list_values(questions, "questions")
        return [self.parse(question, f"question {n}") for n, question in enumerate(values, start=1)]

    def parse(self, question: Any, location: str) -> Example:
        """Turn a question into an example.

        Args:
            question: As in `predict`.
            location: What error messages call it.

        Returns:
            The example.

        Raises:
            UsageError: If this is not a question of the task.
            DataError: If a text is empty or too long.

        """
        example: Example = self.task.parse(question, self._make_segmenter(), location)
        if is_empty(example):
            raise DataError(f"{location}: the text is empty.")
        return example

    def predict_examples(
        self, examples: Sequence[Example], progress: OnProgress = ignore_progress
    ) -> list[Any]:
        """Predict for examples.

        Args:
            examples: What to predict, from `read` or `parse_all`.
            progress: Receives a `ProgressEvent` after each chunk of examples.

        Returns:
            One prediction per example; None for those without text.

        """
        return list(self.iterate_predictions(examples, progress))

    def iterate_predictions(
        self,
        examples: Sequence[Example],
        progress: OnProgress = ignore_progress,
        *,
        chunk_tokens: int = CHUNK_TOKENS,
    ) -> Iterator[Any]:
        """Predict for examples, chunk by chunk.

        Args:
            examples: What to predict.
            progress: Receives a `ProgressEvent` after each chunk of examples.
            chunk_tokens: Tokens of a chunk.

        Yields:
            One prediction per example; None for those without text.

        """
        sentences: Iterable[Tokens] = (tokens for example in examples for tokens in example.sentences)
        self.featurizer.reader.load_static(sentences)
        done = 0
        for chunk in chunk_by_size(examples, chunk_tokens, lambda e: 1 + count_tokens([e])):
            predictions = iter(
                decode_examples(self.task, self.network, [e for e in chunk if not is_empty(e)])
            )
            yield from (None if is_empty(example) else next(predictions) for example in chunk)
            done += len(chunk)
            progress(ProgressEvent("predicting", done, len(examples)))

    def read(self, data: Data, *, labelled: bool = True) -> list[Example]:
        """Read the examples of a file, a DataFrame or an iterable of rows, as in training.

        Args:
            data: As `polyseme.train` takes it.
            labelled: Whether labels must be there. If so, examples without text are skipped.

        Returns:
            The examples, in the order of the data.

        Raises:
            DataError: If there are no examples, or a label is not in the training data.

        """
        source = open_source(data, "data")
        examples: list[Example] = self.task.read(source, self._make_segmenter(), labelled=labelled)
        if labelled:
            examples = drop_empty(examples, str(source), self.settings.data.empty)
            self.task.check(examples)
        if not examples:
            raise DataError(f"{source}: no examples in it.")
        return examples

    def read_plain_text(self, path: str | Path) -> list[Example]:
        """Read the questions of a file of plain text: a line each, or for some tasks the whole file.

        Several texts of a line are separated by tabs. A blank line gives an example without text, so that
        predictions are on the lines of their questions.

        Args:
            path: The file.

        Returns:
            One example per question.

        Raises:
            DataError: If the file cannot be read, or holds no text.

        """
        count, examples = self.task.texts_per_question, []
        if self.task.question_unit == "file":
            for name, lines in groupby(read_lines(path), key=lambda line: line.source):
                text = "\n".join(line.text for line in lines)
                examples.append(self.task.parse(text, self._make_segmenter(), name))
            return _require_text(examples, path)
        for line in read_lines(path):
            question: Any = line.text
            if count > 1:
                question = tuple(line.text.split("\t")) if line.text.strip() else ("",) * count
            examples.append(self.task.parse(question, self._make_segmenter(), line.location))
        return _require_text(examples, path)

    def ask(
        self, questions: str | Iterable[str], path: str | Path, progress: OnProgress = ignore_progress
    ) -> Any:
        """Answer questions over a file, or over all files of a folder.

        Args:
            questions: One, or several.
            path: Plain text, HTML or EPUB; a folder of them; or `-` for standard input.
            progress: Receives an event after each question.

        Returns:
            A prediction, or a list of them, with offsets in the file; a line break is one character.

        Raises:
            UsageError: If the task does not answer questions over documents, or there is no such file.
            DataError: If there is no text in it, or a question is empty.

        Example:
            >>> polyseme.load_task("models/answers").ask("Who wrote it?", "book.txt").answer

        """
        if not isinstance(self.task, DocumentTask):
            raise UsageError(f"{self.task.name} answers no questions over documents: leave out `question`.")
        if not isinstance(path, str | Path):
            raise UsageError(f"Documents are read from a file or folder, not from a {type(path).__name__}.")
        asked = [questions] if isinstance(questions, str) else list_values(questions, "questions")
        for number, question in enumerate(asked, start=1):
            if not isinstance(question, str) or not question.strip():
                raise UsageError(f"question {number} is {question!r:.40}, expected text.")
        documents = [
            (name, "\n".join(line.text for line in lines))
            for name, lines in groupby(read_lines(path, prose=True), key=lambda line: line.source)
        ]
        search = self.task.open_documents(documents, self._make_segmenter(), self.source.elmo)
        answers = []
        for number, question in enumerate(asked, start=1):
            examples = search.find(question)
            if not examples:
                raise DataError(f"{path}: no text in it.")
            answers.append(search.choose(examples, self.predict_examples(examples)))
            progress(ProgressEvent("answering", number, len(asked)))
        return answers[0] if isinstance(questions, str) else ResultList(answers)

    def evaluate(self, data: Data) -> Scores:
        """Score the predictions for labelled examples.

        Args:
            data: As `polyseme.train` takes it.

        Returns:
            The scores: `value` is the main metric, `metrics` has all of them.

        Raises:
            DataError: If the examples cannot be read; the message begins with `file:line`.

        Example:
            >>> tagger.evaluate("test.conll").metrics

        """
        return self.score_examples(self.read(data))

    def score_examples(self, examples: Sequence[Example], progress: OnProgress = ignore_progress) -> Scores:
        """Score the predictions for examples.

        Args:
            examples: Labelled examples, from `read`.
            progress: Receives a `ProgressEvent` after each chunk of examples.

        Returns:
            The scores.

        """
        return self.task.score(examples, self.predict_examples(examples, progress))

    def _make_segmenter(self) -> Segmenter:
        elmo = self.source.elmo
        return Segmenter(self.segment, elmo.word_list if elmo is not None else None)

    def to(self, device: str | torch.device) -> Self:
        """Move the network and its ELMo to another device, in place.

        Args:
            device: "auto", "cpu", "cuda", "cuda:N", "mps", or a `torch.device`.

        Returns:
            This model.

        """
        self.device = resolve_device(device)
        as_module(self.network).to(self.device)
        if self.source.elmo is not None:
            self.source.elmo.to(self.device)
        return self

    def save(self, path: str | Path, *, copy: bool = True, force: bool = False) -> None:
        """Write a task folder.

        Args:
            path: The folder.
            copy: Whether ELMo and static vectors are copied into it; otherwise only their paths.
            force: Replace an existing task folder.

        """
        folder = Path(path).expanduser()
        with new_folder(folder, force=force, known_names=FILES) as new:
            self._write_files(new, copy=copy)

    def write_into(self, folder: Path, *, copy: bool = True) -> None:
        """Write the task into a folder with other files; an earlier task in it is replaced as a whole.

        Args:
            folder: The folder.
            copy: As in `save`.

        """
        used = [Path(path).resolve() for path in (self.source.path, self.settings.input.static) if path]
        known_names = [name for name in FILES if (folder / name).resolve() not in used]  # stay where they are
        with new_group(folder, "task", known_names=known_names) as new:
            self._write_files(new, copy=copy)

    def _write_files(self, folder: Path, *, copy: bool) -> None:
        """Write all files of the task into a new folder."""
        reader = self.featurizer.reader
        values = {
            "polyseme_task": FORMAT,
            "polyseme_version": version("polyseme"),
            "settings": self._make_saved_settings(copy=copy).model_dump(mode="json"),
            "learned": dict(self.task.learned),
            "segment": self.segment,
            "words": list(reader.words),
            "characters": list(reader.characters),
            "elmo": save_elmo(self.source, self.network, folder, copy=copy),
            "static": save_static(self.settings.input.static, folder, copy=copy),
            "scores": self.scores,
        }
        write_tensors(folder / HEAD, collect_head_weights(self.network))
        write_card(self.task, self.scores, folder)
        text = json.dumps(values, ensure_ascii=False, indent=1)
        (folder / TASK).write_text(text + "\n", encoding="utf-8")

    def _make_saved_settings(self, *, copy: bool) -> TaskSettings:
        """The settings; a copy of the static vectors is in the folder, wherever that moves."""
        if self.settings.input.static is None or not copy:
            return self.settings
        return replace_in(self.settings, "input", static=COPY)


def _require_text(examples: list[Example], path: str | Path) -> list[Example]:
    if all(map(is_empty, examples)):
        raise DataError(f"{path}: no text in it.")
    return examples


def make_store(settings: InputSettings, elmo: Elmo | None) -> VectorStore | None:
    """The store of the vectors of a frozen ELMo: their mean, the top layer, or all layers to choose from."""
    if elmo is None or settings.elmo == "none" or settings.tune == "full":
        return None
    check_layer(settings, elmo)
    if settings.layers == "top":
        return VectorStore(elmo, "top")
    return VectorStore(elmo, "mean" if settings.tune == "frozen" and settings.layers == "mix" else "all")


def check_layer(settings: InputSettings, elmo: Elmo) -> None:
    """Raise `UsageError` for a layer that the ELMo does not have."""
    if isinstance(settings.layers, int) and settings.layers >= elmo.config.layers:
        raise UsageError(
            f"input.layers is {settings.layers}, the model has layers 0 to {elmo.config.layers - 1}."
        )


def load_task(
    path: str | Path,
    model: Elmo | str | Path | None = None,
    *,
    static: str | Path | None = None,
    device: str = "auto",
    task: type[AnyTask] | None = None,
) -> TaskModel:
    """Load a task folder.

    Args:
        path: The folder.
        model: Its ELMo, if it has moved.
        static: Its static vectors, if they have moved.
        device: Where to compute: "auto", "cpu", "cuda", "cuda:1", "mps"; training may have used another.
            A `model` that is already loaded stays on its device.
        task: The class of a task that is not one of Polyseme's.

    Returns:
        The task model, ready to predict and evaluate.

    Raises:
        FormatError: If the folder holds no task, or its ELMo is missing or a different one.

    Example:
        >>> polyseme.load_task("models/names").predict("Anna left .")

    """
    resolved = resolve_device(device)
    folder = Path(check_path(path, "the task model")).expanduser()
    values = read_task_file(folder)
    loaded = make_task(values, folder, task)
    static_path = find_static(values.get("static"), loaded.settings.input.static, folder, static)
    loaded = type(loaded)(replace_in(loaded.settings, "input", static=static_path), loaded.learned)
    source = find_elmo(values["elmo"], folder, model, resolved)
    settings = loaded.settings.input
    try:
        store = make_store(settings, source.elmo)
        reader = TokenReader(settings, values["words"], values["characters"], store)
    except PolysemeError as problem:
        raise type(problem)(f"{folder}: {problem}") from None
    weights = read_head_weights(folder)
    if task is None:  # compare their sizes before settings of strangers take memory
        with refuse_damaged(folder / TASK, "settings that fit the weights", AGAIN), torch.device("meta"):
            sketch = loaded.build_network(Featurizer(reader, source.elmo), ())
        check_head_weights(sketch, weights, folder)
    network = loaded.build_network(Featurizer(reader, source.elmo), ())
    check_head_weights(network, weights, folder)
    as_module(network).load_state_dict(weights, strict=False)
    as_module(network).to(resolved).eval()
    return TaskModel(loaded, network, source, resolved, values["segment"], values["scores"])
