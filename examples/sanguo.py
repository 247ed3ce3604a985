"""Pretrain an ELMo on the novel 三国演义, in about five minutes on two cores, and explore its words.

    the sample `sanguo`  ->  demo/sanguo/ (a model)  ->  perplexity, substitutes
                         ->  demo/sanguo-index/ (all usages)  ->  nearest words, senses

A second run uses the existing model, or resumes an interrupted training.
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
# Words that may have several senses. 将: a general, to lead troops, or about to;
# 见: to see, or to visit; 走: to flee, or to run up; and so on.
AMBIGUOUS = ("将", "见", "走", "意", "行", "使", "道", "书", "下", "为", "与")
CONTEXTS = ("操 大怒 ， 欲 斩 此 [将] 。", "玄德 [将] 兵 来 攻 城 。", "天色 [将] 晚 ， 人马 困乏 。")
console = Console(highlight=False)


def pretrain(preset: str) -> None:
    """Train the model, unless it exists."""
    if (MODEL / "config.json").exists():
        console.print(f"{MODEL} exists: not trained again.")
        return
    shutil.rmtree(INDEX, ignore_errors=True)  # it belongs to another model
    result = polyseme.pretrain(
        [TEXT],
        MODEL,
        preset,
        resume=(MODEL / "checkpoints").exists(),
        force=MODEL.exists(),
        progress=True,
    )
    metrics = result.metrics
    console.print(f"held-out perplexity {metrics['mean']:.1f}, {metrics['unknown']:.1%} of its words unknown")


def show_neighbours(index: Index) -> None:
    """Show the nearest words of three names, by mean contextual vector."""
    table = Table("word", "nearest words", box=None)
    for word in WORDS:
        near = index.most_similar(word, topn=10, min_count=10, min_chars=2)
        table.add_row(word, " ".join(neighbour for neighbour, _ in near))
    console.print(table)


def show_contexts(model: polyseme.Elmo) -> None:
    """Show one word in three contexts: cosines of its vectors, and words that could replace it."""
    marked = [context.split() for context in CONTEXTS]
    tokens = [[token.strip("[]") for token in sentence] for sentence in marked]
    positions = [next(n for n, token in enumerate(sentence) if token.startswith("[")) for sentence in marked]
    rows = [array[at] for array, at in zip(model.embed(tokens, layer="top"), positions, strict=True)]
    vectors = [row / np.linalg.norm(row) for row in rows]
    table = Table("context", "cosine with the first", "substitutes", box=None)
    for context, vector in zip(CONTEXTS, vectors, strict=True):
        best = polyseme.substitutes(model, context, 8, segment="split").joint.best
        shown = context.replace("[", "【").replace("]", "】")
        table.add_row(shown, f"{vector @ vectors[0]:.2f}", " ".join(candidate.word for candidate in best))
    console.print(table)


def find_ambiguous_word(index: Index) -> Senses | None:
    """Return the senses of the first word in AMBIGUOUS that has several, or None."""
    for word in AMBIGUOUS:
        if word not in index.words or index.words.count(word) < MIN_USAGES:
            continue
        senses = polyseme.senses(index, word)
        if len(senses.senses) > 1:
            return senses
    return None


def show_senses(index: Index) -> None:
    """Show the senses of an ambiguous word: their nearest words and most central sentences."""
    senses = find_ambiguous_word(index)
    if senses is None:
        console.print(f"None of {' '.join(AMBIGUOUS)} has more than one sense in this text, by this model.")
        return
    console.print(f"{senses.word}: {len(senses.senses)} senses in {len(senses.numbers):,} usages")
    for sense in senses.senses:
        console.print(f"[bold]{sense.share:.0%}[/]  near {' '.join(sense.neighbours)}")
        for usage in sense.examples[:2]:
            console.print("     " + usage.marked("【", "】"))


def main(preset: str = PRESET) -> None:
    """Download the novel, train, index and explore."""
    FOLDER.mkdir(exist_ok=True)
    console.rule("An ELMo of 三国演义")
    if not TEXT.exists():
        TEXT.write_text(polyseme.sample("sanguo"), encoding="utf-8")
    pretrain(preset)
    model = polyseme.load(MODEL)
    index = polyseme.index(MODEL, TEXT, INDEX, progress=True)
    show_neighbours(index)
    console.print()
    show_contexts(model)
    console.print()
    show_senses(index)
    console.print(f"\nModel: {MODEL}/   report: {MODEL}/report.html   index: {INDEX}/")
    show_commands()


def command() -> str:
    """Return how to call the program from the working directory: its name, or its path."""
    beside = shutil.which("polyseme", path=str(Path(sys.executable).parent))
    if beside is None:
        return f"{shlex.quote(sys.executable)} -m polyseme"
    known = shutil.which("polyseme")
    if known is not None and os.path.samefile(known, beside):
        return "polyseme"
    near = os.path.relpath(beside)
    return shlex.quote(beside if near.startswith(os.pardir) else near)


def show_commands() -> None:
    """Print commands to continue with."""
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
