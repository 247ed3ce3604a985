"""What each layer of an ELMo knows: a linear probe for each, over a column of tags.

    tasks.experiment (tagging without encoder and chain)  ->  tasks.probes  ->  a table, probes.png

Beside them stand the learned mixture and what one reaches with the most frequent tag of each word.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.elmo import Elmo, load
from polyseme.errors import UsageError
from polyseme.io import plots
from polyseme.io.atomic import check_place
from polyseme.tasks.examples import Example
from polyseme.tasks.experiment import Experiment, Watch, train

LINEAR = (
    "encoder.directions=0",
    "head.crf=false",
    "head.hidden=0",
    "head.dropout=0",
    "input.words=0",
    "input.chars=0",
    "input.elmo=input",
    "input.elmo_dropout=0",
    "data.scheme=none",
    "train.rate=0.005",
    "train.epochs=10",
    "train.patience=2",
)

OPEN = ("input.elmo_dropout", "head.dropout")  # what may be set of the sections that make a probe linear


@dataclass(frozen=True)
class Probes:
    """What the probes reach: accuracy by layer (`layer 0`, …, `mix`), and without ELMo."""

    values: dict[str, float]
    baseline: float
    part: str  # dev or test

    def table(self) -> str:
        """For people."""
        lines = [f"| probe | {self.part} accuracy |", "|---|---|"]
        lines += [f"| {name} | {value:.4f} |" for name, value in self.values.items()]
        return "\n".join([*lines, f"| most frequent tag of the word | {self.baseline:.4f} |"])


def probe(
    model: Elmo | str | Path,
    files: tuple[str | Path, str | Path | None, str | Path | None],
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    force: bool = False,
    watch: Watch | None = None,
) -> Probes:
    """Train a linear probe on each layer and on the mixture of all; `out`: a folder for table and picture."""
    chosen = probe_settings(settings)
    elmo = model if isinstance(model, Elmo) else load(model)
    place = None if out is None else Path(out).expanduser()
    if place is not None:
        check_place(place, force=force)
    values: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="polyseme-") as vectors:
        for layer in [*range(elmo.config.layers), "mix"]:
            plan = Experiment("tagging", settings=(*chosen, f"input.layers={json.dumps(layer)}"))
            found = train(plan, elmo, files, vectors=vectors, watch=watch)
            figures = found.best.test or found.best.dev
            values[f"layer {layer}" if layer != "mix" else "mix"] = figures["accuracy"]
    asked = found.data.test or found.data.dev
    result = Probes(values, most_frequent(found.data.train, asked), "test" if found.data.test else "dev")
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
        (place / "probes.md").write_text(result.table() + "\n", encoding="utf-8")
        if plots.can_draw():
            plots.draw_layer_scores(values, result.baseline, "accuracy", place / "probes.png")
    return result


def probe_settings(settings: Sequence[str] = ()) -> tuple[str, ...]:
    """The settings of a linear probe with a person's own; those that would make it another are refused."""
    for line in settings:
        name = line.partition("=")[0].strip()
        fixed = name.startswith(("input.", "encoder.", "head.")) and name not in OPEN
        if fixed or name == "data.scheme":
            raise UsageError(
                f"{name} is fixed in probes: they are linear, over each tag alone. Leave it out; what may be "
                f"set is data, train, {' and '.join(OPEN)}."
            )
    return (*LINEAR, *settings)


def most_frequent(train_examples: Sequence[Example], asked: Sequence[Example]) -> float:
    """Accuracy of each word's most frequent tag in training; of new words the most frequent tag of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for example in train_examples:
        for word, tag in zip(example.sentences[0], example.gold, strict=True):
            counts[word][tag] += 1
            total[tag] += 1
    usual = total.most_common(1)[0][0]
    best = {word: some.most_common(1)[0][0] for word, some in counts.items()}
    pairs = [pair for example in asked for pair in zip(example.sentences[0], example.gold, strict=True)]
    right = sum(1 for word, tag in pairs if best.get(word, usual) == tag)
    return right / max(1, len(pairs))
