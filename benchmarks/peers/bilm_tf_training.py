"""Train bilm-tf (PyPI's `bilm` 0.1.post5) for some batches on TensorFlow 2.15; print its speed as JSON.

Run by the peers' Python:
    .venv-peers/bin/python benchmarks/peers/bilm_tf_training.py TEXT --size small --steps 6

bilm-tf was written for TensorFlow 1: it is given TensorFlow's own compatibility module under the old name.
Its `train` is called unchanged; the data it reads is timed from batch to batch. TEXT is tokenised, one
sentence per line.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # read while TensorFlow is imported

from random_model import PUBLISHED_FILTERS, Options, options

WARM_UP = 2  # batches
SETTINGS = {
    "small": {"batch_size": 128, "unroll_steps": 20},
    "notebook": {"batch_size": 16, "unroll_steps": 20},
}


class TimedBatches:
    """The batches of a dataset, and when each of them was asked for."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self.times: list[float] = []

    def iter_batches(self, *arguments: int) -> Iterator[Any]:
        """Yield the batches of bilm-tf's dataset."""
        for batch in self._dataset.iter_batches(*arguments):
            self.times.append(time.perf_counter())
            yield batch


def training_options(size: str, n_words: int, steps: int) -> Options:
    """The options of a published size for training, as bilm-tf's `train_elmo.py` has them."""
    chosen: dict[str, Any] = options("small")
    if size == "notebook":
        chosen["lstm"] |= {"dim": 512, "projection_dim": 256}
        chosen["char_cnn"] |= {"embedding": {"dim": 128}, "filters": PUBLISHED_FILTERS, "n_highway": 2}
        chosen["char_cnn"] |= {"max_characters_per_token": 10}
    chosen["char_cnn"]["n_characters"] = 261  # in training without the row of padding
    tokens = SETTINGS[size]["batch_size"] * SETTINGS[size]["unroll_steps"] * steps
    return {
        **chosen,
        **SETTINGS[size],
        "bidirectional": True,
        "dropout": 0.1,
        "all_clip_norm_val": 10.0,
        "n_epochs": 1,
        "n_train_tokens": tokens,
        "n_tokens_vocab": n_words,
        "n_negative_samples_batch": min(8192, n_words // 2),
    }  # fmt: skip


def measure(text: Path, size: str, steps: int) -> dict[str, float]:
    """Tokens per second of both directions together, the median batch."""
    import tensorflow

    v1 = tensorflow.compat.v1
    v1.disable_v2_behavior()
    sys.modules["tensorflow"] = v1
    from bilm.data import BidirectionalLMDataset, UnicodeCharsVocabulary
    from bilm.training import train

    counts = Counter(text.read_text(encoding="utf-8").split())
    words = [word for word, count in counts.most_common() if count > 2]
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder) / "vocabulary.txt"
        vocabulary.write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n", encoding="utf-8")
        settings = training_options(size, len(words) + 3, steps)
        longest = settings["char_cnn"]["max_characters_per_token"]
        dataset = BidirectionalLMDataset(str(text), UnicodeCharsVocabulary(str(vocabulary), longest))
        batches = TimedBatches(dataset)
        sys.stdout = sys.stderr  # it prints its variables and losses
        train(settings, batches, 1, folder, folder)
        sys.stdout = sys.__stdout__
    spans = [after - before for before, after in zip(batches.times, batches.times[1:], strict=False)]
    tokens = settings["batch_size"] * settings["unroll_steps"]
    return {"tokens_per_second": tokens / statistics.median(spans[WARM_UP:])}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--size", choices=list(SETTINGS), default="small")
    parser.add_argument("--steps", type=int, default=6)
    given = parser.parse_args()
    print(json.dumps(measure(given.text, given.size, given.steps)))
