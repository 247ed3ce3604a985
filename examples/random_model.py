"""Write a small ELMo with random weights, to try the library or test your code without a download.

python examples/random_model.py models/elmo

Its vectors have no meaning, but it is a complete model in the published layout: 3 layers, size 32.
"""

import sys
from pathlib import Path

import torch

from polyseme.config import CharsSettings, ModelSettings, RecurrentSettings
from polyseme.formats.models.pretrained import assemble, build_network
from polyseme.formats.models.save import save_pretrained
from polyseme.text.chars import ByteAlphabet


def write_random_model(folder: Path, seed: int = 0) -> Path:
    """Write model.hdf5 and options.json to `folder`, as bilm-tf, AllenNLP and NLPL do."""
    torch.manual_seed(seed)
    chars = CharsSettings(dim=4, filters=((1, 4), (2, 8), (3, 16), (4, 32), (5, 64)))
    config = ModelSettings(chars=chars, recurrent=RecurrentSettings(layers=2, cells=64, outputs=16))
    alphabet = ByteAlphabet(chars.max_chars)
    network = build_network(config, n_chars=alphabet.size, n_words=0, padding=alphabet.padding)
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    origin = {"made": "at random"}
    model = assemble(
        config, network.state_dict(), alphabet=alphabet, vocab=None, origin=origin, source="random weights"
    )
    save_pretrained(model, folder, to="hdf5", force=True)
    return folder


if __name__ == "__main__":
    print(write_random_model(Path(sys.argv[1] if len(sys.argv) > 1 else "models/elmo")))
