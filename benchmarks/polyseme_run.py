"""Polyseme behind the clock that the peers run behind.

options.json, weights.hdf5, sentences  ->  polyseme_run  ->  FILE.npz and figures

python benchmarks/polyseme_run.py OPTIONS WEIGHTS SENTENCES --batch 32 --time [--warm] [--precision int8]

Cold, every pass over the text begins with an empty token cache; --warm keeps what the passes before left.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from measure import Embed, Sentence, main  # the clock lies with the peers


def take(name: str, value: bool = False) -> str | None:
    """Take an option of our own out of the command line, which is the clock's otherwise."""
    if name not in sys.argv:
        return None
    place = sys.argv.index(name)
    return [sys.argv.pop(place) for _ in range(1 + value)][-1]


def load(options: Path, weights: Path, batch: int, threads: int) -> Embed:
    """Load a model and give back what embeds a batch: all layers, zero state."""
    import torch

    import polyseme

    if threads:
        torch.set_num_threads(threads)
    model = polyseme.load(weights, options=options, precision=PRECISION)

    def embed(sentences: list[Sentence]) -> list:
        return model.embed(sentences, layer="all")

    if not WARM:
        embed.begin = model.cache.clear  # type: ignore[attr-defined]
    return embed


if __name__ == "__main__":
    WARM, PRECISION = take("--warm") is not None, take("--precision", value=True) or "fp32"
    main(__doc__, load)
