"""Pictures of trainings: mixtures of layers, confusions, curves over sizes and layers.

    tasks.report, tasks.probes  ->  tasks.pictures  ->  PNG files

matplotlib is loaded here and nowhere else in `tasks`. Labels may be Chinese.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Serif CJK SC", "PingFang SC", "Microsoft YaHei", "SimHei")
DPI = 120


def layers(mixtures: Sequence[Any], path: Path) -> None:
    """The share of each layer, a group of bars for each mixture."""
    figure, axes = _figure(5, 3)
    width = 0.8 / len(mixtures)
    names = ["input", "output"] if len(mixtures) == 2 else [""]
    for number, shares in enumerate(mixtures):
        places = [layer + (number - (len(mixtures) - 1) / 2) * width for layer in range(len(shares))]
        axes.bar(places, shares, width, label=names[number])
    axes.set(xticks=range(len(mixtures[0])), xlabel="layer", ylabel="share", title="learned mixture")
    if len(mixtures) > 1:
        axes.legend()
    figure.savefig(path, dpi=DPI)


def confusion(counts: Sequence[Sequence[int]], labels: Sequence[str], path: Path) -> None:
    """Gold down, guess across, coloured by the share of the gold label."""
    size = max(4.0, 0.35 * len(labels) + 2)
    figure, axes = _figure(size, size)
    shares = [[value / max(1, sum(row)) for value in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    places = range(len(labels))
    axes.set(xticks=places, yticks=places, xlabel="guess", ylabel="gold")
    axes.set_xticklabels(
        labels, rotation=45 if len(labels) > 3 else 0, ha="right" if len(labels) > 3 else "center"
    )
    axes.set_yticklabels(labels)
    for down, row in enumerate(counts):
        for across, value in enumerate(row):
            if value and len(labels) <= 20:
                colour = "white" if shares[down][across] > 0.5 else "black"
                axes.text(across, down, str(value), ha="center", va="center", color=colour, fontsize=8)
    figure.savefig(path, dpi=DPI)


def curve(points: Mapping[str, Sequence[tuple[int, float, float]]], main: str, path: Path) -> None:
    """The main figure against the number of examples."""
    figure, axes = _figure(6, 4)
    for name, some in points.items():
        sizes, values, deviations = zip(*some, strict=True)
        axes.errorbar(sizes, values, yerr=deviations, marker="o", capsize=3, label=name)
    axes.set(xscale="log", xlabel="training examples", ylabel=main)
    marks = sorted({size for some in points.values() for size, _, _ in some})
    axes.set_xticks(marks, [f"{size:,}" for size in marks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=DPI)


def by_layer(values: Mapping[str, float], baseline: float, main: str, path: Path) -> None:
    """The main figure of a probe for each layer, and what the most frequent tag of a word reaches."""
    figure, axes = _figure(5, 3.5)
    axes.bar(list(values), list(values.values()), color="#4c78a8")
    axes.axhline(baseline, color="#888", linestyle="--", label="most frequent tag of the word")
    low = min(baseline, *values.values())
    axes.set(ylabel=main, ylim=(max(0.0, low - 0.1), 1.0))
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=DPI)


def _figure(width: float, height: float) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    mpl.rcParams["font.family"] = [name for name in FONTS if name in there] or ["sans-serif"]
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()
