"""A novel becomes an ELMo: 三国演义, pretrained here, in about five minutes on two cores.

    the sample `sanguo`  ->  demo/sanguo/ (a model)  ->  its perplexity, neighbours, and words in their places

Run again, it uses the model that is there, or goes on where an interrupted run stopped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import polyseme
from polyseme.text.reading import read_lines
from polyseme.text.stream import sentences_of_lines
from polyseme.training.show import Show

FOLDER = Path("demo")
MODEL, TEXT = FOLDER / "sanguo", FOLDER / "sanguo.txt"
PRESET = "novel"
WORDS = ("曹操", "关羽", "荆州")
# 将: a general, to lead troops, or the mark of what is about to happen.
PLACES = ("操 大怒 ， 欲 斩 此 [将] 。", "玄德 [将] 兵 来 攻 城 。", "天色 [将] 晚 ， 人马 困乏 。")
console = Console(highlight=False)


def pretrain() -> None:
    """Train the model, unless it is there already."""
    if (MODEL / "config.json").exists():
        console.print(f"{MODEL} is there already.")
        return
    with Show() as show:
        result = polyseme.pretrain(
            [TEXT],
            MODEL,
            PRESET,
            resume=(MODEL / "checkpoints").exists(),
            force=MODEL.exists(),
            reading=show.reading,
            prepared=show.prepared,
            watch=show.step,
        )
    show.end(result)


def show_neighbours(model: polyseme.Elmo) -> None:
    """The nearest words of three names, by the mean of each word's vectors over all its places."""
    sentences = list(sentences_of_lines(read_lines(TEXT), model.config.segment))
    vectors = polyseme.mean_vectors(model, sentences, min_count=5)
    table = Table("word", "nearest, by contextual vectors", box=None)
    for word in WORDS:
        table.add_row(
            word, " ".join(near for near, _ in vectors.nearest(word, 10, min_count=10, min_chars=2))
        )
    console.print(table)


def show_places(model: polyseme.Elmo) -> None:
    """One word in three places: how alike its vectors are, and what else could stand there."""
    marked = [place.split() for place in PLACES]
    tokens = [[token.strip("[]") for token in place] for place in marked]
    where = [next(n for n, token in enumerate(place) if token.startswith("[")) for place in marked]
    found = model.embed(tokens, layer="top")
    vectors = [rows[place] / np.linalg.norm(rows[place]) for rows, place in zip(found, where, strict=True)]
    table = Table("place", "cosine with the first", "what else could stand there", box=None)
    for place, vector in zip(PLACES, vectors, strict=True):
        best = polyseme.substitutes(model, place, 8, segment="split").joint.best
        shown = place.replace("[", "【").replace("]", "】")
        table.add_row(shown, f"{vector @ vectors[0]:.2f}", " ".join(one.word for one in best))
    console.print(table)


def main() -> None:
    """Fetch, train, look."""
    FOLDER.mkdir(exist_ok=True)
    console.rule("三国演义 becomes an ELMo")
    if not TEXT.exists():
        TEXT.write_text(polyseme.sample("sanguo"), encoding="utf-8")
    pretrain()
    model = polyseme.load(MODEL)
    show_neighbours(model)
    console.print()
    show_places(model)
    console.print(f"\nThe model: {MODEL}/   the report: {MODEL}/report.html   the curves: {MODEL}/curves.png")
    console.print(f"Try: polyseme generate {MODEL} --prompt 却说", markup=False)
    console.print(f'     polyseme substitutes {MODEL} "他 骑 着 [马] 走 了"', markup=False)


if __name__ == "__main__":
    main()
