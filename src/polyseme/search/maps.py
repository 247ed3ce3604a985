"""Draw usages of words in two dimensions, coloured by word or by sense: .png or .html.

    search.index, search.senses  ->  search.maps  ->  a picture, or a page without outside resources

Principal components are in the core, t-SNE needs openTSNE (extra `maps`). N usages, H values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import MapMethod
from polyseme.errors import UsageError, require
from polyseme.io import plots
from polyseme.io.atomic import new_file
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress
from polyseme.search.index import Index, Usage
from polyseme.search.selection import group_documents
from polyseme.search.senses import find_senses

MAX_USAGES = 400  # of a word
WIDTH, HEIGHT, MARGIN = 900, 600, 30


@dataclass(frozen=True, eq=False, repr=False)
class Map:
    """Usages as points in two dimensions.

    Attributes:
        usages: The N usages.
        points: (N, 2) their coordinates.
        groups: The group of each, which gives its colour: a word, or a word and the number of its sense.

    """

    usages: list[Usage]
    points: NDArray[np.float32]
    groups: list[str]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a .png or .html file.

        Args:
            path: The file; its ending decides the format.
            force: Replace a file that exists.

        Raises:
            UsageError: Another ending, or the file exists and `force` is False.
            MissingExtraError: A .png needs matplotlib, which is not installed.

        Example:
            >>> polyseme.map_usages(index, ["bank", "river"]).save("map.html")

        """
        file = Path(path).expanduser()
        if file.suffix not in (".png", ".html"):
            raise UsageError(f"{file}: a map must be a .png or .html file.")
        with new_file(file, force=force) as new:
            if file.suffix == ".html":
                new.write_text(render_page(self), encoding="utf-8")
            else:
                require("matplotlib", "plot", f"Drawing {file.name}")
                plots.draw_map(self.points, self.groups, new)

    @property
    def words(self) -> list[str]:
        """The words whose usages are on the map."""
        return list(dict.fromkeys(usage.word for usage in self.usages))

    def __repr__(self) -> str:
        return f"Map({len(self.usages):,} usages of {', '.join(self.words)})"

    def _repr_html_(self) -> str:
        return f'<div style="max-width:{WIDTH}px">{_render_legend(self)}{_render_svg(self)}</div>'


def make_map(
    index: Index,
    words: Sequence[str],
    *,
    by: str = "word",
    method: MapMethod = "pca",
    seed: int = 0,
    on_progress: OnProgress = ignore_progress,
) -> Map:
    """Place the usages of words in two dimensions, at most MAX_USAGES of each word.

    Args:
        index: The index.
        words: The words.
        by: Colour usages by "word", "sense", "document", or a field of the metadata such as "year/10".
        method: "pca", or "tsne" with openTSNE (extra `maps`).
        seed: Seeds sampling, clustering and t-SNE.
        on_progress: Receives the progress.

    Returns:
        The map; its `save` writes a picture or a page.

    Raises:
        UnknownWordError: A word has no usages.
        UsageError: No word, or an unknown `by` or `method`.
        MissingExtraError: t-SNE needs openTSNE, which is not installed.

    """
    if not words:
        raise UsageError("A map needs a word.")
    if by not in ("word", "sense"):
        group_documents(index.listed_documents, by)  # refuses what is not a field
    if method not in ("pca", "tsne"):
        raise UsageError(f"method is {method!r}, expected pca or tsne.")
    rng = np.random.default_rng(seed)
    numbers, groups = [], []
    for done, word in enumerate(words):
        on_progress(ProgressEvent("reading", done, len(words), word))
        if by == "sense":
            senses = find_senses(index, word, seed=seed)
            word_numbers, labels = senses.numbers, [f"{word} {label + 1}" for label in senses.labels]
        else:
            word_numbers = index.usage_numbers(word)
            if by == "word":
                labels = [word] * len(word_numbers)
            else:
                names = index.groups(word_numbers, by)
                labels = [f"{word} {name}" if len(words) > 1 else name for name in names]
        drawn = np.sort(rng.permutation(len(word_numbers))[:MAX_USAGES])
        numbers.append(word_numbers[drawn])
        groups += [labels[row] for row in drawn]
    all_numbers = np.concatenate(numbers)
    on_progress(ProgressEvent("projecting", detail=f"{len(all_numbers):,} usages"))
    points = project(index.vectors(all_numbers), method, seed)
    return Map([index.usage(int(number)) for number in all_numbers], points, groups)


def project(vectors: NDArray[np.float32], method: str = "pca", seed: int = 0) -> NDArray[np.float32]:
    """Project vectors (N, H) to two dimensions (N, 2).

    The sign of a principal component is chosen so that its largest value is positive.
    """
    if method == "tsne" and len(vectors) > 10:
        tsne = require("openTSNE", "maps", "A map by t-SNE")
        perplexity = min(30, (len(vectors) - 1) // 3)
        embedding = tsne.TSNE(perplexity=perplexity, metric="cosine", random_state=seed).fit(vectors)
        return np.asarray(embedding, np.float32)
    centred = vectors - vectors.mean(axis=0)
    if centred.shape[0] < centred.shape[1]:  # the smaller of the two products gives the same points faster
        variances, axes = np.linalg.eigh(centred @ centred.T)  # ascending
        points = (axes * np.sqrt(np.maximum(variances, 0)))[:, :-3:-1]
    else:
        _, axes = np.linalg.eigh(centred.T @ centred)
        points = centred @ axes[:, :-3:-1]
    if points.shape[1] < 2:
        points = np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
    largest = points[np.abs(points).argmax(axis=0), [0, 1]]
    signed: NDArray[np.float32] = (points * np.where(largest < 0, -1, 1)).astype(np.float32)
    return signed


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC",
sans-serif; margin: 1rem auto; max-width: 62rem; padding: 0 1rem }}
circle:hover, circle:focus {{ opacity: 1; stroke: currentColor; stroke-width: 2 }}
</style>
<h1>{title}</h1>
{legend}
{svg}
<p>{count} usages. Point at one to read its sentence.</p>
</html>
"""


def render_page(usage_map: Map) -> str:
    """Render a map as an HTML page: each dot shows its sentence and location when pointed at."""
    return PAGE.format(
        title=escape(", ".join(usage_map.words)),
        legend=_render_legend(usage_map),
        svg=_render_svg(usage_map),
        count=f"{len(usage_map.usages):,}",
    )


def _render_legend(usage_map: Map) -> str:
    """The groups with their colours, as HTML."""
    dot = "display:inline-block;width:.8rem;height:.8rem;border-radius:50%"
    names = "".join(
        f'<span style="margin-right:1.5rem"><i style="{dot};background:{colour}"></i> {escape(name)}</span>'
        for name, colour in _choose_colours(usage_map).items()
    )
    return f"<p>{names}</p>"


def _render_svg(usage_map: Map) -> str:
    """The usages as dots in an SVG, each with its sentence and location as a tooltip."""
    colours = _choose_colours(usage_map)
    low, high = usage_map.points.min(axis=0), usage_map.points.max(axis=0)
    area = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    coordinates = MARGIN + (usage_map.points - low) / np.maximum(high - low, 1e-9) * area
    circles = "".join(
        f'<circle cx="{x:.1f}" cy="{HEIGHT - y:.1f}" r="4" opacity=".7" fill="{colours[name]}" tabindex="0">'
        f"<title>{escape(usage.marked())}\n{escape(usage.location)}</title></circle>"
        for (x, y), usage, name in zip(coordinates, usage_map.usages, usage_map.groups, strict=True)
    )
    label = escape(", ".join(usage_map.words))
    style = "width:100%;height:auto;border:1px solid #8884"
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {box} style="{style}" role="img" aria-label="{label}">{circles}</svg>'


def _choose_colours(usage_map: Map) -> dict[str, str]:
    names = plots.order_groups(usage_map.groups)
    return {name: plots.COLOURS[number % len(plots.COLOURS)] for number, name in enumerate(names)}
