"""Time the concordance, collocates and passages of an index: what a click in the explorer waits for.

    INDEX  ->  benchmarks/concordance  ->  a table of milliseconds: median and 95th percentile

    python benchmarks/concordance.py sanguo-index 曹操 将 之
    python benchmarks/concordance.py --synthetic 5000000      # a large index, written to a temporary folder

The first call of each kind is not counted: a server makes it when it starts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import polyseme
from polyseme.search.index import Index
from polyseme.search.statistics import write_statistics
from polyseme.search.usage_store import UsageBlockWriter, get_block_path, note_documents
from polyseme.text.corpus.documents import Document

ROUNDS = 20
BLOCK, SENTENCE, DOCUMENTS, SIZE, WORDS = 100_000, 20, 200, 128, 50_000


def main() -> None:
    """Read the arguments, open or write the index, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("index", nargs="?")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--synthetic", type=int, metavar="USAGES")
    arguments = parser.parse_args()
    if arguments.synthetic:
        with tempfile.TemporaryDirectory() as folder:
            index = write_synthetic(Path(folder) / "index", arguments.synthetic)
            measure(index, [index.words.words[rank] for rank in (0, 100, 5000)])
    else:
        measure(polyseme.open_index(arguments.index), arguments.words)


def measure(index: Index, words: list[str]) -> None:
    """Print the times of all verbs for each word."""
    print(f"{index}\nword\tusages\tverb\tmedian ms\t95% ms")
    for word in words:
        numbers = index.usage_numbers(word)
        usage = int(numbers[len(numbers) // 2])
        calls: dict[str, Callable[[], object]] = {
            "document": lambda word=word: polyseme.concordance(index, word),
            "left": lambda word=word: polyseme.concordance(index, word, sort="left"),
            "right": lambda word=word: polyseme.concordance(index, word, sort="right"),
            "similarity": lambda word=word, usage=usage: polyseme.concordance(
                index, word, sort="similarity", usage=usage
            ),
            "collocates": lambda word=word: polyseme.collocates(index, word),
            "passage": lambda usage=usage: polyseme.passage(index, usage),
        }
        for name, call in calls.items():
            call()
            times = []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                call()
                times.append(1000 * (time.perf_counter() - start))
            median, high = np.quantile(times, [0.5, 0.95])
            print(f"{word}\t{len(numbers):,}\t{name}\t{median:.1f}\t{high:.1f}", flush=True)


def write_synthetic(folder: Path, usages: int) -> Index:
    """Write an index of random words, whose frequencies follow Zipf's law."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    shares = 1 / np.arange(1, WORDS + 1)
    names = np.array([f"word{rank}" for rank in range(WORDS)])
    documents = [Document(f"{number}.txt", number, "", {}) for number in range(1, DOCUMENTS + 1)]
    head = {
        "polyseme_index": 1,
        "model": "synthetic",
        "name": None,
        "layer": "top",
        "view": "word",
        "segment": "split",
        "space": "centre",
        "precision": "fp16",
        "size": SIZE,
        "corpora": [{"content": "synthetic"}],
        "blocks": [],
    }
    note_documents(head, documents)
    for first in range(0, usages, BLOCK):
        writer = UsageBlockWriter(get_block_path(folder, first // BLOCK), SIZE)
        writer.add_vectors(rng.standard_normal((BLOCK, SIZE), np.float32).astype(np.float16))
        drawn = names[rng.choice(WORDS, BLOCK, p=shares / shares.sum())]
        for start in range(0, BLOCK, SENTENCE):
            words = drawn[start : start + SENTENCE].tolist()
            stops = np.cumsum([len(word) + 1 for word in words]) - 1
            starts = stops - [len(word) for word in words]
            document = (first + start) * DOCUMENTS // usages
            writer.add(
                " ".join(words), document, start // SENTENCE + 1, words, starts.tolist(), stops.tolist()
            )
        writer.close()
        head["blocks"].append({"usages": BLOCK, "corpus": 0, "units": 0})
    write_statistics(folder, head)
    return polyseme.open_index(folder)


if __name__ == "__main__":
    main()
