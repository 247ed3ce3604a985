"""How fast search is: one query and many over a million usages, indexing beside embedding, the graph.

    a million vectors of 256 values, memory-mapped  ->  milliseconds a query, shares of the machine's limits
    a model and a text                              ->  indexing beside embedding; opening; memory; the graph

The vectors of the first part are random, in fp32 and fp16. The memory's speed is that of summing the bytes;
the product's limit is the quickest product there is (torch's, or ours) of vectors that lie in the cache. Each
figure is the median of its runs, and what is compared takes turns. Embedding (reading, cutting and embedding,
in batches as large as those of the index) and indexing take turns, too: the median of their ratios
counts, since a machine may be twice as fast in one round as in the next. The seconds that the cores worked
are said beside.

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
CACHED = 192  # vectors of the product that is the limit: they stay in the second cache
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
    parser.add_argument("--rounds", type=int, default=3, help="of embedding and indexing")
    parser.add_argument("--graph", action="store_true")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="a folder for the index; one that is there is used")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.model is None:
            exact_search(given, Path(folder))
        else:
            real_text(given, given.keep or Path(folder) / "index")


def exact_search(given: argparse.Namespace, folder: Path) -> None:
    """One query and MANY over random vectors."""
    queries = np.random.default_rng(1).standard_normal((MANY, given.size)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    print("| vectors | one query, ms | GB/s | of the memory's speed | 64, ms each | of the product's limit |")
    print("|---|---|---|---|---|---|")
    for dtype in (np.float32, np.float16):
        vectors = random_vectors(folder / "vectors", (given.usages, given.size), dtype)
        flat = torch.from_numpy(np.asarray(vectors)).view(torch.int64).flatten()
        one, summed = in_turns(searching(vectors, queries[:1]), lambda flat=flat: flat.sum())
        ours, theirs = products(queries)
        many, *limits = in_turns(searching(vectors, queries), ours, theirs)
        limit = min(limits) * given.usages / CACHED
        share = f"{vectors.nbytes / one / 1e9:.1f} | {summed / one:.0%}"
        together = f"{1000 * many / MANY:.2f} | {limit / many:.0%}"
        print(f"| {np.dtype(dtype).name} | {1000 * one:.1f} | {share} | {together} |", flush=True)


def random_vectors(path: Path, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Random numbers in a file, memory-mapped."""
    chance, new = np.random.default_rng(0), np.memmap(path, dtype, "w+", shape=shape)
    for first in range(0, len(new), 50_000):
        new[first : first + 50_000] = chance.standard_normal(new[first : first + 50_000].shape)
    new.flush()
    return np.memmap(path, dtype, "r", shape=shape)


def searching(vectors: np.ndarray, queries: np.ndarray) -> Callable[[], Any]:
    """A search for the ten nearest."""
    from polyseme.search.exact import find_nearest
    from polyseme.search.space import Space

    space = Space("centre", np.zeros(vectors.shape[1], np.float32), None)
    lengths = np.ones(len(vectors), np.float32)
    blocks = [vectors[first : first + 100_000] for first in range(0, len(vectors), 100_000)]
    return lambda: find_nearest(blocks, lengths, queries, space, 10)


def in_turns(*works: Callable[[], Any], repeats: int = REPEATS) -> list[float]:
    """The median seconds of each, which take turns, after one run of each to warm up.

    A work that gives a number says itself how long it took.
    """
    times = []
    for _ in range(repeats + 1):
        times.append([])
        for work in works:
            start = time.perf_counter()
            said = work()
            times[-1].append(said if isinstance(said, float) else time.perf_counter() - start)
    return np.median(times[1:], axis=0).tolist()


def products(queries: np.ndarray) -> list[Callable[[], float]]:
    """Seconds of a product with CACHED vectors, all cores at work: by the C library, and by torch."""
    from polyseme.model.fast.kernels import lstm, native
    from polyseme.model.fast.parallel import run_parallel
    from polyseme.model.fast.quantisation import QuantisedMatrix

    asked, cores = torch.from_numpy(queries), torch.get_num_threads()
    rows = [torch.randn(CACHED, queries.shape[1]) for _ in range(cores)]
    works = [lambda own=own: torch.mm(own, asked.T) for own in rows]
    if native.is_available():
        packed = lstm.pack_weight(QuantisedMatrix(asked))
        own_works = [lstm.prepare_product(own, packed, torch.zeros(CACHED, len(asked))) for own in rows]
    else:
        own_works = works

    def seconds(some: list[Callable[[], Any]], times: int = 500) -> float:
        def often(work: Callable[[], Any]) -> None:
            for _ in range(times):
                work()

        with torch.no_grad():
            start = time.perf_counter()
            run_parallel([lambda work=work: often(work) for work in some])
            return (time.perf_counter() - start) / times / len(some)

    return [lambda: seconds(own_works), lambda: seconds(works)]


def real_text(given: argparse.Namespace, folder: Path) -> None:
    """Indexing beside embedding; opening; memory; the graph beside exact search."""
    import polyseme

    elmo = polyseme.load(given.model)
    elmo.embed(["Once to begin with ."], layer="top")
    if not folder.exists():
        indexing(elmo, given.text, folder, given.rounds)
        afterwards(folder)
    bounded(folder, elmo)
    opening = in_turns(lambda: polyseme.open_index(folder, elmo))[0]
    index = polyseme.open_index(folder, elmo)
    queries = index.vectors(np.random.default_rng(0).choice(len(index), given.queries, replace=False))
    slow, words = in_turns(lambda: index.nearest(queries[0], 10), lambda: index.most_similar("曹操", topn=10))
    print(f"opened in {1000 * opening:.0f} ms; {len(index):,} usages of {len(index.words):,} words")
    print(f"one exact query {1000 * slow:.1f} ms, one word {1000 * words:.1f} ms")
    if given.graph:
        graph(index, queries, slow)


def indexing(elmo: Any, text: Path, folder: Path, rounds: int) -> None:
    """Embedding alone and indexing, in turns."""
    import polyseme

    times = np.zeros((rounds, 2, 2))
    for number in range(rounds):
        if folder.exists():
            shutil.rmtree(folder)
        for which, work in enumerate((embedding, polyseme.index)):
            start = time.perf_counter(), time.process_time()
            work(elmo, text, folder)
            times[number, which] = time.perf_counter() - start[0], time.process_time() - start[1]
        (plain, busy), (took, worked) = times[number]
        print(f"embedding {plain:.1f} s (cores {busy:.1f} s), indexing {took:.1f} s (cores {worked:.1f} s)")
    (plain, busy), (took, worked) = np.median(times, axis=0)
    more, harder = np.median(times[:, 1] / times[:, 0], axis=0) - 1
    print(f"medians: embedding {plain:.1f} s, indexing {took:.1f} s (more in a round: {more:+.1%})")
    print(f"cores: embedding {busy:.1f} s, indexing {worked:.1f} s ({harder:+.1%})", flush=True)


def afterwards(folder: Path) -> None:
    """What of indexing comes when all text is read: the parts beside the blocks, and of these the lengths."""
    from polyseme.search import statistics
    from polyseme.search.usage_store import UsageBlock, block_path, read_head

    head = read_head(folder)
    vectors = [UsageBlock(block_path(folder, n)).vectors for n in range(len(head["blocks"]))]
    space = statistics.read_space(folder, head)
    whole, lengths = in_turns(
        lambda: statistics.write_statistics(folder, {**head, "finished": 0}),
        lambda: statistics.measure_lengths(space, vectors),
    )
    print(f"parts beside the blocks {whole:.2f} s, of these lengths in the space {lengths:.2f} s", flush=True)


def embedding(elmo: Any, text: Path, folder: Path) -> None:
    """Read, cut and embed a text in batches as large as those of an index; nothing is kept."""
    from polyseme.elmo import CHUNK
    from polyseme.model.output import resolve_output
    from polyseme.text.length_batches import chunk_sentences
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    spec = resolve_output("top", None, "both", elmo.config.layers)
    sentences = segment_lines(read_lines(text), elmo.config.segment)
    for some in chunk_sentences(sentences, CHUNK * elmo.batch_tokens):
        with elmo.track_counts() as counts:
            elmo.embed_tokens(some, spec, counts)


def bounded(folder: Path, elmo: Any, memory: int = 110_000_000) -> None:
    """What stays in memory of the vectors after a search, without a limit and with one."""
    import polyseme

    for limit in (None, memory):
        index = polyseme.open_index(folder, elmo, memory=limit)
        index.nearest(index.vectors(np.array([0]))[0], 10)
        whole, stays = sum(block.vectors.nbytes for block in index.blocks), resident(folder)
        allowed = "no limit" if limit is None else f"limit {limit / 1e6:.0f} MB"
        print(f"{allowed}: {stays / 1e6:.0f} MB of {whole / 1e6:.0f} MB of vectors stay in memory")
        del index


def resident(folder: Path) -> int:
    """Bytes of the blocks of an index that this process has in memory (Linux)."""
    found, own = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            own = str(folder / "block-") in line
        elif own and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


def graph(index: Any, queries: np.ndarray, slow: float) -> None:
    """The graph: how long it takes, how quick and how right it is."""
    start = time.perf_counter()
    index.add_graph("float16")
    print(f"graph of {len(index):,} usages in {time.perf_counter() - start:.0f} s")
    probably = [index.approximate_nearest(query, 10) for query in queries]
    start = time.perf_counter()
    for query in queries:
        index.approximate_nearest(query, 10)
    fast = (time.perf_counter() - start) / len(queries)
    found = [{usage.number for usage in some} for some in probably]
    wanted = [{usage.number for usage in index.nearest(query, 10)} for query in queries]
    recall = np.mean([len(one & other) / 10 for one, other in zip(found, wanted, strict=True)])
    print(f"graph {1000 * fast:.2f} ms a query ({slow / fast:.0f} times as fast), recall@10 {recall:.3f}")


if __name__ == "__main__":
    main()
