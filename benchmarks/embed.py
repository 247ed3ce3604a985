"""Speed of embedding: tokens per second, latency of one sentence, peak memory.

Uses random weights of the published sizes. Each figure comes from a new process. With the peers'
environment (`make peers`), AllenNLP and simple_elmo embed the same files in turn, and the table shows the
ratios of that run, which vary less than absolute speeds. For all programs the fastest of several passes
over the text counts.

Polyseme runs cold (each pass starts with an empty token cache) and warm (all words cached). The column "of
limit" compares with the speed of the LSTMs alone at the limits of the machine
(benchmarks/hardware_limits.py). A second table has the ratios that we set goals for: cold over warm, bf16
over fp32, and one sentence over onnxruntime's int8 BERT of the same width, as measured once (ONNX_BERT). With
`--device cuda` the vectors are computed by torch there, and no share of a limit is printed.

    python benchmarks/embed.py [--sizes small original] [--batches 1 32 128] [--precisions fp32 int8]
        [--device cuda] [--peers] [--text FILE] [--results RESULTS.md] [--picture FILE.png]

`--results` writes the table between `<!-- embed -->` and `<!-- end -->` in that file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hardware_limits import measure_limits, speed_limit
from results_page import write_results

HERE = Path(__file__).parent
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
SENTENCES = {1: 24, 32: 96, 128: 256}  # sentences to time, by batch

COLD_GOALS = {("small", 32, "fp32"): "70%", ("small", 32, "int8"): "65%"}
BF16_GOAL = "1.6x"
ONNX_BERT = {
    "small": ("BERT-small", 14_845),
    "original": ("BERT-base", 2_639),
}  # one sentence, two Zen 5 cores

PEERS = {
    "AllenNLP": [PEERS_PYTHON, HERE / "peers" / "allennlp_elmo.py"],
    "simple_elmo": [PEERS_PYTHON, HERE / "peers" / "simple_elmo_run.py"],
}


def polyseme_command(precision: str, warm: bool, device: str) -> list[str | Path]:
    """The command that times Polyseme."""
    command = [sys.executable, HERE / "polyseme_run.py", "--precision", precision, "--device", device]
    return [*command, "--warm"] if warm else command


def programs(precisions: list[str], peers: bool, device: str) -> dict[str, list[str | Path]]:
    """The commands to compare, by name; Polyseme first."""
    commands = {
        f"polyseme {precision} {'warm' if warm else 'cold'}": polyseme_command(precision, warm, device)
        for precision in precisions
        for warm in (False, True)
    }
    return commands | (PEERS if peers else {})


def precision_of(program: str) -> str:
    """The precision in the name of a Polyseme command."""
    return program.split()[1]


def run(command: list[str | Path], model: Path, text: Path, batch: int, repeats: int) -> dict[str, float]:
    """Run one program in a new process and return what it measured."""
    files = [model / "options.json", model / "weights.hdf5", text]
    full = [*command, *files, "--batch", batch, "--time", "--repeats", repeats]
    done = subprocess.run([str(part) for part in full], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[1]} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def choose_best_values(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The lowest value of each figure over the rounds, and the speed of the fastest pass."""
    lowest = {name: min(values[name] for values in rounds) for name in rounds[0]}
    return lowest | {"tokens_per_second": lowest["tokens"] / lowest["seconds_fastest"]}


def compare(model: Path, text: Path, batch: int, commands: dict, rounds: int, repeats: int) -> dict:
    """Run all programs on one text, in turn, several rounds."""
    values: dict[str, list[dict[str, float]]] = {program: [] for program in commands}
    for _ in range(rounds):
        for program, command in commands.items():
            values[program].append(run(command, model, text, batch, repeats))
    return {program: choose_best_values(runs) for program, runs in values.items()}


def rows(
    size: str, batch: int, results: dict[str, dict[str, float]], limits: dict[str, float]
) -> Iterator[str]:
    """Table rows for one size and batch; ratios are to the fastest peer."""
    peer_rates = [values["tokens_per_second"] for program, values in results.items() if program in PEERS]
    for program, values in results.items():
        rate = values["tokens_per_second"]
        ratio = "" if not peer_rates or program in PEERS else f"{rate / max(peer_rates):.1f}x"
        share = (
            ""
            if program in PEERS or not limits
            else f"{rate / speed_limit(size, batch, limits, precision_of(program)):.0%}"
        )
        yield (
            f"| {size} | {batch} | {program} | {rate:,.0f} | {ratio} | {share} "
            f"| {values['latency_seconds'] * 1000:.0f} ms | {values['peak_rss_mib']:,.0f} MiB "
            f"| {values['load_seconds']:.1f} s |"
        )


def goal_rows(results: dict[tuple[str, int], dict[str, dict[str, float]]]) -> Iterator[str]:
    """Table rows of the ratios that have a goal."""
    for (size, batch), programs in results.items():
        rates = {program: values["tokens_per_second"] for program, values in programs.items()}
        for precision in ("fp32", "bf16", "int8"):
            cold, warm = (rates.get(f"polyseme {precision} {cache}") for cache in ("cold", "warm"))
            if cold and warm:
                goal = COLD_GOALS.get((size, batch, precision), "")
                yield f"| {size} | {batch} | {precision}: cold over warm | {cold / warm:.0%} | {goal} |"
        exact, rounded, quantised = (rates.get(f"polyseme {p} warm") for p in ("fp32", "bf16", "int8"))
        if exact and rounded:
            goal = BF16_GOAL if batch > 1 else ""
            yield f"| {size} | {batch} | bf16 over fp32, warm | {rounded / exact:.2f}x | {goal} |"
        if quantised and batch == 1 and size in ONNX_BERT:
            name, rate = ONNX_BERT[size]
            ratio = f"{quantised / rate:.2f}x | 1.5x"
            yield f"| {size} | 1 | int8 over {name} int8 ({rate:,} tokens/s), warm | {ratio} |"


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=["small", "original"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 128])
    parser.add_argument(
        "--peers", action="store_true", help="also run AllenNLP and simple_elmo (needs `make peers`)"
    )
    parser.add_argument("--precisions", nargs="+", default=["fp32"])
    parser.add_argument("--device", default="cpu", help="where Polyseme computes: cpu, cuda, cuda:N")
    parser.add_argument("--text", type=Path, help="tokenised sentences, one per line (default: made up)")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--results", type=Path, help="write the table into this Markdown file")
    parser.add_argument("--picture", type=Path, help="save a bar chart as PNG")
    arguments = parser.parse_args()
    if arguments.peers and not PEERS_PYTHON.exists():
        raise SystemExit("The peers are not installed. Run: make peers")
    commands = programs(arguments.precisions, arguments.peers, arguments.device)
    limits = measure_limits() if arguments.device == "cpu" else {}
    lines = [
        f"Computed on {arguments.device}."
        if not limits
        else f"Limits: {limits['fp32']:.0f} GFLOP/s in fp32, {limits['bf16']:.0f} in bf16, "
        f"{limits['int8']:.0f} in int8; "
        f"{limits['memory']:.1f} GB/s from memory, {limits['cache']:.1f} from the last-level cache.",
        "",
        "| model | batch | program | tokens/s | vs. fastest peer | of limit | one sentence | memory | load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    results: dict[tuple[str, int], dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.sizes:
            model = Path(folder) / size
            make = [sys.executable, HERE / "peers" / "random_model.py", model, "--size", size]
            subprocess.run([str(part) for part in make], check=True, capture_output=True)
            for batch in arguments.batches:
                text = arguments.text or write_sentences(
                    Path(folder) / "text", SENTENCES.get(batch, 4 * batch)
                )
                results[size, batch] = compare(
                    model, text, batch, commands, arguments.rounds, arguments.repeats
                )
                lines += rows(size, batch, results[size, batch], limits)
                print("\n".join(lines[-len(commands) :]), flush=True)
    ratios = list(goal_rows(results))
    if ratios:
        lines += ["", "| model | batch | ratio | measured | goal |", "|---|---|---|---|---|", *ratios]
        print("\n".join(lines[-len(ratios) - 3 :]))
    if arguments.results:
        write_results(arguments.results, "embed", lines)
    if arguments.picture:
        draw(results, arguments.picture)


def draw(results: dict[tuple[str, int], dict[str, dict[str, float]]], picture: Path) -> None:
    """Bar chart of tokens per second, one panel per size and batch."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(results), figsize=(3.2 * len(results), 3.4), layout="constrained", squeeze=False
    )
    for panel, ((size, batch), programs) in zip(panels[0], results.items(), strict=True):
        rates = [values["tokens_per_second"] for values in programs.values()]
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


def write_sentences(path: Path, count: int) -> Path:
    """Write `count` made-up sentences, one per line."""
    make = [sys.executable, str(HERE / "peers" / "sentences.py"), str(count)]
    path.write_text(subprocess.run(make, check=True, capture_output=True, text=True).stdout, encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
