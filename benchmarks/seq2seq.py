"""Measure translations and summaries on public datasets: with and without ELMo, and simple baselines.

    DATA (folders of datasets)  ->  WORK: one JSON file per cell  ->  a table in Markdown

A cell is a dataset, a variant and a seed; cells in WORK, or in seq2seq.json beside this file, are not
computed again. Datasets: `multi30k` (English to German, as tokenised there), `tatoeba` (Chinese to English,
9 : 0.5 : 0.5 by a hash of the Chinese sentence, so that no sentence is on both sides) and `aeslc` (subject
lines of e-mails). Variants of training: `elmo`, `baseline` (the same network without ELMo), `no-attention`
(the baseline without attention). Without training, on `aeslc` only, one seed: `lead` (the first words of the
text, as many as a subject line has), `extract` (`polyseme.summarise`, one sentence) and `textrank` (one
sentence by shared words, Mihalcea and Tarau 2004). `--also SETTING` tries a variant with other settings.

    python benchmarks/seq2seq.py DATA WORK [--tasks multi30k …] [--variants elmo …] [--seeds 3] [--minutes M]
    python benchmarks/seq2seq.py DATA WORK --table
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tasks import Dataset, high_water, keep, known, three

PUBLISHED = Path(__file__).with_suffix(".json")
MODELS = {"en": "en", "zh": "zh"}
TRAINED, UNTRAINED = ("elmo", "baseline", "no-attention"), ("lead", "extract", "textrank")


def multi30k(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """The files as they are; targets beside the sources."""
    folder = data / "en_multi30k"
    names = ("train", "val", "test_2016_flickr")
    train, dev, test = (folder / f"{name}.lc.norm.tok.en" for name in names)
    return train, dev, test


def tatoeba(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Split lines of English, tab, Chinese: 90% train, 5% dev, 5% test, by the Chinese sentence."""
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for line in (data / "zh_en_tatoeba" / "cmn.txt").read_text(encoding="utf-8").splitlines():
        english, chinese = line.split("\t")[:2]
        number = int(hashlib.sha256(chinese.encode()).hexdigest(), 16) % 20
        part = {0: "dev", 1: "test"}.get(number, "train")
        parts[part].append(f"{chinese}\t{english}\n")
    paths = {part: work / f"tatoeba.{part}.txt" for part in parts}
    for part, lines in parts.items():
        paths[part].write_text("".join(lines), encoding="utf-8")
    return paths["train"], paths["dev"], paths["test"]


SETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("multi30k", "translate", "en", multi30k, 8,
            ("data.segment=split", "data.target_segment=split", "data.target_ending=de")),
        Dataset("tatoeba", "translate", "zh", tatoeba, 8),
        Dataset("aeslc", "summarise", "en", three("en_aeslc", "{}.jsonl"), 8,
            ("data.text=body", "data.summary=subject", "data.empty=skip")),
    )
}  # fmt: skip


def main() -> None:
    """Parse the command line, compute what is missing, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--variants", nargs="+", choices=TRAINED + UNTRAINED, default=list(TRAINED + UNTRAINED)
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--also", nargs="+", default=[], metavar="SETTING", help="a setting to try")
    parser.add_argument("--minutes", type=float, help="start no cell after this many minutes")
    parser.add_argument("--table", action="store_true", help="only print the cells that are there")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    for seed in range(1, arguments.seeds + 1):
        for name in arguments.tasks:
            for variant in arguments.variants:
                late = arguments.minutes is not None and time.monotonic() - start > 60 * arguments.minutes
                if not (arguments.table or late):
                    compute(SETS[name], variant, seed, arguments)
    cells = known(arguments.work, PUBLISHED)
    if arguments.table:
        PUBLISHED.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
    print(table(cells))


def compute(dataset: Dataset, variant: str, seed: int, arguments: argparse.Namespace) -> None:
    """Compute one cell, unless it is there; an interrupted training is resumed."""
    import polyseme

    tried = "".join(f"+{setting}" for setting in arguments.also)
    path = arguments.work / "cells" / f"{dataset.name}.{variant}{tried}.{seed}.json"
    if path.stem in known(arguments.work, PUBLISHED):
        return
    files = dataset.files(arguments.data, arguments.work)
    if variant in UNTRAINED:
        if dataset.task == "summarise" and seed == 1:
            keep(path, extracted(files[2], variant))
        return
    settings = [*dataset.settings, f"train.epochs={dataset.epochs}", f"train.seed={seed}"]
    if variant == "no-attention":
        settings += ["head.attention=none", *(["head.pointer=false"] if dataset.task == "summarise" else [])]
    out = arguments.work / "models" / path.stem
    start = time.process_time()
    model = polyseme.train(
        dataset.task,
        MODELS[dataset.language],
        train=files[0],
        dev=files[1],
        test=files[2],
        out=out,
        settings=[*settings, *arguments.also],
        without_elmo=variant != "elmo",
        resume=(out / "plan.json").exists(),
        vectors=arguments.work / "vectors" / dataset.name,
        progress=True,
    )
    (result,) = model.results
    values = {"main": result.main, "dev": result.dev, "test": result.test, "epochs": result.epochs}
    values |= {"seconds": result.seconds, "processor_seconds": time.process_time() - start}
    keep(path, values | {"shares": result.shares, "examples": result.examples, "memory": high_water()})


def extracted(test: Path, variant: str) -> dict[str, Any]:
    """Scores of summaries that need no training."""
    import polyseme
    from polyseme.tasks.summarise.rouge import score_rouge, split_rouge_words

    start = time.monotonic()
    rows = [json.loads(line) for line in test.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["subject"].strip() and row["body"].strip()]
    elmo = polyseme.load("en")
    length = round(mean(len(split_rouge_words(row["subject"])) for row in rows))
    predicted = []
    for row in rows:
        if variant == "lead":
            predicted.append(" ".join(row["body"].split()[:length]))
        elif variant == "extract":
            predicted.append(polyseme.summarise(elmo, row["body"], sentences=1).text)
        else:
            sentences = elmo.split_sentences(row["body"])
            words = [[token.text.lower() for token in sentence] for sentence in sentences]
            best = sentences[rank_by_words(words)]
            predicted.append(row["body"][best[0].start : best[-1].end])
    metrics = score_rouge([row["subject"] for row in rows], predicted).metrics
    return {"main": "ROUGE-L", "test": metrics, "seconds": time.monotonic() - start}


def rank_by_words(sentences: list[list[str]]) -> int:
    """The sentence with the highest rank in a graph of shared words."""
    sets = [{word for word in words if any(map(str.isalnum, word))} for words in sentences]
    count = len(sets)

    def weigh(a: set[str], b: set[str]) -> float:
        size = math.log(max(1, len(a))) + math.log(max(1, len(b)))
        return len(a & b) / size if size else 0.0

    weights = [[weigh(a, b) if a is not b else 0.0 for b in sets] for a in sets]
    sums = [sum(row) for row in weights]
    ranks = [1.0] * count
    for _ in range(50):
        ranks = [
            0.15 + 0.85 * sum(ranks[j] * weights[j][i] / sums[j] for j in range(count) if sums[j])
            for i in range(count)
        ]
    return max(range(count), key=lambda number: ranks[number])


def table(cells: dict[str, dict[str, Any]]) -> str:
    """A row per dataset and variant: mean and deviation over seeds, on the test part."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, values in cells.items():
        dataset, rest = name.split(".", 1)
        groups.setdefault((dataset, rest.rpartition(".")[0]), []).append(values)
    lines = ["| dataset | variant | test | seeds | minutes |", "|---|---|---|---|---|"]
    for (dataset, variant), group in groups.items():
        shown = []
        for metric in group[0]["test"]:
            values = [100 * cell["test"][metric] for cell in group]
            spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
            shown.append(f"{metric} {mean(values):.1f}{spread}")
        minutes = mean(cell["seconds"] for cell in group) / 60
        lines.append(f"| {dataset} | {variant} | {', '.join(shown)} | {len(group)} | {minutes:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
