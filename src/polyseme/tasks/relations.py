"""Two marked entities in a sentence to the relation between them.

    tasks.nn.encoder, tasks.nn.pooling  ->  tasks.relations

Entities are marked in the text: <e1>fire</e1> … <e2>fuel</e2>. Files: SemEval-2010 Task 8's, or rows with
such a text and a label. B sentences, T tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.errors import DataError, UsageError
from polyseme.model.tokens import make_embedding
from polyseme.tasks.classification import labels_of
from polyseme.tasks.data.tables import TableRow, kind_of, read_rows
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.examples import Cut, Example, check_labels, checked, label_set
from polyseme.tasks.metrics import Scores, classes, directed
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures
from polyseme.tasks.nn.pooling import Attention, maximum
from polyseme.tasks.protocol import Answer, Dense, class_weights, most_probable
from polyseme.tasks.settings import TaskConfig
from polyseme.text.reading import read_lines

MARKS = re.compile(r"<(/?)(e[12])>")
NUMBERED = re.compile(r'(\d+)\t"?(.*?)"?\s*')
COMMENT = "Comment:"
FARTHEST = 30  # tokens; distances beyond are alike


class Relations:
    """Implements `task.Task`."""

    def __init__(self, config: TaskConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self._ids = {label: number for number, label in enumerate(labels)}

    @staticmethod
    def read(path: str, config: TaskConfig, cut: Cut, *, gold: bool = True) -> list[Example]:
        """SemEval's file, or rows whose text marks <e1> and <e2>."""
        data = config.data
        kind = "semeval" if data.format == "semeval" else kind_of(path, data.format)
        if kind in ("semeval", "lines"):
            rows: Iterator[TableRow] = _semeval(path, data.text, data.label, gold=gold)
        else:
            rows = read_rows(path, kind, data.text, data.label)
        found = []
        for row in rows:
            label = labels_of(row, config)[0] if gold else None
            if label in data.skip:
                continue
            tokens, marks = cut_marked(row.text(data.text), cut, row.place)
            found.append(Example(row.place, (checked(tokens, row.place, data.max_tokens),), label, marks))
        return found

    @staticmethod
    def learn(examples: Sequence[Example], config: TaskConfig) -> tuple[str, ...]:
        """All relations; one alone cannot be learned."""
        labels = label_set(example.gold for example in examples)
        if len(labels) < 2:
            raise DataError(
                f"{examples[0].place if examples else 'The training file'}: only one relation. "
                "There is nothing to tell apart."
            )
        return labels

    def check(self, examples: Sequence[Example]) -> None:
        """Refuse a relation that training never saw."""
        check_labels(examples, self.labels, lambda gold: (gold,))

    def ask(self, given: Any, cut: Cut) -> Example:
        """A text with its marks."""
        if not isinstance(given, str):
            raise UsageError(f"A text with <e1>…</e1> and <e2>…</e2> is wanted, not {given!r:.60}.")
        tokens, marks = cut_marked(given, cut, "the text")
        return Example("the text", (checked(tokens, "the text", self.config.data.max_tokens),), None, marks)

    def network(self, inputs: Featurizer, examples: Sequence[Example]) -> nn.Module:
        """Tokens with their distances to both entities, encoder, pooled entities and sentence."""
        golds = [example.gold for example in examples]
        return RelationNetwork(inputs, self.config, class_weights(self.config, self.labels, golds))

    def loss(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> Tensor:
        """Cross entropy."""
        targets = torch.tensor([self._ids[example.gold] for example in examples], device=outputs.device)
        return F.cross_entropy(outputs, targets, cast(RelationNetwork, network).weights)

    def answers(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> list[Answer]:
        """The most probable relation."""
        return most_probable(outputs, examples, self.labels)

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """SemEval's macro F1 without Other, and the confusion."""
        gold, guess = [example.gold for example in examples], [answer.answer for answer in answers]
        found, plain = directed(gold, guess), classes(gold, guess, self.labels)
        return Scores(found.main, found.figures, found.rows, plain.confusion, plain.labels)


def cut_marked(text: str, cut: Cut, place: str) -> tuple[list[str], tuple[Span, ...]]:
    """The tokens of a text with marks, and where its two entities stand."""
    tokens: list[str] = []
    starts: dict[str, int] = {}
    spans: dict[str, Span] = {}
    end = 0
    for mark in MARKS.finditer(text):
        tokens += cut(text[end : mark.start()])
        end = mark.end()
        closing, name = mark.groups()
        if not closing:
            starts[name] = len(tokens)
        elif name in starts and len(tokens) > starts[name]:
            spans[name] = Span(name, starts[name], len(tokens))
    tokens += cut(text[end:])
    if set(spans) != {"e1", "e2"} or len(MARKS.findall(text)) != 4:
        raise DataError(f"{place}: expected one <e1>…</e1> and one <e2>…</e2>, each with a word in it.")
    return tokens, (spans["e1"], spans["e2"])


def _semeval(path: str, text: str, label: str, *, gold: bool) -> Iterator[TableRow]:
    """Blocks of a numbered, quoted sentence, its relation, a comment; a number begins the next one."""
    for block in _blocks(path):
        (place, first), *rest = block
        found = NUMBERED.fullmatch(first)
        notes = [number for number, (_, line) in enumerate(rest) if line.startswith(COMMENT)]
        if found is None or (gold and (not rest or notes[:1] == [0])):
            raise DataError(
                f"{place}: expected a number, a tab and a sentence in quotation marks, and its relation on "
                "the next line."
            )
        if len(rest) - bool(notes) > 1:
            raise DataError(
                f"{rest[1][0]}: expected {COMMENT} or the next numbered sentence behind a relation."
            )
        known = {label: rest[0][1]} if rest and notes[:1] != [0] else {}
        yield TableRow(place, {text: found[2], **known})


def _blocks(path: str) -> Iterator[list[tuple[str, str]]]:
    """The lines of each sentence with their places; a blank line or the next number ends them."""
    block: list[tuple[str, str]] = []
    for line in read_lines(path):
        text = line.text.strip()
        if block and (not text or NUMBERED.fullmatch(text)):
            yield block
            block = []
        if text:
            block.append((f"{line.source}:{line.number}", text))
    if block:
        yield block


class RelationNetwork(nn.Module):
    """Tokens, positions, encoder; both entities and the sentence pooled; K outputs."""

    weights: Tensor

    def __init__(self, inputs: Featurizer, config: TaskConfig, weights: Tensor) -> None:
        super().__init__()
        size = config.head.positions
        self.positions = nn.ModuleList(
            make_embedding(2 * FARTHEST + 2, size) for _ in range(2 if size else 0)
        )
        self.stack = TokenStack(inputs, config.encoder, 2 * size)
        self.attention = Attention(self.stack.size)
        self.dense = Dense(3 * self.stack.size, config.head.hidden, len(weights), config.head.dropout)
        self.register_buffer("weights", weights)

    def forward(self, sides: Sequence[TokenFeatures], examples: Sequence[Example]) -> Tensor:
        """A batch to (B, K)."""
        (side,) = sides
        mask = side.mask
        times = torch.arange(mask.shape[1], device=mask.device)[None]  # (1, T)
        inside, distances = [], []
        for number in range(2):
            spans = torch.tensor([(e.marks[number].start, e.marks[number].stop) for e in examples])
            start, stop = spans.to(mask.device)[:, :, None].unbind(dim=1)  # (B, 1)
            inside.append((times >= start) & (times < stop) & mask)
            away = torch.where(times < start, times - start, (times - stop + 1).clamp(min=0))
            distances.append(away.clamp(-FARTHEST, FARTHEST) + FARTHEST + 1)
        more = [table(away) for table, away in zip(self.positions, distances, strict=False)]
        outputs = self.stack(side, torch.cat(more, dim=2) if more else None)
        pooled = [*(maximum(outputs, where) for where in inside), self.attention(outputs, mask)]
        return self.dense(torch.cat(pooled, dim=1))  # type: ignore[no-any-return]
