"""A toy task in the real training loop: reverse a sequence with attention and beam search."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import PositiveInt
from torch import Tensor, nn

import polyseme
from polyseme.config import Settings
from polyseme.elmo import Elmo
from polyseme.io.html import Cell
from polyseme.tasks.data.sources import Source
from polyseme.tasks.data.tables import find_table_format, read_rows
from polyseme.tasks.examples import Segmenter, TokenizedText, Tokens, tokenize_text
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, pad_rows
from polyseme.tasks.nn.pooling import LOW, mean
from polyseme.tasks.settings import EncoderSettings, TaskSettings

END = 0  # the id of the end of a target, and of its start
LETTERS = ("a", "b", "c", "d", "e")


class BeamHead(Settings):
    """Settings of the beam search."""

    beam: PositiveInt = 4
    max_target_tokens: PositiveInt = 8


class ReversalSettings(TaskSettings):
    """Settings of the toy."""

    encoder: EncoderSettings = EncoderSettings(size=24, dropout=0.0)
    head: BeamHead = BeamHead()


@dataclass(frozen=True)
class ReversalExample:
    """A source and its target."""

    location: str
    source: TokenizedText
    target: Tokens | None = None

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The tokens to embed: the target is not read by ELMo."""
        return (self.source.tokens,)


@dataclass(frozen=True)
class ReversalPrediction:
    """The best target, and its log probability."""

    tokens: Tokens
    log_probability: float

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"tokens": list(self.tokens), "log_probability": self.log_probability}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        return {"target": " ".join(self.tokens), "log probability": self.log_probability}


class ReversalNetwork(nn.Module):
    """A GRU decoder with attention over the encoded source; V target words."""

    def __init__(self, featurizer: Featurizer, settings: ReversalSettings, words: Sequence[str]) -> None:
        super().__init__()
        self.stack = TokenStack(featurizer, settings.encoder)
        size = self.stack.size
        self.embedding = nn.Embedding(len(words) + 1, size)
        self.cell = nn.GRUCell(2 * size, size)
        self.out = nn.Linear(2 * size, len(words) + 1)
        self._words, self._head = tuple(words), settings.head
        self._ids = {word: number for number, word in enumerate(words, start=1)}

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def _encode(self, batch: Sequence[ReversalExample]) -> tuple[Tensor, Tensor, Tensor]:
        """The encoded sources (B, T, E), their mask (B, T) and the first state (B, E)."""
        features = self.stack.read([example.source.tokens for example in batch])
        encoded = self.stack(features)
        return encoded, features.mask, mean(encoded, features.mask).tanh()

    def _step(self, ids: Tensor, state: Tensor, encoded: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One step of the decoder: log probabilities (B, V) and the next state (B, E)."""
        scores = torch.einsum("be,bte->bt", state, encoded).masked_fill(~mask, LOW)
        context = torch.einsum("bt,bte->be", scores.softmax(dim=1), encoded)
        state = self.cell(torch.cat([self.embedding(ids), context], dim=1), state)
        return self.out(torch.cat([state, context], dim=1)).log_softmax(dim=1), state

    def loss(self, batch: Sequence[ReversalExample]) -> tuple[Tensor, int]:
        """The negative log likelihood per target token, with teacher forcing."""
        encoded, mask, state = self._encode(batch)
        rows = [[*(self._ids[word] for word in example.target or ()), END] for example in batch]
        targets = pad_rows(rows, max(map(len, rows)), -100)
        ids, steps = torch.full((len(batch),), END), []
        for position in range(targets.shape[1]):
            outputs, state = self._step(ids, state, encoded, mask)
            steps.append(outputs)
            ids = targets[:, position].clamp(min=0)
        return F.nll_loss(torch.stack(steps, dim=1).flatten(0, 1), targets.flatten()), len(batch)

    def decode(self, batch: Sequence[ReversalExample]) -> list[ReversalPrediction]:
        """Beam search, one source after the other."""
        encoded, mask, state = self._encode(batch)
        return [
            self._search(encoded[n : n + 1], mask[n : n + 1], state[n : n + 1]) for n in range(len(batch))
        ]

    def _search(self, encoded: Tensor, mask: Tensor, state: Tensor) -> ReversalPrediction:
        beams: list[tuple[float, list[int], Tensor]] = [(0.0, [], state)]
        finished: list[tuple[float, list[int]]] = []
        width = min(self._head.beam, len(self._words) + 1)
        for _ in range(self._head.max_target_tokens):
            longer: list[tuple[float, list[int], Tensor]] = []
            for score, path, before in beams:
                ids = torch.tensor([path[-1] if path else END])
                outputs, after = self._step(ids, before, encoded, mask)
                for value, number in zip(*(v.tolist() for v in outputs[0].topk(width)), strict=True):
                    longer.append((score + value, [*path, number], after))
            longer.sort(key=lambda beam: -beam[0])
            finished += [
                (score, path[:-1]) for score, path, _ in longer[: self._head.beam] if path[-1] == END
            ]
            beams = [beam for beam in longer if beam[1][-1] != END][: self._head.beam]
        score, path = max(finished or [(score, path) for score, path, _ in beams])
        return ReversalPrediction(tuple(self._words[number - 1] for number in path), score)


@dataclass(frozen=True)
class Reversal:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "toy-reversal"
    settings_type: ClassVar[type[TaskSettings]] = ReversalSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"a b c"'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl", "text")
    decode_batch: ClassVar[int] = 16
    labels: ClassVar[tuple[str, ...]] = ()

    settings: ReversalSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[ReversalExample]:
        """Rows of source and target."""
        examples = []
        columns = {"source": "source", "target": "target"}
        for row in read_rows(source, find_table_format(source, "auto"), columns, labelled=labelled):
            example = self.parse(row.text("source"), segmenter, row.location)
            target = tuple(row.text("target").split()) if labelled else None
            examples.append(replace(example, target=target))
        return examples

    def learn(self, examples: Sequence[ReversalExample]) -> Reversal:
        """The task with the words of the targets: not labels, but a vocabulary."""
        words = sorted({word for example in examples for word in example.target or ()})
        return replace(self, learned={"target_words": words})

    def check(self, examples: Sequence[ReversalExample]) -> None:
        """Targets may contain unknown words."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> ReversalExample:
        """A source text."""
        return ReversalExample(location, tokenize_text(question, segmenter, location))

    def count_labels(self, example: ReversalExample) -> Mapping[str, int]:
        """There are no labels."""
        return {}

    def build_network(self, featurizer: Featurizer, examples: Sequence[ReversalExample]) -> ReversalNetwork:
        """The untrained network."""
        return ReversalNetwork(featurizer, self.settings, self.learned["target_words"])

    def score(self, examples: Sequence[ReversalExample], predictions: Sequence[ReversalPrediction]) -> Scores:
        """Exact matches."""
        correct = sum(e.target == p.tokens for e, p in zip(examples, predictions, strict=True))
        return Scores("exact", {"exact": correct / len(examples)})

    def format(self, prediction: ReversalPrediction, output_format: str) -> str:
        """The target as text."""
        return " ".join(prediction.tokens)


def make_rows(count: int) -> list[tuple[str, str]]:
    rng = random.Random(count)
    sources = [rng.sample(LETTERS, rng.randint(2, 3)) for _ in range(count)]
    return [(" ".join(letters), " ".join(reversed(letters))) for letters in sources]


def test_sequences_are_reversed_with_a_vocabulary_from_the_training_data(elmo: Elmo, tmp_path: Path):
    settings = ["train.epochs=20", "train.patience=20", "train.rate=0.01", "train.batch=16", "input.words=24"]
    settings += ["input.dropout=0", "input.elmo_dropout=0", "data.segment=split"]
    model = polyseme.train(
        Reversal, elmo, train=make_rows(200), dev=make_rows(30), out=tmp_path / "task", settings=settings
    )
    assert model.results[0].dev["exact"] > 0.9
    loaded = polyseme.load_task(tmp_path / "task", task=Reversal)
    assert loaded.task.learned == {"target_words": list(LETTERS)}
    assert loaded.predict("e d b").tokens == ("b", "d", "e")
    assert loaded.predict(["a b", "c d e"]) == model.predict(["a b", "c d e"])
    (tmp_path / "a.txt").write_text("a b\n\nc d\n", encoding="utf-8")
    lines = polyseme.predict(loaded, tmp_path / "a.txt", plain_text=True, format="text")
    assert list(lines) == ["b a", "", "d c"]


def test_a_wider_beam_finds_targets_that_are_at_least_as_probable(elmo: Elmo):
    settings = ["train.epochs=2", "train.batch=16", "input.words=24", "data.segment=split"]
    log_probabilities = {}
    for beam in (1, 8):
        model = polyseme.train(
            Reversal, elmo, train=make_rows(60), dev=make_rows(9), settings=[*settings, f"head.beam={beam}"]
        )
        log_probabilities[beam] = [
            prediction.log_probability for prediction in model.predict(["a b c", "d e", "c a b"])
        ]
    assert all(wide >= greedy - 1e-5 for greedy, wide in zip(*log_probabilities.values(), strict=True))
    assert sum(log_probabilities[8]) > sum(log_probabilities[1])
