"""A finished run as a page: curves, figures of the corpus, neighbours of frequent words.

    OUT/metrics.jsonl, OUT/corpus, the model  ->  training.report  ->  OUT/report.html, OUT/curves.png

The page needs nothing but itself. curves.png is drawn where matplotlib is installed (extra `plot`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict
from html import escape
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.embedder import load
from polyseme.text.corpus import Corpus, open_corpus, read_types, sentence_starts
from polyseme.words import WordVectors, mean_vectors

TOKENS = 120_000  # of the text, for the neighbours
WORDS = 12
logger = logging.getLogger(__name__)
Lines = list[dict[str, Any]]

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{name}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
color: #222 }}
table {{ border-collapse: collapse; margin: 1rem 0 }} td, th {{ padding: .2rem 1rem .2rem 0; text-align: left;
vertical-align: top; border-bottom: 1px solid #ddd }} svg {{ max-width: 100% }} h2 {{ margin-top: 2rem }}
@media (prefers-color-scheme: dark) {{ body {{ background: #181818; color: #ddd }} }}
</style>
<h1>{name}</h1>
<p>Held-out perplexity: <b>{mean:.1f}</b> (forward {forward:.1f}, backward {backward:.1f}),
{unknown:.1%} of the held-out words are outside the vocabulary.</p>
<h2>Curves</h2>{curves}
<h2>Neighbours</h2><p>Nearest words by the mean of their contextual vectors (top layer, centred).</p>
{neighbours}
<h2>Corpus</h2>{corpus}
</html>
"""


def write_report(folder: Path) -> None:
    """Write report.html, and curves.png where it can be drawn, for the finished run in `folder`."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    corpus = open_corpus(folder / "corpus")
    vectors = mean_vectors(load(folder), list(_some_sentences(corpus)), min_count=5)
    end = lines[-1]
    page = PAGE.format(
        name=escape(folder.name),
        mean=end["mean"],
        forward=end["forward"],
        backward=end["backward"],
        unknown=end["unknown"],
        curves=_svg(lines),
        neighbours=_table(_neighbours(vectors)),
        corpus=_table(
            [(name.replace("_", " "), str(value)) for name, value in asdict(corpus.report).items()]
        ),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    if find_spec("matplotlib") is None:
        logger.warning('curves.png is not drawn: that needs matplotlib, pip install "polyseme[plot]".')
        return
    _draw(lines, folder / "curves.png")


def _some_sentences(corpus: Corpus) -> Iterator[list[str]]:
    """Sentences of the training text, from its begin, about TOKENS tokens of them."""
    words = [word for some in read_types(corpus.folder) for word in some]
    stream = corpus.train[:TOKENS]
    starts = sentence_starts(stream, corpus.begin)
    for start, stop in pairwise(starts):
        yield [words[number] for number in stream[start + 1 : stop - 1]]


def _neighbours(vectors: WordVectors) -> list[tuple[str, str]]:
    """Frequent words of some length, each with its nearest."""
    order = np.argsort(-np.asarray(vectors.counts), kind="stable")
    content = (vectors.words[int(row)] for row in order)
    chosen = islice((word for word in content if _is_content(word)), WORDS)
    return [(word, ", ".join(near for near, _ in vectors.nearest(word, 10, min_chars=2))) for word in chosen]


def _is_content(word: str) -> bool:
    """Whether a word is long enough to be more than grammar: two Han characters, or five letters."""
    return word.isalpha() and len(word) >= (5 if word.isascii() else 2)


def _table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{escape(name)}<td>{escape(value)}" for name, value in rows)
    return f"<table>{cells}</table>"


def _series(lines: Lines, event: str, name: str) -> tuple[list[float], list[float]]:
    """Tokens and values of `name` in the lines of `event`."""
    found = [line for line in lines if line["event"] == event and name in line]
    return [line["tokens"] / 1e6 for line in found], [line[name] for line in found]


def _svg(lines: Lines, width: int = 720, height: int = 260) -> str:
    """The held-out perplexity over the tokens, on a logarithmic axis."""
    curves = {name: _series(lines, "validation", name) for name in ("forward", "backward")}
    points = [(x, y) for xs, ys in curves.values() for x, y in zip(xs, ys, strict=True) if np.isfinite(y)]
    if not points:
        return "<p>No validation was made on the way.</p>"
    right = max(x for x, _ in points)
    low, high = (np.log(extreme(y for _, y in points)) for extreme in (min, max))
    span = max(high - low, 1e-9)

    def place(x: float, y: float) -> str:
        across = 60 + (width - 80) * x / right
        return f"{across:.1f},{20 + (height - 60) * (high - np.log(y)) / span:.1f}"

    drawn = [
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
        f'points="{" ".join(place(x, y) for x, y in zip(*curves[name], strict=True))}"/>'
        f'<text x="{width - 90}" y="{20 + 18 * number}" fill="{colour}">{name}</text>'
        for number, (name, colour) in enumerate({"forward": "#1f77b4", "backward": "#d62728"}.items())
    ]
    labels = f'<text x="0" y="28" fill="currentColor">{np.exp(high):,.0f}</text>'
    labels += f'<text x="0" y="{height - 36}" fill="currentColor">{np.exp(low):,.0f}</text>'
    labels += f'<text x="60" y="{height - 8}" fill="currentColor">million tokens: 0 to {right:.2f}</text>'
    return f'<svg viewBox="0 0 {width} {height}" role="img">{labels}{"".join(drawn)}</svg>'


def _draw(lines: Lines, path: Path) -> None:
    """Loss and perplexity as a picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*_series(lines, "step", "loss"), color="#888", linewidth=0.8)
    left.set(title="training loss", xlabel="million tokens")
    for name in ("forward", "backward"):
        right.plot(*_series(lines, "validation", name), marker="o", markersize=3, label=name)
    right.set(title="held-out perplexity", xlabel="million tokens", yscale="log")
    for axis in ("set_major_formatter", "set_minor_formatter"):
        getattr(right.yaxis, axis)("{x:g}")
    right.legend()
    figure.savefig(path, dpi=120)
