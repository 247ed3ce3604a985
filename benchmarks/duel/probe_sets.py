"""The labelled sets of benchmarks/duel.py, cut to sizes that a linear probe needs.

    a folder of data sets  ->  probe_sets  ->  tokenised sentences and labels, in train, dev and test parts

Training parts are cut at random with a fixed seed, and so are large test parts; all rivals get the same
sentences. Nothing is chosen by looking at test parts.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = ("train", "dev", "test")
Kind = Literal["accuracy", "spans", "senses", "sentences"]
TRAIN_SENTENCES, DEV_SENTENCES = 3000, 1000  # of tagging
SENSE_EXAMPLES = 100  # for training and for testing each word


@dataclass(frozen=True)
class ProbeSet:
    """Sentences of three parts, with one label per token, or one per sentence.

    Attributes:
        name: As in the table.
        kind: What is scored: accuracy of tokens, F1 of spans, senses of a word in each sentence (macro F1,
            mean of the words), accuracy of sentences.
        stem: Name of the file of sentences; sets of the same sentences share their vectors.
        sentences: Tokens, by part.
        labels: By part; a list per sentence for tokens, a string per sentence otherwise.
        positions: Of the word whose sense is asked, by part.
        words: That word, by part.

    """

    name: str
    kind: Kind
    stem: str
    sentences: dict[Part, list[list[str]]]
    labels: dict[Part, list[list[str]]] | dict[Part, list[str]]
    positions: dict[Part, list[int]] | None = None
    words: dict[Part, list[str]] | None = None


def read_english(data: Path) -> Iterator[ProbeSet]:
    """POS, chunks, names, senses and sentiment."""
    conllu = {
        part: list(read_columns(data / "en_ud_ewt" / f"en_ewt-ud-{part}.conllu", "\t", 1, 3))
        for part in PARTS
    }
    yield make_tagging("POS", "accuracy", "ewt", conllu)
    names = {"train": "eng.train", "dev": "eng.testa", "test": "eng.testb"}
    for name, column in (("chunking", 2), ("NER", 3)):
        conll = {p: list(read_columns(data / "en_conll2003" / names[p], " ", 0, column)) for p in PARTS}
        yield make_tagging(name, "spans", "conll", {p: begin_spans(pairs) for p, pairs in conll.items()})
    yield read_senses(data / "en_coarsewsd20")
    yield read_sst(data / "en_sst")


def read_chinese(data: Path) -> Iterator[ProbeSet]:
    """POS of words, names in characters, sentiment of hotel reviews."""
    yield read_pku(data / "zh_pku199801" / "199801.txt")
    weibo = {
        part: list(
            read_columns(data / "zh_weibo_ner" / f"weiboNER_2nd_conll.{part}", "\t", 0, 1, max_characters=1)
        )
        for part in PARTS
    }
    yield make_tagging("NER", "spans", "weibo.characters", weibo)
    yield read_hotels(data / "zh_chnsenticorp_htl" / "ChnSentiCorp_htl_all.csv")


READERS: dict[str, Callable[[Path], Iterator[ProbeSet]]] = {"en": read_english, "zh": read_chinese}
Tagged = tuple[list[str], list[str]]  # tokens and labels of a sentence


def read_columns(
    path: Path, separator: str, token: int, label: int, max_characters: int | None = None
) -> Iterator[Tagged]:
    """Sentences of a file with a token per line; `max_characters` shortens tokens."""
    tokens: list[str] = []
    labels: list[str] = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        fields = line.split(separator)
        if not line.strip():
            if tokens and tokens != ["-DOCSTART-"]:
                yield tokens, labels
            tokens, labels = [], []
        elif not (
            line.startswith("# ") or re.match(r"\d+[-.]\d+\t", line)
        ):  # comments, empty nodes, contractions
            tokens.append(fields[token][:max_characters])
            labels.append(fields[label])


def begin_spans(sentences: list[Tagged]) -> list[Tagged]:
    """IOB1 as IOB2: every span begins with B-."""
    result = []
    for tokens, labels in sentences:
        begun = [
            f"B-{label[2:]}" if label != "O" and (before == "O" or before[2:] != label[2:]) else label
            for before, label in zip(["O", *labels[:-1]], labels, strict=True)
        ]
        result.append((tokens, begun))
    return result


def choose(items: list, count: int, seed: int = 0) -> list:
    """At most `count` items at random, in their order."""
    if len(items) <= count:
        return items
    numbers = sorted(random.Random(seed).sample(range(len(items)), count))
    return [items[number] for number in numbers]


def make_tagging(name: str, kind: Kind, stem: str, parts: dict[Part, list[Tagged]]) -> ProbeSet:
    """Cut the parts for training and development; the test part stays whole."""
    sizes = {"train": TRAIN_SENTENCES, "dev": DEV_SENTENCES, "test": len(parts["test"])}
    selected = {part: choose(parts[part], sizes[part]) for part in PARTS}
    return ProbeSet(
        name,
        kind,
        stem,
        {part: [tokens for tokens, _ in selected[part]] for part in PARTS},
        {part: [labels for _, labels in selected[part]] for part in PARTS},
    )


def read_senses(folder: Path) -> ProbeSet:
    """CoarseWSD-20: a fifth of the training examples of each word is the dev part."""
    sentences: dict[Part, list[list[str]]] = {part: [] for part in PARTS}
    labels: dict[Part, list[str]] = {part: [] for part in PARTS}
    positions: dict[Part, list[int]] = {part: [] for part in PARTS}
    words: dict[Part, list[str]] = {part: [] for part in PARTS}
    for word in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        examples = {}
        for part in ("train", "test"):
            lines = (folder / word / f"{part}.data.txt").read_text(encoding="utf-8").splitlines()
            senses = (folder / word / f"{part}.gold.txt").read_text(encoding="utf-8").splitlines()
            examples[part] = choose(list(zip(lines, senses, strict=True)), SENSE_EXAMPLES * 5 // 4)
        shuffled = random.Random(1).sample(examples["train"], len(examples["train"]))
        fifth = len(shuffled) // 5
        selected = {
            "dev": shuffled[:fifth],
            "train": shuffled[fifth:],
            "test": choose(examples["test"], SENSE_EXAMPLES),
        }
        for part in PARTS:
            for line, sense in selected[part]:
                position, text = line.split("\t")
                sentences[part].append(text.split())
                positions[part].append(int(position))
                labels[part].append(sense)
                words[part].append(word)
    return ProbeSet("WSD", "senses", "coarsewsd", sentences, labels, positions, words)


def read_sst(folder: Path) -> ProbeSet:
    """SST-2: a label and a tokenised sentence per line."""
    sentences: dict[Part, list[list[str]]] = {}
    labels: dict[Part, list[str]] = {}
    for part in PARTS:
        lines = (folder / f"stsa.binary.{part}").read_text(encoding="utf-8").splitlines()
        lines = choose(lines, 4000) if part == "train" else lines
        sentences[part] = [line.split()[1:] for line in lines]
        labels[part] = [line.split()[0] for line in lines]
    return ProbeSet("SST-2", "sentences", "sst", sentences, labels)


def read_pku(path: Path) -> ProbeSet:
    """People's Daily, January 1998: the first 80% of the lines train, then 10% dev, 10% test, all cut."""
    sentences = []
    for line in path.read_text(encoding="utf-8").splitlines():
        pairs = [re.sub(r"^\[", "", item).rsplit("/", 1) for item in line.split()]
        pairs = [pair for pair in pairs if len(pair) == 2 and pair[0]]
        # A line is a paragraph; sentences end with a full stop, and titles with their line.
        tokens: list[str] = []
        tags: list[str] = []
        for token, tag in pairs:
            tokens.append(token)
            tags.append(re.sub(r"\].*", "", tag))
            if token in "。！？":
                sentences.append((tokens, tags))
                tokens, tags = [], []
        if tokens:
            sentences.append((tokens, tags))
    tenth = len(sentences) // 10
    parts: dict[Part, list[Tagged]] = {
        "train": sentences[: 8 * tenth],
        "dev": sentences[8 * tenth : 9 * tenth],
        "test": choose(sentences[9 * tenth :], 2000),
    }
    return make_tagging("POS", "accuracy", "pku", parts)


def read_hotels(path: Path) -> ProbeSet:
    """ChnSentiCorp's hotel reviews, as words by jieba, shuffled: 3,000 train, 500 dev, 1,500 test."""
    import rjieba

    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["label"], row["review"]) for row in csv.DictReader(file) if row["review"].strip()]
    random.Random(0).shuffle(rows)
    selected: dict[Part, list[tuple[str, str]]] = {
        "train": rows[:3000],
        "dev": rows[3000:3500],
        "test": rows[3500:5000],
    }
    return ProbeSet(
        "hotel reviews",
        "sentences",
        "hotels",
        {
            part: [[word for word in rjieba.cut(text[:100]) if word.strip()] for _, text in selected[part]]
            for part in PARTS
        },
        {part: [label for label, _ in selected[part]] for part in PARTS},
    )
