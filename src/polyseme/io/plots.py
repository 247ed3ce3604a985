"""Draw PNG files for tasks and search: layer weights, confusions, curves, maps of usages, senses.

    tasks.report, tasks.probes, search.maps, search.change  ->  io.plots  ->  PNG files

matplotlib (extra `plot`) is imported when something is drawn. Labels may be Chinese.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

CHINESE_FONTS = (
    "PingFang SC",
    "Microsoft YaHei",
    "SimHei",
    "SimSun",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Noto Sans SC",
    "Source Han Sans SC",
)
DPI = 120
MARKERS = "os^DvP"  # for groups that share a colour
COLOURS = ("#1f6fb4", "#c62828", "#2e7d32", "#8e24aa", "#ef6c00", "#00838f", "#6d4c41", "#5c6bc0")
MAX_COUNTED_LABELS = 20  # of a confusion matrix with numbers in its cells
LEGEND_COLUMNS = 4
logger = logging.getLogger(__name__)


def draw_mixtures(mixtures: Sequence[Any], path: Path) -> None:
    """Draw the weight of each layer: one group of bars per mixture."""
    figure, axes = _make_figure(5, 3)
    width = 0.8 / len(mixtures)
    names = ["input", "output"] if len(mixtures) == 2 else [""]
    for number, weights in enumerate(mixtures):
        shift = (number - (len(mixtures) - 1) / 2) * width
        axes.bar([layer + shift for layer in range(len(weights))], weights, width, label=names[number])
    axes.set(xticks=range(len(mixtures[0])), xlabel="layer", ylabel="weight", title="learned layer weights")
    if len(mixtures) > 1:
        axes.legend()
    _save(figure, path)


def draw_confusion(counts: Sequence[Sequence[int]], labels: Sequence[str], path: Path) -> None:
    """Draw a confusion matrix: one row per label, one column per prediction, coloured by the row's share."""
    size = max(4.0, 0.35 * len(labels) + 2)
    figure, axes = _make_figure(size, size)
    shares = [[value / max(1, sum(row)) for value in row] for row in counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    ticks, is_slanted = range(len(labels)), len(labels) > 3
    axes.set(xticks=ticks, yticks=ticks, xlabel="prediction", ylabel="label")
    axes.set_xticklabels(labels, rotation=45 if is_slanted else 0, ha="right" if is_slanted else "center")
    axes.set_yticklabels(labels)
    if len(labels) <= MAX_COUNTED_LABELS:
        for down, row in enumerate(counts):
            for across, value in enumerate(row):
                if value:
                    colour = "white" if shares[down][across] > 0.5 else "black"
                    axes.text(across, down, str(value), ha="center", va="center", color=colour, fontsize=8)
    _save(figure, path)


def draw_learning_curve(
    points: Mapping[str, Sequence[tuple[int, float, float]]], score_name: str, path: Path
) -> None:
    """Draw a score against the number of training examples: (examples, score, deviation) for each line."""
    figure, axes = _make_figure(6, 4)
    for name, line in points.items():
        sizes, values, deviations = zip(*line, strict=True)
        axes.errorbar(sizes, values, yerr=deviations, marker="o", capsize=3, label=name)
    axes.set(xscale="log", xlabel="training examples", ylabel=score_name)
    ticks = sorted({size for line in points.values() for size, _, _ in line})
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, path)


def draw_training_curves(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]]]], score_name: str, path: Path
) -> None:
    """Draw a score after each epoch: a line per run with its best point marked, a colour per name."""
    figure, axes = _make_figure(6, 4)
    names = list(dict.fromkeys(name for name, _ in lines))
    labelled: set[str] = set()
    for name, points in lines:
        if points:
            colour, label = COLOURS[names.index(name) % len(COLOURS)], None if name in labelled else name
            axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.2, alpha=0.8, label=label)
            axes.plot(*max(points, key=lambda point: point[1]), marker="o", color=colour)
            labelled.add(name)
    axes.set(xlabel="epoch (dot: the best)", ylabel=score_name)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    _save(figure, path)


def draw_layer_scores(scores: Mapping[str, float], baseline: float, score_name: str, path: Path) -> None:
    """Draw the score of a probe for each layer, and the score of each word's most frequent tag."""
    figure, axes = _make_figure(5, 3.5)
    axes.bar(list(scores), list(scores.values()), color="#4c78a8")
    axes.axhline(baseline, color="#888", linestyle="--", label="most frequent tag of each word")
    low = min(baseline, *scores.values())
    axes.set(ylabel=score_name, ylim=(max(0.0, low - 0.1), 1.0))
    axes.legend(loc="lower right")
    _save(figure, path)


def order_groups(groups: Sequence[str]) -> list[str]:
    """Return the names of groups in the order of a legend: words as they come, their senses by number."""
    words = list(dict.fromkeys(name.partition(" ")[0] for name in groups))
    return sorted(set(groups), key=lambda name: (words.index(name.partition(" ")[0]), name))


def draw_map(points: Any, groups: Sequence[str], path: Path) -> None:
    """Draw points (N, 2) in the colours of their groups."""
    figure, axes = _make_figure(9, 6)
    for number, name in enumerate(order_groups(groups)):
        rows = [row for row, group in enumerate(groups) if group == name]
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number // len(COLOURS) % len(MARKERS)]
        axes.scatter(
            points[rows, 0], points[rows, 1], s=14, alpha=0.7, color=colour, marker=marker, label=name
        )
    axes.set(xticks=[], yticks=[])
    axes.legend()
    _save(figure, path)


def draw_sense_shares(
    words: Mapping[str, Sequence[tuple[float, float]]], names: tuple[str, str], path: Path
) -> None:
    """Draw the share of each sense of each word in two corpora: two bars per word, one colour per sense."""
    figure, axes = _make_figure(7, 0.7 * len(words) + 1.5)
    heights, labels = [], []
    for number, (word, senses) in enumerate(words.items()):
        for corpus, name in enumerate(names):
            left, height = 0.0, 3 * number + corpus
            heights.append(height)
            labels.append(f"{word}  {name}")
            for shares, colour in zip(senses, cycle(COLOURS), strict=False):
                axes.barh(height, shares[corpus], left=left, color=colour, edgecolor="white")
                left += shares[corpus]
    axes.set_yticks(heights, labels)
    max_senses = max(len(senses) for senses in words.values())
    for number, colour in zip(range(max_senses), cycle(COLOURS), strict=False):
        axes.barh(0, 0, color=colour, label=f"sense {number + 1}")
    figure.legend(loc="outside upper center", ncols=min(max_senses, LEGEND_COLUMNS))
    axes.set(xlim=(0, 1), xlabel="share of usages")
    axes.invert_yaxis()
    _save(figure, path)


def can_draw() -> bool:
    """Whether matplotlib is installed; warns if not."""
    is_installed = find_spec("matplotlib") is not None
    if not is_installed:
        logger.warning('No plots are drawn: they need matplotlib, pip install "polyseme[plot]".')
    return is_installed


def _make_figure(width: float, height: float) -> tuple[Any, Any]:
    """A figure of this size in inches and its axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["font.family"] = ["DejaVu Sans", *_find_chinese_fonts()[:1]]
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


@cache
def _find_chinese_fonts() -> list[str]:
    """The fonts with Chinese characters, including those installed since matplotlib built its cache."""
    from matplotlib import font_manager

    def list_fonts() -> list[str]:
        names = {font.name for font in font_manager.fontManager.ttflist}
        return sorted(name for name in names if name in CHINESE_FONTS or "CJK" in name)

    if not list_fonts():
        for path in font_manager.findSystemFonts():
            has_name = any(name.replace(" ", "") in path for name in CHINESE_FONTS)
            if "CJK" in path or has_name or "wqy" in path:
                font_manager.fontManager.addfont(path)
    return list_fonts()


def _save(figure: Any, path: Path) -> None:
    """Write the figure; warn once if no font has some of its characters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(path, dpi=DPI, format="png")
    if any(str(warning.message).startswith("Glyph") for warning in caught):
        logger.warning(
            "A plot has characters that no installed font has; on Debian: apt-get install fonts-noto-cjk"
        )
