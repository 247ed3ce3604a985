"""Measure how long trained task models take to predict: answers about a page, the clusters of a novel.

    a task folder, a text  ->  task_speed  ->  a line with seconds and memory

For a model of `answers`: questions about pages of 500 tokens, one at a time, the median and the worst of 20;
TEXT is a file in SQuAD's format. For a model of `coref`: one text file, read and predicted whole.

    python benchmarks/task_speed.py FOLDER TEXT
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import mean, median
from typing import Any

from tasks import high_water

PAGE, QUESTIONS = 500, 20  # tokens of a page, and questions that are timed


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    arguments = parser.parse_args()
    import polyseme

    model = polyseme.load_task(arguments.folder)
    measure = time_answers if model.task.name == "answers" else time_novel
    print(f"{model.task.name}: {measure(model, arguments.text)}; {high_water() / 1e9:.1f} GB")


def time_answers(model: Any, path: Path) -> str:
    """Time questions about pages, each page new to the model."""
    from polyseme.tasks.examples import Segmenter

    segmenter, times, processor_times, sizes = Segmenter(model.segment), [], [], []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"][:QUESTIONS]:
        page, size = "", 0
        for paragraph in article["paragraphs"]:
            page = f"{page}{paragraph['context']}\n"
            size = len(segmenter.tokens(page))
            if size >= PAGE:
                break
        question = article["paragraphs"][0]["qas"][0]["question"]
        model.predict((question, "warm up ."))
        begin, processor = time.perf_counter(), time.process_time()
        model.predict((question, page))
        times.append(time.perf_counter() - begin)
        processor_times.append(time.process_time() - processor)
        sizes.append(size)
    return (
        f"{len(times)} questions about pages of {mean(sizes):.0f} tokens: "
        f"median {1000 * median(times):.0f} ms ({1000 * median(processor_times):.0f} ms of processor time), "
        f"worst {1000 * max(times):.0f} ms ({1000 * max(processor_times):.0f} ms)"
    )


def time_novel(model: Any, path: Path) -> str:
    """Time reading and predicting a text, and writing its page."""
    begin, processor = time.perf_counter(), time.process_time()
    (document,) = model.read_plain_text(path)
    (prediction,) = model.predict_examples([document])
    page = model.task.format(prediction, "html")
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    words = len(path.read_text(encoding="utf-8").split())
    return (
        f"{words:,} words, {len(prediction.clusters):,} clusters, a page of {len(page) / 1e6:.1f} MB: "
        f"{seconds:.0f} s ({processor:.0f} s of processor time)"
    )


if __name__ == "__main__":
    main()
