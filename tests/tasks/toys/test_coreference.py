"""A toy task in the real training loop: rank antecedents in documents of several sentences."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

import polyseme
from polyseme.elmo import Elmo
from polyseme.io.html import Cell
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.examples import Offsets, Segmenter, Tokens
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.dense import Dense
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.settings import EncoderSettings, TaskSettings, TaskTrainSettings

PEOPLE = {"Anna": "she", "Mary": "she", "Bert": "he", "Carl": "he"}
OTHER = ("slept", "ate", "smiled", "left")
Link = tuple[int, int]  # the tokens of a mention and its antecedent, counted over the document


class OneDocumentPerBatch(TaskTrainSettings):
    """Training with one document per batch, because documents are long."""

    batch: int = 1
    epochs: int = 6
    rate: float = 0.01


class CoreferenceSettings(TaskSettings):
    """Settings of the toy."""

    encoder: EncoderSettings = EncoderSettings(size=16)
    train: OneDocumentPerBatch = OneDocumentPerBatch()


@dataclass(frozen=True)
class Document:
    """Sentences, the offsets of all tokens, and links between mentions."""

    location: str
    sentences: tuple[Tokens, ...]
    offsets: tuple[Offsets, ...] = ()
    links: frozenset[Link] = frozenset()

    @property
    def tokens(self) -> list[str]:
        """All tokens of the document."""
        return [token for sentence in self.sentences for token in sentence]


@dataclass(frozen=True)
class Links:
    """The predicted links of a document, as tokens and as characters."""

    links: frozenset[Link]
    offsets: tuple[tuple[Offsets, Offsets], ...]

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"links": sorted(self.links), "offsets": list(self.offsets)}

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        return {"links": len(self.links)}


class AntecedentRanker(nn.Module):
    """Scores all pairs of tokens of a document; the antecedent 0 means that there is none."""

    def __init__(self, featurizer: Featurizer, settings: CoreferenceSettings) -> None:
        super().__init__()
        self.stack = TokenStack(featurizer, settings.encoder)
        self.pair = Dense(3 * self.stack.size, 16, 1, 0.0)

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def forward(self, document: Document) -> Tensor:
        """Scores (N, 1 + N) of all antecedents of all tokens; the first column is none."""
        features = self.stack.read(document.sentences)
        x = self.stack(features)[features.mask]  # (N, E), sentence after sentence
        count = len(x)
        mentions, antecedents = x[:, None].expand(-1, count, -1), x[None].expand(count, -1, -1)
        scores = self.pair(torch.cat([mentions, antecedents, mentions * antecedents], dim=2))[..., 0]
        # An antecedent comes before its mention.
        scores = scores.masked_fill(torch.ones_like(scores).triu() > 0, -1e4)
        return torch.cat([scores.new_zeros(count, 1), scores], dim=1)

    def loss(self, batch: Sequence[Document]) -> tuple[Tensor, int]:
        """The marginal log likelihood of the antecedents, per document."""
        total = torch.zeros(())
        for document in batch:
            scores = self(document).log_softmax(dim=1)
            targets = torch.zeros(len(scores), dtype=torch.long)
            for mention, antecedent in document.links:
                targets[mention] = antecedent + 1
            total = total - scores[torch.arange(len(scores)), targets].mean()
        return total / len(batch), len(batch)

    def decode(self, batch: Sequence[Document]) -> list[Links]:
        """The best antecedent of each token."""
        predictions = []
        for document in batch:
            best = self(document).argmax(dim=1).tolist()
            links = [(mention, number - 1) for mention, number in enumerate(best) if number]
            spans = [(document.offsets[a], document.offsets[b]) for a, b in links if document.offsets]
            predictions.append(Links(frozenset(links), tuple(spans)))
        return predictions


@dataclass(frozen=True)
class Coreference:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "toy-coreference"
    settings_type: ClassVar[type[TaskSettings]] = CoreferenceSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"Anna slept. She smiled."'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl",)
    decode_batch: ClassVar[int] = 1
    labels: ClassVar[tuple[str, ...]] = ()

    settings: CoreferenceSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[Document]:
        """Records of sentences and links."""
        assert isinstance(source, Records)
        return [
            Document(f"{source.name}:{n}", tuple(map(tuple, sentences)), links=frozenset(links))
            for n, (sentences, links) in enumerate(source.rows, start=1)
        ]

    def learn(self, examples: Sequence[Document]) -> Coreference:
        """Nothing is learned but weights."""
        return self

    def check(self, examples: Sequence[Document]) -> None:
        """Any links may occur."""

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> Document:
        """A raw text of several sentences."""
        sentences = segmenter.sentences(question)
        tokens = tuple(tuple(token.text for token in sentence) for sentence in sentences)
        offsets = tuple((token.start, token.end) for sentence in sentences for token in sentence)
        return Document(location, tokens, offsets)

    def count_labels(self, example: Document) -> Mapping[str, int]:
        """Links are counted, but none is rare: any document may be held out."""
        return Counter()

    def build_network(self, featurizer: Featurizer, examples: Sequence[Document]) -> AntecedentRanker:
        """The untrained network."""
        return AntecedentRanker(featurizer, self.settings)

    def score(self, examples: Sequence[Document], predictions: Sequence[Links]) -> Scores:
        """F1 of links over all documents."""
        correct = sum(len(e.links & p.links) for e, p in zip(examples, predictions, strict=True))
        total = sum(len(e.links) + len(p.links) for e, p in zip(examples, predictions, strict=True))
        return Scores("link F1", {"link F1": 2 * correct / max(1, total)})

    def format(self, prediction: Links, output_format: str) -> str:
        """There is no format but JSON lines."""
        raise NotImplementedError


def make_documents(count: int) -> Iterator[tuple[list[list[str]], set[Link]]]:
    """Yield documents: a sentence about a woman and a man, then a sentence about each."""
    rng = random.Random(count)
    for _ in range(count):
        people = [rng.choice(["Anna", "Mary"]), rng.choice(["Bert", "Carl"])]
        rng.shuffle(people)
        first = [people[0], rng.choice(OTHER), "and", people[1], rng.choice(OTHER), "."]
        order = rng.sample(people, 2)
        rest = [[PEOPLE[person], rng.choice(OTHER), "."] for person in order]
        links = {(len(first) + 3 * n, first.index(person)) for n, person in enumerate(order)}
        yield [first, *rest], links


def test_antecedents_are_found_in_documents_of_several_sentences(elmo: Elmo, tmp_path: Path):
    settings = ["input.words=16", "input.min_count=1", "input.dropout=0", "data.segment=split"]
    model = polyseme.train(
        Coreference,
        elmo,
        train=make_documents(50),
        dev=make_documents(12),
        out=tmp_path / "task",
        settings=settings,
    )
    assert model.results[0].dev["link F1"] > 0.9
    assert model.settings.train.batch == 1
    text = "Bert ate and Mary slept .\nshe left .\nhe smiled ."  # split: a line is a sentence
    prediction = polyseme.load_task(tmp_path / "task", task=Coreference).predict(text)
    links_in_text = {(text[a:b], text[c:d]) for (a, b), (c, d) in prediction.offsets}
    assert links_in_text == {("she", "Mary"), ("he", "Bert")}
