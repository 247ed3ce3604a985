"""How fast sentences become vectors: tokens a second, latency of one sentence, peak memory.

    random weights of the published sizes, one text  ->  embed  ->  a table

Every figure comes from a fresh process. With the peers' environment (`make peers`) AllenNLP and
simple_elmo run on the same files, interleaved with ours, and the table shows the ratios of that run:
machines are noisy, ratios of one run less so.

    python benchmarks/embed.py [--sizes small original] [--batches 1 32 128] [--peers] [--text FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
SENTENCES = {1: 24, 32: 96, 128: 256}  # sentences to time, by batch

PROGRAMS = {
    "polyseme": (Path(sys.executable), HERE / "polyseme_run.py"),
    "AllenNLP": (PEERS_PYTHON, HERE / "peers" / "allennlp_elmo.py"),
    "simple_elmo": (PEERS_PYTHON, HERE / "peers" / "simple_elmo_run.py"),
}


def run(program: str, model: Path, text: Path, batch: int, repeats: int) -> dict[str, float]:
    """One program in a process of its own: its figures."""
    python, script = PROGRAMS[program]
    files = [model / "options.json", model / "weights.hdf5", text]
    command = [python, script, *files, "--batch", batch, "--time", "--repeats", repeats]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def median_figures(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure over the rounds."""
    return {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}


def compare(model: Path, text: Path, batch: int, programs: list[str], rounds: int, repeats: int) -> dict:
    """All programs on one text, round by round, interleaved."""
    figures: dict[str, list[dict[str, float]]] = {program: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            figures[program].append(run(program, model, text, batch, repeats))
    return {program: median_figures(several) for program, several in figures.items()}


def row(size: str, batch: int, program: str, figures: dict[str, float], ours: dict[str, float]) -> str:
    """A line of the table; the ratio is ours to theirs."""
    ratio = ours["tokens_per_second"] / figures["tokens_per_second"]
    return (
        f"| {size} | {batch} | {program} | {figures['tokens_per_second']:,.0f} "
        f"| {'' if program == 'polyseme' else f'{ratio:.1f}x'} | {figures['latency_seconds'] * 1000:.0f} ms "
        f"| {figures['peak_rss_mib']:,.0f} MiB | {figures['load_seconds']:.1f} s |"
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
    parser.add_argument("--text", type=Path, help="tokenised sentences, one a line; otherwise made up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if given.peers and not PEERS_PYTHON.exists():
        raise SystemExit("The peers are not installed. Say: make peers")
    programs = list(PROGRAMS) if given.peers else ["polyseme"]
    print("| model | batch | program | tokens/s | ours/theirs | one sentence | peak memory | load |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in given.sizes:
            model = Path(folder) / size
            make = [sys.executable, HERE / "peers" / "random_model.py", model, "--size", size]
            subprocess.run([str(part) for part in make], check=True, capture_output=True)
            for batch in given.batches:
                text = given.text or sentences(Path(folder) / "text", SENTENCES.get(batch, 4 * batch))
                figures = compare(model, text, batch, programs, given.rounds, given.repeats)
                for program in programs:
                    print(row(size, batch, program, figures[program], figures["polyseme"]), flush=True)


def sentences(path: Path, count: int) -> Path:
    """Write `count` made-up sentences, a line each."""
    make = [sys.executable, str(HERE / "peers" / "sentences.py"), str(count)]
    path.write_text(subprocess.run(make, check=True, capture_output=True, text=True).stdout, encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
