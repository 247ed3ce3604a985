"""A trained task: ask it, judge it, keep it.

    tasks.experiment  ->  tasks.task_model  <->  a folder (task.json, head.safetensors, elmo/, static.vectors)

The folder holds settings, labels, words and the task's own weights, its ELMo and its static vectors: copies,
or where they lie and their fingerprints. Nothing in it is executed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from polyseme.config import parse_settings, read_values
from polyseme.elmo import Elmo, load
from polyseme.errors import DataError, FormatError, PolysemeError, UsageError
from polyseme.formats.models.bundled import bundled_names
from polyseme.formats.models.open import make_portable
from polyseme.formats.models.save import save_pretrained
from polyseme.formats.tensors import read_tensors
from polyseme.io.atomic import new_folder
from polyseme.model.mix import Mix
from polyseme.tasks.classification import Classification
from polyseme.tasks.data.tables import kind_of, without_labels
from polyseme.tasks.examples import Cut, Example, cutter
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer, TokenReader
from polyseme.tasks.pairs import Pairs
from polyseme.tasks.protocol import Answer, Task
from polyseme.tasks.relations import Relations
from polyseme.tasks.settings import InputConfig, TaskConfig
from polyseme.tasks.static_vectors import COPY, find, keep
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.trainable import answer
from polyseme.tasks.vector_store import VectorStore
from polyseme.text.reading import Line, read_lines
from polyseme.training.checkpoint import load_weights
from polyseme.training.devices import choose_device

TASKS: dict[str, type[Task]] = {
    "classification": Classification,
    "tagging": Tagging,
    "pairs": Pairs,
    "relations": Relations,
}
TASK, HEAD, ELMO, CARD = "task.json", "head.safetensors", "elmo", "README.md"
FORMAT = 1
WEIGHTS = "the weights of the task"
TUNED = "stack.inputs.layer.network."  # weights of a fine-tuned ELMo, which the folder keeps as a model
NO_PATH = "Without a copy the ELMo must have a path: give train its path, not a model."
QUESTIONS = {  # of the card
    "classification": '"a text"',
    "tagging": '"a text"',
    "pairs": '("a text", "another text")',
    "relations": '"the <e1>fire</e1> was caused by <e2>fuel</e2>"',
}
Done = Callable[[int], None]  # is told how many examples are done
CHUNK = 512  # examples of a file that are answered together


@dataclass(frozen=True)
class Where:
    """Where the ELMo of a task came from, as `load` takes it."""

    elmo: Elmo | None
    path: str | None = None  # None: it was given as an object


@dataclass
class TaskModel:
    """A task with its trained network. `polyseme.train` and `polyseme.load_task` make one."""

    task: Task
    network: nn.Module
    reader: TokenReader
    where: Where
    device: torch.device
    segment: str
    scores: dict[str, Any] = field(default_factory=dict)  # what training found, for the card
    results: list[Any] = field(default_factory=list)  # of all trainings (runs.Result); empty when opened

    @property
    def config(self) -> TaskConfig:
        """The settings."""
        return self.task.config

    @property
    def labels(self) -> tuple[str, ...]:
        """All that can be answered; empty for numbers."""
        return self.task.labels

    @property
    def mixes(self) -> list[Mix]:
        """The mixtures of ELMo's layers, one for each place where it enters; none without ELMo."""
        return self.inputs.all_mixes()

    @property
    def mix(self) -> Mix:
        """The first mixture."""
        if not self.mixes:
            raise UsageError("This task model has no ELMo, and so no mix.")
        return self.mixes[0]

    @property
    def inputs(self) -> Featurizer:
        """What makes vectors of tokens."""
        return cast(Featurizer, self.network.stack.inputs)  # type: ignore[union-attr]

    def __repr__(self) -> str:
        return f"TaskModel({self.config.task}, {len(self.labels)} labels)"

    def predict(self, given: Any) -> Answer | list[Answer]:
        """An answer to one question, or a list of answers to a list of them.

        A question is a text (classification, tagging, relations with its marks), or a pair of texts as a
        tuple; token lists may stand for texts, but one alone must be given in a list: [["a", "b"]].
        """
        if isinstance(given, str | tuple):
            return self.answer([self.task.ask(given, self._cut())])[0]
        if not isinstance(given, Sequence):
            raise UsageError(f"predict takes a text or a list of them, not {given!r:.60}.")
        return self.answer([self.task.ask(one, self._cut()) for one in given])

    def answer(self, examples: Sequence[Example], watch: Done | None = None) -> list[Answer]:
        """What the model says of examples; nothing of those without tokens."""
        return list(self.answers(examples, watch))

    def answers(self, examples: Sequence[Example], watch: Done | None = None) -> Iterator[Answer]:
        """As `answer`, some at a time; `watch` is told how many are done."""
        self.reader.need(tokens for example in examples for tokens in example.sentences)
        for start in range(0, len(examples), CHUNK):
            some = examples[start : start + CHUNK]
            asked = [example for example in some if example.asks]
            found = iter(answer(self.task, self.network, self.reader, asked, self.device))
            yield from (next(found) if example.asks else Answer(example.sentences, None) for example in some)
            if watch is not None:
                watch(start + len(some))

    def read(self, path: str | Path, *, gold: bool = True) -> list[Example]:
        """The examples of a file, as training read them; without `gold` their answers may be missing.

        Lines of plain text to be classified are then texts, unless all begin with a label.
        """
        lines = self.config.task == "classification" and kind_of(path, self.config.data.format) == "lines"
        if lines and not gold:
            return self._texts(path, without_labels(list(read_lines(path)), self.labels))
        examples = self.task.read(str(path), self.config, self._cut(), gold=gold)
        if not examples:
            raise UsageError(f"{path}: no examples in it.")
        if gold:
            self.task.check(examples)
        return examples

    def read_raw(self, path: str | Path) -> list[Example]:
        """Plain text, a question a line; of pairs, two texts with a tab between them.

        A blank line is a question without tokens, so that answers stand on the lines of their questions.
        """
        return self._texts(path, list(read_lines(path)))

    def _texts(self, path: str | Path, lines: Sequence[Line]) -> list[Example]:
        found = []
        for line in lines:
            place = f"{line.source}:{line.number}"
            if not line.text.strip():
                found.append(Example(place, ((),)))
                continue
            given = tuple(line.text.split("\t")) if self.config.task == "pairs" else line.text
            try:
                found.append(replace(self.task.ask(given, self._cut()), place=place))
            except PolysemeError as problem:
                raise DataError(f"{place}: {problem}") from None
        if not any(example.asks for example in found):
            raise DataError(f"{path}: no text in it.")
        return found

    def evaluate(self, path: str | Path) -> Scores:
        """How good the answers to a file are."""
        return self.judge(self.read(path))

    def judge(self, examples: Sequence[Example], watch: Done | None = None) -> Scores:
        """How good the answers to examples are; `watch` is told how many are answered."""
        return self.task.score(examples, self.answer(examples, watch))

    def _cut(self) -> Cut:
        return cutter(self.segment)

    def save(self, path: str | Path, *, copy: bool = True, force: bool = False) -> None:
        """Write the folder; ELMo and static vectors are copied, or, without `copy`, noted by their paths."""
        place = Path(path).expanduser()
        with new_folder(place, force=force, ours=(TASK, HEAD, ELMO, CARD, COPY)) as new:
            self.write_into(new, copy=copy)

    def write_into(self, folder: Path, *, copy: bool = True) -> None:
        """Write all files of the task into a folder that is there."""
        values = {
            "polyseme_task": FORMAT,
            "polyseme_version": version("polyseme"),
            "config": self._config_to_keep(copy=copy).model_dump(mode="json"),
            "segment": self.segment,
            "labels": list(self.labels),
            "words": list(self.reader.words),
            "characters": list(self.reader.characters),
            "elmo": self._write_elmo(folder, copy=copy),
            "static": keep(self.config.input.static, folder, copy=copy),
            "scores": self.scores,
        }
        save_file(own_weights(self.network), folder / HEAD)
        (folder / CARD).write_text(_card(values), encoding="utf-8")
        text = json.dumps(values, ensure_ascii=False, indent=1)
        (folder / TASK).write_text(text + "\n", encoding="utf-8")  # last: it makes the folder a task

    def _config_to_keep(self, *, copy: bool) -> TaskConfig:
        """The settings; a copy of the static vectors lies in the folder, wherever that goes."""
        given = self.config.input
        if given.static is None or not copy:
            return self.config
        return self.config.model_copy(update={"input": given.model_copy(update={"static": COPY})})

    def _write_elmo(self, folder: Path, *, copy: bool) -> dict[str, str] | None:
        elmo = self.where.elmo
        if elmo is None or self.config.input.elmo == "none":
            shutil.rmtree(folder / ELMO, ignore_errors=True)  # of an earlier model in this folder
            return None
        layer = self.inputs.layer
        if layer is not None:  # fine-tuned: another model than before
            tuned = replace(elmo.model, network=layer.network, softmax=None)
            save_pretrained(tuned, folder / ELMO, precision="fp32", force=True)
            return {"folder": ELMO, "fingerprint": tuned.fingerprint()}
        known = {"fingerprint": elmo.model.fingerprint()}
        path = None if self.where.path is None else make_portable(self.where.path)
        if path in bundled_names():
            return {"name": path, **known}
        if not copy:
            if path is None:
                raise UsageError(NO_PATH)
            return {"path": path, **known}
        save_pretrained(elmo.model, folder / ELMO, force=True)
        return {"folder": ELMO, **known}


def own_weights(network: nn.Module) -> dict[str, Tensor]:
    """Weights and buffers of a task without those of a fine-tuned ELMo."""
    return {
        name: values.detach().cpu().contiguous()
        for name, values in network.state_dict().items()
        if not name.startswith(TUNED)
    }


def make_reader(
    config: InputConfig, elmo: Elmo | None, words: Sequence[str] = (), characters: Sequence[str] = ()
) -> TokenReader:
    """A reader of known words; ELMo's layers are computed when they are asked for."""
    return TokenReader(config, words, characters, make_stored(config, elmo))


def make_stored(config: InputConfig, elmo: Elmo | None) -> VectorStore | None:
    """What keeps the vectors of a frozen ELMo: their mean, the top layer, or all layers to choose from."""
    if elmo is None or config.elmo == "none" or config.tune == "full":
        return None
    check_layer(config, elmo)
    if config.layers == "top":
        return VectorStore(elmo, "top")
    return VectorStore(elmo, "mean" if config.tune == "frozen" and config.layers == "mix" else "all")


def check_layer(config: InputConfig, elmo: Elmo) -> None:
    """Refuse a layer that the ELMo does not have."""
    if isinstance(config.layers, int) and config.layers >= elmo.config.layers:
        raise UsageError(
            f"input.layers is {config.layers}, the model has layers 0 to {elmo.config.layers - 1}."
        )


def load_task(
    path: str | Path,
    model: Elmo | str | Path | None = None,
    *,
    static: str | Path | None = None,
    device: str = "auto",
) -> TaskModel:
    """Open a task folder; `model`, `static`: its ELMo, its static vectors, where these are gone.

    device: where it computes, which need not be where it was trained.
    """
    chosen = choose_device(device)
    folder = Path(path).expanduser()
    values = _read(folder)
    config = parse_settings(TaskConfig, values["config"], f"{folder / TASK}: config")
    vectors = {"static": find(values.get("static"), config.input.static, folder, static)}
    config = config.model_copy(update={"input": config.input.model_copy(update=vectors)})
    where = _find_elmo(values["elmo"], folder, model)
    task = TASKS[config.task](config, tuple(values["labels"]))
    try:
        reader = make_reader(config.input, where.elmo, values["words"], values["characters"])
    except PolysemeError as problem:
        raise type(problem)(f"{folder}: {problem}") from None
    network = task.network(Featurizer(reader, where.elmo), ())
    weights = read_tensors(folder / HEAD, WEIGHTS)
    wanted = {name: values for name, values in network.state_dict().items() if not name.startswith(TUNED)}
    wrong = list(wanted.keys() ^ weights.keys())
    wrong += [n for n in wanted.keys() & weights.keys() if wanted[n].shape != weights[n].shape]
    if wrong:
        raise FormatError(f"{folder / HEAD}: {min(wrong)} does not fit {TASK}. Are they of one task?")
    network.load_state_dict(weights, strict=False)
    network.to(chosen).eval()
    return TaskModel(task, network, reader, where, chosen, values["segment"], values["scores"])


def is_task(path: str | Path) -> bool:
    """Whether a folder holds a task."""
    return (Path(path).expanduser() / TASK).is_file()


def _read(folder: Path) -> dict[str, Any]:
    if not (folder / TASK).is_file():
        raise FormatError(f"{folder}: no {TASK} in it. `polyseme train` writes such a folder.")
    values = read_values(folder / TASK)
    found = values.get("polyseme_task")
    if found != FORMAT:
        raise FormatError(f"{folder / TASK}: format {found!r}, this Polyseme reads {FORMAT}. Upgrade it.")
    lists = ("labels", "words", "characters")
    kinds: Mapping[str, Callable[[Any], bool]] = {
        **dict.fromkeys(
            lists, lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value)
        ),
        "segment": lambda value: isinstance(value, str),
        "scores": lambda value: isinstance(value, dict),
        "elmo": lambda value: value is None or isinstance(value, dict),
        "static": lambda value: value is None or isinstance(value, dict),
        "config": lambda value: isinstance(value, dict) and value.get("task") in TASKS,
    }
    for name, fits in kinds.items():
        if not fits(values.get(name)):
            raise FormatError(f"{folder / TASK}: {name} is missing or not what it should be.")
    return values


def _find_elmo(known: dict[str, str] | None, folder: Path, given: Elmo | str | Path | None) -> Where:
    """The ELMo of a task folder, checked by its fingerprint."""
    if known is None:
        return Where(None)
    source: Elmo | str | Path = given or known.get("name") or known.get("path") or folder / ELMO
    if isinstance(source, Path | str) and not given and not known.get("name") and not Path(source).exists():
        raise FormatError(
            f"{folder}: its ELMo is gone: {source} is not there. Put it back, or say which one: "
            "load_task(folder, model=…), --model."
        )
    elmo = source if isinstance(source, Elmo) else load(source)
    if elmo.model.fingerprint() != known.get("fingerprint"):
        raise FormatError(
            f"{folder}: {source} is another ELMo than the one this task was trained with. "
            "Give it the right one, or train the task again."
        )
    return Where(elmo, None if isinstance(source, Elmo) else str(source))


def restore(network: nn.Module, path: Path) -> None:
    """Put the weights that `own_weights` gave, or all of a fine-tuned model, back into a network."""
    load_weights(network, read_tensors(path, WEIGHTS))


def _card(values: dict[str, Any]) -> str:
    """README.md of a task folder."""
    config = values["config"]
    found = values["scores"].get("test") or values["scores"].get("dev") or {}
    lines = [f"# A model for {config['task']}", "", "Made by Polyseme.", "", "| | |", "|---|---|"]
    lines += [f"| labels | {', '.join(values['labels'][:20]) or 'a number'} |"]
    lines += [f"| {name} | {value:.4f} |" for name, value in found.items() if isinstance(value, float)]
    lines += ["", "```python", "import polyseme", "", 'model = polyseme.load_task("…")']
    return "\n".join([*lines, f"model.predict({QUESTIONS[config['task']]})", "```", ""])
