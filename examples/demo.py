"""Load a published ELMo, check its vectors, convert it, and embed raw text. `make demo` runs this.

The model is a small one from the test data of AllenNLP 0.9.0, with sentences and their bilm-tf vectors. The
wheel is downloaded as a file; it is never installed or imported.
"""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
from random_model import write_random_model
from rich.console import Console
from rich.table import Table

import polyseme

WHEEL = "allennlp-0.9.0-py3-none-any.whl"
INSIDE = "allennlp/tests/fixtures/elmo/"
SHA256 = "353752e7b78e48c450e27889d80a3000c4a9af34f70ff9091b3031ad01320940"
TEXTS = {"en": "Dr. Lee didn't sit on the river bank.", "zh": "他在河边散步，没去银行。"}
PAIRS = {
    "bank": ("en", "The bank failed.", "They sat on the river bank."),
    "苹果": ("zh", "他买了两斤苹果。", "苹果发布了新手机。"),
}
console = Console(highlight=False)


def main(demo: Path = Path("demo")) -> None:
    """Download, load, compare, convert, segment and embed."""
    published = fetch(demo)
    model = published or write_random_model(demo / "random")
    elmo = polyseme.load(model)
    title = (
        "A published ELMo, reproduced exactly" if published else "A random model of the same shape instead"
    )
    show(title, f"{model}: {elmo!r}", agreement(elmo, model) if published else "Its vectors have no meaning.")
    show("Converted and back", round_trip(model, demo))
    show("From raw text to tokens to vectors", *(segmented(elmo, *pair) for pair in TEXTS.items()))
    show("One word in two sentences: cosine of its vectors by layer", compared(elmo))
    console.print("[dim]Layer 0 does not depend on the sentence, the layers above do.")
    console.print("[dim]This is a tiny test model, so the cosines say nothing about meaning.")
    show("Next", f"The files are in {demo}/ ({demo}/native has a model card). See README.md for more.")
    console.print("With your model and text: [bold].venv/bin/polyseme embed MODEL TEXT --out vectors.hdf5")


def show(title: str, *parts: str | Table) -> None:
    """Print a section of the demo."""
    console.print(f"\n[bold cyan]━━ {title}", *parts, sep="\n")


def fetch(demo: Path) -> Path | None:
    """Download the published model and return its folder, or None if that fails."""
    wheel = demo / WHEEL
    if not wheel.exists():
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-q"]
        command += ["--retries", "1", "--timeout", "20", "-d", str(demo), "allennlp==0.9.0"]
        process = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        if process.returncode:
            print("The package registry cannot be reached, or lacks the model:", process.stderr.strip())
            return None
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != SHA256:
        sys.exit(f"{wheel}: not the published file. Delete it and run the demo again.")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(demo, [name for name in archive.namelist() if name.startswith(INSIDE)])
    return demo / INSIDE


def agreement(elmo: polyseme.Elmo, model: Path) -> str:
    """Embed the published sentences as bilm-tf did: 10 batches of 3 with carried state."""
    rows = json.loads((model / "sentences.json").read_text(encoding="utf-8"))  # 3 rows of 10 sentences
    differences = []
    for number, batch in enumerate(zip(*rows, strict=True)):
        for row, vectors in enumerate(elmo.embed(batch, layer="top", stateful=True)):
            with h5py.File(model / f"lm_embeddings_{row}.hdf5") as file:
                differences.append(np.abs(vectors - np.hstack(file[str(number)][()])))  # [forward; backward]
    elmo.reset()
    tokens, largest = sum(map(len, differences)), max(array.max() for array in differences)
    count = len(differences)
    return f"{count} sentences, {tokens} tokens: largest difference [bold green]{largest:.1e}[/]"


def round_trip(model: Path, demo: Path) -> str:
    """Convert to the native format and back, and compare every bit of the weights."""
    polyseme.convert(model, demo / "native", to="native", force=True)
    polyseme.convert(demo / "native", demo / "back.hdf5", to="hdf5", force=True)
    weights: list[str] = []
    source = next(model.glob("*weights.hdf5"), model / "model.hdf5")
    with h5py.File(source) as before, h5py.File(demo / "back.hdf5") as after:
        before.visititems(lambda name, item: weights.append(name) if hasattr(item, "shape") else None)
        equal = sum(before[name][()].tobytes() == after[name][()].tobytes() for name in weights)
    return f"hdf5 → native → hdf5: [bold green]{equal} of {len(weights)}[/] weights equal, bit for bit"


def segmented(elmo: polyseme.Elmo, segment: str, text: str) -> Table:
    """Return a table of tokens and their offsets, with the shape of their vectors in all layers."""
    tokens, shape = elmo.tokenize(text, segment), elmo.embed(text, layer="all", segment=segment).shape
    table = Table.grid(padding=(0, 2, 0, 0))
    table.title, table.title_justify, table.title_style = f"{text} → {shape}", "left", "green"
    table.add_row(*(f"[bold]{token.text}" for token in tokens))
    table.add_row(*(f"[dim]{token.start}–{token.end}" for token in tokens))
    return table


def compared(elmo: polyseme.Elmo) -> Table:
    """Return a table of cosines between the two vectors of a word, by layer."""
    table = Table("word", "in", "and in", "layer 0", "layer 1", "layer 2", box=None, pad_edge=False)
    for word, (segment, *texts) in PAIRS.items():
        positions = [[token.text for token in elmo.tokenize(text, segment)].index(word) for text in texts]
        vectors = elmo.embed(texts, layer="all", segment=segment)
        a, b = (array[:, at] for array, at in zip(vectors, positions, strict=True))  # (L, H) each
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        table.add_row(word, *texts, *(f"{cosine:.3f}" for cosine in cosines))
    return table


if __name__ == "__main__":
    main()
