"""How fast search is: one query and many over a million usages, indexing beside embedding, the graph.

    a million vectors of 256 values, memory-mapped  ->  milliseconds a query, share of the memory's speed
    a model and a text                              ->  indexing beside reading and embedding; the graph

The vectors of the first part are random, in fp32 and fp16; the memory's speed is that of summing the bytes.

    python benchmarks/search.py [--usages 1000000] [--size 256]
    python benchmarks/search.py --model MODEL --text FILE [--queries 200] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

REPEATS = 9


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--usages", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--model")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="a folder for the index")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.model is None:
            exact_search(given, Path(folder))
        else:
            real_text(given, given.keep or Path(folder) / "index")


def exact_search(given: argparse.Namespace, folder: Path) -> None:
    """One query and 64 over random vectors."""
    queries = np.random.default_rng(1).standard_normal((64, given.size)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    print("| vectors | one query, ms | GB/s | of the memory's speed | 64, ms each | of the product's limit |")
    print("|---|---|---|---|---|---|")
    for dtype in (np.float32, np.float16):
        vectors = random_vectors(folder / "vectors", (given.usages, given.size), dtype)
        one, many = (measured(vectors, asked) for asked in (queries[:1], queries))
        rate, limit = vectors.nbytes / one, product_limit(given, queries)
        share = f"{rate / 1e9:.1f} | {rate / memory_speed(vectors):.0%}"
        together = f"{1000 * many / 64:.2f} | {limit / many:.0%}"
        print(f"| {np.dtype(dtype).name} | {1000 * one:.1f} | {share} | {together} |", flush=True)


def random_vectors(path: Path, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Random numbers in a file, memory-mapped."""
    chance, new = np.random.default_rng(0), np.memmap(path, dtype, "w+", shape=shape)
    for first in range(0, len(new), 50_000):
        new[first : first + 50_000] = chance.standard_normal(new[first : first + 50_000].shape)
    new.flush()
    return np.memmap(path, dtype, "r", shape=shape)


def measured(vectors: np.ndarray, queries: np.ndarray) -> float:
    """Seconds of a search for the ten nearest."""
    from polyseme.search.exact import search
    from polyseme.search.space import Space

    space = Space("centre", np.zeros(vectors.shape[1], np.float32), None)
    lengths = np.ones(len(vectors), np.float32)
    blocks = [vectors[first : first + 100_000] for first in range(0, len(vectors), 100_000)]
    return best_of(lambda: search(blocks, lengths, queries, space, 10))


def best_of(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median of some runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def memory_speed(vectors: Any) -> float:
    """Bytes a second that both cores read."""
    flat = torch.from_numpy(np.asarray(vectors)).view(torch.int64).flatten()
    return vectors.nbytes / best_of(lambda: flat.sum(), 5)


def product_limit(given: argparse.Namespace, queries: np.ndarray) -> float:
    """Seconds of the product alone, with vectors that lie in the cache."""
    rows, asked = torch.randn(4096, given.size), torch.from_numpy(queries)
    return best_of(lambda: asked @ rows.T, 50) * given.usages / 4096


def real_text(given: argparse.Namespace, folder: Path) -> None:
    """Indexing beside embedding; opening; the graph beside exact search."""
    import polyseme
    from polyseme.text.reading import read_lines
    from polyseme.text.stream import sentences_of_lines

    elmo = polyseme.load(given.model)
    elmo.embed(["Once to begin with ."], layer="top")
    start = time.perf_counter()
    sentences = list(sentences_of_lines(read_lines(given.text), elmo.config.segment))
    tokens = sum(map(len, sentences))
    for first in range(0, len(sentences), 500):
        elmo.embed(sentences[first : first + 500], layer="top")
    plain = time.perf_counter() - start
    if not folder.exists():
        start = time.perf_counter()
        polyseme.index(elmo, given.text, folder)
        took = time.perf_counter() - start
        print(f"{tokens:,} tokens: embedding {plain:.1f} s, indexing {took:.1f} s ({took / plain - 1:+.0%})")
    start = time.perf_counter()
    index = polyseme.open_index(folder, elmo)
    print(f"opened in {1000 * (time.perf_counter() - start):.0f} ms")
    start = time.perf_counter()
    index.add_graph("float16")
    print(f"graph of {len(index):,} usages in {time.perf_counter() - start:.0f} s")
    numbers = np.random.default_rng(0).choice(len(index), given.queries, replace=False)
    queries = index.vectors(numbers)
    exactly = [index.nearest(query, 10) for query in queries[:20]]
    slow = best_of(lambda: index.nearest(queries[0], 10))
    probably = [index.probably_nearest(query, 10) for query in queries]
    start = time.perf_counter()
    for query in queries:
        index.probably_nearest(query, 10)
    fast = (time.perf_counter() - start) / len(queries)
    exactly += [index.nearest(query, 10) for query in queries[20:]]
    recall = np.mean(
        [
            len({u.number for u in a} & {u.number for u in b}) / 10
            for a, b in zip(exactly, probably, strict=True)
        ]
    )
    print(
        f"exact {1000 * slow:.1f} ms, graph {1000 * fast:.2f} ms ({slow / fast:.0f}x), recall@10 {recall:.3f}"
    )


if __name__ == "__main__":
    main()
