"""What trainings found, for people: report.md, report.json and pictures.

    tasks.experiment  ->  tasks.report  ->  OUT/report.md, report.json, layers.png, confusion.png, curve.png

Pictures are drawn where matplotlib is installed (extra `plot`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev

from polyseme.io import plots
from polyseme.tasks.experiment import RunResult, TrainedTask
from polyseme.tasks.metrics import Scores
from polyseme.tasks.settings import InputConfig

MOST_LABELS = 40  # of a confusion that is drawn
NAMES = {True: "with ELMo", False: "without ELMo"}


def write_report(trained: TrainedTask, folder: Path) -> str:
    """Write the report of all trainings into `folder`; give its table."""
    model, data = trained.model, trained.data
    part = "test" if data.test else "dev"
    scores = trained.scores or model.judge(data.test or data.dev)
    summary = results_table(trained.results)
    sections = [
        f"# {model.config.task}",
        f"{len(data.train):,} examples to learn from, {len(data.dev):,} to choose by, {len(data.test):,} to "
        "judge.",
        summary,
        *difference(trained.results, part),
        *layer_text(trained.best, model.config.input),
        f"## By label ({part}, the model that is kept)" if scores.rows else "",
        label_table(scores) if scores.rows else "",
        confusion_text(scores),
    ]
    text = "\n\n".join(section for section in sections if section) + "\n"
    (folder / "report.md").write_text(text, encoding="utf-8")
    values = {"results": [asdict(result) for result in trained.results], part: scores.as_dict()}
    (folder / "report.json").write_text(
        json.dumps(values, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    draw(trained, scores, folder)
    return summary


def draw(trained: TrainedTask, scores: Scores, folder: Path) -> None:
    """The pictures that there is something to draw for."""
    if not plots.can_draw():
        return
    if trained.best.shares and one_layer(trained.model.config.input) is None:
        plots.draw_mixtures(trained.best.shares, folder / "layers.png")
    if 1 < len(scores.labels) <= MOST_LABELS:
        plots.draw_confusion(scores.confusion, scores.labels, folder / "confusion.png")
    points = curve_points(trained.results)
    if any(len(found) > 1 for found in points.values()):
        plots.draw_learning_curve(points, trained.best.main, folder / "curve.png")


def by_kind(results: Iterable[RunResult]) -> dict[tuple[bool, float], list[RunResult]]:
    """The runs of each kind: with or without ELMo, and the share of the examples."""
    found: dict[tuple[bool, float], list[RunResult]] = defaultdict(list)
    for result in results:
        found[result.cell.elmo, result.cell.share].append(result)
    return found


def results_table(results: Sequence[RunResult]) -> str:
    """A row for each kind: mean and deviation over the seeds."""
    main = results[0].main
    lines = [
        f"| | examples | runs | dev {main} | test {main} | epochs | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for (elmo, share), some in sorted(
        by_kind(results).items(), key=lambda item: (-item[0][1], not item[0][0])
    ):
        values = [
            NAMES[elmo] + (f", {share:.3g} of the examples" if share < 1 else ""),
            f"{some[0].examples:,}",
            str(len(some)),
            spread([result.dev[main] for result in some]),
            spread([result.test[main] for result in some]) if some[0].test else "",
            f"{mean(result.epochs for result in some):.0f}",
            f"{mean(result.seconds for result in some):.0f}",
        ]
        lines.append("| " + " | ".join(values) + " |")
    return "\n".join(lines)


def spread(values: Sequence[float]) -> str:
    """Mean, and the deviation where there are several."""
    return f"{mean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def difference(results: Sequence[RunResult], part: str) -> list[str]:
    """What ELMo adds, where both were trained on all examples."""
    kinds, main = by_kind(results), results[0].main
    if (True, 1.0) not in kinds or (False, 1.0) not in kinds:
        return []
    ours, bare = (mean(getattr(r, part)[main] for r in kinds[elmo, 1.0]) for elmo in (True, False))
    removed = (ours - bare) / (1 - bare) if bare < 1 else 0.0
    return [
        f"ELMo changes {main} on {part} by {ours - bare:+.4f}, {removed:+.1%} of the error of the same model "
        "without it."
    ]


def layer_text(best: RunResult, config: InputConfig) -> list[str]:
    """The learned mixtures in words; or what is read, where nothing is mixed."""
    one, lines = one_layer(config), []
    for number, (shares, gamma) in enumerate(zip(best.shares, best.gammas, strict=True), start=1):
        flat = one or ", ".join(f"layer {layer}: {share:.3f}" for layer, share in enumerate(shares))
        lines.append(f"{'Vectors' if one else 'Mixture'} {number}: {flat}; gamma {gamma:.3f}.")
    return ["## Layers", "\n".join(lines)] if lines else []


def one_layer(config: InputConfig) -> str | None:
    """What of ELMo is read, where that is one vector a token; None where layers are mixed in training."""
    if config.layers == "top":
        return "the top layer alone"
    if config.layers != "mix":
        return f"layer {config.layers} alone"
    return "the mean of all layers, not trained" if config.tune == "frozen" else None


def confusion_text(scores: Scores) -> str:
    """Why there is no picture of a confusion, where there is none."""
    if len(scores.labels) > MOST_LABELS:
        return (
            f"The confusion is not drawn: {len(scores.labels)} labels are more than {MOST_LABELS}. "
            "Its counts stand in report.json."
        )
    if scores.rows and not scores.labels:
        return (
            "There is no confusion matrix: of spans, and of several labels for an example, no one answer "
            "stands for another. The table counts each label by itself."
        )
    return ""


def label_table(scores: Scores) -> str:
    """Precision, recall and F1 of each label."""
    lines = ["| label | precision | recall | F1 | count |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.label} | {row.precision:.3f} | {row.recall:.3f} | {row.f1:.3f} | {row.count:,} |"
        for row in scores.rows
    ]
    return "\n".join(lines)


def curve_points(results: Sequence[RunResult]) -> dict[str, list[tuple[int, float, float]]]:
    """For each kind: examples, mean, deviation; on test where there is one."""
    main = results[0].main
    found: dict[str, list[tuple[int, float, float]]] = {}
    for (elmo, _), some in sorted(by_kind(results).items()):
        values = [(result.test or result.dev)[main] for result in some]
        point = (some[0].examples, mean(values), stdev(values) if len(values) > 1 else 0.0)
        found.setdefault(NAMES[elmo], []).append(point)
    return found
