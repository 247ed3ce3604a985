"""Record what a run is in run.json: its settings, its text, the model it started from.

    settings, files of text  ->  training.run_record  <->  OUT/run.json

A resumed run is compared with it before anything is written. Text is compared by content, not by names and
times; where a run is computed (processes, train.device) and how often it is saved may change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

from polyseme.errors import FormatError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.io.atomic import new_file
from polyseme.json_text import parse_json
from polyseme.text.chars import CodepointAlphabet
from polyseme.text.corpus.documents import detect_kind, expand_inputs
from polyseme.text.fingerprint import Stamp, digest, stamp
from polyseme.text.segment import WordList
from polyseme.training.settings import PretrainSettings, TrainSettings

RUN = "run.json"
WITHOUT_EFFECT = ("device", "save_seconds")  # settings of `train` that do not change the result


@dataclass(frozen=True)
class RunRecord:
    """What must be the same when a run is resumed, and the number of its processes."""

    config: dict[str, Any]
    text: list[Stamp]
    held_out: list[Stamp]  # files of `valid`
    start: str | None  # hash of what decides words and characters of the model to fine-tune
    processes: int
    words: str | None = None  # hash of the user's word list

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Read the record in `folder`; None if there is none."""
        path = folder / RUN
        try:
            values = parse_json(path.read_bytes())
            if not all(isinstance(values["config"][name], dict) for name in ("model", "corpus", "train")):
                raise TypeError("sections of the settings are missing")
            stamps = {name: [Stamp(*file) for file in values[name]] for name in ("text", "held_out")}
            start, processes, words = values["start"], values["processes"], values.get("words")
            return cls(values["config"], stamps["text"], stamps["held_out"], start, processes, words)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
            raise FormatError(
                f"{path}: not the record of a run ({problem!r}). Start again with `force=True`."
            ) from None

    def write(self, folder: Path) -> None:
        """Write run.json to `folder`."""
        for leftover in folder.glob(f".{Path(RUN).stem}-*.json"):  # of a killed process
            leftover.unlink()
        text = json.dumps(self.__dict__, ensure_ascii=False, indent=2)
        with new_file(folder / RUN, force=True) as new:
            new.write_text(text + "\n", encoding="utf-8")

    def list_differences(self, current: RunRecord) -> list[str]:
        """Describe what differs in `current`: `train.rate (was 0.2, is 0.1)`."""
        differences = _compare_values(_select_comparable(self.config), _select_comparable(current.config))
        for name, before, after in (
            ("the text", self.text, current.text),
            ("the held-out text", self.held_out, current.held_out),
        ):
            if _list_contents(before) != _list_contents(after):
                differences.append(f"{name} ({_describe_changes(before, after)})")
        if self.start != current.start:
            differences.append("the model to fine-tune (`base`, `new_vocabulary`)")
        if self.words != current.words:
            differences.append("the word list (`words`)")
        return differences


def record_run(
    config: PretrainSettings,
    inputs: Sequence[str | Path],
    valid: Sequence[str | Path],
    base: Pretrained | None,
    *,
    words: WordList | None,
    new_vocabulary: bool,
    processes: int,
    known: RunRecord | None,
) -> RunRecord:
    """Make the record of a run; files that `known` has with the same size and time are not read again."""
    stamps = [*known.text, *known.held_out] if known else []
    text = stamp(expand_inputs(inputs), stamps)
    held_out = stamp(expand_inputs(valid), stamps) if valid else []
    start = None
    if base is not None:
        vocabulary = list(base.vocab.words) if base.vocab and not new_vocabulary else None
        characters = base.alphabet.characters if isinstance(base.alphabet, CodepointAlphabet) else ()
        start = digest([vocabulary, list(characters)])
    values = config.model_dump(mode="json")
    if config.model.words is not None and config.model.words.static is not None:
        values["model"]["words"]["static"] = config.model.words.static
    listed = None if words is None else digest(words.lines())
    return RunRecord(values, text, held_out, start, processes, listed)


def _select_comparable(config: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that do not change the result, or that old runs have not.

    A run of a version that did not search for new words has no corpus.new_words: it was off. A setting of
    [train] that an older version had not has its default, which changes nothing.
    """
    train = TrainSettings().model_dump(mode="json") | config["train"]
    train = {name: value for name, value in train.items() if name not in WITHOUT_EFFECT}
    corpus = {
        name: value
        for name, value in config["corpus"].items()
        if (name, value) not in (("encoding", "auto"), ("names", False))
    }
    corpus = {"new_words": False} | corpus
    if config["model"].get("segment") not in ("zh", "auto"):
        corpus["new_words"] = False  # without effect
    return config | {"train": train, "corpus": corpus}


def _compare_values(before: Any, after: Any, path: str = "") -> list[str]:
    """Describe where two nested values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = [*before, *(name for name in after if name not in before)]
        differences = (_compare_values(before.get(name), after.get(name), f"{path}.{name}") for name in names)
        return list(chain.from_iterable(differences))
    return [] if before == after else [f"{path.removeprefix('.')} (was {before}, is {after})"]


def _list_contents(stamps: Sequence[Stamp]) -> list[tuple[str, str]]:
    """Kind and content of each file."""
    return [(detect_kind(Path(file.path)), file.content) for file in stamps]


def _describe_changes(before: Sequence[Stamp], after: Sequence[Stamp]) -> str:
    """Name the files that changed."""
    old, new = {file.content for file in before}, {file.content for file in after}
    notes = [f"{Path(file.path).name} is new or changed" for file in after if file.content not in old]
    notes += [f"the old {Path(file.path).name} is missing" for file in before if file.content not in new]
    more = f" and {len(notes) - 3} more" if len(notes) > 3 else ""
    return "; ".join(notes[:3]) + more if notes else "its files have another order or kind"
