"""A model of the original size: time to load it, its memory, and how time grows with the text.

    random weights of a published size as a Polyseme folder  ->  load, embed  ->  a table

Each line runs in a new process. `load` is the time until the model is ready, without the import of torch.
`memory` is the peak memory of the process minus that before `load`, divided by the bytes of the weights.
`linear` is the time for twice and four times the text divided by that for the text; `mixed` is the speed on
sentences of 5 to 40 words divided by that on sentences of equal length.

    python benchmarks/loading.py [--size original] [--precisions fp32 bf16 int8] [--batch 32]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from measure import peak_memory
from sentences import LONGEST, SHORTEST, sentences

HERE = Path(__file__).parent
BATCHES = 2  # of the text that is timed first


def main() -> None:
    """Parse the command line; measure here, or start a process for each precision."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="original")
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16", "int8"])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--here", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure(arguments.here, arguments.batch)))
        return
    print("| precision | weights | load | memory | of the weights | linear | mixed |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "published"
        _run(HERE / "peers" / "random_model.py", source, "--size", arguments.size)
        for precision in arguments.precisions:
            model = Path(folder) / precision
            _run("-m", "polyseme", "convert", source / "weights.hdf5", model, "--precision", precision)
            output = _run(__file__, "--here", model, "--batch", arguments.batch)
            measured = json.loads(output.splitlines()[-1])
            linear = " : ".join(f"{ratio:.2f}" for ratio in measured["linear"])
            print(
                f"| {precision} | {measured['weights']:,.0f} MiB | {measured['load']:.2f} s "
                f"| {measured['memory']:,.0f} MiB | {measured['memory'] / measured['weights']:.2f}x "
                f"| {linear} | {measured['mixed']:.0%} |",
                flush=True,
            )


def _run(*words: object) -> str:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return done.stdout


def measure(folder: Path, batch: int) -> dict[str, object]:
    """All measurements of one folder."""
    import polyseme.elmo  # with torch, as `load` would

    before = peak_memory()
    started = time.perf_counter()
    model = polyseme.load(folder)
    load = time.perf_counter() - started
    mixed = sentences(BATCHES * batch * 4)
    middle = (SHORTEST + LONGEST) // 2
    words = [word for sentence in mixed for word in sentence]
    chance = random.Random(0)
    equal = [chance.choices(words, k=middle) for _ in range(BATCHES * batch)]

    def seconds(text: list[list[str]]) -> float:
        started = time.perf_counter()
        for at in range(0, len(text), batch):
            model.embed(text[at : at + batch], layer="all")
        return time.perf_counter() - started

    seconds(mixed[: BATCHES * batch])
    memory = peak_memory() - before
    seconds(mixed)  # all words are in the cache from now on
    parts = [mixed[: BATCHES * batch * times] for times in (1, 2, 4)]
    times = [min(seconds(part) for _ in range(2)) / sum(map(len, part)) for part in parts]
    same = min(seconds(equal) for _ in range(2)) / (middle * len(equal))
    return {
        "weights": (folder / "model.safetensors").stat().st_size / 2**20,
        "load": load,
        "memory": memory,
        "linear": [times[number] * (1, 2, 4)[number] / times[0] for number in range(3)],
        "mixed": same / times[0],
    }


if __name__ == "__main__":
    main()
