"""The report of an experiment: report.md, report.json and plots.

    tasks.experiment  ->  tasks.report  ->  OUT/report.md, report.json, training.png and other plots

Plots need matplotlib (extra `plot`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from polyseme.io import plots
from polyseme.io.atomic import new_group
from polyseme.tasks.experiment import RunResult, TrainedTask
from polyseme.tasks.metrics import Scores
from polyseme.tasks.run_folder import REPORTS
from polyseme.tasks.settings import InputSettings
from polyseme.tasks.significance import Difference, compare_runs
from polyseme.tasks.tfidf import NAME as BASELINE
from polyseme.tasks.tfidf import Baseline

MAX_LABELS = 40  # of a confusion matrix that is plotted
NAMES = {True: "with ELMo", False: "without ELMo"}


def write_report(trained: TrainedTask, folder: Path) -> str:
    """Write the report of an experiment into `folder`; returns its table."""
    model, data = trained.model, trained.data
    part, examples = data.final
    scores = trained.scores or model.score_examples(examples)
    summary = render_results(trained.results, model.baseline)
    sections = [
        f"# {model.task.name}",
        "Examples: " + ", ".join(f"{name} {len(examples):,}" for name, examples in data.sets.items()) + ".",
        summary,
        *describe_elmo_effect(trained.results, part),
        *advise(trained.results, model.baseline, part),
        *describe_mixes(trained.best, model.settings.input),
        "## Convergence",
        render_convergence(trained.results),
        f"## By label ({part}, the saved model)" if scores.rows else "",
        render_labels(scores) if scores.rows else "",
        explain_confusion(scores),
        *scores.notes,
    ]
    text = "\n\n".join(section for section in sections if section) + "\n"
    results = [asdict(result) for result in trained.results]
    values: dict[str, Any] = {"results": results, part: scores.as_dict()}
    if model.baseline is not None:
        values["baseline"] = {"name": BASELINE, **asdict(model.baseline)}
    with new_group(folder, "report", known_names=REPORTS) as new:
        (new / "report.md").write_text(text, encoding="utf-8")
        content = json.dumps(values, ensure_ascii=False, indent=1) + "\n"
        (new / "report.json").write_text(content, encoding="utf-8")
        draw_plots(trained, scores, new)
    return summary


def draw_plots(trained: TrainedTask, scores: Scores, folder: Path) -> None:
    """Draw the layers, the confusion matrix and the curves, as far as there are any."""
    if not plots.can_draw():
        return
    if trained.best.shares and describe_layer(trained.model.settings.input) is None:
        plots.draw_mixtures(trained.best.shares, folder / "layers.png")
    if 1 < len(scores.labels) <= MAX_LABELS:
        plots.draw_confusion(scores.confusion, scores.labels, folder / "confusion.png")
    full = [result for result in trained.results if result.run.share == 1.0]
    lines = [(NAMES[r.run.elmo], [(epoch, value) for epoch, value in r.validations]) for r in full]
    plots.draw_training_curves(lines, f"dev {trained.best.main}", folder / "training.png")
    points = list_curve_points(trained.results)
    if any(len(series) > 1 for series in points.values()):
        plots.draw_learning_curve(points, trained.best.main, folder / "curve.png")


def group_results(results: Iterable[RunResult]) -> dict[tuple[bool, float], list[RunResult]]:
    """The results by whether they have ELMo, and by the share of the examples."""
    groups: dict[tuple[bool, float], list[RunResult]] = defaultdict(list)
    for result in results:
        groups[result.run.elmo, result.run.share].append(result)
    return groups


def render_results(results: Sequence[RunResult], baseline: Baseline | None = None) -> str:
    """A row for each group of runs, with mean and deviation over the seeds, and one for the baseline."""
    main = results[0].main
    lines = [
        f"| | examples | runs | dev {main} | test {main} | epochs | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for (elmo, share), group in sorted(
        group_results(results).items(), key=lambda item: (-item[0][1], not item[0][0])
    ):
        values = [
            NAMES[elmo] + (f", {share:.3g} of the examples" if share < 1 else ""),
            f"{group[0].examples:,}",
            str(len(group)),
            spread([result.dev[main] for result in group]),
            spread([result.test[main] for result in group]) if group[0].test else "",
            f"{mean(result.epochs for result in group):.0f}",
            f"{mean(result.seconds for result in group):.0f}",
        ]
        lines.append("| " + " | ".join(values) + " |")
    if baseline is not None:
        tested = f"{baseline.test[main]:.4f}" if baseline.test else ""
        values = [BASELINE, f"{baseline.examples:,}", "1", f"{baseline.dev[main]:.4f}", tested, ""]
        lines.append("| " + " | ".join([*values, f"{baseline.seconds:.0f}"]) + " |")
    return "\n".join(lines)


def spread(values: Sequence[float]) -> str:
    """The mean, and the deviation of several values."""
    return f"{mean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def describe_elmo_effect(results: Sequence[RunResult], part: str) -> list[str]:
    """How much ELMo adds, if there are runs with and without it on all examples."""
    groups, main = group_results(results), results[0].main
    if (True, 1.0) not in groups or (False, 1.0) not in groups:
        return []
    with_elmo, bare = groups[True, 1.0], groups[False, 1.0]
    difference = compare_runs(
        *([getattr(r, part)[main] for r in group] for group in (bare, with_elmo)),
        *([r.resampled for r in group] for group in (bare, with_elmo)),
    )
    verbs = ("raises", "cuts") if difference.gain >= 0 else ("lowers", "raises")
    return [
        f"ELMo {verbs[0]} {main} on {part} by {abs(difference.gain):.4f} and {verbs[1]} the error of the "
        f"same model without it by {abs(difference.error_reduction):.1%}. "
        f"{describe_certainty(difference, part)}",
        *warn_of_cap([*with_elmo, *bare]),
    ]


def describe_certainty(difference: Difference, part: str) -> str:
    """Say how sure a difference is, and why."""
    reasons = []
    if difference.seeds_p is None:
        reasons.append("one run of each")
    else:
        reasons.append(f"over {difference.runs} seeds of each p = {difference.seeds_p:.2g}")
    if difference.examples_p is not None:
        reasons.append(
            f"over draws of the {part} examples p = {difference.examples_p:.2g}, "
            f"95% of them between {difference.low:+.4f} and {difference.high:+.4f}"
        )
    verdicts = {
        "sure": "Other seeds and other examples would very likely say the same",
        "likely": "This is likely, but not sure",
        "one run": "Other examples would very likely say the same; other seeds may not: use `runs=3`",
        "not shown": "This may be chance: these runs do not show a difference",
    }
    return f"{verdicts[difference.verdict]} ({'; '.join(reasons)})."


def warn_of_cap(results: Sequence[RunResult]) -> list[str]:
    """Say which runs ended before dev stopped improving; a comparison of such runs flatters the quicker."""
    capped = [result for result in results if not result.converged]
    if not capped:
        return []
    names = sorted({NAMES[result.run.elmo] for result in capped}, reverse=True)
    return [
        f"{len(capped)} of {len(results)} runs ({' and '.join(names)}) ended at the cap of train.epochs "
        "before dev stopped improving: raise it for a fair comparison."
    ]


def render_convergence(results: Sequence[RunResult]) -> str:
    """A row for each run: how many epochs it took, which was the best on dev, and why it stopped."""
    lines = ["| run | epochs | best epoch | stopped |", "|---|---|---|---|"]
    for result in results:
        best = max(result.validations, key=lambda point: point[1])[0] if result.validations else result.epochs
        reason = "dev stopped improving" if result.converged else "cap of train.epochs"
        lines.append(f"| {result.run.title} | {result.epochs} | {best:g} | {reason} |")
    return "\n".join(lines)


def advise(results: Sequence[RunResult], baseline: Baseline | None, part: str) -> list[str]:
    """Say which of the models to use, if a baseline was trained.

    Args:
        results: The results of all runs.
        baseline: TF-IDF with logistic regression.
        part: The set that is compared: test or dev.

    """
    if baseline is None:
        return []
    main, examples = results[0].main, baseline.sizes[part]
    groups = {elmo: group for (elmo, share), group in group_results(results).items() if share == 1.0}
    values = {NAMES[elmo]: mean(getattr(r, part)[main] for r in group) for elmo, group in groups.items()}
    values[BASELINE] = getattr(baseline, part)[main]
    best = max(values, key=lambda name: values[name])
    ranking = ", ".join(
        f"{values[name]:.4f} {name}" for name in sorted(values, key=lambda name: -values[name])
    )
    # Two standard errors of a share: what so many examples can show.
    visible = 2 * (values[best] * max(0.0, 1 - values[best]) / max(examples, 1)) ** 0.5
    if best != BASELINE and values[best] - values[BASELINE] < visible:
        reason = (
            f" {examples:,} examples cannot show that {best} is better, and {BASELINE} is simpler and faster."
        )
        return [f"Use {BASELINE}: {main} on {part} is {ranking}.{reason}"]
    return [f"Use {'' if best == BASELINE else 'the model '}{best}: {main} on {part} is {ranking}."]


def describe_mixes(best: RunResult, settings: InputSettings) -> list[str]:
    """The learned mixes in words, or which layer is used."""
    layer, lines = describe_layer(settings), []
    for number, (shares, gamma) in enumerate(zip(best.shares, best.gammas, strict=True), start=1):
        text = layer or ", ".join(f"layer {index}: {share:.3f}" for index, share in enumerate(shares))
        lines.append(f"{'Vectors' if layer else 'Mix'} {number}: {text}; gamma {gamma:.3f}.")
    return ["## Layers", "\n".join(lines)] if lines else []


def describe_layer(settings: InputSettings) -> str | None:
    """Which vectors of ELMo are used; None if training mixes the layers."""
    if settings.layers == "top":
        return "the top layer"
    if settings.layers != "mix":
        return f"layer {settings.layers}"
    return "the mean of all layers, not trained" if settings.tune == "frozen" else None


def explain_confusion(scores: Scores) -> str:
    """Why there is no plot of a confusion matrix; empty if there is one."""
    if len(scores.labels) > MAX_LABELS:
        return (
            f"The confusion matrix is not plotted: {len(scores.labels)} labels are more than {MAX_LABELS}. "
            "Its counts are in report.json."
        )
    if scores.rows and not scores.labels:
        return (
            "There is no confusion matrix: spans, and several labels for an example, cannot be confused one "
            "for one. The table counts each label by itself."
        )
    return ""


def render_labels(scores: Scores) -> str:
    """Precision, recall and F1 of each label."""
    lines = ["| label | precision | recall | F1 | count |", "|---|---|---|---|---|"]
    lines += [
        f"| {row.label} | {row.precision:.3f} | {row.recall:.3f} | {row.f1:.3f} | {row.count:,} |"
        for row in scores.rows
    ]
    return "\n".join(lines)


def list_curve_points(results: Sequence[RunResult]) -> dict[str, list[tuple[int, float, float]]]:
    """For each group: examples, mean, deviation; on test, or dev if there is none."""
    main = results[0].main
    points: dict[str, list[tuple[int, float, float]]] = {}
    for (elmo, _), group in sorted(group_results(results).items()):
        values = [(result.test or result.dev)[main] for result in group]
        point = (group[0].examples, mean(values), stdev(values) if len(values) > 1 else 0.0)
        points.setdefault(NAMES[elmo], []).append(point)
    return points
