"""Polyseme behind the clock that the peers run behind.

options.json, weights.hdf5, sentences  ->  polyseme_run  ->  FILE.npz and figures

python benchmarks/polyseme_run.py OPTIONS WEIGHTS SENTENCES --batch 32 --time
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from measure import Embed, Sentence, main  # the clock lies with the peers


def load(options: Path, weights: Path, batch: int, threads: int) -> Embed:
    """Load a model and give back what embeds a batch: all layers, zero state."""
    import torch

    import polyseme

    if threads:
        torch.set_num_threads(threads)
    model = polyseme.load(weights, options=options)

    def embed(sentences: list[Sentence]) -> list:
        return model.embed(sentences, layer="all")

    return embed


if __name__ == "__main__":
    main(__doc__, load)
