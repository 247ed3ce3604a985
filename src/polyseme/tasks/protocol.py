"""What a task is: the seam between one task's folder and all that is shared.

    the folders of the tasks  ->  tasks.protocol  ->  tasks.trainable, tasks.task_model

A task's folder holds its settings, its examples and predictions, its network and its scores. Everything else
(reading settings, training, saving, the report, the command line, the server) knows only these protocols.
A task never sees training or model folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar, runtime_checkable

from torch import Tensor

from polyseme.elmo import Elmo
from polyseme.io.html import Cell
from polyseme.tasks.data.sources import Source
from polyseme.tasks.examples import Segmenter, Tokens
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import TaskSettings


class Example(Protocol):
    """One thing to predict, with its label if that is known. Tasks use frozen dataclasses."""

    @property
    def location(self) -> str:
        """Where it was read: `file:line`."""

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The token sequences to embed; an example with an empty one has no prediction."""


class Prediction(Protocol):
    """What a task model predicts for one example. Tasks use frozen dataclasses."""

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""

    def as_row(self) -> Mapping[str, Cell]:
        """The main values as cells of a table."""


ExampleType = TypeVar("ExampleType", bound=Example)
PredictionType = TypeVar("PredictionType", bound=Prediction)
ExampleIn = TypeVar("ExampleIn", bound=Example, contravariant=True)


class TaskNetwork(Protocol[ExampleIn, PredictionType]):
    """The `nn.Module` of a task. It makes its own tensors from examples with `featurizer.read`."""

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""

    def loss(self, batch: Sequence[ExampleIn]) -> tuple[Tensor, int]:
        """The mean loss of a batch, and the number of its examples."""

    def decode(self, batch: Sequence[ExampleIn]) -> list[PredictionType]:
        """A prediction for each example; called in evaluation mode, without gradients."""


@runtime_checkable
class TunedNetwork(Protocol):
    """A network with a value that is chosen on the dev set, such as a threshold, kept as a buffer."""

    def tune(self, examples: Sequence[Any], predictions: Sequence[Any]) -> list[Any]:
        """Choose the value by labelled examples and their predictions; the predictions with it."""


class Task(Protocol[ExampleType, PredictionType]):
    """A task with its settings and what it learned from its training examples.

    Attributes:
        name: As users type it.
        settings_type: The class of its settings.
        texts_per_question: How many texts a question has: 2 for a pair. They are separated by tabs in plain
            text, and given as a tuple in Python.
        question_unit: What a question is in plain text: a line, or a whole file.
        sample_question: A question for `predict`, as Python code, for the model card.
        output_formats: How predictions can be written; "jsonl" and those that `format` knows.
        decode_batch: How many examples `decode` gets at once.

    """

    name: ClassVar[str]
    settings_type: ClassVar[type[TaskSettings]]
    texts_per_question: ClassVar[int]
    question_unit: ClassVar[Literal["line", "file"]]
    sample_question: ClassVar[str]
    output_formats: ClassVar[tuple[str, ...]]
    decode_batch: ClassVar[int]

    def __init__(self, settings: Any, learned: Mapping[str, Any] = ...) -> None:
        """Create the task; `learned` is what `learn` found, as it was saved."""

    @property
    def settings(self) -> TaskSettings:
        """The settings."""

    @property
    def learned(self) -> Mapping[str, Any]:
        """What `learn` found, as values for JSON: labels, a target vocabulary."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it chooses from; empty if it predicts something else."""

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[ExampleType]:
        """Read examples; with `labelled=False` labels may be missing. Empty texts give empty sentences."""

    def learn(self, examples: Sequence[ExampleType]) -> Self:
        """The task with labels and open settings taken from the training examples.

        Raises:
            DataError: If there is nothing to learn.

        """

    def check(self, examples: Sequence[ExampleType]) -> None:
        """Raise `DataError` for a label that is not in the training data."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> ExampleType:
        """The example of a question, as a program passes it to `predict`."""

    def count_labels(self, example: ExampleType) -> Mapping[str, int]:
        """How often each label occurs in an example; used to hold out a dev set and to print counts."""

    def build_network(
        self, featurizer: Featurizer, examples: Sequence[ExampleType]
    ) -> TaskNetwork[ExampleType, PredictionType]:
        """The untrained network. `examples` are those of training, none if weights will be loaded."""

    def score(self, examples: Sequence[ExampleType], predictions: Sequence[PredictionType]) -> Scores:
        """Compare predictions with labels."""

    def format(self, prediction: PredictionType, output_format: str) -> str:
        """Write a prediction in one of `output_formats` other than "jsonl"."""


class DocumentSearch(Protocol):
    """Documents in which questions can be answered."""

    def find(self, question: str) -> Sequence[Any]:
        """The examples to predict for a question, such as its best passages; none if there is no text."""

    def choose(self, examples: Sequence[Any], predictions: Sequence[Any]) -> Any:
        """The best of the predictions for these examples."""


@runtime_checkable
class DocumentTask(Protocol):
    """A task that answers questions over documents: those of a file or of a folder."""

    def open_documents(
        self, documents: Sequence[tuple[str, str]], segmenter: Segmenter, elmo: Elmo | None
    ) -> DocumentSearch:
        """Make documents searchable, each with its name and text."""


AnyTask = Task[Any, Any]
AnyNetwork = TaskNetwork[Any, Any]
