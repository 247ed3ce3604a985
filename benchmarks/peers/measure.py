"""The command line and the timer shared by all programs that are compared.

A program supplies `load(options, weights, batch, threads) -> embed`, where `embed` turns a batch of
tokenised sentences into one array (L, tokens, H) per sentence, from zero state. Batches, warm-up, repeats
and the median are the same for all. Needs numpy only, so it runs in every environment.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

Sentence = list[str]
Embed = Callable[[list[Sentence]], list[np.ndarray]]
Load = Callable[[Path, Path, int, int], Embed]

LATENCY_SENTENCES = 15  # sentences embedded one by one; the latency is their median


def main(description: str, load: Load) -> None:
    """Parse the command line, load the model, then write the vectors, or time them, or both."""
    arguments = _parser(description).parse_args()
    sentences = [
        line.split() for line in arguments.sentences.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    started = time.perf_counter()
    embed = load(arguments.options, arguments.weights, arguments.batch, arguments.threads)
    load_seconds = time.perf_counter() - started
    if arguments.out:
        vectors = [array for batch in batches(sentences, arguments.batch) for array in embed(batch)]
        np.savez(arguments.out, **{str(i): array.astype(np.float32) for i, array in enumerate(vectors)})
    if arguments.time:
        numbers = timing(embed, sentences, arguments.batch, arguments.repeats)
        print(json.dumps({"batch": arguments.batch, "load_seconds": round(load_seconds, 3)} | numbers))


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("options", type=Path, help="options.json")
    parser.add_argument("weights", type=Path, help="weights.hdf5")
    parser.add_argument("sentences", type=Path, help="one tokenised sentence per line")
    parser.add_argument(
        "--batch", type=int, default=32, metavar="N", help="sentences per batch (default: 32)"
    )
    parser.add_argument(
        "--threads", type=int, default=0, metavar="N", help="threads (default: the library decides)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE.npz", help="save all layers, one array per sentence"
    )
    parser.add_argument("--time", action="store_true", help="print timings as a line of JSON")
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="timed passes over the text (default: 5)"
    )
    return parser


def timing(embed: Embed, sentences: list[Sentence], batch: int, repeats: int) -> dict[str, float]:
    """Time whole passes from tokens to arrays, and single sentences; keep the medians and the spread."""
    for warm_up in batches(sentences, batch):
        embed(warm_up)  # a whole pass: allocators and kernels then know every shape
    passes = []
    begin = getattr(embed, "begin", lambda: None)  # a program may forget what the passes before taught it
    for _ in range(repeats):
        begin()
        started = time.perf_counter()
        for chunk in batches(sentences, batch):
            embed(chunk)
        passes.append(time.perf_counter() - started)
    memory = peak_memory()
    alone = []
    for sentence in sentences[:LATENCY_SENTENCES]:
        embed([sentence])  # the first call pays for a new shape
        begin()
        started = time.perf_counter()
        embed([sentence])
        alone.append(time.perf_counter() - started)
    tokens, seconds = sum(map(len, sentences)), statistics.median(passes)
    return {
        "tokens": tokens,
        "seconds": round(seconds, 4),
        "seconds_fastest": round(min(passes), 4),
        "seconds_slowest": round(max(passes), 4),
        "tokens_per_second": round(tokens / seconds, 1),
        "latency_seconds": round(statistics.median(alone), 5),
        "latency_tokens": statistics.median(map(len, sentences[:LATENCY_SENTENCES])),
        "peak_rss_mib": round(memory, 1),
    }


def batches(sentences: list[Sentence], size: int) -> Iterator[list[Sentence]]:
    """Cut the text into batches in its own order; a program that sorts by length must do so itself."""
    for start in range(0, len(sentences), size):
        yield sentences[start : start + size]


def peak_memory() -> float:
    """Read the most memory this process ever held, in MiB.

    From /proc, since getrusage's ru_maxrss also counts the process that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kib) / 1024
