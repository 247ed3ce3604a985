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
    arguments = parser.parse_args()
    if arguments.draw:
        runs = [run for path in arguments.draw for run in json.loads(path.read_text(encoding="utf-8"))]
        print(table(runs))
        if arguments.picture:
            draw(runs, arguments.picture)
        return
    if arguments.text is None or arguments.out is None:
        parser.error("a TEXT and --out are needed")
    for line in arguments.run:
        result = run(line, arguments)
        runs = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.out.exists() else []
        arguments.out.write_text(json.dumps([*runs, result], ensure_ascii=False, indent=1), encoding="utf-8")
        print(table([result]), flush=True)


def run(line: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train one preset for its minutes; return what was measured."""
    from polyseme import api

    preset, minutes, *overrides = line.split(":")
    changed = [part for text in overrides for part in text.split()]
    settings = [*arguments.settings, *changed]
    rate = arguments.rate or measure(arguments.text, preset, settings, arguments.probe)["tokens_per_second"]
    tokens = round(rate * 60 * float(minutes))
    budget = [f"train.tokens={tokens}", f"train.evaluations={arguments.evaluations}"]
    with tempfile.TemporaryDirectory() as folder:
        out = (arguments.keep or Path(folder)) / f"{arguments.text.stem}-{Path(preset).stem}-{minutes}"
        valid = [arguments.valid] if arguments.valid else []
        done = api.pretrain(
            [arguments.text],
            out,
            preset,
            settings=["train.valid_tokens=1000000", *settings, *budget],
            valid=valid,
        )
        lines = [json.loads(text) for text in (out / "metrics.jsonl").read_text("utf-8").splitlines()]
        neighbours = find_neighbours(out, arguments.text, arguments.words) if arguments.words else {}
    points = [
        {name: point[name] for name in ("tokens", "seconds", "forward", "backward", "mean")}
        for point in lines
        if point["event"] == "validation"
    ]
    report = done.report
    return {
        "text": arguments.text.stem,
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
    for record in runs:
        final, took = record["final"], record["points"][-1]["seconds"] / 60
        name = f"{record['preset']} {record['changed']}".strip()
        lines.append(
            f"| {record['text']} | {name} | {record['minutes']:g} min | {took:.1f} min "
            f"| {record['rate']:,.0f} | {record['epochs']:.1f} | {record['words']:,} "
            f"| {record['unknown']:.1%} | {final['forward']:.1f} | {final['backward']:.1f} "
            f"| {final['mean']:.1f} |"
        )
        lines += [f"\n{word}: {' '.join(near)}" for word, near in record["neighbours"].items()]
    return "\n".join(lines)


def draw(runs: list[dict[str, Any]], picture: Path) -> None:
    """Perplexity against minutes, a curve for each run; time is tokens by the speed measured before."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for record in runs:
        minutes = [point["tokens"] / record["rate"] / 60 for point in record["points"]]
        label = f"{record['preset']} {record['changed']}".strip() + f", {record['minutes']:g} min"
        means = [point["mean"] for point in record["points"]]
        axes.plot(minutes, means, marker="o", markersize=3, label=label)
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
