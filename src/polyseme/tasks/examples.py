"""What a task learns from and is asked: tokens, and what is right.

    tasks.data.tables, tasks.data.columns  ->  tasks.examples  ->  the tasks

An example has one sentence, or two for pairs; gold is a label, several labels, a tag a word, or a number.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyseme.errors import DataError
from polyseme.tasks.data.columns import NUMBER
from polyseme.tasks.data.tag_schemes import Span, split_tag
from polyseme.text.segment import words
from polyseme.text.segment.token import HAN

HAN_ALONE = re.compile(f"[{HAN}]+")
MOSTLY = 0.98  # of the Chinese tokens of a file that is cut into characters, single ones
Cut = Callable[[str], list[str]]  # a text to its tokens
Tokens = tuple[str, ...]


@dataclass(frozen=True)
class Example:
    """One thing to answer."""

    place: str  # file:line
    sentences: tuple[Tokens, ...]  # one, or two for pairs
    gold: Any = None  # what is right; None where it is not known
    marks: tuple[Span, ...] = ()  # of relations: the two entities
    scheme: str = "none"  # of tagging: how the file spells spans
    lines: tuple[int, ...] = ()  # of tagging: the line of each word
    columns: int | None = None  # of tagging: how many the file has; 0: word/tag lines

    @property
    def asks(self) -> bool:
        """Whether there is a token in it; a blank line of plain text has none."""
        return any(self.sentences)

    def labels(self) -> set[str]:
        """The labels of what is right, of tags that spell spans their types; numbers have none."""
        if isinstance(self.gold, str):
            return {self.gold}
        found = set(self.gold) if isinstance(self.gold, tuple) else set()
        return found if self.scheme == "none" else {split_tag(tag)[1] for tag in found} - {""}


def cutter(segment: str) -> Cut:
    """How raw text becomes tokens."""
    return lambda text: words(text, segment)


def checked(tokens: Sequence[str], place: str, most: int, *, cut: bool = False) -> Tokens:
    """The tokens of a sentence; an empty one is refused, one that is too long is cut or refused."""
    if not tokens:
        raise DataError(f"{place}: the text is empty. Delete the line, or give it a text.")
    wrong = [token for token in tokens if not isinstance(token, str) or not token]
    if wrong:
        raise DataError(f"{place}: a token is {wrong[0]!r:.40}, expected text that is not empty.")
    if len(tokens) > most and not cut:
        raise DataError(
            f"{place}: a sentence of {len(tokens):,} tokens, more than data.max_tokens ({most:,}). "
            "Split it, or raise data.max_tokens."
        )
    return tuple(tokens[:most])


def in_characters(examples: Sequence[Example]) -> bool:
    """Whether sentences are Chinese, for the greater part, and cut into characters."""
    tokens = [token for example in examples for sentence in example.sentences for token in sentence]
    chinese = [token for token in tokens if HAN_ALONE.fullmatch(token)]
    single = sum(len(token) == 1 for token in chinese)
    return 2 * len(chinese) > len(tokens) and single >= MOSTLY * len(chinese)


def split(examples: list[Example], share: float, seed: int) -> tuple[list[Example], list[Example]]:
    """Training and dev part of one file: `share` of it, at least one, for dev, drawn with a seed.

    Of each label an example stays in training; where that leaves nothing for dev, the file is refused.
    """
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)  # noqa: S311
    left = Counter(label for example in examples for label in example.labels())
    wanted, held = max(1, round(share * len(examples))), set[int]()
    for number in order:
        labels = examples[number].labels()
        if len(held) < wanted and all(left[label] > 1 for label in labels):
            held.add(number)
            left.subtract(labels)
    if not held:
        raise DataError(
            f"{examples[0].place.rpartition(':')[0]}: no example can be held out, as each is the only one of "
            "a label. Give more examples, or a file of its own with --dev."
        )
    train = [example for number, example in enumerate(examples) if number not in held]
    return train, [examples[number] for number in sorted(held)]


def part(examples: list[Example], share: float, seed: int) -> list[Example]:
    """A share of the examples, drawn with a seed; smaller shares of a seed lie within larger ones."""
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)  # noqa: S311
    return [examples[number] for number in sorted(order[: max(1, round(share * len(examples)))])]


def without_gold(example: Example) -> Example:
    """The question alone."""
    return replace(example, gold=None)


def label_set(golds: Iterable[str]) -> tuple[str, ...]:
    """All labels, numbers by value and names by letter."""
    found = set(golds)
    if all(NUMBER.fullmatch(label) for label in found):
        return tuple(sorted(found, key=lambda label: (int(label), label)))
    return tuple(sorted(found))


def check_labels(examples: Sequence[Example], known: Sequence[str], labels_of: Callable[[Any], Any]) -> None:
    """Refuse a label that training never saw."""
    names = set(known)
    for example in examples:
        for label in labels_of(example.gold):
            if label not in names:
                shown = ", ".join(known[:8]) + (" …" if len(known) > 8 else "")
                raise DataError(
                    f"{example.place}: the label {label!r} is not in the training data ({shown}). "
                    "Is it misspelt, or is it another task's file?"
                )
