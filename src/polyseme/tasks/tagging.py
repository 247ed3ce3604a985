"""Tokens to tags: names, parts of speech, chunks; a biLSTM-CRF.

    tasks.nn.encoder, tasks.nn.crf, tasks.data.tag_schemes  ->  tasks.tagging

Tags that spell spans are turned to BIOES for the model and back to the scheme of the file.
B sentences, T tokens, K tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.errors import DataError, UsageError
from polyseme.language.detokenize import join
from polyseme.tasks.data.columns import check_width, read_tagged, tagged_kind, width_of
from polyseme.tasks.data.tag_schemes import allowed, fault, guess_scheme, spans_of, split_tag, write_spans
from polyseme.tasks.examples import Cut, Example, checked, in_characters, label_set
from polyseme.tasks.metrics import Scores, classes, span_scores
from polyseme.tasks.nn.crf import Crf
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, TokenFeatures, padded
from polyseme.tasks.protocol import Answer, Dense, class_weights
from polyseme.tasks.settings import TaskConfig
from polyseme.text.reading import read_lines

IGNORED = -100  # of the cross entropy: what stands behind a sentence


class Tagging:
    """Implements `task.Task`."""

    def __init__(self, config: TaskConfig, labels: tuple[str, ...]) -> None:
        self.config, self.labels = config, labels
        self._ids = {label: number for number, label in enumerate(labels)}
        self.spans = config.data.scheme != "none"

    @staticmethod
    def read(path: str, config: TaskConfig, cut: Cut, *, gold: bool = True) -> list[Example]:
        """Columns, CoNLL-U or word/tag; gold are the tags, in BIOES where they spell spans."""
        data, text = config.data, list(read_lines(path))
        kind = tagged_kind(path, text, data.format)
        if not gold and kind == "columns" and data.columns == 0:
            kind = "slashed"  # as in training; here without the tags
        width = width_of(text, kind)
        if not gold and kind == "columns":
            check_width(path, width, data.columns)
        sentences = list(read_tagged(text, kind, data.word, data.tag, tags=gold))
        scheme: str = data.scheme
        if gold and scheme == "auto":
            scheme = guess_scheme([sentence.tags for sentence in sentences])
        examples = []
        for words, tags, places in sentences:
            tokens = checked(words, places[0], data.max_tokens)
            lines = tuple(int(place.rpartition(":")[2]) for place in places)
            wanted: tuple[str, ...] | None = tuple(tags) if gold else None
            if gold and scheme != "none":
                wrong = fault(tags, scheme)
                if wrong is not None:
                    raise DataError(_advice(places[min(wrong[0], len(places) - 1)], wrong[1], scheme))
                wanted = tuple(write_spans(spans_of(tags), len(tags), "bioes"))
            examples.append(Example(places[0], (tokens,), wanted, (), scheme, lines, width))
        return examples

    @staticmethod
    def settled(config: TaskConfig, examples: Sequence[Example]) -> TaskConfig:
        """The settings with what the training file says of those that are left open."""
        found: dict[str, Any] = {"scheme": examples[0].scheme, "columns": examples[0].columns}
        if config.data.segment is None and in_characters(examples):
            found["segment"] = "zh-char"
        return config.model_copy(update={"data": config.data.model_copy(update=found)})

    @staticmethod
    def learn(examples: Sequence[Example], config: TaskConfig) -> tuple[str, ...]:
        """All tags; of spans all letters of each type, so that every span can be said."""
        found = label_set(tag for example in examples for tag in example.gold)
        if len(found) < 2:
            raise DataError(
                f"{examples[0].place if examples else 'The training file'}: only one tag, "
                f"{', '.join(found) or 'none'}. There is nothing to tell apart."
            )
        if config.data.scheme == "none":
            return found
        types = sorted({split_tag(tag)[1] for tag in found} - {""})
        return ("O", *(f"{letter}-{kind}" for kind in types for letter in "BIES"))

    def check(self, examples: Sequence[Example]) -> None:
        """Refuse a tag that training never saw."""
        known = set(self.labels)
        for example in examples:
            for tag, line in zip(example.gold, example.lines, strict=True):
                if tag not in known:
                    name = f"type {split_tag(tag)[1]!r}" if self.spans else f"tag {tag!r}"
                    raise DataError(
                        f"{example.place.rpartition(':')[0]}:{line}: the {name} is not in the training data. "
                        "Is it misspelt, or is it another task's file?"
                    )

    def ask(self, given: Any, cut: Cut) -> Example:
        """A text, or its tokens."""
        if not isinstance(given, str | list | tuple):
            raise UsageError(f"A sentence to tag is a string or a list of tokens, not {given!r:.60}.")
        tokens = cut(given) if isinstance(given, str) else list(given)
        return Example("the text", (checked(tokens, "the text", self.config.data.max_tokens),))

    def network(self, inputs: Featurizer, examples: Sequence[Example]) -> nn.Module:
        """Tokens, encoder, a dense layer, and the chain."""
        golds = [tag for example in examples for tag in example.gold]
        weights = class_weights(self.config, self.labels, golds)
        crf = self._chain() if self.config.head.crf else None
        return Tagger(inputs, self.config, weights, crf)

    def _chain(self) -> Crf:
        """Which tags may follow which: all, or what BIOES allows."""
        count = len(self.labels)
        if not self.spans:
            free = torch.ones(count, count, dtype=torch.bool)
            return Crf(free, free[0], free[0])
        parts = [split_tag(label) for label in self.labels]
        pairs = torch.tensor([[allowed(*before, *after) for after in parts] for before in parts])
        begins = torch.tensor([allowed("O", "", *after) for after in parts])
        ends = torch.tensor([allowed(*before, "O", "") for before in parts])
        return Crf(pairs, begins, ends)

    def loss(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> Tensor:
        """The negative log likelihood of the tags, a token."""
        tagger = cast(Tagger, network)
        numbers = [[self._ids[tag] for tag in example.gold] for example in examples]
        targets = padded(numbers, outputs.shape[1], IGNORED).to(outputs.device)
        if tagger.crf is None:
            return F.cross_entropy(outputs.flatten(0, 1), targets.flatten(), tagger.weights)
        lengths = (targets != IGNORED).sum(dim=1)
        return tagger.crf.loss(outputs, targets.clamp(min=0), lengths).sum() / lengths.sum()

    def answers(self, outputs: Tensor, examples: Sequence[Example], network: nn.Module) -> list[Answer]:
        """The best sequence of tags, and the spans it spells."""
        crf = cast(Tagger, network).crf
        lengths = torch.tensor([len(example.sentences[0]) for example in examples], device=outputs.device)
        if crf is None:
            shares = outputs.softmax(dim=2).cpu()
            paths = [row[:length].argmax(dim=1).tolist() for row, length in zip(shares, lengths, strict=True)]
        else:
            shares, paths = crf.marginals(outputs, lengths).cpu(), crf.best(outputs, lengths)
        return [
            self._answer(example, path, row)
            for example, path, row in zip(examples, paths, shares, strict=True)
        ]

    def _answer(self, example: Example, path: list[int], shares: Tensor) -> Answer:
        tags = [self.labels[number] for number in path]
        own = [float(shares[place, number]) for place, number in enumerate(path)]
        if not self.spans:
            return Answer(example.sentences, tags, min(own), by_token=tuple(own))
        tokens = example.sentences[0]
        spans = spans_of(tags)
        said = tuple(
            {
                "label": span.label,
                "start": span.start,
                "stop": span.stop,
                "text": join(tokens[span.start : span.stop]),
                "probability": round(min(own[span.start : span.stop]), 6),
            }
            for span in spans
        )
        scheme = example.scheme if example.scheme != "none" else self.config.data.scheme
        written = write_spans(spans, len(tags), scheme)
        return Answer(example.sentences, written, min(own), spans=said, by_token=tuple(own))

    def score(self, examples: Sequence[Example], answers: Sequence[Answer]) -> Scores:
        """Span F1 as conlleval counts it, or accuracy."""
        if self.spans:
            gold = [spans_of(example.gold) for example in examples]
            return span_scores(gold, [spans_of(answer.answer) for answer in answers])
        gold_tags = [tag for example in examples for tag in example.gold]
        return classes(gold_tags, [tag for answer in answers for tag in answer.answer], self.labels)


def _advice(place: str, what: str, scheme: str) -> str:
    """What is said of a tag that breaks the scheme of its file."""
    return (
        f"{place}: {what} in {scheme.upper()}. Mend the line; or set data.scheme to iob1, where spans may "
        "begin with I, or to none, if tags are no spans."
    )


class Tagger(nn.Module):
    """Tokens to K outputs each; the chain over them, if there is one."""

    weights: Tensor

    def __init__(self, inputs: Featurizer, config: TaskConfig, weights: Tensor, crf: Crf | None) -> None:
        super().__init__()
        self.stack = TokenStack(inputs, config.encoder)
        self.dense = Dense(self.stack.size, config.head.hidden, len(weights), config.head.dropout)
        self.crf = crf
        self.register_buffer("weights", weights)

    def forward(self, sides: Sequence[TokenFeatures], examples: Sequence[Example]) -> Tensor:
        """A batch to (B, T, K)."""
        return self.dense(self.stack(sides[0]))  # type: ignore[no-any-return]
