"""Score translations with sacrebleu: BLEU and chrF, with the signatures that make them comparable.

    targets and generated texts  ->  tasks.translate.scores  ->  tasks.translate.task

Metrics are between 0 and 1, as everywhere in Polyseme; the notes have sacrebleu's own lines, up to 100.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from polyseme.errors import require
from polyseme.tasks.metrics import Scores
from polyseme.text.segment.token import HAN

_HAN = re.compile(f"[{HAN}]")
_LETTER = re.compile(r"[^\W\d_]")


def load_sacrebleu() -> Any:
    """The metrics of sacrebleu, or an error that names the extra."""
    return require("sacrebleu.metrics", "translate", "Scoring translations")


def choose_tokenizer(chosen: str, targets: Sequence[str], segment: str) -> str:
    """The tokenizer of sacrebleu: "zh" for Chinese targets, "none" for those that are tokenised."""
    if chosen != "auto":
        return chosen
    text = " ".join(targets[:1000])
    if 2 * len(_HAN.findall(text)) > len(_LETTER.findall(text)):
        return "zh"
    return "none" if segment == "split" else "13a"


def score_translations(targets: Sequence[str], predicted: Sequence[str], tokenizer: str) -> Scores:
    """BLEU with this tokenizer, and chrF; training maximises BLEU, or chrF if all targets are too short."""
    longest = max(len(text) if tokenizer in ("zh", "char") else len(text.split()) for text in targets)
    library = load_sacrebleu()
    metrics, notes = {}, []
    for name, metric in (("BLEU", library.BLEU(tokenize=tokenizer, force=True)), ("chrF", library.CHRF())):
        score = metric.corpus_score(list(predicted), [list(targets)])
        metrics[name] = float(score.score) / 100
        notes.append(f"{score} [{metric.get_signature()}]")
    # Without a run of four words BLEU is 0, whatever the texts.
    return Scores("BLEU" if longest >= 4 else "chrF", metrics, notes=tuple(notes))
