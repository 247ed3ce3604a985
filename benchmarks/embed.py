"""How fast sentences become vectors: tokens a second, latency of one sentence, peak memory.

    random weights of the published sizes, one text  ->  embed  ->  a table

Every figure comes from a fresh process. With the peers' environment (`make peers`) AllenNLP and
simple_elmo run on the same files, interleaved with ours, and the table shows the ratios of that run:
machines are noisy, ratios of one run less so, and of several passes over the text the fastest counts, for all
programs alike. Ours run cold, each pass over the text from an empty token
cache, and warm, with all words in it. `roof` is the share of what the LSTMs alone would reach at the limits
that benchmarks/limit.py measures before.

    python benchmarks/embed.py [--sizes small original] [--batches 1 32 128] [--precisions fp32 int8]
        [--peers] [--text FILE] [--results RESULTS.md] [--picture FILE.png]

`--results` puts the table between the marks `<!-- embed -->` and `<!-- end -->` of that page.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from limit import measured_limits, roof_of

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
SENTENCES = {1: 24, 32: 96, 128: 256}  # sentences to time, by batch

PEERS = {
    "AllenNLP": [PEERS_PYTHON, HERE / "peers" / "allennlp_elmo.py"],
    "simple_elmo": [PEERS_PYTHON, HERE / "peers" / "simple_elmo_run.py"],
}


def ours(precision: str, warm: bool) -> list[str | Path]:
    """The command of one of our own ways."""
    command = [sys.executable, HERE / "polyseme_run.py", "--precision", precision]
    return [*command, "--warm"] if warm else command


def programs(precisions: list[str], peers: bool) -> dict[str, list[str | Path]]:
    """All that is compared, by name; ours first."""
    found = {
        f"polyseme {precision} {'warm' if warm else 'cold'}": ours(precision, warm)
        for precision in precisions
        for warm in (False, True)
    }
    return found | (PEERS if peers else {})


def precision_of(program: str) -> str:
    """The precision in the name of one of our own ways."""
    return program.split()[1]


def run(command: list[str | Path], model: Path, text: Path, batch: int, repeats: int) -> dict[str, float]:
    """One program in a process of its own: its figures."""
    files = [model / "options.json", model / "weights.hdf5", text]
    whole = [*command, *files, "--batch", batch, "--time", "--repeats", repeats]
    done = subprocess.run([str(part) for part in whole], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[1]} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def best_figures(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The least of each figure over the rounds, and the speed of the fastest pass over the text."""
    least = {name: min(figures[name] for figures in rounds) for name in rounds[0]}
    return least | {"tokens_per_second": least["tokens"] / least["seconds_fastest"]}


def compare(model: Path, text: Path, batch: int, commands: dict, rounds: int, repeats: int) -> dict:
    """All programs on one text, round by round, interleaved."""
    figures: dict[str, list[dict[str, float]]] = {program: [] for program in commands}
    for _ in range(rounds):
        for program, command in commands.items():
            figures[program].append(run(command, model, text, batch, repeats))
    return {program: best_figures(several) for program, several in figures.items()}


def rows(
    size: str, batch: int, found: dict[str, dict[str, float]], limits: dict[str, float]
) -> Iterator[str]:
    """The lines of the table for one size and batch; ratios are to the fastest peer."""
    theirs = [figures["tokens_per_second"] for program, figures in found.items() if program in PEERS]
    for program, figures in found.items():
        rate = figures["tokens_per_second"]
        ratio = "" if not theirs or program in PEERS else f"{rate / max(theirs):.1f}x"
        share = (
            "" if program in PEERS else f"{rate / roof_of(size, batch, limits, precision_of(program)):.0%}"
        )
        yield (
            f"| {size} | {batch} | {program} | {rate:,.0f} | {ratio} | {share} "
            f"| {figures['latency_seconds'] * 1000:.0f} ms | {figures['peak_rss_mib']:,.0f} MiB "
            f"| {figures['load_seconds']:.1f} s |"
        )


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["small", "original"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 128])
    parser.add_argument(
        "--peers", action="store_true", help="run AllenNLP and simple_elmo too (`make peers`)"
    )
    parser.add_argument("--precisions", nargs="+", default=["fp32"])
    parser.add_argument("--text", type=Path, help="tokenised sentences, one a line; otherwise made up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, help="a page that takes the table")
    parser.add_argument("--picture", type=Path, help="a PNG of bars")
    given = parser.parse_args()
    if given.peers and not PEERS_PYTHON.exists():
        raise SystemExit("The peers are not installed. Say: make peers")
    commands = programs(given.precisions, given.peers)
    limits = measured_limits()
    lines = [
        f"Limits: {limits['fp32']:.0f} GFLOP/s in fp32, {limits['int8']:.0f} in int8; "
        f"{limits['memory']:.1f} GB/s from memory, {limits['cache']:.1f} from the last cache.",
        "",
        "| model | batch | program | tokens/s | to the fastest peer | roof | one sentence | memory | load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    found: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            model = Path(folder) / size
            make = [sys.executable, HERE / "peers" / "random_model.py", model, "--size", size]
            subprocess.run([str(part) for part in make], check=True, capture_output=True)
            for batch in given.batches:
                text = given.text or sentences(Path(folder) / "text", SENTENCES.get(batch, 4 * batch))
                found[size, batch] = compare(model, text, batch, commands, given.rounds, given.repeats)
                lines += rows(size, batch, found[size, batch], limits)
                print("\n".join(lines[-len(commands) :]), flush=True)
    if given.results:
        write(given.results, lines)
    if given.picture:
        draw(found, given.picture)


def write(page: Path, lines: list[str]) -> None:
    """Put the table into `page`, between the marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- embed -->")
    _, mark, after = rest.partition("<!-- end -->")
    if not mark:
        raise SystemExit(f"{page}: the marks <!-- embed --> and <!-- end --> are missing.")
    body = "\n".join(lines)
    page.write_text(f"{before}<!-- embed -->\n{body}\n{mark}{after}", encoding="utf-8")


def draw(found: dict[tuple[str, int], dict[str, dict[str, float]]], picture: Path) -> None:
    """Bars of tokens a second, a panel for each size and batch."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(found), figsize=(3.2 * len(found), 3.4), layout="constrained", squeeze=False
    )
    for panel, ((size, batch), programs) in zip(panels[0], found.items(), strict=True):
        rates = [figures["tokens_per_second"] for figures in programs.values()]
        colours = ["#b0b0b0" if name in PEERS else "#2a6f97" for name in programs]
        bars = panel.barh(list(programs), rates, color=colours)
        panel.bar_label(bars, [f"{rate:,.0f}" for rate in rates], padding=3, fontsize=8)
        panel.invert_yaxis()
        panel.margins(x=0.25)
        panel.set_title(f"{size}, {'one sentence' if batch == 1 else f'batch {batch}'}", fontsize=10)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
        if panel is not panels[0][0]:
            panel.set_yticklabels([])
        panel.set_xlabel("tokens/s", fontsize=8)
    figure.savefig(picture, dpi=150)


def sentences(path: Path, count: int) -> Path:
    """Write `count` made-up sentences, a line each."""
    make = [sys.executable, str(HERE / "peers" / "sentences.py"), str(count)]
    path.write_text(subprocess.run(make, check=True, capture_output=True, text=True).stdout, encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
