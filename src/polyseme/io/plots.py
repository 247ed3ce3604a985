"""Pictures for tasks and search: mixtures of layers, confusions, curves, maps of usages, senses.

    tasks.report, tasks.probes, search.maps, search.change  ->  pictures  ->  PNG files

matplotlib (extra `plot`) is loaded when something is drawn. Labels may be Chinese.
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

CHINESE = (
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
MARKERS = "os^DvP"  # of groups that have the same colour
COLOURS = ("#1f6fb4", "#c62828", "#2e7d32", "#8e24aa", "#ef6c00", "#00838f", "#6d4c41", "#5c6bc0")
logger = logging.getLogger(__name__)


def draw_mixtures(mixtures: Sequence[Any], path: Path) -> None:
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
    _save(figure, path)


def draw_confusion(counts: Sequence[Sequence[int]], labels: Sequence[str], path: Path) -> None:
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
    _save(figure, path)


def draw_learning_curve(
    points: Mapping[str, Sequence[tuple[int, float, float]]], main: str, path: Path
) -> None:
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
    _save(figure, path)


def draw_layer_scores(values: Mapping[str, float], baseline: float, main: str, path: Path) -> None:
    """The main figure of a probe for each layer, and what the most frequent tag of a word reaches."""
    figure, axes = _figure(5, 3.5)
    axes.bar(list(values), list(values.values()), color="#4c78a8")
    axes.axhline(baseline, color="#888", linestyle="--", label="most frequent tag of the word")
    low = min(baseline, *values.values())
    axes.set(ylabel=main, ylim=(max(0.0, low - 0.1), 1.0))
    axes.legend(loc="lower right")
    _save(figure, path)


def order_groups(groups: Sequence[str]) -> list[str]:
    """The names of groups as a legend has them: words as they come, the numbered senses of each in order."""
    words = list(dict.fromkeys(name.partition(" ")[0] for name in groups))
    return sorted(set(groups), key=lambda name: (words.index(name.partition(" ")[0]), name))


def draw_map(points: Any, groups: Sequence[str], path: Path) -> None:
    """Points (N, 2) in the colours of their groups."""
    figure, axes = _figure(9, 6)
    for number, name in enumerate(order_groups(groups)):
        own = [row for row, group in enumerate(groups) if group == name]
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number // len(COLOURS) % len(MARKERS)]
        axes.scatter(points[own, 0], points[own, 1], s=14, alpha=0.7, color=colour, marker=marker, label=name)
    axes.set(xticks=[], yticks=[])
    axes.legend()
    _save(figure, path)


def draw_sense_shares(
    words: Mapping[str, Sequence[tuple[float, float]]], names: tuple[str, str], path: Path
) -> None:
    """The share of each sense of each word in two corpora, `names`: two bars a word, a colour a sense."""
    figure, axes = _figure(7, 0.7 * len(words) + 1.2)
    labels = []
    for number, (word, senses) in enumerate(words.items()):
        for side, name in enumerate(names):
            left, place = 0.0, 3 * number + side
            labels.append((place, f"{word}  {name}"))
            for sense, colour in zip(senses, cycle(COLOURS), strict=False):
                axes.barh(place, sense[side], left=left, color=colour, edgecolor="white")
                left += sense[side]
    axes.set_yticks([place for place, _ in labels], [label for _, label in labels])
    most = max(len(senses) for senses in words.values())
    for number, colour in zip(range(most), cycle(COLOURS), strict=False):
        axes.barh(0, 0, color=colour, label=f"sense {number + 1}")
    figure.legend(loc="outside upper center", ncols=min(most, 6))
    axes.set(xlim=(0, 1), xlabel="share of the usages")
    axes.invert_yaxis()
    _save(figure, path)


def can_draw() -> bool:
    """Whether there is what draws; where not, it is said."""
    found = find_spec("matplotlib") is not None
    if not found:
        logger.warning('Pictures are not drawn: they need matplotlib, pip install "polyseme[plot]".')
    return found


def _figure(width: float, height: float) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["font.family"] = ["DejaVu Sans", *_chinese_fonts()[:1]]
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


@cache
def _chinese_fonts() -> list[str]:
    """The fonts with Chinese characters; those installed since matplotlib looked last are looked for, too."""
    from matplotlib import font_manager

    def known() -> list[str]:
        names = {font.name for font in font_manager.fontManager.ttflist}
        return sorted(name for name in names if name in CHINESE or "CJK" in name)

    if not known():
        for path in font_manager.findSystemFonts():
            if "CJK" in path or any(name.replace(" ", "") in path for name in CHINESE) or "wqy" in path:
                font_manager.fontManager.addfont(path)
    return known()


def _save(figure: Any, path: Path) -> None:
    """Write the picture; characters that no font has are said once, in words."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        figure.savefig(path, dpi=DPI, format="png")
    if any(str(one.message).startswith("Glyph") for one in said):
        logger.warning(
            "A picture has characters that no font here has; on Debian: apt-get install fonts-noto-cjk"
        )
