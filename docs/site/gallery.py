"""Draw diagrams and plots like those of the manual, from bundled models and sample corpora.

    sample sanguo, examples/write_samples.py, zh-classic, en, draw_elmo.py, benchmarks/embed.py
        ->  docs/site/gallery  ->  OUT/*.png, OUT/*.svg

    python docs/site/gallery.py [NAME…] [--out build/gallery] [--list]

Some minutes on two cores. elmo.svg and elmo.zh.svg are those of the manual; its plots were made with models
that were trained on whole novels, its screenshots by hand. A picture that cannot be drawn ends the run.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import draw_elmo
import polyseme
from polyseme.errors import PolysemeError

ROOT = Path(__file__).parent.parent.parent
CHAPTERS = 40  # of 三国演义: enough usages for a map, in a minute


class Gallery:
    """What several pictures need, made once, and where the pictures go."""

    def __init__(self, work: Path, out: Path) -> None:
        self.work, self.out = work, out

    @cache  # noqa: B019  # lives as long as the run
    def index_novel(self) -> Path:
        """An index of the first chapters of a novel, a document each."""
        text = polyseme.sample("sanguo")
        chapters = re.split(r"^(?=第.{1,5}回)", text, flags=re.MULTILINE)
        folder = self.work / "novel"
        folder.mkdir()
        for number, chapter in enumerate(chapters[1 : CHAPTERS + 1], 1):
            (folder / f"{number:03}.txt").write_text(chapter, encoding="utf-8")
        polyseme.index("zh-classic", folder, self.work / "index", progress=False)
        return self.work / "index"

    @cache  # noqa: B019
    def train_tagger(self) -> Path:
        """A tagger on the sample of names, with the curves and weights of its report."""
        sys.path.insert(0, str(ROOT / "examples"))
        samples = __import__("write_samples")
        samples.main(self.work / "samples")
        parts = {part: self.work / "samples" / f"names.{part}.conll" for part in ("train", "dev", "test")}
        polyseme.train(
            "tagging",
            "en",
            **parts,
            out=self.work / "tagger",
            curve=(0.25, 0.5, 1.0),
            compare=True,
            runs=1,
            settings=["train.epochs=8"],
            progress=False,
        )
        return self.work / "tagger"

    def draw_elmo(self) -> None:
        """The architecture, in two languages."""
        for language, name in (("en", "elmo.svg"), ("zh", "elmo.zh.svg")):
            (self.out / name).write_text(draw_elmo.draw(language), encoding="utf-8")

    def draw_map(self) -> None:
        """A map of the usages of five words: names, cities and verbs apart."""
        words = ["曹操", "玄德", "荆州", "徐州", "大怒"]
        polyseme.map_usages(self.index_novel(), words, self.out / "map.png", force=True, progress=False)

    def draw_shares(self) -> None:
        """The shares of the senses of five words in two halves of the chapters: what changed."""
        index, half = self.index_novel(), CHAPTERS // 2
        polyseme.change(
            index,
            index,
            ["将", "见", "意", "走", "下"],
            documents=f"1-{half}",
            against=f"{half + 1}-{CHAPTERS}",
            out=self.out / "shares.png",
            force=True,
            progress=False,
        )

    def draw_layers(self) -> None:
        """The weights of the layers in a tagger."""
        shutil.copy(self.train_tagger() / "layers.png", self.out / "layers.png")

    def draw_curve(self) -> None:
        """Scores by the number of examples, with ELMo and without."""
        shutil.copy(self.train_tagger() / "curve.png", self.out / "curve.png")

    def draw_training(self) -> None:
        """Scores by epoch."""
        shutil.copy(self.train_tagger() / "training.png", self.out / "training.png")

    def draw_speed(self) -> None:
        """Tokens per second by precision."""
        command = [sys.executable, "benchmarks/embed.py", "--sizes", "small", "--batches", "32"]
        command += ["--picture", str(self.out / "speed.png")]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


PICTURES: dict[str, Callable[[Gallery], None]] = {
    "elmo": Gallery.draw_elmo,
    "map": Gallery.draw_map,
    "shares": Gallery.draw_shares,
    "layers": Gallery.draw_layers,
    "curve": Gallery.draw_curve,
    "training": Gallery.draw_training,
    "speed": Gallery.draw_speed,
}


def main() -> None:
    """Draw the pictures that are named."""
    parser = argparse.ArgumentParser(description="Draw diagrams and plots like those of the manual.")
    parser.add_argument("names", nargs="*", help="by default all")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gallery")
    parser.add_argument("--list", action="store_true", help="name the pictures")
    options = parser.parse_args()
    if options.list:
        for name, draw in PICTURES.items():
            print(f"{name:10} {draw.__doc__}")
        return
    if unknown := [name for name in options.names if name not in PICTURES]:
        sys.exit(f"{unknown[0]}: no such picture; there are {', '.join(PICTURES)}")
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        gallery = Gallery(Path(work), out)
        for name in options.names or PICTURES:
            try:
                PICTURES[name](gallery)
            except PolysemeError as error:
                sys.exit(f"{name}: {error}")
            print(f"{name}: drawn", flush=True)


if __name__ == "__main__":
    main()
