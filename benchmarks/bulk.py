"""How much of the time of `polyseme.embed` into a folder is spent in the model's kernels.

    texts, models  ->  embed into a folder  ->  a table

`kernels` is the time that the token encoder and the LSTMs alone need for the same batches, undisturbed and on
all cores, measured in the same process. `of the time` divides it by the time of the whole call: reading,
segmenting, embedding, rounding, writing and hashing. If the rest cost nothing, it would be 100%.

    python benchmarks/bulk.py TEXT... [--model en-classic] [--precision int8] [--megabytes 2] [--rounds 3]

With --one-core both are CPU time on one core, which other programs disturb less: the share that the kernels
have of the wall time if the stages overlap perfectly. `--model small` has random weights in the published
size.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.elmo import Elmo

HERE = Path(__file__).parent


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--model", default="en-classic", help="a path, a bundled model, small or original")
    parser.add_argument("--precision", help="fp32, bf16, int8; that of the model if left out")
    parser.add_argument("--megabytes", type=float, default=2, help="how much of the text to embed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one-core", action="store_true", help="measure CPU time on one core")
    arguments = parser.parse_args()
    if arguments.one_core:
        import torch

        torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text(read_start(arguments.texts, round(arguments.megabytes * 1e6)), encoding="utf-8")
        elmo = load_model(arguments.model, arguments.precision, Path(folder))
        print("| model | precision | tokens/s | encoder | LSTMs | kernels, of the time | spread |")
        print("|---|---|---|---|---|---|---|")
        print(row(arguments.model, elmo, text, Path(folder), arguments.rounds), flush=True)


def read_start(texts: list[Path], size: int) -> str:
    """The first lines of some texts, about `size` bytes."""
    from polyseme.text.reading import read_lines

    lines, total = [], 0
    for line in chain.from_iterable(map(read_lines, texts)):
        lines.append(line.text)
        total += len(line.text.encode()) + 1
        if total >= size:
            break
    return "\n".join(lines) + "\n"


def load_model(name: str, precision: str | None, folder: Path) -> Elmo:
    """A bundled model or path, or random weights of a published size."""
    import polyseme

    if name not in ("small", "original"):
        return polyseme.load(name, precision=precision)
    make = [sys.executable, str(HERE / "peers" / "random_model.py"), str(folder / name), "--size", name]
    subprocess.run(make, check=True, capture_output=True)
    return polyseme.load(folder / name / "weights.hdf5", folder / name / "options.json", precision=precision)


def clock() -> float:
    """Seconds; of CPU time if torch uses one thread."""
    import torch

    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def row(name: str, elmo: Elmo, text: Path, folder: Path, rounds: int) -> str:
    """Embed the text and run its kernels alone, in turn; a line of the table."""
    from polyseme.bulk_embedding import BulkSettings, embed_folder

    whole, encoder, stacks = [], [], []
    for number in range(rounds + 1):
        started = clock()
        counts = embed_folder(elmo, [text], folder / f"out{number}", BulkSettings())
        seconds = clock() - started
        encoding, running = time_kernels(elmo, text)
        if number:  # the first round packs the weights and starts threads
            whole.append(seconds)
            encoder.append(encoding)
            stacks.append(running)
    total = statistics.median(whole)
    shares = [(e + s) / w for e, s, w in zip(encoder, stacks, whole, strict=True)]
    return (
        f"| {name} | {elmo.model.network.precision} | {counts.tokens / total:,.0f} "
        f"| {statistics.median(encoder) / total:.0%} | {statistics.median(stacks) / total:.0%} "
        f"| {statistics.median(shares):.0%} | {min(shares):.0%} to {max(shares):.0%} |"
    )


def time_kernels(elmo: Elmo, text: Path) -> tuple[float, float]:
    """Seconds of the token encoder and of the stacks for all batches of the text, from an empty cache."""
    from polyseme.elmo import CHUNK
    from polyseme.text.length_batches import chunk_sentences
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines
    from polyseme.token_cache import TokenCache

    spent, encode = [0.0], TokenCache._encode  # what the cache adds to the encoder is not a kernel

    def timed(self: TokenCache, *args: object, **options: object) -> object:
        started = clock()
        result = encode(self, *args, **options)  # type: ignore[arg-type]
        spent[0] += clock() - started
        return result

    stacks = 0.0
    elmo.cache.clear()
    TokenCache._encode = timed  # type: ignore[assignment,method-assign]
    try:
        sentences = segment_lines(read_lines(text), elmo.config.segment)
        for group in chunk_sentences(sentences, CHUNK * elmo.batch_tokens):
            for batch in elmo.batches(group):
                encoded = elmo.encode_batch(batch.sentences)
                started = clock()
                elmo.run_encoded(encoded)
                stacks += clock() - started
    finally:
        TokenCache._encode = encode  # type: ignore[method-assign]
    return spent[0], stacks


if __name__ == "__main__":
    main()
