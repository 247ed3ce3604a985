"""A model in onnxruntime beside Polyseme: size of the file, difference, cosine and speed, fp32 and int8.

    python benchmarks/onnx_models.py [--model en] [--sentences 512] [--rounds 5]

The int8 file is what onnxruntime's dynamic quantiser makes of the fp32 one. Both programs use one core and
see the same sentences in batches of similar length; onnxruntime gets ids that were made beforehand, Polyseme
tokens, with an empty cache. Speed is by processor time, because other programs then disturb it little.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from onnxruntime.quantization import QuantType, quantize_dynamic

import polyseme
from integrations import make_sentences
from polyseme.formats.models.save import save_pretrained

Layers = list[NDArray[np.float32]]  # (L, tokens, H) of each sentence
BATCH = 32  # sentences


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="en")
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger().setLevel(logging.ERROR)  # the quantiser advises to prepare the graph
    elmo = polyseme.load(arguments.model, precision="fp32")
    sentences = sorted(map(elmo.token_texts, make_sentences(arguments.sentences)), key=len)
    with tempfile.TemporaryDirectory() as folder:
        print_table(elmo, arguments.model, sentences, Path(folder), arguments.rounds)


def print_table(
    elmo: polyseme.Elmo, name: str, sentences: list[list[str]], folder: Path, rounds: int
) -> None:
    """Write both files and the folders beside them, run them by turns, print a row for each."""
    exact_file, small_file = folder / "fp32.onnx", folder / "int8.onnx"
    elmo.save(exact_file)
    quantize_dynamic(
        exact_file,
        small_file,
        op_types_to_quantize=["MatMul", "Gather"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"EnableSubgraph": True},
    )
    feeds = list(make_feeds(elmo, sentences))
    runs: dict[str, tuple[Path, Callable[[], Layers]]] = {}
    for precision in ("fp32", "int8"):
        save_pretrained(elmo.model, folder / precision, precision=precision, tables=precision != "fp32")
        runs[f"Polyseme {precision}"] = (folder / precision, embed_with(folder / precision, sentences))
    for precision, file in (("fp32", exact_file), ("int8", small_file)):
        runs[f"onnxruntime {precision}"] = (file, run_with(file, feeds, sentences))
    expected = runs["Polyseme fp32"][1]()
    results = {run: call() for run, (_, call) in runs.items()}
    times = [{run: time_call(call) for run, (_, call) in runs.items()} for _ in range(rounds)]
    n_tokens = sum(map(len, sentences))
    print(f"{name}, {len(sentences)} sentences, {n_tokens} tokens, median of {rounds} rounds, one core")
    print("| program | MB | largest difference | smallest cosine | mean cosine | tokens per CPU second |")
    print("|---|---|---|---|---|---|")
    for run, (path, _) in runs.items():
        size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.iterdir()))
        cosines = np.concatenate([cosine(*pair) for pair in zip(results[run], expected, strict=True)], axis=1)
        worst = max(float(np.abs(a - b).max()) for a, b in zip(results[run], expected, strict=True))
        speed = n_tokens / statistics.median(entry[run] for entry in times)
        print(
            f"| {run} | {size / 1e6:.1f} | {worst:.1g} | {cosines.min():.4f} | {cosines.mean():.4f} "
            f"| {speed:,.0f} |"
        )


def embed_with(folder: Path, sentences: list[list[str]]) -> Callable[[], Layers]:
    """A call of Polyseme that computes every layer, with an empty cache."""
    model = polyseme.load(folder).model
    return lambda: polyseme.Elmo(model).embed(sentences, layer="all")


def run_with(
    file: Path, feeds: list[dict[str, NDArray[np.int64]]], sentences: list[list[str]]
) -> Callable[[], Layers]:
    """A call of onnxruntime that computes every layer."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    def run() -> Layers:
        outputs = [session.run(["layers"], feed)[0] for feed in feeds]
        rows = (output[:, b] for output in outputs for b in range(output.shape[1]))
        return [row[:, 1 : len(tokens) + 1] for row, tokens in zip(rows, sentences, strict=True)]

    return run


def make_feeds(elmo: polyseme.Elmo, sentences: list[list[str]]) -> Iterator[dict[str, NDArray[np.int64]]]:
    """The ids of each batch."""
    for first in range(0, len(sentences), BATCH):
        batch = sentences[first : first + BATCH]
        feed: dict[str, NDArray[np.int64]] = {}
        for b, tokens in enumerate(batch):
            order = [0, *range(2, len(tokens) + 2), 1]  # <S> tokens </S>
            for name, ids in zip(("chars", "words"), elmo.model.token_ids(tokens), strict=True):
                if ids is not None:
                    shape = (len(batch), max(map(len, batch)) + 2, *ids.shape[1:])
                    feed.setdefault(name, np.zeros(shape, np.int64))[b, : len(order)] = ids.numpy()[order]
        yield feed


def cosine(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosines (L, tokens) of two arrays of vectors."""
    products: NDArray[np.float32] = (left * right).sum(axis=-1)
    return products / (np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1))


def time_call(call: Callable[[], object]) -> float:
    """Processor seconds of this process while `call` runs."""
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    main()
