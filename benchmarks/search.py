"""Measure search: one query and many over a million usages, indexing against embedding, the graph.

    a million vectors of 256 values, memory-mapped  ->  milliseconds per query, share of the machine's limits
    a model and a text                              ->  indexing against embedding, opening, memory, the graph

The vectors of the first part are random, in fp32 and fp16. The speed of memory is that of summing the bytes;
the limit of a product is the fastest one (torch's or ours) of vectors that are in the cache. Each number is
the median of its runs, and what is compared runs in turns. Embedding (reading, segmenting and embedding in
batches as large as those of the index) and indexing run in turns, too, and the median of their ratios counts,
since a machine may be twice as fast in one round as in the next. CPU seconds are printed as well.

    python benchmarks/search.py [--usages 1000000] [--size 256]
    python benchmarks/search.py --model MODEL --text FILE [--rounds 3] [--graph] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

REPEATS = 9
CACHED = 192  # vectors of the product that gives the limit: they stay in the L2 cache
MANY = 64  # queries


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--usages", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--model")
    parser.add_argument("--text", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of embedding and indexing")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="folder of the index; used as it is if it exists")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.model is None:
            measure_exact_search(options, Path(folder))
        else:
            measure_text(options, options.keep or Path(folder) / "index")


def measure_exact_search(options: argparse.Namespace, folder: Path) -> None:
    """Measure one query and MANY over random vectors."""
    queries = np.random.default_rng(1).standard_normal((MANY, options.size)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    print("| vectors | one query, ms | GB/s | of memory speed | 64 queries, ms each | of product limit |")
    print("|---|---|---|---|---|---|")
    for dtype in (np.float32, np.float16):
        vectors = random_vectors(folder / "vectors", (options.usages, options.size), dtype)
        flat = torch.from_numpy(np.asarray(vectors)).view(torch.int64).flatten()
        one, summed = in_turns(make_search(vectors, queries[:1]), lambda flat=flat: flat.sum())
        ours, theirs = time_products(queries)
        many, *limits = in_turns(make_search(vectors, queries), ours, theirs)
        limit = min(limits) * options.usages / CACHED
        share = f"{vectors.nbytes / one / 1e9:.1f} | {summed / one:.0%}"
        together = f"{1000 * many / MANY:.2f} | {limit / many:.0%}"
        print(f"| {np.dtype(dtype).name} | {1000 * one:.1f} | {share} | {together} |", flush=True)


def random_vectors(path: Path, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Write random numbers to a file and memory-map it."""
    rng, new = np.random.default_rng(0), np.memmap(path, dtype, "w+", shape=shape)
    for first in range(0, len(new), 50_000):
        new[first : first + 50_000] = rng.standard_normal(new[first : first + 50_000].shape)
    new.flush()
    return np.memmap(path, dtype, "r", shape=shape)


def make_search(vectors: np.ndarray, queries: np.ndarray) -> Callable[[], Any]:
    """Return a search for the ten nearest."""
    from polyseme.search.exact import find_nearest
    from polyseme.search.space import Space

    space = Space("centre", np.zeros(vectors.shape[1], np.float32), None)
    lengths = np.ones(len(vectors), np.float32)
    blocks = [vectors[first : first + 100_000] for first in range(0, len(vectors), 100_000)]
    return lambda: find_nearest(blocks, lengths, queries, space, 10)


def in_turns(*works: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """Run functions in turns and return the median seconds of each, after one run of each to warm up.

    A function that returns a float measures its time itself.
    """
    times = []
    for _ in range(repeats + 1):
        times.append([])
        for work in works:
            start = time.perf_counter()
            seconds = work()
            times[-1].append(seconds if isinstance(seconds, float) else time.perf_counter() - start)
    return np.median(times[1:], axis=0).tolist()


def time_products(queries: np.ndarray) -> list[Callable[[], float]]:
    """Return functions that time a product with CACHED vectors on all cores: in C, and in torch."""
    from polyseme.model.fast.kernels import lstm, native
    from polyseme.model.fast.parallel import run_parallel
    from polyseme.model.fast.quantisation import QuantisedMatrix

    weight, cores = torch.from_numpy(queries), torch.get_num_threads()
    rows = [torch.randn(CACHED, queries.shape[1]) for _ in range(cores)]
    torch_products = [lambda vectors=vectors: torch.mm(vectors, weight.T) for vectors in rows]
    if native.is_available():
        packed = lstm.pack_weight(QuantisedMatrix(weight))
        zeros = (torch.zeros(CACHED, len(weight)) for _ in rows)
        native_products = [
            lstm.prepare_product(vectors, packed, out) for vectors, out in zip(rows, zeros, strict=True)
        ]
    else:
        native_products = torch_products

    def measure(works: list[Callable[[], Any]], times: int = 500) -> float:
        def repeat(work: Callable[[], Any]) -> None:
            for _ in range(times):
                work()

        with torch.no_grad():
            start = time.perf_counter()
            run_parallel([lambda work=work: repeat(work) for work in works])
            return (time.perf_counter() - start) / times / len(works)

    return [lambda: measure(native_products), lambda: measure(torch_products)]


def measure_text(options: argparse.Namespace, folder: Path) -> None:
    """Measure indexing against embedding, opening, memory, and the graph against exact search."""
    import polyseme

    elmo = polyseme.load(options.model)
    elmo.embed(["Once to begin with ."], layer="top")
    if not folder.exists():
        measure_indexing(elmo, options.text, folder, options.rounds)
        measure_statistics(folder)
    measure_memory(folder, elmo)
    opening = in_turns(lambda: polyseme.open_index(folder, elmo))[0]
    index = polyseme.open_index(folder, elmo)
    queries = index.vectors(np.random.default_rng(0).choice(len(index), options.queries, replace=False))
    exact_seconds, words = in_turns(
        lambda: index.nearest(queries[0], 10), lambda: index.most_similar("曹操", topn=10)
    )
    print(f"opened in {1000 * opening:.0f} ms; {len(index):,} usages of {len(index.words):,} words")
    print(f"one exact query {1000 * exact_seconds:.1f} ms, one word {1000 * words:.1f} ms")
    if options.graph:
        measure_graph(index, queries, exact_seconds)


def measure_indexing(elmo: Any, text: Path, folder: Path, rounds: int) -> None:
    """Measure embedding alone and indexing, in turns."""
    import polyseme

    times = np.zeros((rounds, 2, 2))
    for number in range(rounds):
        if folder.exists():
            shutil.rmtree(folder)
        for step, work in enumerate((embed_text, polyseme.index)):
            start = time.perf_counter(), time.process_time()
            work(elmo, text, folder)
            times[number, step] = time.perf_counter() - start[0], time.process_time() - start[1]
        (embedding, embedding_cpu), (indexing, indexing_cpu) = times[number]
        print(
            f"embedding {embedding:.1f} s (CPU {embedding_cpu:.1f} s), "
            f"indexing {indexing:.1f} s (CPU {indexing_cpu:.1f} s)"
        )
    (embedding, embedding_cpu), (indexing, indexing_cpu) = np.median(times, axis=0)
    more, more_cpu = np.median(times[:, 1] / times[:, 0], axis=0) - 1
    print(f"medians: embedding {embedding:.1f} s, indexing {indexing:.1f} s (per round {more:+.1%})")
    print(
        f"CPU: embedding {embedding_cpu:.1f} s, indexing {indexing_cpu:.1f} s ({more_cpu:+.1%})", flush=True
    )


def measure_statistics(folder: Path) -> None:
    """Measure the part of indexing after all text is read: the statistics, and of these the lengths."""
    from polyseme.search import statistics
    from polyseme.search.usage_store import UsageBlock, get_block_path, read_head

    head = read_head(folder)
    vectors = [UsageBlock(get_block_path(folder, n)).vectors for n in range(len(head["blocks"]))]
    space = statistics.read_space(folder, head)
    whole, lengths = in_turns(
        lambda: statistics.write_statistics(folder, {**head, "finished": 0}),
        lambda: statistics.measure_lengths(space, vectors),
    )
    print(f"statistics {whole:.2f} s, of these the lengths {lengths:.2f} s", flush=True)


def embed_text(elmo: Any, text: Path, folder: Path) -> None:
    """Read, segment and embed a text in batches as large as those of an index; nothing is stored."""
    from polyseme.elmo import CHUNK
    from polyseme.model.output import resolve_output
    from polyseme.text.length_batches import chunk_sentences
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    spec = resolve_output("top", None, "both", elmo.config.layers)
    sentences = segment_lines(read_lines(text), elmo.config.segment)
    for chunk in chunk_sentences(sentences, CHUNK * elmo.batch_tokens):
        with elmo.track_counts() as counts:
            elmo.embed_tokens(chunk, spec, counts)


def measure_memory(folder: Path, elmo: Any, memory: int = 110_000_000) -> None:
    """Measure how much of the vectors is in memory after a search, without a limit and with one."""
    import polyseme

    for limit in (None, memory):
        index = polyseme.open_index(folder, elmo, memory=limit)
        index.nearest(index.vectors(np.array([0]))[0], 10)
        total, in_memory = sum(block.vectors.nbytes for block in index.blocks), resident_bytes(folder)
        allowed = "no limit" if limit is None else f"limit {limit / 1e6:.0f} MB"
        print(f"{allowed}: {in_memory / 1e6:.0f} MB of {total / 1e6:.0f} MB of vectors in memory")
        del index


def resident_bytes(folder: Path) -> int:
    """Return the bytes of an index's blocks that this process has in memory (Linux)."""
    total, is_block = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            is_block = str(folder / "block-") in line
        elif is_block and line.startswith("Rss:"):
            total += 1024 * int(line.split()[1])
    return total


def measure_graph(index: Any, queries: np.ndarray, exact_seconds: float) -> None:
    """Measure building the graph, its speed and its recall."""
    start = time.perf_counter()
    index.add_graph("float16")
    print(f"graph of {len(index):,} usages in {time.perf_counter() - start:.0f} s")
    approximate = [index.approximate_nearest(query, 10) for query in queries]
    start = time.perf_counter()
    for query in queries:
        index.approximate_nearest(query, 10)
    seconds = (time.perf_counter() - start) / len(queries)
    numbers = [{usage.number for usage in usages} for usages in approximate]
    exact = [{usage.number for usage in index.nearest(query, 10)} for query in queries]
    recall = np.mean([len(a & b) / 10 for a, b in zip(numbers, exact, strict=True)])
    print(
        f"graph {1000 * seconds:.2f} ms per query ({exact_seconds / seconds:.0f} x), recall@10 {recall:.3f}"
    )


if __name__ == "__main__":
    main()
