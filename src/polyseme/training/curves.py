"""Draw the curves of a run: an SVG for the report, and a PNG.

    lines of metrics.jsonl  ->  training.curves  ->  training.report

The PNG needs matplotlib (extra `plot`), the SVG needs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log, log10
from pathlib import Path
from typing import Any

Lines = list[dict[str, Any]]
Points = list[tuple[float, float]]  # million tokens, value

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 28, 44  # margins
DIRECTIONS = ("forward", "backward")


def select_series(lines: Lines, event: str, name: str) -> Points:
    """Tokens and values of `name` in the lines of `event`, without values that are not finite."""
    chosen = [line for line in lines if line["event"] == event and name in line]
    return [(line["tokens"] / 1e6, line[name]) for line in chosen if isfinite(line[name])]


def draw_svg(lines: Lines) -> str:
    """Draw the held-out perplexity over tokens, on a logarithmic axis."""
    curves = {name: select_series(lines, "validation", name) for name in DIRECTIONS}
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return "<p>No validation was made during training.</p>"
    right = max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    ticks = choose_log_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def scale_x(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * x / right

    def scale_y(y: float) -> float:
        share = log(high / y) / log(high / low) if high > low else 0.5
        return TOP + (HEIGHT - TOP - BOTTOM) * share

    parts = [_draw_grid_line(scale_y(tick), f"{tick:,.4g}") for tick in ticks]
    parts += [
        _draw_label(scale_x(tick), HEIGHT - BOTTOM + 18, f"{tick:,.4g}") for tick in choose_even_ticks(right)
    ]
    parts += [_draw_label((WIDTH + LEFT) / 2, HEIGHT - 6, "million tokens")]
    for number, (name, curve) in enumerate(curves.items()):
        parts.append(_draw_curve(name, [(scale_x(x), scale_y(y), f"{y:,.1f}") for x, y in curve]))
        parts.append(f'<text class="{name}" x="{LEFT + 90 * number}" y="16">{name}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="held-out perplexity over the tokens">'
        f"{''.join(parts)}</svg>"
    )


def choose_log_ticks(low: float, high: float) -> list[float]:
    """A few round values for a logarithmic axis that includes `low` and `high`."""
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(1 + n / 10 for n in range(90))):
        values = [step * 10.0**power for power in range(-1, 308) for step in steps]
        first = max(n for n, value in enumerate(values) if value <= max(low, 0.1))
        last = min((n for n, value in enumerate(values) if value >= high), default=len(values) - 1)
        ticks = values[first : last + 1]
        if len(ticks) >= 4:
            break
    thinned = ticks[:: -(-len(ticks) // 8)]
    return thinned if thinned[-1] == ticks[-1] else [*thinned, ticks[-1]]


def choose_even_ticks(high: float) -> list[float]:
    """A few round values from 0 to at most `high`."""
    unit = 10.0 ** floor(log10(high))
    step = next(part * unit for part in (2, 1, 0.5, 0.25, 0.2, 0.1) if high >= 3 * part * unit)
    return [n * step for n in range(int(high / step * (1 + 1e-9)) + 1)]


def _draw_grid_line(y: float, label: str) -> str:
    line = f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return f'{line}<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'


def _draw_label(x: float, y: float, label: str) -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{label}</text>'


def _draw_curve(name: str, points: Sequence[tuple[float, float, str]]) -> str:
    """A line with a dot for each validation; its value is the tooltip of the dot."""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    dots = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{name} {text}</title></circle>'
        for x, y, text in points
    )
    return f'<g class="{name}"><polyline points="{line}"/>{"".join(dots)}</g>'


def draw_png(lines: Lines, path: Path) -> None:
    """Draw loss and perplexity as a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(*_unzip(select_series(lines, "step", "loss")), color="#888", linewidth=0.8)
    left.set(title="training loss", xlabel="million tokens")
    for name in DIRECTIONS:
        right.plot(*_unzip(select_series(lines, "validation", name)), marker="o", markersize=3, label=name)
    right.set(title="held-out perplexity", xlabel="million tokens", yscale="log")
    for axis in ("set_major_formatter", "set_minor_formatter"):
        getattr(right.yaxis, axis)("{x:g}")
    right.legend()
    figure.savefig(path, dpi=120)


def _unzip(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
