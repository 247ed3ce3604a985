"""Score answers by exact match (EM) and F1, as the official programs of SQuAD and CMRC 2018 do.

    labelled and predicted answers  ->  tasks.answers.scores  ->  tasks.answers.task

English: lower case, without punctuation and the articles; F1 of words. Where the question is in Chinese (or
Japanese): lower case, without CMRC's list of punctuation; F1 of the longest common substring, counted in
characters and in words of other scripts. Several labels: the best one counts. A question without an answer is
right if none is predicted, as in SQuAD 2.0.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from polyseme.tasks.metrics import Scores, compute_precision_recall_f1

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_HAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_PIECE = re.compile(rf"{_HAN.pattern}|(?:(?!{_HAN.pattern})[^\W_])+|\S")
CMRC_PUNCTUATION = frozenset("-:_*^/\\~`+=，。：？！“”；’《》…·、「」（）－～『』")


def is_chinese(text: str) -> bool:
    """Whether at least a third of the letters of a text are Han characters or kana."""
    letters = [letter for letter in text if letter.isalpha()]
    return 3 * sum(map(bool, map(_HAN.match, letters))) >= len(letters) > 0


def normalize_english(answer: str) -> str:
    """An answer as SQuAD compares it."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def normalize_chinese(answer: str) -> str:
    """An answer as CMRC compares it."""
    return "".join(letter for letter in answer.lower().strip() if letter not in CMRC_PUNCTUATION)


def compare_answers(label: str, predicted: str, *, chinese: bool) -> tuple[float, float]:
    """EM and F1 of a predicted answer; an empty one means that there is none."""
    normalize = normalize_chinese if chinese else normalize_english
    expected, guessed = normalize(label), normalize(predicted)
    exact = float(expected == guessed)
    if not expected or not guessed:
        return exact, exact
    if chinese:
        pieces = _PIECE.findall(expected), _PIECE.findall(guessed)
        shared = measure_common_run(*pieces)
    else:
        pieces = expected.split(), guessed.split()
        shared = (Counter(pieces[0]) & Counter(pieces[1])).total()
    return exact, compute_precision_recall_f1(shared, len(pieces[1]), len(pieces[0]))[2]


def measure_common_run(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest sequence of neighbours that both have."""
    best, before = 0, [0] * (len(second) + 1)
    for piece in first:
        row = [0]
        for position, other in enumerate(second):
            row.append(before[position] + 1 if piece == other else 0)
        best, before = max(best, *row), row
    return best


def score_answers(
    questions: Sequence[str], labels: Sequence[Sequence[str]], predicted: Sequence[str | None]
) -> Scores:
    """Score answers.

    Args:
        questions: The questions, which tell the language.
        labels: Of each question all labelled answers; none if its text has none.
        predicted: The predicted answers; None for "no answer".

    """
    pairs = [
        score_answer(question, answers, prediction)
        for question, answers, prediction in zip(questions, labels, predicted, strict=True)
    ]
    metrics = {"F1": _average([f1 for _, f1 in pairs]), "EM": _average([exact for exact, _ in pairs])}
    if not all(labels):
        for name, known in (("F1 with an answer", True), ("accuracy without an answer", False)):
            values = [f1 for (_, f1), answers in zip(pairs, labels, strict=True) if bool(answers) == known]
            if values:
                metrics[name] = _average(values)
    return Scores("F1", metrics)


def score_answer(question: str, labels: Sequence[str], predicted: str | None) -> tuple[float, float]:
    """EM and F1 of one prediction: those of the best label."""
    chinese = is_chinese(question)
    values = [compare_answers(label, predicted or "", chinese=chinese) for label in labels or ("",)]
    return max(exact for exact, _ in values), max(f1 for _, f1 in values)


def _average(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))
