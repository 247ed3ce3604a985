r"""Measure the senses that are found without labels: words with several, names with one.

    a model, public sets  ->  adjusted Rand index, how many words are split, how many groups are called senses

CoarseWSD-20: at most EACH training sentences of each sense, so that senses are of like size; agreement of the
groups with the labels, and how many of the words with several senses get several. Names have one sense, so
each split is a mistake: persons of 三国演义 (sanguo_entity_dict.json), main persons of 红楼梦, 西游记 and
水浒传 (PERSONS, a list made by hand), and names of people and places in the training text of CoNLL-2003.
The method was chosen on CoarseWSD-20, 三国演义, 红楼梦 and CoNLL-2003; 西游记 and 水浒传 are held out.
Indexes are built in the folder CACHE once.

    python benchmarks/senses.py CACHE [--wsd COARSEWSD-20] [--novels FOLDER] [--sanguo FOLDER] \
        [--conll eng.train] [--view word]
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

import polyseme
from polyseme.search.clusters import cluster, measure_rand
from polyseme.search.index import Index
from polyseme.search.sense_data import read_sense_data
from polyseme.search.senses import find_senses

EACH = 150
MIN_USAGES = 50  # of a name
PERSONS = {
    "红楼梦": "贾母 贾政 贾琏 贾珍 贾蓉 贾环 贾赦 宝玉 黛玉 宝钗 湘云 探春 惜春 迎春 凤姐 袭人 "
    "晴雯 紫鹃 平儿 鸳鸯 香菱 尤氏 刘姥姥 薛姨妈 王夫人 邢夫人 雨村 薛蟠 芳官 贾芸 "
    "秦钟 妙玉",
    "西游记": "行者 八戒 沙僧 三藏 唐僧 悟空 悟能 观音 菩萨 太宗 玉帝 如来 哪吒 龙王 猴王 "
    "牛魔王 猪八戒 沙和尚 孙悟空",
    "水浒传": "宋江 吴用 武松 李逵 林冲 鲁智深 卢俊义 柴进 花荣 晁盖 燕青 石秀 戴宗 杨志 史进 "
    "杨雄 朱仝 雷横 秦明 高俅 呼延灼 关胜 张顺 李俊 公孙胜 西门庆 潘金莲 武大 方腊 "
    "高太尉",
}


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cache", type=Path)
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--novels", type=Path)
    parser.add_argument("--sanguo", type=Path)
    parser.add_argument("--conll", type=Path)
    parser.add_argument("--view", default="word", choices=("word", "context"))
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    if options.wsd:
        measure_words(options.cache, options.wsd, options.view)
    if options.sanguo:
        text = options.sanguo / "sanguo.txt"
        index = open_or_build(options.cache, "sanguo", "zh-classic", text, options.view)
        types = json.loads((options.sanguo / "sanguo_entity_dict.json").read_text("utf-8"))["type"]
        measure_names(
            "三国演义", index, [name for name, kind in types.items() if kind == "人名" and len(name) > 1]
        )
    for novel, persons in PERSONS.items() if options.novels else ():
        text = options.novels / f"{novel}.txt"
        index = open_or_build(options.cache, novel, "zh-classic", text, options.view)
        measure_names(novel, index, persons.split())
    if options.conll:
        text, names = read_conll(options.conll, options.cache)
        index = open_or_build(options.cache, "conll", "en-classic", text, options.view, "split")
        for kind in ("PER", "LOC"):
            measure_names(f"CoNLL {kind}", index, names[kind])


def open_or_build(
    cache: Path, name: str, model: str, text: Path, view: str, segment: str | None = None
) -> Index:
    """Open an index, or build it."""
    return polyseme.index(
        model,
        text,
        cache / f"{name}-{view}",
        view=view,  # type: ignore[arg-type]
        min_count=2,
        segment=segment,
    )


def measure_words(cache: Path, folder: Path, view: str) -> None:
    """Measure the agreement with the labels of CoarseWSD-20, beside that of the vectors alone."""
    sentences = cache / "wsd"
    sentences.mkdir(exist_ok=True)
    by_sense: dict[str, dict[tuple[str, ...], list[tuple[list[str], int]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for usage in read_sense_data(folder, "train"):
        by_sense[usage.key][tuple(usage.senses)].append((list(usage.tokens), usage.start))
    labels: dict[tuple[str, int, int], int] = {}
    for word, senses in sorted(by_sense.items()):
        rows = [
            (label, tokens, start)
            for label, usages in enumerate(senses.values())
            for tokens, start in usages[:: -(-len(usages) // EACH)]
        ]
        for line, (label, _, start) in enumerate(rows, start=1):
            labels[word, line, start] = label
        lines = "".join(" ".join(tokens) + "\n" for _, tokens, _ in rows)
        (sentences / f"{word}.txt").write_text(lines, encoding="utf-8")
    index = open_or_build(cache, "wsd-balanced", "en-classic", sentences, view, "split")
    table = []
    for word, senses in sorted(by_sense.items()):
        found = find_senses(index, word, groups=True)
        chosen, gold = [], []
        for row, number in enumerate(found.numbers):
            usage = index.usage(int(number))
            key = (word, usage.line, len(usage.sentence[: usage.start].split()))
            if Path(usage.document).stem == word and key in labels:
                chosen.append(row)
                gold.append(labels[key])
        rand = measure_rand(found.labels[chosen], np.array(gold))
        before = measure_rand(cluster(index.vectors(found.numbers[chosen])).labels, np.array(gold))
        table.append((len(senses) > 1, len(found.senses) > 1, found.kind == "senses", rand, before))
        print(
            f"{word}\t{len(senses)} labelled\t{found.summary}\tARI {rand:.2f}, by vectors alone {before:.2f}"
        )
    several = [row for row in table if row[0]]
    print(
        f"CoarseWSD-20, {view}: {sum(row[1] for row in several)} of {len(several)} words split, "
        f"{sum(row[2] for row in several)} called senses; "
        f"mean ARI {np.mean([row[3] for row in several]):.3f}, "
        f"by vectors alone {np.mean([row[4] for row in several]):.3f}"
    )


def measure_names(title: str, index: Index, names: list[str]) -> None:
    """Measure how many names, which have one sense, are split."""
    frequent = [name for name in names if name in index.words and index.words.count(name) >= MIN_USAGES]
    found = [find_senses(index, name, groups=True) for name in frequent]
    split = [senses.word for senses in found if senses.candidates > 1]
    called = [senses.word for senses in found if senses.kind == "senses"]
    before = sum(len(cluster(index.vectors(senses.numbers)).centres) > 1 for senses in found)
    print(
        f"{title}: {len(frequent)} names, {len(called)} with several senses ({' '.join(called)}), "
        f"{len(split)} with stable groups; {before} split by vectors alone"
    )


def read_conll(path: Path, cache: Path) -> tuple[Path, dict[str, list[str]]]:
    """Write the text of CoNLL-2003, and find words that are nearly always names of persons or places."""
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    sentences: list[list[str]] = [[]]
    for line in path.read_text("utf-8").splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[0] != "-DOCSTART-":
            sentences[-1].append(fields[0])
            tags[fields[0]][fields[3].split("-")[-1]] += 1
        elif sentences[-1]:
            sentences.append([])
    text = cache / "conll.txt"
    text.write_text("".join(" ".join(tokens) + "\n" for tokens in sentences if tokens), encoding="utf-8")
    names: dict[str, list[str]] = {"PER": [], "LOC": []}
    for word, counts in tags.items():
        (kind, count), total = counts.most_common(1)[0], counts.total()
        if kind in names and count >= 0.95 * total and not word.isupper():
            names[kind].append(word)
    return text, names


if __name__ == "__main__":
    main()
