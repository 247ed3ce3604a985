"""The equal-time duel: vectors that programs make from one small text in the same CPU time.

    texts, labelled sets, other programs  ->  duel  ->  duel.json, duel.png, tables

Every program gets the same text and the same seconds of CPU time on one core (summed over its threads, so
that other work on the machine does not matter), then its vectors are frozen and linear probes are trained on
them, the same for all. A cell of a text, a program, a budget and a seed runs in processes of its own and is
kept in duel.json as soon as it is done: a duel that was interrupted continues.

    make duel DATA=FOLDER                                     # environments, all cells, picture and tables
    python benchmarks/duel.py FOLDER --texts wikitext2 --seconds 200 --seeds 1 --rivals polyseme bert-2x128
    python benchmarks/duel.py --page benchmarks/RESULTS.md    # no cells: picture and tables of duel.json

FOLDER holds the sets by the names in duel/probe_sets.py, and the texts by those in read_wikitext and the
functions after it. For trials, --set changes settings of the rivals and --results names another file; trials
are compared by their dev scores.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "duel"))
from probe_sets import PARTS, READERS  # noqa: E402

ROOT = HERE.parent
CACHE = ROOT / ".cache" / "duel"
RESULTS = HERE / "duel.json"
SELF = Path(sys.executable)
FLAIR, DUEL = (ROOT / f".venv-{name}" / "bin" / "python" for name in ("flair", "duel"))
BUDGETS = (200, 900, 3600)
SEEDS = (1, 2, 3)
SLICE = 0.06  # of zh_modern, from the beginning of each source: about as many words as WikiText-2
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


class RivalFailedError(Exception):
    """A program ended with an error; its last lines are the message."""


@dataclass(frozen=True, eq=False)
class Rival:
    """A program with its settings."""

    key: str
    name: str  # in tables and the picture
    script: str
    python: Path
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # by language; "" for both

    def list_settings(self, language: str) -> list[str]:
        """Arguments that change the defaults of the script."""
        chosen = self.settings.get("", {}) | self.settings.get(language, {})
        return [f"{name}={value}" for name, value in chosen.items()]


def bert(layers: int, hidden: int) -> Rival:
    """BERT of a shape; heads of 32 columns."""
    settings = {"": {"layers": layers, "hidden": hidden, "heads": hidden // 32}}
    name = f"BERT {layers}x{hidden}, masked LM"
    return Rival(f"bert-{layers}x{hidden}", name, "bert_mlm.py", DUEL, settings)


RIVALS = [
    Rival("polyseme", "Polyseme `novel`", "polyseme_bilm.py", SELF),
    Rival(
        "polyseme-characters",
        "Polyseme `novel`, characters",
        "polyseme_bilm.py",
        SELF,
        {"": {"segment": "zh-char"}},
    ),
    Rival("flair", "flair, two character LMs", "flair_lms.py", FLAIR),
    Rival("stanza", "stanza, two character LMs", "stanza_charlms.py", DUEL),
    bert(2, 128),
    bert(2, 256),
    bert(4, 256),
    Rival("spacy", "spaCy pretrain", "spacy_tok2vec.py", DUEL),
    Rival("fasttext", "fastText (static)", "gensim_static.py", DUEL),
    Rival("word2vec", "word2vec (static)", "gensim_static.py", DUEL, {"": {"kind": "word2vec"}}),
]
TEXTS = {"wikitext2": "en", "zh_modern": "zh", "sanguo": "zh"}
TITLES = {"wikitext2": "WikiText-2", "zh_modern": "Modern Chinese", "sanguo": "Three Kingdoms"}
STYLES = {  # colour and marker in the picture
    "polyseme": ("#c0272d", "o"),
    "polyseme-characters": ("#e8853d", "o"),
    "flair": ("#2b6cb0", "s"),
    "stanza": ("#63a4dc", "s"),
    "bert-2x128": ("#276749", "^"),
    "bert-2x256": ("#4c9f70", "^"),
    "bert-4x256": ("#93c9a5", "^"),
    "spacy": ("#6b46c1", "D"),
    "fasttext": ("#4a5568", "v"),
    "word2vec": ("#a0aec0", "v"),
}
Results = dict[str, dict[str, Any]]  # by "text / rival / seconds / seed"


def main() -> None:
    """Parse the command line; run cells, then draw and print what duel.json has."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", type=Path, help="folder of the texts and labelled sets")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    parser.add_argument("--rivals", nargs="+", choices=[rival.key for rival in RIVALS])
    parser.add_argument("--seconds", nargs="+", type=int, default=list(BUDGETS), help="CPU time")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="for trials")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--picture", type=Path, help="default: duel.png beside the results")
    parser.add_argument("--page", type=Path, help="write the tables into this Markdown file")
    arguments = parser.parse_args()
    if arguments.data is not None:
        if not arguments.data.is_dir():
            parser.error(f"{arguments.data} is not a folder")
        run_cells(arguments)
    elif arguments.set:
        parser.error("--set changes cells that are run: name the folder of the data, too")
    results = read_results(arguments.results)
    lines = list(make_tables(results))
    print("\n".join(lines))
    if results:
        draw(results, arguments.picture or arguments.results.with_suffix(".png"))
    if arguments.page:
        write_page(arguments.page, lines)


def read_results(path: Path) -> Results:
    """The cells that are done."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def run_cells(arguments: argparse.Namespace) -> None:
    """Run all cells that are asked for and not done, the shortest budgets first."""
    if arguments.set and arguments.results == RESULTS:
        raise SystemExit("--set is for trials: name another file by --results.")
    wanted = [
        (seconds, seed, text, rival)
        for seconds in arguments.seconds
        for seed in arguments.seeds
        for text in arguments.texts
        for rival in RIVALS
        if (arguments.rivals is None or rival.key in arguments.rivals)
        and not (rival.key == "polyseme-characters" and TEXTS[text] == "en")
    ]
    with ThreadPoolExecutor(1) as prober:  # CPU time counts, so one cell is probed while the next trains
        probes: list[Future[None]] = []
        problems: list[str] = []
        for seconds, seed, text, rival in wanted:
            key = " / ".join([text, rival.key, str(seconds), str(seed), *arguments.set])
            if key in read_results(arguments.results):
                continue
            if not rival.python.exists():
                problems.append(f"{key}: not installed. Run: make duel-environments")
                continue
            try:
                folder = train(arguments.data, text, rival, seconds, seed, arguments.set)
            except RivalFailedError as error:  # the others go on
                problems.append(f"{key}: {error}")
                continue
            probes.append(prober.submit(probe_model, arguments, key, folder, rival, TEXTS[text], seed))
        problems += [str(probe.exception()) for probe in probes if probe.exception() is not None]
    if problems:
        raise SystemExit("\n".join(["Cells that are missing:", *problems]))


def train(data: Path, text: str, rival: Rival, seconds: int, seed: int, changes: list[str]) -> Path:
    """Let a rival pretrain in a folder of its own."""
    folder = CACHE / f"{text}-{rival.key}-{seconds}-{seed}-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    settings = [f"--set={line}" for line in [*rival.list_settings(TEXTS[text]), *changes]]
    command = ["pretrain", prepare_text(data, text), seconds, folder / "model", f"--seed={seed}", *settings]
    try:
        run_rival(rival, TEXTS[text], *command)
    except RivalFailedError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def probe_model(
    arguments: argparse.Namespace, key: str, folder: Path, rival: Rival, language: str, seed: int
) -> None:
    """Embed the sentences of all sets, train the probes, keep the scores."""
    sentences = prepare_sentences(arguments.data, language)
    run_rival(rival, language, "embed", folder / "model", sentences, folder / "vectors")
    command = [SELF, HERE / "duel" / "probes.py", arguments.data, language, folder / "vectors", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD)
    if done.returncode:
        raise RivalFailedError(f"{key}: the probes failed:\n{done.stderr[-3000:]}")
    record = json.loads((folder / "model" / "run.json").read_text())
    shutil.rmtree(folder)
    cell = {**record, "processor": name_processor(), "scores": json.loads(done.stdout.splitlines()[-1])}
    add_result(arguments.results, key, cell)
    scores = " ".join(f"{name} {score['test']:.3f}" for name, score in cell["scores"].items())
    print(f"{key}: {scores} ({cell['cpu_seconds']} CPU s)", flush=True)


def name_processor() -> str:
    """As the kernel calls it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def add_result(path: Path, key: str, cell: dict[str, Any]) -> None:
    """Add a cell to the file, which other runs may write to at the same time."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = dict(sorted((read_results(path) | {key: cell}).items()))
        write_whole(path, json.dumps(results, indent=1, ensure_ascii=False) + "\n")


def run_rival(rival: Rival, language: str, *arguments: object) -> None:
    """Run one of the two commands of a rival in its own environment, on one thread."""
    command = [rival.python, HERE / "duel" / rival.script, *arguments, f"--language={language}"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=os.environ | ONE_THREAD
    )
    if done.returncode:
        raise RivalFailedError(f"{' '.join(map(str, command))}\n{done.stderr[-3000:]}")


def prepare_text(data: Path, text: str) -> Path:
    """The text to train on, the same for all: plain, one sentence per line, in the cache."""
    path = CACHE / f"{text}.txt"
    if not path.exists():
        lines = {"wikitext2": read_wikitext, "zh_modern": read_zh_modern, "sanguo": read_sanguo}[text](data)
        write_whole(path, "".join(f"{line.strip()}\n" for line in lines if line.strip()))
    return path


def read_wikitext(data: Path) -> Iterator[str]:
    """Sentences of WikiText-2 raw; its marks inside numbers and compounds (@-@) are removed."""
    content = (data / "en_wikitext2_raw" / "train.txt").read_text(encoding="utf-8")
    content = re.sub(r" @([-,.])@ ", r"\1", content)
    return (sentence for line in content.splitlines() for sentence in re.split(r"(?<= [.!?]) ", line))


def read_zh_modern(data: Path) -> Iterator[str]:
    """Sentences from the beginning of each source."""
    import zstandard

    for source in sorted((data / "zh_modern" / "train").glob("*.txt.zst")):
        with zstandard.open(source, "rt", encoding="utf-8") as file:
            documents = file.read().split("\n\n")
        size, wanted = 0, SLICE * sum(map(len, documents))
        for document in documents:
            if size >= wanted:
                break
            size += len(document)
            yield from split_chinese(document)


def read_sanguo(data: Path) -> Iterator[str]:
    """Sentences of the novel."""
    return split_chinese((data / "zh_sanguo" / "sanguo.txt").read_text(encoding="utf-8"))


def split_chinese(text: str) -> Iterator[str]:
    """Sentences with the quotation marks that close them."""
    return (
        sentence for line in text.splitlines() for sentence in re.split(r"(?<=[。！？])(?![”’」』）])", line)
    )


def prepare_sentences(data: Path, language: str) -> Path:
    """A folder with the sentences of all sets, the parts one after another."""
    folder = CACHE / f"sentences-{language}"
    for dataset in READERS[language](data):
        path = folder / f"{dataset.stem}.jsonl"
        if not path.exists():
            sentences = [sentence for part in PARTS for sentence in dataset.sentences[part]]
            write_whole(path, "".join(json.dumps(s, ensure_ascii=False) + "\n" for s in sentences))
    return folder


def write_whole(path: Path, content: str) -> None:
    """Write a file that is complete or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(content, encoding="utf-8")
    temporary.replace(path)


def make_tables(results: Results) -> Iterator[str]:
    """A table for each text, and which settings and speeds stand behind it."""
    for text in TEXTS:
        rows = collect(results, text)
        if not rows:
            continue
        tasks = list(next(iter(rows.values()))[0]["scores"])
        yield f"**{TITLES[text]}**"
        yield ""
        yield f"| CPU time | program | seeds | {' | '.join(tasks)} | mean |"
        yield "|---" * (len(tasks) + 4) + "|"
        for seconds in sorted({seconds for seconds, _ in rows}):
            here = {rival: rows[seconds, rival] for rival in RIVALS if (seconds, rival) in rows}
            means = {rival: mean_scores(cells, tasks) for rival, cells in here.items()}
            best = [max(found[number][0] for found in means.values()) for number in range(len(tasks) + 1)]
            for rival, found in means.items():
                cells = [
                    f"**{mean:.3f}**{spread}" if mean == top and len(means) > 1 else f"{mean:.3f}{spread}"
                    for (mean, spread), top in zip(found, best, strict=True)
                ]
                yield f"| {seconds} s | {rival.name} | {len(here[rival])} | {' | '.join(cells)} |"
        yield ""


def collect(results: Results, text: str) -> dict[tuple[int, Rival], list[dict[str, Any]]]:
    """The cells of a text by budget and rival, one per seed."""
    rivals = {rival.key: rival for rival in RIVALS}
    rows: dict[tuple[int, Rival], list[dict[str, Any]]] = {}
    for key, cell in results.items():
        found, rival, seconds, _, *changes = key.split(" / ")
        if found == text and not changes:
            rows.setdefault((int(seconds), rivals[rival]), []).append(cell)
    return rows


def mean_scores(cells: list[dict[str, Any]], tasks: list[str]) -> list[tuple[float, str]]:
    """Mean over seeds of each test score, then of all; the spread is half of the range."""
    found = []
    for task in tasks:
        values = [cell["scores"][task]["test"] for cell in cells]
        spread = f" ±{(max(values) - min(values)) / 2:.3f}" if len(values) > 1 else ""
        found.append((round(statistics.mean(values), 3), spread))
    return [*found, (round(statistics.mean(mean for mean, _ in found), 3), "")]


def write_page(page: Path, lines: list[str]) -> None:
    """Replace what stands between `<!-- duel -->` and `<!-- end -->`."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(r"(<!-- duel -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{page}: the marks <!-- duel --> and <!-- end --> are missing.")
    body = "\n".join(lines)
    replaced = pattern.sub(lambda match: f"{match[1]}{body}{match[2]}", text, count=1)
    page.write_text(replaced, encoding="utf-8")


def draw(results: Results, picture: Path) -> None:
    """Quality against CPU time: a panel for each set of each text, a line for each program."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    panels = [
        (text, task)
        for text in TEXTS
        if (rows := collect(results, text))
        for task in next(iter(rows.values()))[0]["scores"]
    ]
    columns = max(sum(text == found for found, _ in panels) for text in TEXTS)
    texts = [text for text in TEXTS if any(text == found for found, _ in panels)]
    figure, axes = pyplot.subplots(
        len(texts), columns, figsize=(11, 0.6 + 2.7 * len(texts)), layout="constrained", squeeze=False
    )
    for row, text in enumerate(texts):
        tasks = [task for found, task in panels if found == text]
        for axis, task in zip(axes[row], tasks, strict=False):
            draw_panel(axis, collect(results, text), task)
            axis.set_title(f"{TITLES[text]}: {task}", fontsize=10, loc="left")
        for axis in axes[row][len(tasks) :]:
            axis.axis("off")
        axes[row][0].set_ylabel("score of a linear probe", fontsize=9)
    handles = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    figure.savefig(picture, dpi=110, facecolor="white")
    pyplot.close(figure)


def draw_panel(axis: Any, rows: dict[tuple[int, Rival], list[dict[str, Any]]], task: str) -> None:
    """One set: the mean of the seeds at each budget, and their range."""
    for rival in RIVALS:
        points = sorted(
            (seconds, [cell["scores"][task]["test"] for cell in cells])
            for (seconds, found), cells in rows.items()
            if found is rival
        )
        if not points:
            continue
        ours = rival.key.startswith("polyseme")
        minutes = [seconds / 60 for seconds, _ in points]
        means = [statistics.mean(values) for _, values in points]
        color, marker = STYLES[rival.key]
        axis.plot(
            minutes,
            means,
            color=color,
            marker=marker,
            markersize=8 if ours else 6,
            linewidth=2.4 if ours else 1.3,
            zorder=3 if ours else 2,
            label=rival.name.replace("`", ""),
        )
        axis.vlines(
            minutes, [min(v) for _, v in points], [max(v) for _, v in points], color=color, linewidth=1
        )
    budgets = sorted({seconds for seconds, _ in rows})
    axis.set_xscale("log")
    axis.set_xlim(budgets[0] / 60 / 1.6, budgets[-1] / 60 * 1.6)
    axis.set_xticks([seconds / 60 for seconds in budgets], [f"{seconds / 60:.2g} min" for seconds in budgets])
    axis.minorticks_off()
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
