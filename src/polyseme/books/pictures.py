"""Pictures of a book as SVG: who occurs when, and who occurs with whom.

books.mentions, books.network  ->  books.pictures  ->  books.page

Colours come from the classes g0, g1, … and the variables of the page, so that light and dark both work.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from polyseme.books.characters import Character
from polyseme.books.mentions import BookMentions

COLOURS = 8  # classes g0 to g7
_COLUMNS = 120  # chapters are joined beyond that
_ROW, _CELLS = 20, 640  # height of a row, width of all columns
_WIDTH, _HEIGHT = 760, 620  # of the network
_LABEL = 18  # height of a name above its dot
_EDGES_PER_CHARACTER = 3
_STEPS = 300


def draw_timeline(
    characters: Sequence[Character], mentions: BookMentions, groups: Sequence[int], label: str
) -> str:
    """Draw a row per character and a column per chapter, or several chapters; darker: more mentions."""
    number = len(mentions.chapters)
    columns = min(number, _COLUMNS)
    column_of = [n * columns // number for n in range(number)]
    table = np.zeros((len(characters), columns), int)
    for (who, chapter), count in mentions.by_chapter.items():
        table[who, column_of[chapter]] += count
    left = 12 + max(max((_text_width(c.name) for c in characters), default=0), 40)
    step = _CELLS / columns
    parts = []
    for n, character in enumerate(characters):
        y = n * _ROW
        parts.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(character.name)}</text>')
        most = max(int(table[n].max()), 1)
        for column in np.flatnonzero(table[n]).tolist():
            titles = [mentions.chapters[c] for c in range(number) if column_of[c] == column]
            name = titles[0] if len(titles) == 1 else f"{titles[0]} – {titles[-1]}"
            count = int(table[n, column])
            parts.append(
                f'<rect class="g{groups[n] % COLOURS}" x="{left + column * step:.1f}" y="{y + 2}" '
                f'width="{max(step - 0.6, 0.8):.1f}" height="{_ROW - 4}" '
                f'opacity="{0.15 + 0.85 * (count / most) ** 0.6:.2f}">'
                f"<title>{escape(character.name)} · {escape(name)}: {count}</title></rect>"
            )
    height = len(characters) * _ROW + 24
    for column in _ticks(columns):
        x = left + (column + 0.5) * step
        chapter = next(c for c in range(number) if column_of[c] == column) + 1
        parts.append(f'<text class="axis" x="{x:.1f}" y="{height - 6}" text-anchor="middle">{chapter}</text>')
    return _svg(left + _CELLS + 8, height, parts, label)


def draw_network(
    characters: Sequence[Character], mentions: BookMentions, groups: Sequence[int], label: str
) -> str:
    """Draw characters as dots, sized by mentions, coloured by group, joined to those they are often with."""
    edges = _choose_edges(mentions, len(characters))
    top = max(mentions.counts.values(), default=1)
    radii = np.array([4 + 16 * (mentions.counts[n] / top) ** 0.5 for n in range(len(characters))])
    widths = np.array([max(_text_width(c.name), 2 * r) for c, r in zip(characters, radii, strict=True)])
    points = _part_labels(_lay_out(len(characters), edges), radii, widths)
    most = max((weight for *_, weight in edges), default=1)
    parts = []
    for a, b, weight in sorted(edges, key=lambda edge: edge[2]):
        (x1, y1), (x2, y2) = points[a], points[b]
        parts.append(
            f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" '
            f'stroke-width="{0.6 + 5 * (weight / most) ** 0.5:.1f}">'
            f"<title>{escape(characters[a].name)} – {escape(characters[b].name)}: {weight}</title></line>"
        )
    for n in sorted(range(len(characters)), key=lambda n: -mentions.counts[n]):
        x, y = points[n]
        radius = radii[n]
        parts.append(
            f'<circle class="g{groups[n] % COLOURS}" cx="{x:.0f}" cy="{y:.0f}" r="{radius:.1f}">'
            f"<title>{escape(characters[n].name)}: {mentions.counts[n]:,}</title></circle>"
            f'<text class="name" x="{x:.0f}" y="{y - radius - 3:.0f}" text-anchor="middle">'
            f"{escape(characters[n].name)}</text>"
        )
    return _svg(_WIDTH, _HEIGHT, parts, label)


def _choose_edges(mentions: BookMentions, count: int) -> list[tuple[int, int, int]]:
    """The strongest pairs of each character."""
    chosen: set[tuple[int, int]] = set()
    for n in range(count):
        pairs = [pair for pair in mentions.in_paragraph if n in pair]
        chosen.update(sorted(pairs, key=lambda p: (-mentions.in_paragraph[p], p))[:_EDGES_PER_CHARACTER])
    return [(a, b, mentions.in_paragraph[a, b]) for a, b in sorted(chosen)]


def _lay_out(count: int, edges: Sequence[tuple[int, int, int]]) -> NDArray[np.float64]:
    """Place nodes so that pairs are near each other and others apart (Fruchterman and Reingold 1991)."""
    angles = 2 * np.pi * np.arange(count) * 0.381966  # the golden angle: no two start alike
    radius = np.sqrt((np.arange(count) + 0.5) / max(count, 1))
    points = 0.5 * np.stack([np.cos(angles) * radius, np.sin(angles) * radius], axis=1)
    links = np.zeros((count, count))
    for a, b, weight in edges:
        links[a, b] = links[b, a] = np.log1p(weight)
    links /= max(links.max(initial=0), 1e-9)
    ideal = 0.9 / np.sqrt(max(count, 1))
    for step in range(_STEPS):
        apart = points[:, None] - points[None]  # (N, N, 2)
        distance = np.maximum(np.linalg.norm(apart, axis=2), 0.01)
        push = (ideal / distance) ** 2 - links * distance / ideal * 0.6
        np.fill_diagonal(push, 0)
        moves = (apart * push[..., None]).sum(axis=1) - points * 0.6
        lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-9)
        points = points + moves / lengths * np.minimum(lengths, 0.05 * (1 - step / _STEPS))
    low, high = points.min(axis=0), points.max(axis=0)
    scaled: NDArray[np.float64] = (points - low) / np.maximum(high - low, 1e-9)
    return scaled * [_WIDTH - 130, _HEIGHT - 80] + [65, 50]


def _part_labels(
    points: NDArray[np.float64], radii: NDArray[np.float64], widths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Move dots with their names apart until none covers another, as far as the picture has space."""
    # A box around each dot and the name above it: its middle (N, 2), and half its size (N, 2).
    rise = np.array([0.0, _LABEL / 2])
    middles = points - rise
    halves = np.stack([widths / 2 + 3, radii + _LABEL / 2 + 1], axis=1)
    order = np.sign(np.subtract.outer(np.arange(len(points)), np.arange(len(points))))
    for _ in range(_STEPS):
        apart = middles[:, None] - middles[None]  # (N, N, 2)
        overlap = halves[:, None] + halves[None] - np.abs(apart)
        touching = (overlap > 0).all(axis=2)
        np.fill_diagonal(touching, val=False)
        if not touching.any():
            break
        sign = np.where(apart == 0, order[..., None], np.sign(apart))
        shorter = overlap.argmin(axis=2)[..., None] == np.arange(2)  # the shorter way out
        moves = np.where(touching[..., None] & shorter, overlap * sign, 0.0)
        middles = np.clip(middles + 0.3 * moves.sum(axis=1), halves, [_WIDTH, _HEIGHT] - halves)
    parted: NDArray[np.float64] = middles + rise
    return parted


def _ticks(columns: int) -> list[int]:
    step = max(1, -(-columns // 12))
    return list(range(0, columns, step))


def _text_width(text: str) -> int:
    return sum(8 if character.isascii() else 14 for character in text)


def _svg(width: float, height: float, parts: Sequence[str], label: str) -> str:
    box = f"0 0 {width:.0f} {height:.0f}"
    return f'<svg viewBox="{box}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
