"""A novel becomes an ELMo: 三国演义, pretrained here, in about five minutes on two cores.

    the sample `sanguo`  ->  demo/sanguo/ (a model)  ->  its perplexity, and words in their places
                         ->  demo/sanguo-index/ (all usages)  ->  neighbours, senses

Run again, it uses the model that is there, or goes on where an interrupted run stopped.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import polyseme
from polyseme.search.index import Index
from polyseme.search.senses import MIN_USAGES, Senses

FOLDER = Path("demo")
MODEL, TEXT, INDEX = FOLDER / "sanguo", FOLDER / "sanguo.txt", FOLDER / "sanguo-index"
PRESET = "novel"
WORDS = ("曹操", "关羽", "荆州")
# Words that may have several senses. 将: a general, to lead troops, or the mark of what is about to happen;
# 见: to see, or to visit; 走: to flee, or to run up; and so on.
AMBIGUOUS = ("将", "见", "走", "意", "行", "使", "道", "书", "下", "为", "与")
PLACES = ("操 大怒 ， 欲 斩 此 [将] 。", "玄德 [将] 兵 来 攻 城 。", "天色 [将] 晚 ， 人马 困乏 。")
console = Console(highlight=False)


def pretrain() -> None:
    """Train the model, unless it is there already."""
    if (MODEL / "config.json").exists():
        console.print(f"{MODEL} is there already.")
        return
    shutil.rmtree(INDEX, ignore_errors=True)  # of another model
    result = polyseme.pretrain(
        [TEXT],
        MODEL,
        PRESET,
        resume=(MODEL / "checkpoints").exists(),
        force=MODEL.exists(),
        progress=True,
    )
    metrics = result.metrics
    console.print(f"held-out perplexity {metrics['mean']:.1f}, {metrics['unknown']:.1%} of its words unknown")


def show_neighbours(index: Index) -> None:
    """The nearest words of three names, by the mean of each word's vectors over all its places."""
    table = Table("word", "nearest, by contextual vectors", box=None)
    for word in WORDS:
        near = index.most_similar(word, topn=10, min_count=10, min_chars=2)
        table.add_row(word, " ".join(other for other, _ in near))
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


def senses_of_one_word(index: Index) -> Senses | None:
    """The senses of the first of the words that may have several, and has; None where none does."""
    for word in AMBIGUOUS:
        if word not in index.words or index.words.count(word) < MIN_USAGES:
            continue
        found = polyseme.senses(index, word)
        if len(found.senses) > 1:
            return found
    return None


def show_senses(index: Index) -> None:
    """Two or more senses that a word has in the novel: their neighbours and their most central sentences."""
    found = senses_of_one_word(index)
    if found is None:
        console.print(f"None of {' '.join(AMBIGUOUS)} has more than one sense in this text, by this model.")
        return
    console.print(f"{found.word}: {len(found.senses)} senses among its {len(found.numbers):,} usages")
    for sense in found.senses:
        console.print(f"[bold]{sense.share:.0%}[/]  near {' '.join(sense.neighbours)}")
        for usage in sense.examples[:2]:
            console.print("     " + usage.marked("【", "】"))


def main() -> None:
    """Fetch, train, index, look."""
    FOLDER.mkdir(exist_ok=True)
    console.rule("三国演义 becomes an ELMo")
    if not TEXT.exists():
        TEXT.write_text(polyseme.sample("sanguo"), encoding="utf-8")
    pretrain()
    model = polyseme.load(MODEL)
    index = polyseme.index(MODEL, TEXT, INDEX, progress=True)
    show_neighbours(index)
    console.print()
    show_places(model)
    console.print()
    show_senses(index)
    console.print(f"\nThe model: {MODEL}/   the report: {MODEL}/report.html   the usages: {INDEX}/")
    show_commands()


def command() -> str:
    """How the program is called from where the person stands: its name, or the path beside this Python."""
    beside = shutil.which("polyseme", path=str(Path(sys.executable).parent))
    if beside is None:
        return f"{shlex.quote(sys.executable)} -m polyseme"
    known = shutil.which("polyseme")
    if known is not None and os.path.samefile(known, beside):
        return "polyseme"
    near = os.path.relpath(beside)
    return shlex.quote(beside if near.startswith(os.pardir) else near)


def show_commands() -> None:
    """What to do with the model and the index now."""
    program = command()
    console.print(f"Try: {program} generate {MODEL} --prompt 却说", markup=False, soft_wrap=True)
    console.print(f'     {program} substitutes {MODEL} "他 骑 着 [马] 走 了"', markup=False, soft_wrap=True)
    console.print(
        f'     {program} nearest {INDEX} 将 --context "玄德 拜 关羽 为 将"', markup=False, soft_wrap=True
    )
    console.print(f"Look: {program} serve {MODEL} {INDEX}", markup=False, soft_wrap=True)
    console.print("      then open http://127.0.0.1:8000", markup=False)


if __name__ == "__main__":
    main()
