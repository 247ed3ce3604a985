"""Senses as clusters of usages, and changes of words between two indexes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.search.build import build_index
from polyseme.search.change import compare_usages
from polyseme.search.change_statistics import measure_distances
from polyseme.search.clusters import cluster, measure_rand
from polyseme.search.index import Index, open_index
from polyseme.search.senses import find_senses


def blobs(centres: int, each: int = 40, spread: float = 0.15, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around some centres, `each` per centre, and the number of the centre of each."""
    rng = np.random.default_rng(seed)
    vectors = np.repeat(np.eye(8)[:centres], each, axis=0) + spread * rng.normal(size=(centres * each, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), np.repeat(np.arange(centres), each)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_separate_clusters_are_found(count: int):
    vectors, labels = blobs(count)
    clusters = cluster(vectors)
    assert len(clusters.centres) == count
    assert adjusted_rand_score(labels, clusters.labels) > 0.95
    assert clusters.stability > 0.9
    assert cluster(vectors).labels.tolist() == clusters.labels.tolist()


def test_clusters_of_equal_size_are_ordered_by_their_first_vectors():
    vectors, _ = blobs(4, each=20)
    vectors = vectors[np.random.default_rng(3).permutation(len(vectors))]
    labels = cluster(vectors).labels
    assert sorted(np.bincount(labels)) == [20, 20, 20, 20]
    assert list(dict.fromkeys(labels.tolist())) == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_repeated_usages_give_no_empty_cluster_and_a_silhouette_of_at_most_1(count: int):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        distinct = rng.normal(size=(count, 8))
        repeated = np.repeat(distinct, 6, axis=0) + 1e-7 * rng.normal(size=(6 * count, 8))  # rounding
        repeated /= np.linalg.norm(repeated, axis=1, keepdims=True)
        clusters = cluster(repeated.astype(np.float32))
        assert np.bincount(clusters.labels, minlength=len(clusters.centres)).tolist() == [6] * count
        assert clusters.silhouette <= 1


def test_one_cloud_of_vectors_is_one_cluster():
    rng = np.random.default_rng(1)
    vectors = np.ones(8) + 0.3 * rng.normal(size=(150, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert len(cluster(vectors.astype(np.float32)).centres) == 1


def test_the_rand_index_agrees_with_scikit_learn():
    rng = np.random.default_rng(2)
    for _ in range(20):
        labels, others = (rng.integers(rng.integers(1, 5), size=30) for _ in range(2))
        assert measure_rand(labels, others) == pytest.approx(adjusted_rand_score(labels, others))


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


def make_index(folder: Path, name: str, elmo: Elmo, lines: list[str]) -> Index:
    (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    build_index(elmo, [folder / f"{name}.txt"], folder / name)
    return open_index(folder / name, elmo)


RIVER = [
    "They sat on the river bank and fished .",
    "The river bank was green .",
    "On the bank of the river .",
]
MONEY = ["The bank lent money .", "Money lay in the bank !", "He robbed the bank at noon"]


def test_senses_have_shares_neighbours_and_sentences(tmp_path: Path, elmo: Elmo):
    index = make_index(tmp_path, "a", elmo, (RIVER + MONEY) * 6)
    word_senses = find_senses(index, "bank")
    assert sum(sense.count for sense in word_senses.senses) == 36
    assert sum(sense.share for sense in word_senses.senses) == pytest.approx(1)
    shares = [sense.share for sense in word_senses.senses]
    assert shares == sorted(shares, reverse=True)
    for sense in word_senses.senses:
        assert "[bank]" in sense.examples[0].marked()
        assert "bank" not in sense.neighbours
        assert set(sense.documents) == {str(tmp_path / "a.txt")}
    assert word_senses.as_dict()["word"] == "bank"
    with pytest.raises(UsageError, match="too few to tell senses apart"):
        find_senses(make_index(tmp_path, "b", elmo, RIVER), "bank")


def test_senses_have_shares_by_document(tmp_path: Path):
    rng = np.random.default_rng(0)
    elmo = Elmo(random_model(small_config()))
    embed = elmo.embed_tokens
    centres = {True: np.eye(8)[0] * 9, False: np.eye(8)[1] * 9}

    def embed_by_topic(sentences, *rest):
        """Vectors of sentences with `river` are far from those of all other sentences."""
        vectors = embed(sentences, *rest)
        for words, array in zip(sentences, vectors, strict=True):
            array[:] = centres["river" in words] + 0.3 * rng.normal(size=array.shape)
        return vectors

    vars(elmo)["embed_tokens"] = embed_by_topic
    (tmp_path / "a.txt").write_text("the river bank\n" * 12 + "the money bank\n" * 4, encoding="utf-8")
    (tmp_path / "b.txt").write_text("the money bank\n" * 6, encoding="utf-8")
    index = api.index(elmo, [tmp_path / "a.txt", tmp_path / "b.txt"], tmp_path / "i", space="none")
    senses = find_senses(index, "bank", groups=True).senses
    a, b = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    assert [sense.count for sense in senses] == [12, 10]
    assert senses[0].documents == {a: 0.75, b: 0.0}
    assert senses[1].documents == {a: 0.25, b: 1.0}
    assert senses[0].share == pytest.approx(12 / 22)


def test_a_word_that_changed_is_ranked_above_one_that_did_not(tmp_path: Path, elmo: Elmo):
    frame = ["the dog sleeps", "a dog barks", "dog and cat"] * 6
    first = make_index(tmp_path, "first", elmo, RIVER * 6 + frame)
    second = make_index(tmp_path, "second", elmo, MONEY * 6 + frame)
    bank, dog = api.change(first, second, ["dog", "bank"])
    assert [bank.word, dog.word] == ["bank", "dog"]
    assert bank.p < 0.05
    assert dog.p > 0.5
    assert bank.distance_p < 0.05 < 0.5 < dog.distance_p
    assert bank.prototype > dog.prototype
    assert bank.shift >= dog.shift
    assert {change.word for change in api.change(first, second, min_count=10)} >= {"dog", "bank"}
    with pytest.raises(KeyError):
        api.change(first, second, ["river"])


def test_punctuation_is_left_out_of_the_ranking(tmp_path: Path, elmo: Elmo):
    frame = ["the dog sleeps .", "好 ， 7 — a dog barks !"] * 6
    first = make_index(tmp_path, "first", elmo, RIVER * 6 + frame)
    second = make_index(tmp_path, "second", elmo, MONEY * 6 + frame)
    words = {change.word for change in api.change(first, second, min_count=5, all_words=True)}
    assert {"dog", "好", "7", "the"} <= words
    assert not set(".，—!") & words
    content = {change.word for change in api.change(first, second, min_count=5)}
    assert {"dog", "好"} <= content
    assert not {"7", "the", "a"} & content
    assert api.change(first, second, ["."])[0].word == "."


def test_words_with_few_usages_are_left_out_of_the_ranking(tmp_path: Path, elmo: Elmo):
    first = make_index(tmp_path, "first", elmo, RIVER * 6 + ["a cat sleeps"] * 3)
    second = make_index(tmp_path, "second", elmo, MONEY * 6 + ["a cat sleeps"] * 4)
    words = {change.word for change in api.change(first, second, min_count=3)}
    assert "bank" in words
    assert "cat" not in words
    with pytest.raises(UsageError, match=r"3 usages in .*, 5 are needed"):
        api.change(first, second, ["cat"])


def test_distances_are_those_of_all_pairs():
    rng = np.random.default_rng(0)
    a, b = (unit(rng.normal(size=(count, 6)) + shift) for count, shift in ((7, 1.0), (9, np.arange(6))))
    change = compare_usages("x", a, b, (7, 9))

    def mean_distance(left: np.ndarray, right: np.ndarray) -> float:
        return float(np.mean([1 - x @ y for x in left for y in right if x is not y and (x != y).any()]))

    between, within_a, within_b = mean_distance(a, b), mean_distance(a, a), mean_distance(b, b)
    assert change.distance == pytest.approx(between - (within_a + within_b) / 2, abs=1e-5)
    cosine = (1 - between) / np.sqrt((1 - within_a) * (1 - within_b))
    assert change.prototype == pytest.approx(1 - min(cosine, 1), abs=1e-5)


def test_prototypes_of_few_usages_are_no_farther_apart_than_those_of_many():
    rng = np.random.default_rng(0)
    centres = np.array((2, 0, 0, 0, 0, 1)), np.array((2, 2, 0, 0, 0, 1))

    def mean_distance(count: int) -> float:
        pairs = [[unit(rng.normal(size=(count, 6)) + centre) for centre in centres] for _ in range(200)]
        return float(np.mean([prototype_distance(*pair) for pair in pairs]))

    assert mean_distance(6) == pytest.approx(mean_distance(60), rel=0.3)


def test_the_distance_of_random_usages_is_within_its_limits():
    vectors = unit(np.random.default_rng(0).normal(size=(40, 30)))
    assert 0 <= prototype_distance(vectors[:20], vectors[20:]) <= 2


def test_usages_with_zero_vectors_have_not_changed():
    zeros, ones = np.zeros((6, 4), np.float32), unit(np.ones((6, 4)))
    assert prototype_distance(zeros, zeros) == 0
    assert compare_usages("x", zeros, zeros, (6, 6)).p == 1
    assert prototype_distance(ones, zeros) == 1


def prototype_distance(first: np.ndarray, second: np.ndarray) -> float:
    return float(measure_distances(first, second)[1][0])


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_shares_of_senses_are_drawn(tmp_path: Path, elmo: Elmo):
    first, second = (
        make_index(tmp_path, "first", elmo, RIVER * 6),
        make_index(tmp_path, "second", elmo, MONEY * 6),
    )
    (change,) = api.change(first, second, ["bank"], out=tmp_path / "shares.png")
    assert change.shift_p < 0.05 if len(change.shares) > 1 else change.shift_p == 1
    assert sum(share for share, _ in change.shares) == pytest.approx(1)
    assert (tmp_path / "shares.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match=r"must be a \.png"):
        api.change(first, second, ["bank"], out=tmp_path / "shares.pdf")


def test_indexes_of_different_models_are_not_compared(tmp_path: Path, elmo: Elmo):
    first = make_index(tmp_path, "first", elmo, RIVER)
    second = make_index(tmp_path, "second", Elmo(random_model(small_config(), seed=5)), RIVER)
    with pytest.raises(UsageError, match="differ in their model"):
        api.change(first, second, ["bank"])


def test_senses_and_changes_are_shown_as_tables(tmp_path: Path, elmo: Elmo):
    first = make_index(tmp_path, "<first>", elmo, [*RIVER, "a <b> bank & c ."] * 6)
    second = make_index(tmp_path, "second", elmo, MONEY * 6)
    senses = find_senses(first, "bank")
    assert repr(senses).splitlines()[0].startswith("bank: ")
    assert repr(senses).splitlines()[1].split() == ["share", "usages", "with", "neighbours", "example"]
    assert senses._repr_html_().count("<tr>") == 1 + len(senses.senses)
    assert "<b>bank</b>" in senses._repr_html_()
    changes = api.change(first, second, ["bank"])
    assert repr(changes).splitlines()[0] == "<first> and second"
    assert "&lt;first&gt; and second" in changes._repr_html_()
    assert changes[0].as_row()["usages"] == "24 / 18"
