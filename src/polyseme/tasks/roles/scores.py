"""Score roles as the CoNLL-2005 scorer does.

    labelled and predicted frames  ->  tasks.roles.scores  ->  tasks.roles.task

An argument is right if its predicate, its role and all its parts are. Parts labelled C-ARG1 continue the ARG1
before them, if there is one. Predicates themselves (V) do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.metrics import Scores, compute_precision_recall_f1, count_row
from polyseme.tasks.roles.example import PREDICATE

CONTINUES = "C-"
Argument = tuple[str, tuple[tuple[int, int], ...]]  # role and parts


def join_parts(spans: Iterable[Span]) -> set[Argument]:
    """The arguments of a predicate: parts that continue a role are joined, V is left out."""
    arguments: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}
    for label, start, stop in sorted(spans, key=lambda span: span.start):
        role = label.removeprefix(CONTINUES)
        if label != role and role in latest:
            latest[role].append((start, stop))
            continue
        latest[role] = [(start, stop)]
        arguments.append((role, latest[role]))
    return {(role, tuple(parts)) for role, parts in arguments if role != PREDICATE}


Frames = Mapping[int, Sequence[Span]]  # spans by predicate


def score_roles(labels: Sequence[Frames], predicted: Sequence[Frames]) -> Scores:
    """Score frames: F1 of arguments, F1 of predicates, and each role.

    Args:
        labels: Of each sentence, the labelled spans of each predicate.
        predicted: The same, predicted; a predicate that is missing has lost its arguments.

    """
    correct, guessed, actual = Counter[str](), Counter[str](), Counter[str]()
    predicates = Counter[str]()
    for wanted, chosen in zip(labels, predicted, strict=True):
        predicates.update(correct=len(wanted.keys() & chosen.keys()), guessed=len(chosen), actual=len(wanted))
        for predicate in wanted.keys() | chosen.keys():
            real, guesses = (join_parts(frames.get(predicate, ())) for frames in (wanted, chosen))
            correct.update(role for role, _ in real & guesses)
            guessed.update(role for role, _ in guesses)
            actual.update(role for role, _ in real)
    precision, recall, f1 = compute_precision_recall_f1(correct.total(), guessed.total(), actual.total())
    metrics = {"F1": f1, "precision": precision, "recall": recall}
    counts = (predicates["correct"], predicates["guessed"], predicates["actual"])
    if len(set(counts)) > 1:  # they were not given
        metrics["predicate F1"] = compute_precision_recall_f1(*counts)[2]
    rows = [count_row(role, correct, guessed, actual) for role in sorted(guessed.keys() | actual.keys())]
    return Scores("F1", metrics, rows)
