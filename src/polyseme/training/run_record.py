"""What a run is, in run.json: its settings, its text, the model it started from.

    settings, files of text  ->  training.run_record  <->  OUT/run.json

A resumed run is compared with it before anything is written. Of the text it is the content that counts, not
names and times; how a run is computed (processes, train.device) may change on the way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from polyseme.errors import FormatError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.io.atomic import new_file
from polyseme.text.chars import CodepointAlphabet
from polyseme.text.corpus.documents import expand_inputs, kind_of
from polyseme.text.fingerprint import Stamp, digest, stamp
from polyseme.training.settings import PretrainSettings

RUN = "run.json"


@dataclass(frozen=True)
class RunRecord:
    """All that must stay the same when a run is resumed, and the number of its processes."""

    config: dict[str, Any]
    text: list[Stamp]
    held_out: list[Stamp]  # of --valid
    start: str | None  # of --from: what decides words and characters
    processes: int

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """What the run in `folder` noted; None if there is none."""
        path = folder / RUN
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            stamps = {name: [Stamp(*found) for found in values[name]] for name in ("text", "held_out")}
            return cls(values["config"], **stamps, start=values["start"], processes=values["processes"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise FormatError(
                f"{path}: cannot be read as the settings of a run ({problem!r}). Begin anew with --force."
            ) from None

    def write(self, folder: Path) -> None:
        """Note it in `folder`."""
        text = json.dumps(self.__dict__, ensure_ascii=False, indent=2)
        with new_file(folder / RUN, force=True) as new:
            new.write_text(text + "\n", encoding="utf-8")

    def list_differences(self, now: RunRecord) -> list[str]:
        """What is different now, such as `train.rate (was 0.2, is 0.1)`."""
        found = _differences(_compared(self.config), _compared(now.config))
        for name, before, after in (
            ("the text", self.text, now.text),
            ("the held-out text", self.held_out, now.held_out),
        ):
            if _contents(before) != _contents(after):
                found.append(f"{name} ({_changes(before, after)})")
        if self.start != now.start:
            found.append("the model to fine-tune (--from, --new-vocabulary)")
        return found


def record_run(
    config: PretrainSettings,
    inputs: Sequence[str | Path],
    valid: Sequence[str | Path],
    base: Pretrained | None,
    *,
    new_vocabulary: bool,
    processes: int,
    known: RunRecord | None,
) -> RunRecord:
    """The record of a run over these inputs; files that are as `known` has them are not read again."""
    stamps = [*known.text, *known.held_out] if known else []
    text = stamp(expand_inputs(inputs), stamps)
    held_out = stamp(expand_inputs(valid), stamps) if valid else []
    start = None
    if base is not None:
        words = list(base.vocab.words) if base.vocab and not new_vocabulary else None
        characters = base.alphabet.characters if isinstance(base.alphabet, CodepointAlphabet) else ()
        start = digest([words, list(characters)])
    values = config.model_dump(mode="json")
    if config.model.words is not None and config.model.words.static is not None:
        values["model"]["words"]["static"] = config.model.words.static
    return RunRecord(values, text, held_out, start, processes)


def _compared(config: dict[str, Any]) -> dict[str, Any]:
    """The settings without those that decide only where it is computed."""
    return config | {"train": {name: value for name, value in config["train"].items() if name != "device"}}


def _differences(before: Any, now: Any, place: str = "") -> list[str]:
    """Where two nested values differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [*before, *(name for name in now if name not in before)]
        found = [_differences(before.get(name), now.get(name), f"{place}.{name}") for name in names]
        return [line for lines in found for line in lines]
    return [] if before == now else [f"{place.removeprefix('.')} (was {before}, is {now})"]


def _contents(stamps: Sequence[Stamp]) -> list[tuple[str, str]]:
    return [(kind_of(Path(found.path)), found.content) for found in stamps]


def _changes(before: Sequence[Stamp], now: Sequence[Stamp]) -> str:
    """Which files are not as they were, in a few words."""
    old, new = {found.content for found in before}, {found.content for found in now}
    notes = [f"{Path(found.path).name} is new or changed" for found in now if found.content not in old]
    notes += [f"{Path(found.path).name} as it was is missing" for found in before if found.content not in new]
    more = f" and {len(notes) - 3} more" if len(notes) > 3 else ""
    return "; ".join(notes[:3]) + more if notes else "its files are in another order or of another kind"
