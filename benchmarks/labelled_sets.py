"""Public labelled datasets of the benchmarks: their files, split where they come in one, and their settings.

    DATA (folders of labelled datasets)  ->  labelled_sets  ->  tasks.py, paper.py

What must not change: splits follow from the text alone, so everybody who has DATA measures on the same parts.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MAX_TOKENS = 200_000  # of the People's Daily
SHAPE = ("encoder.size=64", "train.rate=0.002")  # of all sets whose task has one LSTM


RARE: dict[str, Callable[[str], list[str]]] = {  # sets with rare labels, and those of an example
    "semeval": lambda unit: unit.splitlines()[1:2],
    "weibo": lambda unit: [line.split("\t")[1] for line in unit.splitlines()],
    "daily": lambda unit: [word.rpartition("/")[2] for word in unit.split()],
}


@dataclass(frozen=True)
class Dataset:
    """A labelled dataset: its task, its language, its files in DATA, its settings."""

    name: str
    task: str
    language: str
    files: Callable[[Path, Path], tuple[Path, Path | None, Path]]  # DATA, WORK -> train, dev, test
    settings: tuple[str, ...] = ()
    text: str = ""  # the dataset with the same sentences, whose adapted model is used


def plain(folder: str, train: str, dev: str | None, test: str) -> Callable[[Path, Path], Any]:
    """Files that are read without changes."""
    return lambda data, work: (
        data / folder / train,
        None if dev is None else data / folder / dev,
        data / folder / test,
    )


def three(folder: str, pattern: str) -> Callable[[Path, Path], Any]:
    """Files named after their parts: train, dev, test."""
    return plain(folder, *(pattern.format(part) for part in ("train", "dev", "test")))


def weibo(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Remove the number after each character, which is its position in a word."""
    for part in ("train", "dev", "test"):
        lines = (
            (data / "zh_weibo_ner" / f"weiboNER_2nd_conll.{part}").read_text(encoding="utf-8").splitlines()
        )
        fields = [line.split("\t") for line in lines]
        rows = [f"{word[0][0]}\t{word[1]}" if len(word) > 1 else "" for word in fields]
        (work / f"weibo.{part}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return work / "weibo.train", work / "weibo.dev", work / "weibo.test"


def hotels(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Split one file of reviews: 80% train, 10% dev, 10% test."""
    with (data / "zh_chnsenticorp_htl" / "ChnSentiCorp_htl_all.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = [row for row in csv.reader(file) if len(row) == 2 and row[1].strip()][1:]
    random.Random(1).shuffle(rows)
    ends = [0, len(rows) * 8 // 10, len(rows) * 9 // 10, len(rows)]
    paths = []
    for number, part in enumerate(("train", "dev", "test")):
        paths.append(work / f"hotels.{part}.csv")
        with paths[-1].open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([["label", "text"], *rows[ends[number] : ends[number + 1]]])
    return paths[0], paths[1], paths[2]


def daily(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Split the first tokens of the People's Daily by sentences: 80% train, 10% dev, 10% test."""
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    tokens = 0
    for number, line in enumerate((data / "zh_pku199801" / "199801.txt").open(encoding="utf-8")):
        if tokens >= MAX_TOKENS:
            break
        tokens += len(line.split())
        part = {8: "dev", 9: "test"}.get(number % 10, "train")
        if line.strip():
            parts[part].append(line)
    for part, lines in parts.items():
        (work / f"daily.{part}").write_text("".join(lines), encoding="utf-8")
    return work / "daily.train", work / "daily.dev", work / "daily.test"


def novels(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """LitBank's hundred novels in the order of their file names: 80 train, 10 dev, 10 test."""
    paths = sorted((data / "en_litbank" / "coref" / "conll").glob("*.conll"))
    parts = {"train": paths[:80], "dev": paths[80:90], "test": paths[90:]}
    for part, chosen in parts.items():
        texts = [path.read_text(encoding="utf-8") for path in chosen]
        (work / f"litbank.{part}.conll").write_text("".join(texts), encoding="utf-8")
    return work / "litbank.train.conll", work / "litbank.dev.conll", work / "litbank.test.conll"


def squad(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """The subset of SQuAD, every fifth article for dev; XQuAD's English side (SQuAD's dev set)."""
    train, dev = by_article(data / "en_squad_subset" / "train-v1.1-first_articles.json", work, "squad", 5, 2)
    return train, dev, data / "en_zh_xquad" / "xquad.en.json"


def drcd(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """The dev file of DRCD (traditional Chinese), every tenth article for dev; its test file."""
    train, dev = by_article(data / "zh_drcd" / "DRCD_dev.json", work, "drcd", 10, 9)
    return train, dev, data / "zh_drcd" / "DRCD_test.json"


def by_article(path: Path, work: Path, name: str, count: int, held_out: int) -> tuple[Path, Path]:
    """Hold out every article whose number is `held_out` modulo `count`."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paths = work / f"{name}.train.json", work / f"{name}.dev.json"
    for out, is_dev in zip(paths, (False, True), strict=True):
        kept = [article for n, article in enumerate(articles) if (n % count == held_out) == is_dev]
        out.write_text(json.dumps({"data": kept}, ensure_ascii=False), encoding="utf-8")
    return paths


def tatoeba(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Split lines of English, tab, Chinese: 90% train, 5% dev, 5% test, by a hash of the Chinese sentence."""
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for line in (data / "zh_en_tatoeba" / "cmn.txt").read_text(encoding="utf-8").splitlines():
        english, chinese = line.split("\t")[:2]
        number = int(hashlib.sha256(chinese.encode()).hexdigest(), 16) % 20
        part = {0: "dev", 1: "test"}.get(number, "train")
        parts[part].append(f"{chinese}\t{english}\n")
    for part, lines in parts.items():
        (work / f"tatoeba.{part}.txt").write_text("".join(lines), encoding="utf-8")
    return work / "tatoeba.train.txt", work / "tatoeba.dev.txt", work / "tatoeba.test.txt"


SPLIT = ("data.segment=split",)  # already tokenised
LITTLE = ("input.elmo_dropout=0.2",)  # of pairs: 0.5 costs three points on SICK's dev file
SICK = ("data.first=sentence_A", "data.second=sentence_B", "data.format=tsv")
SICK_FILES = plain("en_sick", "SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
SIMPLE_SETS = [  # whose networks have one LSTM of the same size
    replace(dataset, settings=(*SHAPE, *dataset.settings))
    for dataset in (
        Dataset("sst5", "classification", "en", three("en_sst", "stsa.fine.{}"), SPLIT),
        Dataset("sst2", "classification", "en", three("en_sst", "stsa.binary.{}"), SPLIT, "sst5"),
        Dataset("conll2003", "tagging", "en",
            plain("en_conll2003", "eng.train", "eng.testa", "eng.testb")),
        Dataset("ewt", "tagging", "en", three("en_ud_ewt", "en_ewt-ud-{}.conllu")),
        Dataset("sick", "pairs", "en", SICK_FILES, (*SICK, *LITTLE, "data.label=entailment_judgment")),
        Dataset("sick-r", "pairs", "en", SICK_FILES,
            (*SICK, *LITTLE, "data.label=relatedness_score", "head.answer=number"), "sick"),
        Dataset("semeval", "relations", "en",
            plain("en_semeval2010_task8", "TRAIN_FILE.TXT", None, "TEST_FILE_FULL.TXT"),
            ("data.dev_share=0.1",)),
        Dataset("weibo", "tagging", "zh", weibo, ("data.scheme=iob1",)),  # a dozen slips for IOB2
        Dataset("hotels", "classification", "zh", hotels, ("data.max_tokens=200",)),
        Dataset("ocnli", "pairs", "zh", plain("zh_ocnli", "train.10k.json", None, "dev.json"),
            (*LITTLE, 'data.skip=["-"]', "data.dev_share=0.1")),
        Dataset("daily", "tagging", "zh", daily),
    )
]  # fmt: skip
LARGE_SETS = [  # whose networks are those of their presets
    Dataset("propbank", "roles", "en", three("en_srl_ewt_propbank", "{}.jsonl")),
    Dataset("litbank", "coref", "en", novels),
    Dataset("squad", "answers", "en", squad),
    Dataset("drcd", "answers", "zh", drcd),
    Dataset("multi30k", "translate", "en",
        plain("en_multi30k", *(f"{part}.lc.norm.tok.en" for part in ("train", "val", "test_2016_flickr"))),
        ("data.segment=split", "data.target_segment=split", "data.target_ending=de")),
    Dataset("tatoeba", "translate", "zh", tatoeba),
    Dataset("aeslc", "summarise", "en", three("en_aeslc", "{}.jsonl"),
        ("data.text=body", "data.summary=subject", "data.empty=skip")),
]  # fmt: skip
SETS = {dataset.name: dataset for dataset in (*SIMPLE_SETS, *LARGE_SETS)}


def part_of(dataset: Dataset, train: Path, share: float, seed: int, work: Path) -> Path:
    """Write a share of the training examples to a file."""
    blocks = dataset.task == "relations" or dataset.name in ("conll2003", "ewt", "weibo")
    text = train.read_text(encoding="utf-8")
    units = [unit for unit in text.split("\n\n") if unit.strip()] if blocks else text.splitlines()
    head = units[:1] if train.suffix == ".csv" or dataset.name.startswith("sick") else []
    units = units[len(head) :]
    random.Random(seed).shuffle(units)
    if dataset.name in RARE:  # one example of each label first: dev and test have rare labels, too
        firsts = {label: unit for unit in reversed(units) for label in RARE[dataset.name](unit)}
        rare = set(firsts.values())
        units.sort(key=lambda unit: unit not in rare)
    out: Path = work / "parts" / f"{dataset.name}-{share:g}-{seed}{train.suffix}"
    out.parent.mkdir(exist_ok=True)
    kept = [*head, *units[: round(len(units) * share)]]
    out.write_text(("\n\n" if blocks else "\n").join(kept) + "\n", encoding="utf-8")
    return out
