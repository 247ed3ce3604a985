"""A trained model to the one that is shipped: int8, with its checksums, its card and the figures for it.

    WORK/NAME/model  ->  src/polyseme/bundled/NAME (with words.safetensors, metrics.jsonl), SHA256SUMS
                     ->  models/NAME/README.md (the card), metrics.jsonl, curves.png

The card is models/NAME/about.md with the figures that are measured here behind it: held-out perplexity, and
CoarseWSD-20 by layer or the persons of 三国演义, of the fp32 weights and of the shipped ones; the study; and
neighbours of the words in WORDS.

    python models/finish.py NAME WORK [--wsd COARSEWSD-20] [--sanguo FOLDER for benchmarks/persons.py]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme import api
from polyseme.formats.models.bundled import FOLDER, SUMS
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.text.fingerprint import checksum
from polyseme.text.reading import read_lines
from polyseme.text.segment.stream import sentences_of_lines

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
from persons import contextual, judge  # noqa: E402
from precision import cosines, senses  # noqa: E402

WORDS = {
    "en-classic": (
        "king ship Monday seven red mother London river horse bread anger beautiful quickly walked said "
        "because could Darcy Ahab sword"
    ),
    "zh-classic": ("曹操 行者 宋江 宝玉 荆州 长安 将军 丫头 妖精 刀 酒 马 三 明日 大怒 欢喜 道 杀 公主 却说"),
}
SENTENCES = 2000  # of the held-out text, to compare vectors
USAGES = 2_000_000  # tokens of the training text whose vectors are averaged, from all its parts
NEIGHBOURS = 3200  # words that have a vector in the box: what is left of LARGEST
CURVES = "![curves](curves.png)"  # of the card in models/; the picture is not shipped
SAME = "train.seed="  # a change that is none
METRICS = "metrics.jsonl"
LARGEST = 10_000_000  # bytes that are shipped


def main() -> None:
    """Parse the command line, measure, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(WORDS))
    parser.add_argument("work", type=Path)
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--sanguo", type=Path)
    given = parser.parse_args()
    place = given.work / given.name
    shipped = FOLDER / given.name
    api.convert(place / "model", shipped, precision="int8", tables=True, force=True)
    for name in (METRICS, "curves.png"):
        shutil.copy(place / "model" / name, HERE / given.name / name)
    write_course(given.name, shipped)
    write_words(shipped, place / "train")
    card = write_card(given.name, place, shipped, given)
    (shipped / "README.md").write_text(card.replace(CURVES + "\n\n", ""), encoding="utf-8")
    (HERE / given.name / "README.md").write_text(card, encoding="utf-8")
    write_sums()
    size = sum(file.stat().st_size for file in shipped.iterdir())
    print(f"{shipped}: {size:,} bytes")
    if size > LARGEST:
        sys.exit(f"{shipped} is larger than {LARGEST:,} bytes.")


def write_sums() -> None:
    """The checksums of all models that are shipped."""
    files = sorted(file for file in FOLDER.glob("*/*") if file.is_file())
    lines = [f"{checksum(file)}  {file.relative_to(FOLDER).as_posix()}\n" for file in files]
    (FOLDER / SUMS).write_text("".join(lines), encoding="utf-8")


def write_course(name: str, shipped: Path) -> None:
    """The held-out perplexities in the course of training, for the page of `polyseme serve`."""
    lines = (HERE / name / METRICS).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["event"] == "validation"]
    (shipped / METRICS).write_text("".join(kept), encoding="utf-8")


def write_words(shipped: Path, text: Path) -> None:
    """The mean vectors of the most frequent words, from sentences of all parts of the training text."""
    elmo = polyseme.load(shipped)
    sentences = list(text_of(elmo, text))
    every = max(1, round(sum(map(len, sentences)) / USAGES))
    some = sentences[::every]
    counted = Counter(word for sentence in some for word in sentence)
    words = {word for word, _ in counted.most_common(NEIGHBOURS)} | set(WORDS[shipped.name].split())
    polyseme.mean_vectors(elmo, some, words=words, min_count=20).save(shipped / WORDS_FILE, force=True)


def write_card(name: str, place: Path, shipped: Path, given: argparse.Namespace) -> str:
    """The card: what is known, and what is measured now."""
    models = {"fp32, as trained": polyseme.load(place / "model"), "as shipped": polyseme.load(shipped)}
    about = (HERE / name / "about.md").read_text(encoding="utf-8")
    parts = [about.strip(), "## The model", facts(place, shipped), CURVES]
    parts += ["## Held-out text", perplexities(models, place)]
    parts += ["What the shipped precision changes: " + difference(*models.values(), place)]
    if given.wsd is not None:
        parts += ["## Senses (CoarseWSD-20)", word_senses(models, given.wsd)]
    if given.sanguo is not None:
        parts += ["## Persons of 三国演义", persons(models, given.sanguo)]
    if (HERE / name / "study.json").exists():
        parts += ["## The study", study(HERE / name / "study.json")]
    parts += ["## Neighbours", neighbours(shipped, WORDS[name].split())]
    return "\n\n".join(parts) + "\n"


def facts(place: Path, shipped: Path) -> str:
    """What the model is, and how it was trained."""
    rows = dict(api.info(shipped)["facts"])
    lines = [json.loads(line) for line in (place / "model" / METRICS).read_text("utf-8").splitlines()]
    last = lines[-1]
    rows["training"] = (
        f"{last['tokens']:,} tokens in {last['step']:,} steps, {last['seconds'] / 60:.0f} minutes"
    )
    files = [file for file in shipped.iterdir() if file.suffix not in (".md", ".jsonl")]
    rows["size"] = f"{sum(file.stat().st_size for file in files):,} bytes"
    return table(["", ""], [[name, value.replace("|", "\\|")] for name, value in rows.items()])


def perplexities(models: dict[str, polyseme.Elmo], place: Path) -> str:
    """Forward, backward, mean and the share of unknown words, for all texts and for each."""
    rows = []
    for name, elmo in models.items():
        found = api.evaluate(elmo, place / "valid")
        for text, figures in [("all", found.total), *((Path(f).stem, p) for f, p in found.files.items())]:
            values = [f"{figures.forward:.1f}", f"{figures.backward:.1f}", f"{figures.mean:.1f}"]
            rows.append([name, text, f"{figures.words:,}", *values, f"{figures.unknown_rate:.1%}"])
    return table(["weights", "text", "words", "forward", "backward", "mean", "unknown words"], rows)


def difference(exact: polyseme.Elmo, rough: polyseme.Elmo, place: Path) -> str:
    """Cosines of the vectors of held-out sentences, of all layers, to those of fp32."""
    sentences = list(islice(text_of(exact, place / "valid"), SENTENCES))
    ours, theirs = (np.concatenate(e.embed(sentences, layer="all"), axis=1) for e in (rough, exact))
    cosine = cosines(ours, theirs)
    return f"cosine to fp32 {cosine.mean():.5f} on average, {cosine.min():.4f} at the lowest, of all layers."


def word_senses(models: dict[str, polyseme.Elmo], wsd: Path) -> str:
    """The share of right senses, by layer."""
    layers = range(next(iter(models.values())).config.layers)
    rows = [
        [name, *(f"{senses(elmo, wsd, layer):.1%}" for layer in layers), f"{senses(elmo, wsd, 'mean'):.1%}"]
        for name, elmo in models.items()
    ]
    return table(["nearest centroid", *(f"layer {layer}" for layer in layers), "mean of the layers"], rows)


def persons(models: dict[str, polyseme.Elmo], folder: Path) -> str:
    """Of the ten words nearest to each of the hundred most frequent persons, how many are persons."""
    rows = [[name, f"{judge(contextual(elmo, folder), folder)[0]:.3f}"] for name, elmo in models.items()]
    intro = (
        "Of the ten words nearest to each of the hundred most frequent persons, how many are persons "
        "(`benchmarks/persons.py`, top layer):"
    )
    return intro + "\n\n" + table(["weights", "persons"], rows)


def study(path: Path) -> str:
    """The trials that chose the shape, and the published presets, each with the same budget."""
    runs = json.loads(path.read_text(encoding="utf-8"))
    minutes = {run["minutes"] for run in runs}
    rows = [
        [
            _trial(run),
            f"{run['rate']:,.0f}",
            f"{run['words']:,}",
            f"{run['unknown']:.1%}",
            *(f"{run['final'][name]:.1f}" for name in ("forward", "backward", "mean")),
        ]
        for run in sorted(runs, key=lambda run: run["final"]["mean"])
    ]
    intro = (
        f"{' and '.join(f'{m:g}' for m in sorted(minutes))} minutes of one core each, held-out perplexity "
        f"(`make -C models study-{path.parent.name}`):"
    )
    head = ["what is different", "tokens/s", "words", "unknown", "forward", "backward", "mean"]
    caution = (
        "So short a trial favours small shapes, which read more text in it. The whole training was some "
        "twenty times as long: that 512 cells and all filters are worth their time there was judged, not "
        "measured."
    )
    return "\n\n".join([intro, table(head, rows), caution])


def _trial(run: dict[str, Any]) -> str:
    """What was tried: a change of this model's settings, or a preset, with this model's vocabulary."""
    if run["preset"] != "config":
        return f"the preset `{run['preset']}`"
    return "this model's settings" if run["changed"].startswith(SAME) else f"`{run['changed']}`"


def neighbours(shipped: Path, words: list[str]) -> str:
    """The nearest words of each of `words`: what `polyseme nearest NAME WORD` prints."""
    vectors = polyseme.open_words(shipped)
    rows = []
    for word in words:
        longer = min(2, len(word)) if word > "\u3400" else 1  # characters of a neighbour
        near = vectors.nearest(word, 8, min_chars=longer)
        rows.append([word, " ".join(other for other, _ in near)])
    return table(["word", "nearest, by the mean of contextual vectors (top layer)"], rows)


def text_of(elmo: polyseme.Elmo, folder: Path) -> Any:
    """The sentences of all texts of a folder."""
    return sentences_of_lines(read_lines(folder), elmo.config.segment)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
