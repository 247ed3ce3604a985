"""Time Polyseme with the same timer as the peers (peers/measure.py). Run by benchmarks/embed.py.

    python benchmarks/polyseme_run.py OPTIONS WEIGHTS SENTENCES --batch 32 --time [--warm] [--precision int8]
        [--device cuda]

Each pass over the text starts with an empty token cache; with --warm the cache is kept between passes.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from measure import Embed, Sentence, main


def pop_option(name: str, value: bool = False) -> str | None:
    """Remove an option that the peers do not have from the command line."""
    if name not in sys.argv:
        return None
    position = sys.argv.index(name)
    return [sys.argv.pop(position) for _ in range(1 + value)][-1]


def load(options: Path, weights: Path, batch: int, threads: int) -> Embed:
    """Load a model and return a function that embeds a batch: all layers, zero state."""
    import torch

    import polyseme

    if threads:
        torch.set_num_threads(threads)
    model = polyseme.load(weights, options=options, precision=PRECISION, device=DEVICE)

    def embed(sentences: list[Sentence]) -> list:
        return model.embed(sentences, layer="all")

    if not WARM:
        embed.begin = model.cache.clear  # type: ignore[attr-defined]
    return embed


if __name__ == "__main__":
    DEVICE = pop_option("--device", value=True) or "cpu"
    WARM, PRECISION = pop_option("--warm") is not None, pop_option("--precision", value=True) or "fp32"
    main(__doc__, load)
