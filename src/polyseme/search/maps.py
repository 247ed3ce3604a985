"""Usages of words in two dimensions, coloured by word or by sense: map.png or map.html.

    search.index, search.senses  ->  search.maps  ->  a picture, or a page that needs nothing but itself

Principal components in the core; t-SNE with openTSNE (extra `maps`). N usages, H values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError, require
from polyseme.io import plots
from polyseme.io.atomic import new_file
from polyseme.search.index import Index, Usage
from polyseme.search.senses import find_senses

MOST = 400  # usages of a word
WIDTH, HEIGHT, EDGE = 900, 600, 30


@dataclass(frozen=True)
class Map:
    """Usages with their places on the map, and the group (a word, or a sense of it) of each."""

    usages: list[Usage]
    points: NDArray[np.float32]  # (N, 2)
    groups: list[str]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a .png or a .html file."""
        place = Path(path).expanduser()
        if place.suffix not in (".png", ".html"):
            raise UsageError(f"{place}: a map is a .png or a .html file.")
        with new_file(place, force=force) as new:
            if place.suffix == ".html":
                new.write_text(page(self), encoding="utf-8")
            else:
                require("matplotlib", "plot", f"Drawing {place.name}")
                plots.scatter(self.points, self.groups, new)


def make_map(
    index: Index,
    words: Sequence[str],
    *,
    by: Literal["word", "sense"] = "word",
    method: Literal["pca", "tsne"] = "pca",
    seed: int = 0,
) -> Map:
    """The usages of `words` on a plane, at most MOST of each."""
    if not words:
        raise UsageError("A map needs a word.")
    if by not in ("word", "sense") or method not in ("pca", "tsne"):
        raise UsageError("A map is coloured by word or sense, and made by pca or tsne.")
    chance = np.random.default_rng(seed)
    numbers, groups = [], []
    for word in words:
        if by == "sense":
            found = find_senses(index, word, seed=seed)
            own, labels = found.numbers, [f"{word} {label + 1}" for label in found.labels]
        else:
            own = index.usage_numbers(word)
            labels = [word] * len(own)
        kept = np.sort(chance.permutation(len(own))[:MOST])
        numbers.append(own[kept])
        groups += [labels[row] for row in kept]
    every = np.concatenate(numbers)
    points = project(index.vectors(every), method, seed)
    return Map([index.usage(int(number)) for number in every], points, groups)


def project(vectors: NDArray[np.float32], method: str = "pca", seed: int = 0) -> NDArray[np.float32]:
    """(N, H) -> (N, 2); the sign of a component is such that its largest value is positive."""
    if method == "tsne" and len(vectors) > 10:
        tsne = require("openTSNE", "maps", "A map by t-SNE")
        perplexity = min(30, (len(vectors) - 1) // 3)
        found = tsne.TSNE(perplexity=perplexity, metric="cosine", random_state=seed).fit(vectors)
        return np.asarray(found, np.float32)
    moved = vectors - vectors.mean(axis=0)
    if moved.shape[0] < moved.shape[1]:  # the smaller of both products tells the same, and sooner
        spreads, sides = np.linalg.eigh(moved @ moved.T)  # rising
        points = (sides * np.sqrt(np.maximum(spreads, 0)))[:, :-3:-1]
    else:
        _, axes = np.linalg.eigh(moved.T @ moved)
        points = moved @ axes[:, :-3:-1]
    if points.shape[1] < 2:
        points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    turned: NDArray[np.float32] = (points * np.where(largest < 0, -1, 1)).astype(np.float32)
    return turned


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC",
sans-serif; margin: 1rem auto; max-width: 62rem; padding: 0 1rem }}
svg {{ width: 100%; height: auto; border: 1px solid #8884 }} circle {{ opacity: .7 }}
circle:hover, circle:focus {{ opacity: 1; stroke: currentColor; stroke-width: 2 }}
.legend span {{ margin-right: 1.5rem }}
i {{ display: inline-block; width: .8rem; height: .8rem; border-radius: 50% }}
</style>
<h1>{title}</h1>
<p class="legend">{legend}</p>
<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">{circles}</svg>
<p>{count} usages. Point at one to read its sentence.</p>
</html>
"""


def page(found: Map) -> str:
    """The map as a page: an SVG whose dots tell their sentences."""
    names = plots.in_order(found.groups)
    colours = {name: plots.COLOURS[number % len(plots.COLOURS)] for number, name in enumerate(names)}
    low, high = found.points.min(axis=0), found.points.max(axis=0)
    room = np.array([WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE])
    places = EDGE + (found.points - low) / np.maximum(high - low, 1e-9) * room
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{HEIGHT - y:.1f}" r="4" fill="{colours[name]}" tabindex="0">'
        f"<title>{escape(usage.marked())}\n{escape(usage.document)}:{usage.line}</title></circle>"
        for (x, y), usage, name in zip(places, found.usages, found.groups, strict=True)
    )
    legend = "".join(f'<span><i style="background:{colours[n]}"></i> {escape(n)}</span>' for n in names)
    title = escape(", ".join(dict.fromkeys(usage.word for usage in found.usages)))
    return PAGE.format(
        title=title,
        legend=legend,
        circles=circles,
        width=WIDTH,
        height=HEIGHT,
        count=f"{len(found.usages):,}",
    )
