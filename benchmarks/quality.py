"""Measure held-out perplexity against training time, for any presets.

    a text, runs such as novel:5 or X.toml:50  ->  pretrain  ->  a table, FILE.json, a picture of the curves

The minutes of a run become tokens, by its speed over some steps right before. Perplexity is that of the
whole vocabulary over the held-out sentences, mean of both directions; validation does not count as time.
On a machine that others use too, a run may take longer than asked: the table has both times.

    python benchmarks/quality.py TEXT --run novel:5 --run "novel:5:train.dropout=0.4" \
        [--set corpus.valid_every=50] [--valid FILE] [--words 曹操 荆州] [--keep FOLDER] \
        [--evaluations 3] --out FILE.json
    python benchmarks/quality.py TEXT --rate 13000 --run novel:5 --run novel:5:train.precision=bf16 --out FILE
    python benchmarks/quality.py --draw FILE.json [FILE.json …] --picture curves.png
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from pretrain import measure


def main() -> None:
    """Parse the command line; train, or draw what was trained before."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--run", action="append", default=[], metavar="CONFIG:MINUTES[:NAME=VALUE…]")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE")
    parser.add_argument("--valid", type=Path)
    parser.add_argument("--words", nargs="+", default=[], help="show the neighbours of these")
    parser.add_argument("--keep", type=Path, help="a folder for the models, which are thrown away otherwise")
    parser.add_argument("--rate", type=float, help="tokens a second, instead of measuring them")
    parser.add_argument("--probe", type=int, default=20, help="steps to measure that (default 20)")
    parser.add_argument("--evaluations", type=int, default=10, help="points of the curve (default 10)")
    parser.add_argument("--out", type=Path, help="a JSON file; runs are added to those that it holds")
    parser.add_argument("--draw", nargs="+", type=Path, default=[])
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    if given.draw:
        runs = [run for path in given.draw for run in json.loads(path.read_text(encoding="utf-8"))]
        print(table(runs))
        if given.picture:
            draw(runs, given.picture)
        return
    if given.text is None or given.out is None:
        parser.error("a TEXT and --out are needed")
    for line in given.run:
        found = run(line, given)
        runs = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else []
        given.out.write_text(json.dumps([*runs, found], ensure_ascii=False, indent=1), encoding="utf-8")
        print(table([found]), flush=True)


def run(line: str, given: argparse.Namespace) -> dict[str, Any]:
    """Train one preset for its minutes; its figures."""
    from polyseme import api

    preset, minutes, *own = line.split(":")
    changed = [part for text in own for part in text.split()]
    settings = [*given.settings, *changed]
    rate = given.rate or measure(given.text, preset, settings, given.probe)["tokens_per_second"]
    budget = [f"train.tokens={round(rate * 60 * float(minutes))}", f"train.evaluations={given.evaluations}"]
    with tempfile.TemporaryDirectory() as folder:
        out = (given.keep or Path(folder)) / f"{given.text.stem}-{Path(preset).stem}-{minutes}"
        valid = [given.valid] if given.valid else []
        done = api.pretrain(
            [given.text],
            out,
            preset,
            settings=["train.valid_tokens=1000000", *settings, *budget],
            valid=valid,
        )
        lines = [json.loads(text) for text in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
        neighbours = find_neighbours(out, given.text, given.words) if given.words else {}
    points = [
        {name: point[name] for name in ("tokens", "seconds", "forward", "backward", "mean")}
        for point in lines
        if point["event"] == "validation"
    ]
    report = done.report
    return {
        "text": given.text.stem,
        "preset": Path(preset).stem,
        "changed": " ".join(changed),
        "minutes": float(minutes),
        "rate": rate,
        "words": report.words,
        "unknown": done.metrics["unknown"],
        "epochs": done.position.tokens / (report.tokens + report.sentences),
        "final": {name: done.metrics[name] for name in ("forward", "backward", "mean", "targets")},
        "points": points,
        "neighbours": neighbours,
    }


def find_neighbours(model: Path, text: Path, words: list[str]) -> dict[str, list[str]]:
    """The ten nearest words of each of `words`, by mean contextual vectors (top layer, centred)."""
    import polyseme
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    elmo = polyseme.load(model)
    vectors = polyseme.mean_vectors(
        elmo, list(segment_lines(read_lines(text), elmo.config.segment)), min_count=5
    )
    return {
        word: [near for near, _ in vectors.nearest(word, 10, min_count=10, min_chars=2)] for word in words
    }


def table(runs: list[dict[str, Any]]) -> str:
    """The runs as a table."""
    lines = [
        "| text | preset | asked | took | tokens/s | epochs | words | unknown | forward | backward | mean |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in runs:
        final, took = one["final"], one["points"][-1]["seconds"] / 60
        name = f"{one['preset']} {one['changed']}".strip()
        lines.append(
            f"| {one['text']} | {name} | {one['minutes']:g} min | {took:.1f} min | {one['rate']:,.0f} "
            f"| {one['epochs']:.1f} | {one['words']:,} | {one['unknown']:.1%} | {final['forward']:.1f} "
            f"| {final['backward']:.1f} | {final['mean']:.1f} |"
        )
        lines += [f"\n{word}: {' '.join(near)}" for word, near in one["neighbours"].items()]
    return "\n".join(lines)


def draw(runs: list[dict[str, Any]], picture: Path) -> None:
    """Perplexity against minutes, a curve for each run; time is tokens by the speed measured before."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for one in runs:
        minutes = [point["tokens"] / one["rate"] / 60 for point in one["points"]]
        label = f"{one['preset']} {one['changed']}".strip() + f", {one['minutes']:g} min"
        axes.plot(minutes, [point["mean"] for point in one["points"]], marker="o", markersize=3, label=label)
    axes.set(
        xscale="log", yscale="log", xlabel="minutes of training on two cores", ylabel="held-out perplexity"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7) if axis is axes.yaxis else (1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main()
