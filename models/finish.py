"""Turn a trained model into a bundled one: int8, with checksums, a model card and its measured values.

    WORK/NAME/model  ->  src/polyseme/bundled/NAME (with words.safetensors, sentence.safetensors,
                         metrics.jsonl), SHA256SUMS
                     ->  models/NAME/README.md (the card), metrics.jsonl, curves.png

The card is models/NAME/about.md, followed by the sources of modern text with their licences and by values
measured here: held-out perplexity, and CoarseWSD-20 by layer or the persons of 三国演义, with fp32 and with
bundled weights; the design study; the nearest words of WORDS.

    python models/finish.py NAME WORK [--modern FOLDER of en_modern and zh_modern] [--wsd COARSEWSD-20]
        [--sanguo FOLDER for benchmarks/persons.py]
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import polyseme
from polyseme import api
from polyseme.formats.models.bundled import FOLDER, SUMS_FILE
from polyseme.formats.models.sentence_file import SENTENCE_FILE, write_sentence_pooling
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.text.corpus.prepared import open_corpus
from polyseme.text.fingerprint import checksum
from polyseme.text.reading import read_lines
from polyseme.text.segment.stream import segment_lines
from polyseme.training.report import fit_sentences

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))
from prepare import SHARES  # noqa: E402

from persons import average_usages, measure_neighbours  # noqa: E402
from precision import cosines, senses  # noqa: E402

WORDS = {
    "en": (
        "economy bank computer phone doctor virus film music football car Monday seven red mother London "
        "government happy quickly walked because"
    ),
    "zh": "经济 银行 苹果 电脑 手机 医生 电影 音乐 足球 汽车 七 红色 母亲 北京 政府 高兴 因为 认为",
    "en-classic": (
        "king ship Monday seven red mother London river horse bread anger beautiful quickly walked said "
        "because could Darcy Ahab sword"
    ),
    "zh-classic": ("曹操 行者 宋江 宝玉 荆州 长安 将军 丫头 妖精 刀 酒 马 三 明日 大怒 欢喜 道 杀 公主 却说"),
}
SENTENCES = 2000  # held-out sentences whose vectors are compared
CHARACTERS = {"en": 5, "zh": 2}  # of a token, about
USAGES = 2_000_000  # tokens of the training text whose vectors are averaged, spread over the text
NEIGHBOURS = {"en": 5000, "zh": 3300, "en-classic": 3200, "zh-classic": 3200}  # words with a stored vector
CURVES = "![curves](curves.png)"  # in the card in models/ only; the image is not bundled
UNCHANGED = "train.seed="  # a trial that changes nothing but the seed
METRICS = "metrics.jsonl"
CELLS = {"en": 384, "zh": 384, "en-classic": 512, "zh-classic": 512}
MAX_BYTES = {"en": 16_000_000, "zh": 16_000_000, "en-classic": 10_000_000, "zh-classic": 10_000_000}


def main() -> None:
    """Parse the command line, convert the model, measure it and write the card."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(WORDS))
    parser.add_argument("work", type=Path)
    parser.add_argument("--modern", type=Path)
    parser.add_argument("--wsd", type=Path)
    parser.add_argument("--sanguo", type=Path)
    arguments = parser.parse_args()
    work_folder = arguments.work / arguments.name
    bundled = FOLDER / arguments.name
    (bundled / METRICS).unlink(missing_ok=True)  # no file of a model: `convert` would not replace it
    api.convert(work_folder / "model", bundled, precision="int8", tables=True, force=True)
    for name in (METRICS, "curves.png"):
        shutil.copy(work_folder / "model" / name, HERE / arguments.name / name)
    write_curve(arguments.name, bundled)
    write_words(bundled, work_folder / "train")
    write_pooling(bundled, work_folder / "model" / "corpus")
    card = write_card(arguments.name, work_folder, bundled, arguments)
    (bundled / "README.md").write_text(card.replace(CURVES + "\n\n", ""), encoding="utf-8")
    (HERE / arguments.name / "README.md").write_text(card, encoding="utf-8")
    write_sums()
    size = sum(file.stat().st_size for file in bundled.iterdir())
    print(f"{bundled}: {size:,} bytes")
    if size > MAX_BYTES[arguments.name]:
        sys.exit(f"{bundled} is larger than {MAX_BYTES[arguments.name]:,} bytes.")


def write_sums() -> None:
    """Write the checksums of all bundled models."""
    files = sorted(file for file in FOLDER.glob("*/*") if file.is_file())
    lines = [f"{checksum(file)}  {file.relative_to(FOLDER).as_posix()}\n" for file in files]
    (FOLDER / SUMS_FILE).write_text("".join(lines), encoding="utf-8")


def write_curve(name: str, bundled: Path) -> None:
    """Write the held-out perplexities during training, which the explorer plots."""
    lines = (HERE / name / METRICS).read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["event"] == "validation"]
    (bundled / METRICS).write_text("".join(kept), encoding="utf-8")


def write_words(bundled: Path, text: Path) -> None:
    """Write the mean vectors of the most frequent words, from sentences spread over the training text."""
    elmo = polyseme.load(bundled)
    if bundled.name in SHARES:  # too large to segment all of it
        lines = list(read_lines(text))
        share = USAGES * CHARACTERS[bundled.name] / sum(len(line.text) for line in lines)
        sampled = list(segment_lines(lines[:: max(1, round(1 / share))], elmo.config.segment))
    else:
        sentences = list(text_of(elmo, text))
        sampled = sentences[:: max(1, round(sum(map(len, sentences)) / USAGES))]
    counted = Counter(word for sentence in sampled for word in sentence)
    words = {word for word, _ in counted.most_common(NEIGHBOURS[bundled.name])} | set(
        WORDS[bundled.name].split()
    )
    polyseme.mean_vectors(elmo, sampled, words=words, min_count=20).save(bundled / WORDS_FILE, force=True)


def write_pooling(bundled: Path, corpus: Path) -> None:
    """Fit `pool="sentence"` with the bundled weights, and write it beside them."""
    pooling = fit_sentences(polyseme.load(bundled).model, open_corpus(corpus))
    if pooling is None:
        sys.exit(f"{corpus} has no two sentences.")
    write_sentence_pooling(bundled / SENTENCE_FILE, pooling)


def write_card(name: str, work_folder: Path, bundled: Path, arguments: argparse.Namespace) -> str:
    """Return the card: the text of about.md and the measured values."""
    models = {
        "fp32, as trained": polyseme.load(work_folder / "model"),
        "int8, as bundled": polyseme.load(bundled),
    }
    about = (HERE / name / "about.md").read_text(encoding="utf-8")
    parts = [about.strip()]
    if arguments.modern is not None and name in SHARES:
        parts += ["## Sources", sources(name, arguments.modern / f"{name}_modern" / "README.txt")]
    parts += ["## Model", facts(work_folder, bundled), CURVES]
    measured = {label: elmo for label, elmo in models.items() if name not in SHARES or "int8" in label}
    parts += ["## Held-out text", perplexities(measured, work_folder)]
    parts += ["Effect of the bundled precision: " + difference(*models.values(), work_folder)]
    if arguments.wsd is not None:
        parts += ["## Word senses (CoarseWSD-20)", word_senses(measured, arguments.wsd)]
    if arguments.sanguo is not None:
        parts += ["## Persons of 三国演义", persons(models, arguments.sanguo)]
    if (HERE / name / "study.json").exists():
        parts += ["## Design study", study(HERE / name / "study.json")]
    parts += ["## Nearest words", neighbours(bundled, WORDS[name].split())]
    return "\n\n".join(parts) + "\n"


def facts(work_folder: Path, bundled: Path) -> str:
    """Return a table of the model and its training."""
    rows = dict(api.info(bundled)["facts"])
    lines = [json.loads(line) for line in (work_folder / "model" / METRICS).read_text("utf-8").splitlines()]
    last = lines[-1]
    rows["training"] = (
        f"{last['tokens']:,} tokens in {last['step']:,} steps, {last['seconds'] / 60:.0f} minutes"
    )
    files = [file for file in bundled.iterdir() if file.suffix not in (".md", ".jsonl")]
    rows["size"] = f"{sum(file.stat().st_size for file in files):,} bytes"
    return table(["", ""], [[name, value.replace("|", "\\|")] for name, value in rows.items()])


def sources(name: str, readme: Path) -> str:
    """Return a table of the sources of modern text: what, whose, under which licence, how much of it."""
    rows = []
    for block in re.split(r"\n(?=\S+\n-{3,}\n)", readme.read_text(encoding="utf-8"))[1:]:
        source = block.split("\n", 1)[0]
        lines = re.findall(r"^  (\w+) +(\S.*)$", block, re.MULTILINE)
        values = dict(lines)
        values["source"] = "; ".join(value for key, value in lines if key == "source")
        values["attribution"] = values["attribution"].removeprefix("Attribution: ")
        words = int(values["train"].rsplit(", ", 1)[1].split()[0].replace(",", ""))
        share = SHARES[name].get(source, 1.0)
        cells = [source, values["register"], values["attribution"], values["licence"], values["source"]]
        kept = f"{round(words * share):,}" + ("" if share == 1 else f" ({share:.0%})")
        rows.append([*(cell.replace("|", "\\|") for cell in cells), kept])
    return table(["source", "text", "by", "licence", "from", "words"], rows)


def perplexities(models: dict[str, polyseme.Elmo], work_folder: Path) -> str:
    """Return a table of perplexities and shares of unknown words, of all texts and of each.

    What was evaluated is kept in WORK/NAME/perplexities.json.
    """
    rows = []
    for name, elmo in models.items():
        for part in ("valid", "test"):
            if (work_folder / part).exists():
                rows += [[name, *row] for row in evaluate(elmo, work_folder, part)]
    return table(["weights", "text", "words", "forward", "backward", "mean", "unknown words"], rows)


def evaluate(elmo: polyseme.Elmo, work_folder: Path, part: str) -> list[list[str]]:
    """Return the rows of one held-out part, evaluated once."""
    path = work_folder / "perplexities.json"
    known: dict[str, list[list[str]]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    key = f"{part} {elmo.model.network.precision}"
    if key not in known:
        evaluation = api.evaluate(elmo, work_folder / part)
        texts = [(f"all, {part}", evaluation.total)]
        texts += [(f"{Path(file).stem}, {part}", value) for file, value in evaluation.files.items()]
        known[key] = [
            [
                text,
                f"{perplexity.words:,}",
                *(f"{value:.1f}" for value in (perplexity.forward, perplexity.backward, perplexity.mean)),
                f"{perplexity.unknown_rate:.1%}",
            ]
            for text, perplexity in texts
        ]
        path.write_text(json.dumps(known, ensure_ascii=False, indent=1), encoding="utf-8")
    return known[key]


def difference(exact: polyseme.Elmo, rough: polyseme.Elmo, work_folder: Path) -> str:
    """Return the cosines between bundled and fp32 vectors of held-out sentences, over all layers."""
    sentences = list(islice(text_of(exact, work_folder / "valid"), SENTENCES))
    ours, theirs = (np.concatenate(e.embed(sentences, layer="all"), axis=1) for e in (rough, exact))
    cosine = cosines(ours, theirs)
    return (
        f"cosine to fp32 is {cosine.mean():.5f} on average and at least {cosine.min():.4f}, over all layers."
    )


def word_senses(models: dict[str, polyseme.Elmo], wsd: Path) -> str:
    """Return a table of disambiguation accuracy by layer."""
    layers = range(next(iter(models.values())).config.layers)
    rows = [
        [name, *(f"{senses(elmo, wsd, layer):.1%}" for layer in layers), f"{senses(elmo, wsd, 'mean'):.1%}"]
        for name, elmo in models.items()
    ]
    return table(["nearest centroid", *(f"layer {layer}" for layer in layers), "mean of the layers"], rows)


def persons(models: dict[str, polyseme.Elmo], folder: Path) -> str:
    """Return the share of persons among the nearest words of persons."""
    rows = [
        [name, f"{measure_neighbours(average_usages(elmo, folder), folder)[0]:.3f}"]
        for name, elmo in models.items()
    ]
    intro = (
        "The share of persons among the ten nearest words of each of the hundred most frequent persons "
        "(`benchmarks/persons.py`, top layer):"
    )
    return intro + "\n\n" + table(["weights", "persons"], rows)


def study(path: Path) -> str:
    """Return a table of the trials that chose the architecture, each with the same budget."""
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
        f"{' and '.join(f'{m:g}' for m in sorted(minutes))} minutes on one core per trial, "
        f"held-out perplexity (`make -C models study-{path.parent.name}`):"
    )
    head = ["trial", "tokens/s", "words", "unknown", "forward", "backward", "mean"]
    caution = (
        "Short trials favour small networks, which read more text in the same time. The full training was "
        f"about twenty times as long; the choice of {CELLS[path.parent.name]} cells for it is "
        "a judgement, not a measurement."
    )
    return "\n\n".join([intro, table(head, rows), caution])


def _trial(run: dict[str, Any]) -> str:
    """Name a trial: a change of this model's settings, or a preset with its vocabulary."""
    if run["preset"] != "config":
        return f"preset `{run['preset']}`"
    return "this model's settings" if run["changed"].startswith(UNCHANGED) else f"`{run['changed']}`"


def neighbours(bundled: Path, words: list[str]) -> str:
    """Return a table of the nearest words, as printed by `polyseme nearest NAME WORD`."""
    vectors = polyseme.open_words(bundled)
    rows = []
    for word in words:
        longer = min(2, len(word)) if word > "\u3400" else 1  # characters of a neighbour
        near = vectors.nearest(word, 8, min_chars=longer)
        rows.append([word, " ".join(neighbour for neighbour, _ in near)])
    return table(["word", "nearest words, by mean contextual vector (top layer)"], rows)


def text_of(elmo: polyseme.Elmo, folder: Path) -> Any:
    """Yield the sentences of all texts in a folder."""
    return segment_lines(read_lines(folder), elmo.config.segment)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
