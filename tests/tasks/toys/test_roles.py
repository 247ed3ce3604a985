"""A toy task in the real training loop: tag the arguments of one marked predicate of a sentence."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import polyseme
from polyseme.elmo import Elmo
from polyseme.io.html import Cell
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.examples import Segmenter, TokenizedText, Tokens
from polyseme.tasks.labels import check_labels, sort_labels
from polyseme.tasks.metrics import Scores, score_classes
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, pad_rows
from polyseme.tasks.settings import EncoderSettings, TaskSettings

NOUNS, VERBS = ("dog", "cat", "man", "bird"), ("saw", "bit", "met")


class RolesSettings(TaskSettings):
    """Settings of the toy."""

    encoder: EncoderSettings = EncoderSettings(size=16)


@dataclass(frozen=True)
class RolesExample:
    """A sentence, the position of its predicate, and a role for each token."""

    location: str
    text: TokenizedText
    predicate: int
    roles: tuple[str, ...] | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed; two predicates of a sentence share its vectors."""
        return (self.text.tokens,)


@dataclass(frozen=True)
class RolesPrediction:
    """The role of each token for a predicate."""

    tokens: Tokens
    predicate: int
    roles: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"tokens": list(self.tokens), "predicate": self.predicate, "roles": list(self.roles)}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        return {"predicate": self.tokens[self.predicate], "roles": " ".join(self.roles)}


class RolesNetwork(nn.Module):
    """A tagger with an input that marks the predicate."""

    def __init__(self, featurizer: Featurizer, settings: RolesSettings, labels: Sequence[str]) -> None:
        super().__init__()
        self.mark = nn.Embedding(2, 4)
        self.stack = TokenStack(featurizer, settings.encoder, extra=4)
        self.out = nn.Linear(self.stack.size, len(labels))
        self._labels = tuple(labels)

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, batch: Sequence[RolesExample]) -> Tensor:
        """A batch to (B, T, K)."""
        features = self.stack.read([example.text.tokens for example in batch])
        positions = torch.arange(features.mask.shape[1])
        predicates = torch.tensor([example.predicate for example in batch])[:, None]
        return self.out(self.stack(features, self.mark((positions == predicates).long())))  # type: ignore[no-any-return]

    def loss(self, batch: Sequence[RolesExample]) -> tuple[Tensor, int]:
        """Cross entropy per token."""
        outputs = self(batch)
        rows = [[self._labels.index(role) for role in example.roles or ()] for example in batch]
        targets = pad_rows(rows, outputs.shape[1], -100)
        return F.cross_entropy(outputs.flatten(0, 1), targets.flatten()), len(batch)

    def decode(self, batch: Sequence[RolesExample]) -> list[RolesPrediction]:
        """The most probable role of each token."""
        predictions = []
        for example, row in zip(batch, self(batch).argmax(dim=2).tolist(), strict=True):
            roles = tuple(self._labels[number] for number in row[: len(example.text.tokens)])
            predictions.append(RolesPrediction(example.text.tokens, example.predicate, roles))
        return predictions


@dataclass(frozen=True)
class Roles:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "toy-roles"
    settings_type: ClassVar[type[TaskSettings]] = RolesSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"the dog [saw] a cat"'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl",)
    decode_batch: ClassVar[int] = 64

    settings: RolesSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """All roles."""
        return tuple(self.learned.get("labels", ()))

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[RolesExample]:
        """Records of tokens, predicate and roles."""
        assert isinstance(source, Records)
        return [
            RolesExample(f"{source.name}:{n}", TokenizedText(tuple(tokens)), predicate, tuple(roles))
            for n, (tokens, predicate, roles) in enumerate(source.rows, start=1)
        ]

    def learn(self, examples: Sequence[RolesExample]) -> Roles:
        """The task with all roles."""
        labels = sort_labels(role for example in examples for role in example.roles or ())
        return replace(self, learned={"labels": list(labels)})

    def check(self, examples: Sequence[RolesExample]) -> None:
        """Raise `DataError` for a role that is not in the training data."""
        check_labels(((e.location, role) for e in examples for role in e.roles or ()), self.labels)

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> RolesExample:
        """A text with its predicate in brackets."""
        before, predicate, after = question.replace("]", "[").split("[")
        first, *rest = (
            [token.text for token in segmenter.tokens(part)] for part in (before, predicate, after)
        )
        tokens = [*first, *(token for part in rest for token in part)]
        return RolesExample(location, TokenizedText(tuple(tokens)), len(first))

    def count_labels(self, example: RolesExample) -> Mapping[str, int]:
        """How often each role occurs."""
        return Counter(example.roles or ())

    def build_network(self, featurizer: Featurizer, examples: Sequence[RolesExample]) -> RolesNetwork:
        """The untrained network."""
        return RolesNetwork(featurizer, self.settings, self.labels)

    def score(self, examples: Sequence[RolesExample], predictions: Sequence[RolesPrediction]) -> Scores:
        """Accuracy per token."""
        labels = [role for example in examples for role in example.roles or ()]
        return score_classes(labels, [role for p in predictions for role in p.roles], self.labels)

    def format(self, prediction: RolesPrediction, output_format: str) -> str:
        """There is no format but JSON lines."""
        raise NotImplementedError


def make_rows(count: int) -> list[tuple[list[str], int, list[str]]]:
    """Sentences of two clauses; each sentence occurs twice, once per predicate."""
    rng = random.Random(count)
    rows = []
    for _ in range(count):
        a, b, c, d = (rng.choice(NOUNS) for _ in range(4))
        tokens = [a, rng.choice(VERBS), b, "and", c, rng.choice(VERBS), d]
        rows.append((tokens, 1, ["A0", "V", "A1", "O", "O", "O", "O"]))
        rows.append((tokens, 5, ["O", "O", "O", "O", "A0", "V", "A1"]))
    return rows


def test_roles_depend_on_the_marked_predicate(elmo: Elmo, tmp_path: Path):
    settings = ["train.epochs=12", "train.rate=0.02", "train.batch=8", "input.words=16", "input.dropout=0"]
    model = polyseme.train(
        Roles, elmo, train=make_rows(30), dev=make_rows(9), out=tmp_path / "task", settings=settings
    )
    assert model.results[0].dev["accuracy"] > 0.95
    loaded = polyseme.load_task(tmp_path / "task", task=Roles)
    first, second = loaded.predict(["dog [saw] cat and man met bird", "dog saw cat and man [met] bird"])
    assert first.roles == ("A0", "V", "A1", "O", "O", "O", "O")
    assert second.roles == ("O", "O", "O", "O", "A0", "V", "A1")
    assert "A0" in (tmp_path / "task" / "report.md").read_text(encoding="utf-8")
