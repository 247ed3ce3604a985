"""Measure question answering on public datasets: with and without ELMo, and a baseline of shared words.

    DATA (folders of datasets)  ->  WORK: one JSON file per cell  ->  a table in Markdown

A cell is a dataset, a variant and a seed. Cells in WORK, or in answers.json beside this file, are not
computed again, and an interrupted training is resumed. Datasets: `squad` (the subset of SQuAD 1.1, tested on
XQuAD's English side, which is from SQuAD's dev set) and `drcd` (the dev file of DRCD, traditional Chinese,
tested on its test file). Whole articles of the training file are held out for dev: every fifth, every tenth.
Variants: `elmo`, `baseline` (the same network with words and characters only), `overlap` (no training: of the
sentence that shares most with the question, the words between those that it shares). Training ends as the
preset says; `--also SETTING` tries a variant with other settings. `--speed FOLDER` times `predict` of a
trained model on pages of 500 tokens.

    python benchmarks/answers.py DATA WORK [--tasks squad …] [--variants elmo …] [--seeds 3] [--minutes M]
    python benchmarks/answers.py DATA WORK --table
    python benchmarks/answers.py DATA WORK --tasks squad --speed WORK/models/squad.elmo.1
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import mean, median
from typing import Any

from tasks import Dataset, gain, high_water, keep, known, spread

PUBLISHED = Path(__file__).with_suffix(".json")
MODELS = {"en": "en", "zh": "zh"}
VARIANTS = ("elmo", "baseline", "overlap")
PAGE, QUESTIONS = 500, 20  # tokens of a page, and questions that are timed


def squad(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """The subset of SQuAD, every fifth article for dev; XQuAD."""
    train, dev = by_article(data / "en_squad_subset" / "train-v1.1-first_articles.json", work, "squad", 5, 2)
    return train, dev, data / "en_zh_xquad" / "xquad.en.json"


def drcd(data: Path, work: Path) -> tuple[Path, Path, Path]:
    """The dev file of DRCD, every tenth article for dev; its test file."""
    train, dev = by_article(data / "zh_drcd" / "DRCD_dev.json", work, "drcd", 10, 9)
    return train, dev, data / "zh_drcd" / "DRCD_test.json"


def by_article(path: Path, work: Path, name: str, count: int, held_out: int) -> tuple[Path, Path]:
    """Hold out every article whose number is `held_out` modulo `count`."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    paths = work / f"{name}.train.json", work / f"{name}.dev.json"
    for out, is_dev in zip(paths, (False, True), strict=True):
        kept = [article for n, article in enumerate(articles) if (n % count == held_out) == is_dev]
        out.write_text(json.dumps({"data": kept}, ensure_ascii=False), encoding="utf-8")
    return paths


SETS = {
    dataset.name: dataset
    for dataset in (
        Dataset("squad", "answers", "en", squad, 60),
        Dataset("drcd", "answers", "zh", drcd, 60),
    )
}


def main() -> None:
    """Parse the command line, compute what is missing, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--also", nargs="+", default=[], metavar="SETTING", help="a setting to try")
    parser.add_argument("--minutes", type=float, help="start no cell after this many minutes")
    parser.add_argument("--table", action="store_true", help="only print the cells that are there")
    parser.add_argument("--speed", type=Path, metavar="FOLDER", help="time the predictions of a task folder")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    if arguments.speed:
        print(time_predictions(SETS[arguments.tasks[0]], arguments))
        return
    start = time.monotonic()
    for seed in range(1, arguments.seeds + 1):
        for name in arguments.tasks:
            for variant in arguments.variants:
                late = arguments.minutes is not None and time.monotonic() - start > 60 * arguments.minutes
                if not (arguments.table or late):
                    compute(SETS[name], variant, seed, arguments)
    cells = known(arguments.work, PUBLISHED)
    if arguments.table:
        PUBLISHED.write_text(json.dumps(cells, indent=1) + "\n", encoding="utf-8")
    print(table(cells))


def compute(dataset: Dataset, variant: str, seed: int, arguments: argparse.Namespace) -> None:
    """Compute one cell, unless it is there."""
    import polyseme

    tried = "".join(f"+{setting}" for setting in arguments.also)
    path = arguments.work / "cells" / f"{dataset.name}.{variant}{tried}.{seed}.json"
    if path.stem in known(arguments.work, PUBLISHED):
        return
    train, dev, test = dataset.files(arguments.data, arguments.work)
    if variant == "overlap":
        if seed == 1:
            keep(path, guess_by_overlap(dataset, test))
        return
    out = arguments.work / "models" / path.stem
    start = time.process_time()
    model = polyseme.train(
        dataset.task,
        MODELS[dataset.language],
        train=train,
        dev=dev,
        test=test,
        out=out,
        settings=[f"train.epochs={dataset.epochs}", f"train.seed={seed}", *arguments.also],
        without_elmo=variant == "baseline",
        resume=(out / "plan.json").exists(),
        vectors=arguments.work / "vectors" / dataset.name,
        progress=True,
    )
    (result,) = model.results
    values = {"main": result.main, "dev": result.dev, "test": result.test, "epochs": result.epochs}
    values |= {"seconds": result.seconds, "processor_seconds": time.process_time() - start}
    values |= {"model": MODELS[dataset.language], "fingerprint": elmo_of(dataset).model.fingerprint()}
    values |= {"shares": result.shares, "examples": result.examples, "memory": high_water()}
    keep(path, values)


def elmo_of(dataset: Dataset) -> Any:
    """The bundled model of the language."""
    import polyseme

    return polyseme.load(MODELS[dataset.language])


def guess_by_overlap(dataset: Dataset, test: Path) -> dict[str, Any]:
    """Answer with the words between shared words, in the sentence that shares most with the question."""
    from polyseme.search.passages import PassageIndex, list_terms
    from polyseme.tasks.answers.scores import score_answers
    from polyseme.tasks.examples import Segmenter
    from polyseme.tasks.experiment import Experiment

    start = time.monotonic()
    task = Experiment(dataset.task).make_task()
    examples = task.read(str(test), Segmenter(elmo_of(dataset).config.segment))
    guesses = []
    for example in examples:
        question, *sentences = example.sentences
        ((best, _),) = PassageIndex(sentences).rank(question, 1)
        asked, first = set(list_terms(question)), sum(map(len, sentences[:best]))
        runs: list[list[int]] = [[]]
        for position, token in enumerate(sentences[best]):
            telling = list_terms([token])
            if any(term in asked for term in telling):
                runs.append([])
            elif telling or runs[-1]:
                runs[-1].append(position)
        longest = max(runs, key=len) or list(range(len(sentences[best])))
        guesses.append(example.text.span_text(first + longest[0], first + longest[-1] + 1))
    questions = [example.question.text or "" for example in examples]
    labels = [[answer.text for answer in example.answers or ()] for example in examples]
    scores = score_answers(questions, labels, guesses)
    return {"main": "F1", "test": scores.metrics, "seconds": time.monotonic() - start}


def time_predictions(dataset: Dataset, arguments: argparse.Namespace) -> str:
    """The time of a question about a page of text: median and worst of 20, one at a time."""
    import polyseme
    from polyseme.tasks.examples import Segmenter

    model = polyseme.load_task(arguments.speed)
    articles = json.loads(dataset.files(arguments.data, arguments.work)[2].read_text(encoding="utf-8"))[
        "data"
    ]
    segmenter, times, sizes = Segmenter(model.segment), [], []
    for article in articles[:QUESTIONS]:
        page, size = "", 0
        for paragraph in article["paragraphs"]:
            page, size = f"{page}{paragraph['context']}\n", len(segmenter.tokens(page))
            if size >= PAGE:
                break
        question = article["paragraphs"][0]["qas"][0]["question"]
        model.predict((question, "warm up ."))
        begin = time.perf_counter()
        model.predict((question, page))
        times.append(time.perf_counter() - begin)
        sizes.append(len(segmenter.tokens(page)))
    return (
        f"{dataset.name}: {len(times)} questions about pages of {mean(sizes):.0f} tokens: "
        f"median {1000 * median(times):.0f} ms, worst {1000 * max(times):.0f} ms"
    )


def table(cells: dict[str, dict[str, Any]]) -> str:
    """A row for each dataset: F1 and EM on test, and by how much ELMo cuts the error."""
    scores: dict[str, dict[str, dict[str, list[float]]]] = {}
    for cell, values in cells.items():
        name, _, rest = cell.partition(".")
        for metric in ("F1", "EM"):
            by_variant = scores.setdefault(name, {}).setdefault(metric, {})
            by_variant.setdefault(rest.rpartition(".")[0], []).append(values["test"][metric])
    tried = sorted({v for by in scores.values() for variants in by.values() for v in variants if "+" in v})
    columns = ("overlap", "baseline", "elmo", *tried)
    head = ["dataset", "metric", *columns, "error reduction of elmo over baseline"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, by_metric in scores.items():
        for metric, by_variant in by_metric.items():
            row = [spread(by_variant.get(variant, [])) for variant in columns]
            lines.append("| " + " | ".join([name, metric, *row, gain(by_variant, "baseline", "elmo")]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
