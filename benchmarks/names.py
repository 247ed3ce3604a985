"""Measure how many names of a novel are tokens of their own, and what else a word list changes.

    python benchmarks/names.py --novels FOLDER --entities sanguo_entity_dict.json --gold 199801.txt

For each novel (TITLE.txt in FOLDER; novel_persons/TITLE.txt has a person and further names per line): the
share of the mentions of the 100 most frequent names that are tokens of their own, before and with the words
found in the novel itself. A mention inside a longer known name does not count. For People's Daily: F1 of the
words against its gold segmentation, as it is and with surnames and given names joined, and the share of the
tokens of the 5,000 most frequent words that are no tokens any more. Speed is CPU time of segmentation.

`--invented SEED ...` measures names that no threshold was set on (invented_names.py): the persons of each
novel and of both halves of the People's Daily get surnames with given names that are words. DESIGN lists the
texts that discovery was tuned on; all others are held out, and get names of the other set.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from invented_names import NameSet, rename_persons
from polyseme.text.segment import WordList, chinese, split_token_texts, token_texts
from polyseme.text.segment.discovery import discover_words
from polyseme.text.segment.word_list import ListedWord

PERSONS = Path(__file__).parent / "novel_persons"
DESIGN = frozenset(("水浒传", "红楼梦", "first half"))
TOP = 100
FREQUENT = 5_000
_HAN = re.compile(r"[\u4e00-\u9fff]+")


def find_words(text: str) -> WordList | None:
    """The word list that pretraining would make for a text."""
    found = discover_words([text])
    return WordList(tuple(ListedWord(new.word, new.count, new.tag) for new in found)) if found else None


def read_entities(path: Path) -> set[str]:
    """Names of persons in the entities of 三国演义, of two characters or more."""
    entities = json.loads(path.read_text(encoding="utf-8"))
    persons = (name for name, kind in entities["type"].items() if kind == "人名")
    return {name for person in persons for name in entities["mention"].get(person, [person]) if len(name) > 1}


def share_whole(text: str, names: Iterable[str], word_list: WordList | None) -> tuple[float, int]:
    """Share of the mentions of the most frequent names that are tokens, and the number of mentions."""
    pattern = re.compile("|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name)))))
    mentions: list[tuple[int, int, str]] = []
    tokens: set[tuple[int, int]] = set()
    for start, line in _lines(text):
        mentions += [
            (start + match.start(), start + match.end(), match[0]) for match in pattern.finditer(line)
        ]
        tokens.update(_spans(token_texts(line, "zh", word_list), line, start))
    frequent = {name for name, _ in Counter(name for *_, name in mentions).most_common(TOP)}
    counted = [(start, stop) for start, stop, name in mentions if name in frequent]
    return sum(span in tokens for span in counted) / len(counted), len(counted)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _spans(words: list[str], text: str, offset: int = 0) -> Iterator[tuple[int, int]]:
    end = 0
    for word in words:
        start = text.index(word, end)
        end = start + len(word)
        yield offset + start, offset + end


def read_gold(path: Path, *, join_names: bool) -> list[list[str]]:
    """Sentences of `word/tag`; surnames and given names are two words, unless they are joined."""
    sentences = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        words: list[str] = []
        surname = False  # whether the last word is a surname
        for item in line.split():
            word, _, tag = item.rpartition("/")
            word, tag = word.lstrip("["), tag.split("]")[0]
            is_name = tag.startswith("nr")
            if join_names and is_name and surname:
                words[-1] += word
                surname = False
            elif word:
                words.append(word)
                surname = is_name and len(word) <= 2
        if words:
            sentences.append(words)
    return sentences


def read_person_names(gold: list[list[str]], joined: list[list[str]]) -> set[str]:
    """Full names of three characters or more: the words that joining surnames and given names made."""
    separate = {word for words in gold for word in words}
    return {
        word
        for words in joined
        for word in words
        if len(word) > 2 and word not in separate and _HAN.fullmatch(word)
    }


def measure_invented(name: str, text: str, names: Iterable[str], seeds: Iterable[int]) -> None:
    """Print the share of the mentions of invented names that are tokens, per seed."""
    names_from: NameSet = "design" if name in DESIGN else "held out"
    shares, before = [], []
    for seed in seeds:
        renamed, invented = rename_persons(text, names, names_from, seed)
        words = find_words(renamed)
        before.append(share_whole(renamed, invented, None)[0])
        shares.append(share_whole(renamed, invented, words)[0])
    print(
        f"{name}, invented names ({names_from}), {len(shares)} seeds: {max(before):.2%} before at most, "
        f"{sum(shares) / len(shares):.2%} in the mean, {min(shares):.2%} at least",
        flush=True,
    )


def score(labelled: list[list[str]], word_list: WordList | None) -> float:
    """F1 of the words of a segmentation."""
    right = total = 0
    for words in labelled:
        text = "".join(words)
        predicted = set(_spans(token_texts(text, "zh", word_list), text))
        expected = set(_spans(words, text))
        right += len(predicted & expected)
        total += len(predicted) + len(expected)
    return 2 * right / total


def share_damaged(texts: list[str], word_list: WordList | None) -> float:
    """Share of the tokens of frequent words, those of the list apart, that are no tokens any more."""
    listed = {entry.word for entry in word_list.entries} if word_list else set()
    before, after = Counter[str](), Counter[str]()
    for text in texts:
        now = set(_spans(token_texts(text, "zh", word_list), text))
        for start, stop in _spans(token_texts(text, "zh"), text):
            before[text[start:stop]] += 1
            after[text[start:stop]] += (start, stop) in now
    frequent = [w for w, _ in before.most_common(FREQUENT) if w not in listed and _HAN.fullmatch(w)]
    total = sum(before[word] for word in frequent)
    return (total - sum(after[word] for word in frequent)) / total


def measure_speed(text: str, word_list: WordList | None) -> list[float]:
    """Million characters per CPU second: sentence by sentence without words, now, and with the word list.

    The best of five interleaved rounds. The first was the only way before there were word lists.
    """
    ways = (
        lambda: [words for words in map(chinese.split_words, chinese.split_sentences(text)) if words],
        lambda: split_token_texts(text, "zh"),
        lambda: split_token_texts(text, "zh", word_list),
    )
    best = [0.0] * len(ways)
    for _ in range(6):  # the first loads the dictionaries
        for number, segment in enumerate(ways):
            start = time.process_time()
            segment()
            best[number] = max(best[number], len(text) / 1e6 / (time.process_time() - start))
    return best


def main() -> None:
    """Print one line per text."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--novels", type=Path, required=True)
    parser.add_argument("--entities", type=Path)
    parser.add_argument("--gold", type=Path)
    parser.add_argument("--invented", nargs="*", type=int, default=[], metavar="SEED")
    parser.add_argument("--only-invented", action="store_true", help="leave out the rest")
    arguments = parser.parse_args()
    if arguments.invented:
        measure_all_invented(arguments.novels, arguments.gold, arguments.invented)
    if not arguments.only_invented:
        measure_texts(arguments)


def measure_all_invented(novels: Path, gold_path: Path | None, seeds: list[int]) -> None:
    """Print the shares of invented names in each novel, and in each half of the People's Daily."""
    for path in sorted(PERSONS.glob("*.txt")):
        text = (novels / path.name).read_text(encoding="utf-8")
        measure_invented(path.stem, text, path.read_text(encoding="utf-8").split(), seeds)
    if gold_path:
        gold, joined = (read_gold(gold_path, join_names=join_names) for join_names in (False, True))
        half = len(gold) // 2
        for name, part in {"first half": slice(half), "second half": slice(half, None)}.items():
            text = "\n".join("".join(words) for words in gold[part])
            names = read_person_names(gold[part], joined[part])
            after, mentions = share_whole(text, names, find_words(text))
            before, _ = share_whole(text, names, None)
            print(f"People's Daily, {name}: {before:.2%} -> {after:.2%} of {mentions:,} mentions whole")
            measure_invented(name, text, names, seeds)


def measure_texts(arguments: argparse.Namespace) -> None:
    """Print what the words of each text change."""
    lists: dict[str, WordList | None] = {}
    for path in sorted(PERSONS.glob("*.txt")):
        text = (arguments.novels / path.name).read_text(encoding="utf-8")
        started = time.process_time()
        lists[path.stem] = words = find_words(text)
        seconds = time.process_time() - started
        sources = {path.stem: set(path.read_text(encoding="utf-8").split())}
        if arguments.entities and path.stem == "三国演义":
            sources["三国演义, entities"] = read_entities(arguments.entities)
        for name, names in sources.items():
            before, mentions = share_whole(text, names, None)
            after, _ = share_whole(text, names, words)
            print(f"{name}: {before:.2%} -> {after:.2%} of {mentions:,} mentions whole")
        earlier, plain, listed = measure_speed(text, words)
        size = len(words.entries) if words else 0
        print(
            f"    {size} entries found in {seconds:.1f} s; million characters/s: {earlier:.2f} before, "
            f"{plain:.2f} without and {listed:.2f} with the list ({listed / earlier:.0%} of before)"
        )
    if arguments.gold:
        labelled_texts = [read_gold(arguments.gold, join_names=join_names) for join_names in (False, True)]
        texts = ["".join(words) for words in labelled_texts[0]]
        lists = {"no words": None, "its own words": find_words("\n".join(texts)), **lists}
        for name, words in lists.items():
            scores = ", ".join(f"{score(labelled, words):.4f}" for labelled in labelled_texts)
            print(f"People's Daily with {name}: F1 {scores}; damaged {share_damaged(texts, words):.3%}")


if __name__ == "__main__":
    main()
