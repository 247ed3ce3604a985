"""Probe the layers of an ELMo: a linear classifier of tags for each of them, and for their mix.

    tasks.experiment (tagging without encoder and CRF)  ->  tasks.probes.probes  ->  a table, probes.png

The baseline is the most frequent tag of each word.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import UsageError
from polyseme.io import plots
from polyseme.io.atomic import check_output_folder, new_group
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.tasks.experiment import Experiment, Files, train
from polyseme.tasks.tagging.task import Tagging
from polyseme.text.validate import check_path

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

TABLE, PLOT = "probes.md", "probes.png"
FREE = ("input.elmo_dropout", "head.dropout")  # settings of the fixed sections that users may change


@dataclass(frozen=True)
class Probes:
    """The accuracy by layer (`layer 0`, …, `mix`), and that of the most frequent tag of each word."""

    values: dict[str, float]
    baseline: float
    part: str  # dev or test

    def table(self) -> str:
        """The accuracies as a Markdown table."""
        lines = [f"| probe | {self.part} accuracy |", "|---|---|"]
        lines += [f"| {name} | {value:.4f} |" for name, value in self.values.items()]
        return "\n".join([*lines, f"| most frequent tag of the word | {self.baseline:.4f} |"])


def probe(
    model: Elmo | str | Path,
    files: Files,
    out: str | Path | None = None,
    *,
    settings: Sequence[str] = (),
    force: bool = False,
    progress: OnProgress = ignore_progress,
) -> Probes:
    """Train a linear probe on each layer and on the mix of all; `out` is a folder for the results."""
    probe_settings(settings)  # before anything is loaded
    elmo = ensure_loaded(model)
    folder = None if out is None else Path(check_path(out, "out")).expanduser()
    if folder is not None:
        check_output_folder(folder, force=force)
    with lock_output(folder) if folder is not None else nullcontext():
        return _probe_layers(elmo, files, folder, settings, progress)


def _probe_layers(
    elmo: Elmo, files: Files, folder: Path | None, settings: Sequence[str], progress: OnProgress
) -> Probes:
    values: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="polyseme-") as vectors:
        for layer in [*range(elmo.config.layers), "mix"]:
            trained = train(make_probe(settings, layer), elmo, files, vectors=vectors, progress=progress)
            metrics = trained.best.test or trained.best.dev
            values[f"layer {layer}" if layer != "mix" else "mix"] = metrics["accuracy"]
    part, examples = trained.data.final
    result = Probes(values, measure_most_frequent(trained.data.train, examples), part)
    if folder is not None:
        with new_group(folder, "probes", known_names=(TABLE, PLOT)) as new:
            (new / TABLE).write_text(result.table() + "\n", encoding="utf-8")
            if plots.can_draw():
                plots.draw_layer_scores(values, result.baseline, "accuracy", new / PLOT)
    return result


def make_probe(settings: Sequence[str] = (), layer: int | str = "mix") -> Experiment:
    """The experiment of the probe of one layer, or of the mix of all."""
    return Experiment(Tagging, settings=(*probe_settings(settings), f"input.layers={json.dumps(layer)}"))


def probe_settings(settings: Sequence[str] = ()) -> tuple[str, ...]:
    """The settings of a linear probe and those of the user; settings that make it nonlinear are refused."""
    for line in settings:
        name = line.partition("=")[0].strip()
        fixed = name.startswith(("input.", "encoder.", "head.")) and name not in FREE
        if fixed or name == "data.scheme":
            raise UsageError(
                f"{name} is fixed in probes: they are linear, and predict each tag alone. Leave it out; you "
                f"can set data, train, {' and '.join(FREE)}."
            )
    return (*LINEAR, *settings)


def measure_most_frequent(train_examples: Sequence[Any], examples: Sequence[Any]) -> float:
    """Accuracy of the most frequent tag of each word in training; new words have the most frequent of all."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for example in train_examples:
        for word, tag in zip(example.text.tokens, example.tags, strict=True):
            counts[word][tag] += 1
            total[tag] += 1
    most_frequent = total.most_common(1)[0][0]
    best = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    pairs = [pair for example in examples for pair in zip(example.text.tokens, example.tags, strict=True)]
    correct = sum(1 for word, tag in pairs if best.get(word, most_frequent) == tag)
    return correct / max(1, len(pairs))
