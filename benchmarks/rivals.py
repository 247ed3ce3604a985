"""Polyseme beside the programs people would use instead: one command, one table.

    this machine, other environments  ->  rivals  ->  a JSON file of measurements, a table

Embedding: words per second for one sentence and for batches of 32, from tokens to arrays, the same
sentences for all, sorted by length so that little is padded. `cold` starts each pass with an empty token
cache. Training: words per second that both directions read. All models have random weights.

Each round runs every program once, in turn, in a process of its own; the table has the median of the rounds
and their spread. Before each run fixed work on all cores is timed and the load is read: `noise` is how much
slower that was, at the median, than at its best, and `load` the median load average before the runs. Rows
of one table are comparable if their noise is alike.

    make rivals                                        # environments of the other programs, once
    python benchmarks/rivals.py TEXT [--rounds 3]      # all; TEXT is tokenised, a sentence per line
    python benchmarks/rivals.py TEXT --only BERT small # some: names that contain these words
    python benchmarks/rivals.py --table --page benchmarks/RESULTS.md

Measurements are added to --results (JSON), so that a long comparison can be made in several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = ROOT / ".cache" / "rivals"
RESULTS = HERE / "rivals.json"
PEERS, FLAIR, ONNX = (ROOT / f".venv-{name}" / "bin" / "python" for name in ("peers", "flair", "onnx"))
SENTENCES = {1: 24, 32: 96}  # sentences to embed, by batch
TIMEOUT = 240  # seconds of one run
MISSING = (
    "Not measured: the TensorFlow program of the Chinese tutorial whose sizes `notebook` has, which is not "
    "published as a package."
)


@dataclass(frozen=True)
class Program:
    """A program to measure."""

    table: str  # "embedding" or "training"
    group: str  # what it is compared with: a size of Polyseme
    name: str
    command: tuple[str | Path, ...]  # the batch, or nothing, is added

    @property
    def is_installed(self) -> bool:
        """Whether the Python of its environment exists."""
        return Path(self.command[0]).exists()

    @property
    def key(self) -> str:
        """Its name in the file of measurements."""
        return f"{self.table} / {self.group} / {self.name}"


def programs(text: Path) -> Iterator[Program]:
    """All programs, in the order of the table."""
    bert = {"small": ("mini", "small"), "original": ("base",)}
    for size in ("small", "original"):
        model = (CACHE / size / "options.json", CACHE / size / "weights.hdf5")
        sentences = CACHE / "sentences"
        for precision in ("fp32", "bf16", "int8"):
            for warm in (False, True):
                command = (sys.executable, HERE / "polyseme_run.py", "--precision", precision)
                name = f"polyseme {precision} {'warm' if warm else 'cold'}"
                options = ("--warm",) if warm else ()
                yield Program("embedding", size, name, (*command, *options, *model, sentences))
        for name, script in (("simple_elmo", "simple_elmo_run.py"), ("AllenNLP", "allennlp_elmo.py")):
            yield Program("embedding", size, name, (PEERS, HERE / "peers" / script, *model, sentences))
        for bert_size in bert[size]:
            for options in ((), ("--int8",)):
                name = f"BERT-{bert_size} {'int8' if options else 'fp32'}"
                command = (ONNX, HERE / "peers" / "bert_onnx.py", *options, bert_size, CACHE, sentences)
                yield Program("embedding", size, name, command)
    for preset, batch, steps in (
        ("novel", 64, 10),
        ("small", 128, 1),
        ("notebook", 16, 5),
        ("notebook", 128, 1),
    ):
        for precision in ("fp32", "bf16"):
            group = preset if preset != "notebook" else f"{preset}, batch {batch}"
            settings = ("model.segment=split", f"train.precision={precision}", f"train.batch={batch}")
            command = (sys.executable, HERE / "pretrain.py", text, "--here", "--steps", steps)
            yield Program(
                "training", group, f"polyseme {precision}", (*command, "--presets", preset, *settings)
            )
        if preset != "notebook":
            hidden = 128 if preset == "novel" else 1024
            command = (FLAIR, HERE / "peers" / "flair_training.py", text, "--hidden", hidden, "--steps", 2)
            yield Program("training", preset, f"flair, two models of {hidden}", command)
        if batch == 128 and preset == "small":
            command = (PEERS, HERE / "peers" / "bilm_tf_training.py", text, "--size", "small")
            yield Program("training", preset, "bilm-tf", command)


def main() -> None:
    """Parse the command line, measure, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", nargs="?", type=Path, help="text to train on")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="programs whose names contain all these words"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3, help="passes over the sentences in a run")
    parser.add_argument("--results", type=Path, default=RESULTS, help="JSON file to add to")
    parser.add_argument("--table", action="store_true", help="measure nothing, print what was measured")
    parser.add_argument("--page", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    measured = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    if not arguments.table:
        if arguments.text is None or not arguments.text.is_file():
            parser.error("name a text to train on: tokenised, one sentence per line")
        everything = list(programs(arguments.text))
        chosen = [p for p in everything if all(word in p.key for word in arguments.only)]
        if not chosen:
            parser.error(f"no program is called so; there are {', '.join(p.key for p in everything)}")
        prepare()
        for _ in range(arguments.rounds):
            for program in chosen:
                for batch in (1, 32) if program.table == "embedding" else (0,):
                    entry = run(program, batch, arguments.repeats)
                    measured.setdefault(program.key, {}).setdefault(str(batch), []).append(entry)
                    print(program.key, batch or "", json.dumps(entry), flush=True)
                    arguments.results.write_text(json.dumps(measured, indent=1) + "\n")
    lines = list(tables(measured))
    print("\n".join(lines))
    if arguments.page:
        write(arguments.page, lines)


def prepare() -> None:
    """Write the models and the sentences that all programs read."""
    sys.path.insert(0, str(HERE / "peers"))
    from random_model import options, write_model
    from sentences import sentences

    for size in ("small", "original"):
        if not (CACHE / size / "weights.hdf5").exists():
            write_model(CACHE / size, options(size))
    for batch, count in SENTENCES.items():
        text = sorted(sentences(count), key=len)
        path = CACHE / f"sentences-{batch}.txt"
        path.write_text("".join(f"{' '.join(tokens)}\n" for tokens in text), encoding="utf-8")


def run(program: Program, batch: int, repeats: int) -> dict[str, float | str]:
    """Run a program once; its speed, or why there is none, and what else the machine was doing."""
    noise = {"calibration": calibrate(), "load": os.getloadavg()[0]}
    if not program.is_installed:
        return {"problem": "not installed: make rivals", **noise}
    sentences = CACHE / f"sentences-{batch}.txt"
    command = [str(sentences if part == CACHE / "sentences" else part) for part in program.command]
    if batch:
        command += ["--batch", str(batch), "--time", "--repeats", str(repeats)]
    stolen = steal()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"problem": f"not finished in {TIMEOUT} s", **noise}
    if done.returncode:
        return {"problem": (done.stderr.strip().splitlines() or ["failed"])[-1][:200], **noise}
    numbers = json.loads(done.stdout.strip().splitlines()[-1])
    return {"speed": numbers["tokens_per_second"], "steal": steal() - stolen, **noise}


def calibrate() -> float:
    """Seconds of fixed work on all cores at once, the slowest core: longer if others use the machine."""
    import numpy as np

    values, cores = np.linspace(1, 2, 1 << 20), len(os.sched_getaffinity(0))

    def work(_: int) -> float:
        started = time.perf_counter()
        for _ in range(100):
            np.log(values)  # releases the GIL
        return time.perf_counter() - started

    with ThreadPoolExecutor(cores) as pool:
        return max(pool.map(work, range(cores)))


def steal() -> float:
    """Seconds that the hypervisor gave to other machines, over all cores; 0 where it is not told."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    return int(stat.read_text(encoding="ascii").split("\n", 1)[0].split()[8]) / os.sysconf("SC_CLK_TCK")


def tables(measured: dict[str, dict[str, list[dict]]]) -> Iterator[str]:
    """Both tables, with what could not be measured below."""
    calibrations = [
        e["calibration"] for batches in measured.values() for entries in batches.values() for e in entries
    ]
    best, problems = min(calibrations, default=1.0), [MISSING]
    heads = {
        "embedding": "| beside | program | one sentence | batch of 32 | spread | noise | load |",
        "training": "| beside | program | both directions | spread | noise | load |",
    }
    for table, head in heads.items():
        yield from (
            f"{table.capitalize()}, words per second:",
            "",
            head,
            "|---" * (head.count("|") - 1) + "|",
        )
        for key, batches in measured.items():
            if not key.startswith(table):
                continue
            entries = [entry for rounds in batches.values() for entry in rounds]
            problem = next((entry["problem"] for entry in entries if "problem" in entry), None)
            if problem and not any("speed" in entry for entry in entries):
                problems.append(f"{key}: {problem}.")
                continue
            speeds = [[e["speed"] for e in rounds if "speed" in e] for rounds in batches.values()]
            medians = " | ".join(f"{statistics.median(s):,.0f}" for s in speeds)
            spread = max((max(s) - min(s)) / statistics.median(s) for s in speeds)
            noise = statistics.median(e["calibration"] for e in entries) / best - 1
            load = statistics.median(e["load"] for e in entries)
            _, group, name = key.split(" / ")
            yield f"| {group} | {name} | {medians} | {spread:.0%} | {noise:.0%} | {load:.1f} |"
        yield ""
    yield from problems


def write(page: Path, lines: list[str]) -> None:
    """Replace what stands between `<!-- rivals -->` and `<!-- end -->`."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- rivals -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{page}: the marks <!-- rivals --> and <!-- end --> are missing.")
    body = "\n".join(lines)
    page.write_text(
        pattern.sub(lambda match: f"{match[1]}{body}\n{match[2]}", text, count=1), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
