"""ROUGE-1, ROUGE-2 and ROUGE-L, for English and for languages without spaces.

    summaries and predictions  ->  tasks.summarise.rouge  ->  tasks.summarise.task, benchmarks

Words are runs of letters and digits in lower case; each Han character is a word of its own. On ASCII text the
scores are those of Google's rouge-score without stemming, which knows no other letters. Each text counts the
same: scores are means over texts, between 0 and 1.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from polyseme.tasks.metrics import Scores, compute_precision_recall_f1
from polyseme.text.segment.token import HAN

_WORD = re.compile(rf"[{HAN}]|[^\W_{HAN}]+")


def split_rouge_words(text: str) -> list[str]:
    """The words of a text, as ROUGE counts them."""
    return _WORD.findall(text.lower())


def count_overlap(target: Sequence[str], predicted: Sequence[str], size: int) -> float:
    """F1 of the runs of `size` words."""
    wanted, chosen = (
        Counter(tuple(words[start : start + size]) for start in range(len(words) - size + 1))
        for words in (target, predicted)
    )
    return compute_precision_recall_f1((wanted & chosen).total(), chosen.total(), wanted.total())[2]


def count_subsequence(target: Sequence[str], predicted: Sequence[str]) -> float:
    """F1 of the longest common subsequence; memory is linear in the length."""
    lengths = [0] * (len(predicted) + 1)
    for word in target:
        diagonal = 0
        for position, other in enumerate(predicted, start=1):
            above = lengths[position]
            lengths[position] = diagonal + 1 if word == other else max(above, lengths[position - 1])
            diagonal = above
    return compute_precision_recall_f1(lengths[-1], len(predicted), len(target))[2]


def score_rouge(targets: Sequence[str], predicted: Sequence[str]) -> Scores:
    """The mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L; training maximises the last one."""
    totals = {"ROUGE-1": 0.0, "ROUGE-2": 0.0, "ROUGE-L": 0.0}
    for target, prediction in zip(targets, predicted, strict=True):
        wanted, chosen = split_rouge_words(target), split_rouge_words(prediction)
        totals["ROUGE-1"] += count_overlap(wanted, chosen, 1)
        totals["ROUGE-2"] += count_overlap(wanted, chosen, 2)
        totals["ROUGE-L"] += count_subsequence(wanted, chosen)
    return Scores("ROUGE-L", {name: total / max(1, len(targets)) for name, total in totals.items()})
