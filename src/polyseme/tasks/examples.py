"""Functions over examples of any task: tokens with offsets, empty examples, held-out sets, samples.

    text.segment  ->  tasks.examples  ->  the tasks, tasks.experiment

Tokens keep their offsets in the raw text, if there is one, from the source to the prediction.
"""

from __future__ import annotations

import hashlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from polyseme.errors import DataError
from polyseme.language.detokenize import join_tokens
from polyseme.text.segment import Token, WordList, split_sentences, tokenize

if TYPE_CHECKING:
    from polyseme.tasks.protocol import Example

logger = logging.getLogger(__name__)
Tokens = tuple[str, ...]
Offsets = tuple[int, int]  # start and stop in characters of the raw text
AnyExample = TypeVar("AnyExample", bound="Example")


@dataclass(frozen=True)
class Segmenter:
    """How raw text becomes tokens with offsets; `name` is a segmentation of `text.segment`."""

    name: str
    word_list: WordList | None = None  # of the ELMo

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a text, as one sentence."""
        return tokenize(text, self.name, self.word_list)

    def sentences(self, text: str) -> list[list[Token]]:
        """The tokens of a longer text, sentence by sentence."""
        return split_sentences(text, self.name, self.word_list)


@dataclass(frozen=True)
class TokenizedText:
    """The tokens of a text, with their offsets if the raw text is known."""

    tokens: Tokens
    text: str | None = None
    offsets: tuple[Offsets, ...] = ()  # of each token in `text`; empty if that is None

    def truncate(self, max_tokens: int) -> TokenizedText:
        """The text with its first tokens only."""
        if len(self.tokens) <= max_tokens:
            return self
        return TokenizedText(self.tokens[:max_tokens], self.text, self.offsets[:max_tokens])

    def span_text(self, start: int, stop: int) -> str:
        """The text of the tokens from `start` to `stop`: of the raw text, or joined as people write."""
        if self.text is None or stop <= start:
            return join_tokens(self.tokens[start:stop])
        return self.text[self.offsets[start][0] : self.offsets[stop - 1][1]]

    def gap_before(self, position: int) -> str:
        """The white space before a token: that of the raw text, or one space; none before the first."""
        if not position:
            return ""
        if self.text is None:
            return " "
        return self.text[self.offsets[position - 1][1] : self.offsets[position][0]]

    def span_offsets(self, start: int, stop: int) -> Offsets | None:
        """Where the tokens from `start` to `stop` are in the raw text; None if that is not known."""
        if self.text is None or stop <= start:
            return None
        return self.offsets[start][0], self.offsets[stop - 1][1]


def tokenize_text(
    text: str | Sequence[str], segmenter: Segmenter, location: str, max_tokens: int | None = None
) -> TokenizedText:
    """Tokenize a raw text, or check a list of tokens.

    Raises:
        DataError: If a token is not a string or is empty, or there are more than `max_tokens`.

    """
    if isinstance(text, str):
        segmented = segmenter.tokens(text)
        tokens: Sequence[str] = [token.text for token in segmented]
        offsets = tuple((token.start, token.end) for token in segmented)
    else:
        tokens, offsets = text, ()
    check_tokens(tokens, location, max_tokens)
    return TokenizedText(tuple(tokens), text if isinstance(text, str) else None, offsets)


def check_tokens(tokens: Sequence[Any], location: str, max_tokens: int | None) -> None:
    """Raise `DataError` if a token is not a string or is empty, or there are more than `max_tokens`."""
    wrong = [token for token in tokens if not isinstance(token, str) or not token]
    if wrong:
        raise DataError(f"{location}: a token is {wrong[0]!r:.40}, expected text that is not empty.")
    if max_tokens is not None and len(tokens) > max_tokens:
        raise DataError(
            f"{location}: a sentence of {len(tokens):,} tokens, more than data.max_tokens ({max_tokens:,}). "
            "Split it, or raise data.max_tokens."
        )


def is_empty(example: Example) -> bool:
    """Whether an example lacks text: a blank line, or a pair with an empty text."""
    return not all(example.sentences)


def drop_empty(
    examples: Sequence[AnyExample], source: str, empty: Literal["skip", "error"]
) -> list[AnyExample]:
    """The examples with text; the others are counted in one warning, or refused (`data.empty`)."""
    without = [example for example in examples if is_empty(example)]
    if not without:
        return list(examples)
    if empty == "error":
        raise DataError(f"{without[0].location}: the text is empty. Delete the row, or give it a text.")
    logger.warning(
        f"{source}: {len(without):,} of {len(examples):,} examples have no text and were skipped; the first "
        f'is at {without[0].location}. Set data.empty="error" to refuse them.'
    )
    return [example for example in examples if not is_empty(example)]


def count_tokens(examples: Iterable[Example]) -> int:
    """The number of tokens of all examples."""
    return sum(len(sentence) for example in examples for sentence in example.sentences)


def hold_out(
    examples: Sequence[AnyExample],
    labels: Callable[[AnyExample], Collection[str]],
    share: float,
    seed: int,
) -> tuple[list[AnyExample], list[AnyExample]]:
    """Split examples into a training and a dev set: `share` of them, at least one, for dev.

    Every label keeps an example in the training set. Examples with the same `group`, such as questions about
    one article, stay together, unless there is only one group.

    Args:
        examples: All examples.
        labels: The distinct labels of an example.
        share: The share of the dev set.
        seed: What the choice is drawn with.

    Raises:
        DataError: If every example is the only one of a label.

    """
    groups: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(getattr(example, "group", "") or f" {number}", []).append(number)
    order = list(groups.values()) if len(groups) > 1 else [[number] for number in range(len(examples))]
    random.Random(seed).shuffle(order)  # noqa: S311
    order.sort(key=lambda numbers: max(0, len(numbers) - max(1, share * len(examples))))  # too large: last
    remaining = Counter(label for example in examples for label in labels(example))
    wanted, chosen = max(1, round(share * len(examples))), set[int]()
    for numbers in order:
        its_labels = Counter(label for number in numbers for label in labels(examples[number]))
        fits = not chosen or len(chosen) + len(numbers) <= wanted
        if fits and all(remaining[label] > count for label, count in its_labels.items()):
            chosen.update(numbers)
            remaining.subtract(its_labels)
    if not chosen:
        raise DataError(
            f"{name_source(examples)}: no example can be held out, as each is the only one of a label. "
            "Add examples, or pass a separate set as `dev`."
        )
    train = [example for number, example in enumerate(examples) if number not in chosen]
    return train, [examples[number] for number in sorted(chosen)]


def sample_examples(examples: list[AnyExample], share: float, seed: int) -> list[AnyExample]:
    """A share of the examples, drawn with a seed; larger shares include smaller ones of the same seed."""
    order = list(range(len(examples)))
    random.Random(seed).shuffle(order)  # noqa: S311
    return [examples[number] for number in sorted(order[: max(1, round(share * len(examples)))])]


def name_source(examples: Sequence[Example]) -> str:
    """The name of the source that examples come from, for messages."""
    return examples[0].location.rpartition(":")[0] if examples else "The training data"


def hash_examples(parts: Iterable[Iterable[Example]]) -> str:
    """A hash of the values of all examples of each part, without their locations."""
    hashed = hashlib.blake2b(digest_size=16)
    for examples in parts:
        hashed.update(b"part")
        for example in examples:
            names = (field.name for field in fields(example))  # type: ignore[arg-type]  # a dataclass
            values = [getattr(example, name) for name in names if name != "location"]
            hashed.update(repr(values).encode())
    return hashed.hexdigest()
