"""Coreference: scores against scorch and by hand, spans, training, predictions, pages."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scorch import scores as scorch

import polyseme
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.tasks.coref.example import name_cluster
from polyseme.tasks.coref.network import CHUNK_STARTS, Mentions, draw_part
from polyseme.tasks.coref.scores import Clusters, assign, score_clusters
from polyseme.tasks.coref.spans import keep_spans, list_spans
from polyseme.tasks.task_model import TaskModel

PEOPLE = {"Anna": "she", "Mary": "she", "Bert": "he", "Carl": "he"}
VERBS = ("slept", "ate", "smiled", "left")
SETTINGS = (
    "train.epochs=12",
    "train.rate=0.01",
    "input.words=16",
    "input.min_count=1",
    "input.dropout=0",
    "input.elmo_dropout=0",
    "encoder.size=16",
    "encoder.dropout=0",
    "head.dropout=0",
    "head.max_width=2",
    "head.size=32",
    "head.hidden=32",
    "data.segment=split",
)


def make_documents(count: int) -> list[dict[str, Any]]:
    """Documents: a sentence about a woman and a man, then a sentence about each."""
    rng = random.Random(count)
    documents = []
    for _ in range(count):
        people = [rng.choice(["Anna", "Mary"]), rng.choice(["Bert", "Carl"])]
        rng.shuffle(people)
        first = [people[0], rng.choice(VERBS), "and", people[1], rng.choice(VERBS), "."]
        order = rng.sample(people, 2)
        rest = [[PEOPLE[person], rng.choice(VERBS), "."] for person in order]
        clusters = []
        for number, person in enumerate(order):
            name, pronoun = first.index(person), len(first) + 3 * number
            clusters.append([[name, name + 1], [pronoun, pronoun + 1]])
        documents.append({"sentences": [first, *rest], "clusters": clusters})
    return documents


@pytest.fixture(scope="module")
def model(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> TaskModel:
    out = tmp_path_factory.mktemp("coref") / "task"
    train, dev = make_documents(40), make_documents(10)
    polyseme.train("coref", elmo, train=train, dev=dev, out=out, settings=SETTINGS)
    return polyseme.load_task(out)


def test_clusters_are_learned(model: TaskModel):
    scores = model.evaluate(make_documents(12))
    assert scores.metrics["CoNLL F1"] > 0.9
    assert scores.main == "CoNLL F1"


TEXT = "Bert ate and Mary slept .\nshe left .\nhe smiled ."


def test_a_text_gets_clusters_with_names_and_offsets(model: TaskModel):
    prediction = model.predict(TEXT)
    clusters = {
        cluster.name: [mention.text for mention in cluster.mentions] for cluster in prediction.clusters
    }
    assert clusters == {"Bert": ["Bert", "he"], "Mary": ["Mary", "she"]}
    for cluster in prediction.clusters:
        for mention in cluster.mentions:
            assert mention.offsets is not None
            assert TEXT[slice(*mention.offsets)] == mention.text


def test_mentions_that_were_joined_to_another_have_a_probability(model: TaskModel):
    for cluster in model.predict(TEXT).clusters:
        name, pronoun = cluster.mentions
        assert name.probability is None
        assert "probability" not in name.as_dict()
        assert pronoun.probability is not None
        assert 0.5 < pronoun.probability <= 1
        assert pronoun.as_dict()["probability"] == pytest.approx(pronoun.probability, abs=1e-6)


def test_a_file_of_plain_text_is_one_document(model: TaskModel, tmp_path: Path):
    (tmp_path / "a.txt").write_text(TEXT + "\n", encoding="utf-8")
    (document,) = model.read_plain_text(tmp_path / "a.txt")
    (prediction,) = model.predict_examples([document])
    assert len(prediction.clusters) == 2
    characters = model.task.format(prediction, "characters")
    assert characters.splitlines()[0] == "Bert\t2\tBert 1, he 1"


def test_the_page_escapes_the_text_and_marks_every_mention(model: TaskModel):
    prediction = model.predict("Bert ate and Mary slept <b> .\nshe left .\nhe smiled .")
    page = model.task.format(prediction, "html")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    mentions = sum(len(c.mentions) for c in prediction.clusters if len(c.mentions) > 1)
    several = sum(len(c.mentions) > 1 for c in prediction.clusters)
    assert page.count("<mark ") == page.count("</mark>") == mentions + several  # the table has a mark each


def test_training_reads_a_part_of_a_document_that_is_too_long(model: TaskModel):
    rows = make_documents(20)
    sentences, clusters, count = list[list[str]](), list[list[list[int]]](), 0
    for row in rows:
        clusters += [
            [[start + count, stop + count] for start, stop in cluster] for cluster in row["clusters"]
        ]
        sentences += row["sentences"]
        count += sum(map(len, row["sentences"]))
    examples: list[Any] = list(model.read([{"sentences": sentences, "clusters": clusters}]))
    (document,) = examples
    whole = [token for text in document.texts for token in text.tokens]
    for seed in range(20):
        torch.manual_seed(seed)
        part = draw_part(document, 50)
        tokens = [token for text in part.texts for token in text.tokens]
        assert 35 < len(tokens) <= 50
        assert " ".join(tokens) in " ".join(whole)
        assert part.clusters
        for cluster in part.clusters:
            names = {PEOPLE.get(tokens[start], tokens[start]) for start, _ in cluster}
            assert len(names) == 1  # a name and its pronoun
    assert draw_part(document, count) is document


@torch.no_grad()
def test_spans_of_long_documents_are_scored_in_chunks(model: TaskModel):
    network: Any = model.network
    sentences = [s for document in make_documents(500) for s in document["sentences"]]
    document = model.parse(sentences, "novel")
    mentions, spans, scores = network.find_mentions(document)
    assert int(spans[-1, 1]) > CHUNK_STARTS
    tokens = network.encode(document)
    heads = []
    for start, stop in spans.tolist():
        attention = network.attention(tokens[start:stop])[:, 0].softmax(dim=0)
        heads.append(attention @ tokens[start:stop])
    widths = network.widths(spans[:, 1] - spans[:, 0] - 1)
    joined = torch.cat([tokens[spans[:, 0]], tokens[spans[:, 1] - 1], torch.stack(heads), widths], dim=1)
    vectors = torch.relu(network.span(joined))  # as published: Lee et al. 2017, equation 3
    torch.testing.assert_close(scores, network.mention(vectors)[:, 0], atol=1e-4, rtol=1e-4)
    rows = {tuple(span): number for number, span in enumerate(spans.tolist())}
    kept = [rows[pair] for pair in zip(mentions.starts.tolist(), mentions.stops.tolist(), strict=True)]
    torch.testing.assert_close(mentions.vectors, vectors[kept], atol=1e-4, rtol=1e-4)


def test_beyond_the_window_the_last_mention_with_the_same_words_stays_a_candidate(elmo: Elmo):
    settings = (*SETTINGS, "head.window=2", "head.antecedents=2", "train.epochs=1")
    documents = make_documents(4)
    network: Any = polyseme.train("coref", elmo, train=documents, dev=documents, settings=settings).network
    words = torch.tensor([7, 1, 2, 3, 4, 7])
    count, size = len(words), 32
    mentions = Mentions(
        torch.arange(count),
        torch.arange(count) + 1,
        torch.randn(count, size),
        torch.zeros(count),
        words,
        torch.full((count,), -1),
    )
    (block,) = network.rank(mentions)
    candidates = [
        {int(n) for n, real in zip(row, reals, strict=True) if real}
        for row, reals in zip(block.antecedents, block.real, strict=True)
    ]
    assert candidates == [set(), {0}, {0, 1}, {1, 2}, {2, 3}, {3, 4, 0}]


def test_a_document_without_links_cannot_be_learned_from(elmo: Elmo):
    documents = [{"sentences": [["a", "b"]], "clusters": [[[0, 1]]]}] * 3
    with pytest.raises(DataError, match="no cluster has two mentions"):
        polyseme.train("coref", elmo, train=documents, dev=documents, settings=SETTINGS)


@pytest.mark.parametrize("question", [3, ["a", "b"], [["a", ""]]])
def test_a_bad_question_is_refused(model: TaskModel, question: Any):
    with pytest.raises(UsageError, match="question 1: a document is a string"):
        model.predict([question])


def test_spans_stay_within_sentences():
    assert list_spans([0, 2, 5], 2).tolist() == [
        [0, 1],
        [0, 2],
        [1, 2],
        [2, 3],
        [2, 4],
        [3, 4],
        [3, 5],
        [4, 5],
    ]


def test_kept_spans_do_not_cross():
    rng = random.Random(0)
    spans = list_spans([0, 12], 6).tolist()
    for _ in range(50):
        scores = [rng.random() for _ in spans]
        kept = [spans[n] for n in keep_spans(spans, scores, 20)]
        assert kept == sorted(kept)
        for (a, b), (c, d) in itertools.combinations(kept, 2):
            assert not a < c < b < d
            assert not c < a < d < b
        assert spans[int(np.argmax(scores))] in kept


def test_a_cluster_is_named_after_its_most_frequent_name():
    assert name_cluster(["he", "Tom", "he", "Tom Sawyer", "Tom", "the boy"]) == "Tom"
    assert name_cluster(["他", "曹操", "曹操", "丞相"]) == "曹操"
    assert name_cluster(["he", "him"]) in ("he", "him")


def draw_clusters(rng: random.Random, mentions: list[tuple[int, int]]) -> Clusters:
    chosen = [mention for mention in mentions if rng.random() < 0.8]
    groups: dict[int, set[tuple[int, int]]] = {}
    for mention in chosen:
        groups.setdefault(rng.randint(0, 6), set()).add(mention)
    return [frozenset(group) for group in groups.values()]


def test_scores_agree_with_scorch():
    rng = random.Random(3)
    for _ in range(40):
        mentions = [(n, n + 1) for n in range(rng.randint(2, 20))]
        wanted, chosen = draw_clusters(rng, mentions), draw_clusters(rng, mentions)
        if not frozenset().union(*wanted) & frozenset().union(*chosen):
            continue  # scorch divides by zero
        metrics = score_clusters([wanted], [chosen]).metrics
        key, response = [set(cluster) for cluster in wanted], [set(cluster) for cluster in chosen]
        for name, oracle in (("MUC", scorch.muc), ("B-cubed", scorch.b_cubed), ("CEAF-phi4", scorch.ceaf_e)):
            expected = oracle(key, response)[2]
            assert metrics[f"{name} F1"] == pytest.approx(expected, abs=1e-9), name


def test_scores_of_a_worked_example():
    """Clusters {a b c} {d e f g} against {a b} {c d} {f g h i}, as in the paper of the reference scorer."""
    a, b, c, d, e, f, g, h, i = ((n, n + 1) for n in range(9))
    wanted = [frozenset((a, b, c)), frozenset((d, e, f, g))]
    chosen = [frozenset((a, b)), frozenset((c, d)), frozenset((f, g, h, i))]
    metrics = score_clusters([wanted], [chosen]).metrics
    assert metrics["MUC F1"] == pytest.approx(0.40)
    assert metrics["B-cubed F1"] == pytest.approx(0.46, abs=0.01)
    assert metrics["CEAF-phi4 F1"] == pytest.approx(0.52, abs=0.01)
    recall, precision = (3 * 1 / 3 + 4 * 1 / 6) / 7, (2 * 1 + 2 * 0 + 4 * 1 / 6) / 8
    assert metrics["LEA F1"] == pytest.approx(2 * precision * recall / (precision + recall))


def test_counts_are_summed_over_documents():
    perfect, nothing = [frozenset(((0, 1), (2, 3)))], [frozenset(((0, 1), (1, 2), (4, 5)))]
    metrics = score_clusters([perfect, nothing], [perfect, []]).metrics
    assert metrics["MUC F1"] == pytest.approx(2 * 1 * (1 / 3) / (1 + 1 / 3))


def test_the_alignment_is_the_best_of_all():
    rng = np.random.default_rng(0)
    for rows, columns in [(1, 1), (3, 5), (5, 3), (6, 6)]:
        values = rng.random((rows, columns))
        small, large = sorted((rows, columns))
        table = values if rows <= columns else values.T
        best = max(
            sum(table[n, chosen[n]] for n in range(small))
            for chosen in itertools.permutations(range(large), small)
        )
        assert values[assign(values)].sum() == pytest.approx(best)


def test_a_novel_is_encoded_in_chunks_of_bounded_size(model: TaskModel, monkeypatch: pytest.MonkeyPatch):
    sizes: list[int] = []
    network: Any = model.network
    forward = network.stack.forward

    def watch(features: Any) -> torch.Tensor:
        sizes.append(features.mask.numel())
        return forward(features)

    monkeypatch.setattr(network.stack, "forward", watch)
    model.predict("\n".join([TEXT] * 400))
    assert len(sizes) > 1
    assert max(sizes) <= 4096
