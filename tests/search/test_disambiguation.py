"""Senses from labelled examples, in every form of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from builders import filled, random_model, small_config
from polyseme.cli.words import _parse_prior
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.search.disambiguation import PRIORS, Disambiguator
from polyseme.search.sense_data import LabelledUsage, read_sense_data, read_wordnet_senses, wordnet_key
from polyseme.search.usage_vectors import embed_usage_parts, embed_usages
from polyseme.text.segment import token_texts

ROWS = (
    "bank\tThey sat on the river [bank] .\tshore\n"
    "bank\tThe river [bank] was green .\tshore\n"
    "bank\tThe [bank] lent money !\tmoney\n"
    "bank\tMoney from the [bank] !\tmoney\n"
)
XML = """<?xml version="1.0"?>
<corpus><text id="d"><sentence id="d.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d.s0.t0" lemma="river_bank" pos="NOUN">river bank</instance>
<instance id="d.s0.t1" lemma="be" pos="VERB">is</instance>
</sentence></text></corpus>
"""
SEMCOR = (
    "# a.s1\nThe\tthe\tDT\t_\t1\nriver_bank\triver_bank\tNN\triver_bank%1:17:00::\t1\n"
    "is\tbe\tVB\tbe%2:42:00::\t1\n\n"
)


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()), batch_tokens=5)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_semcor_and_xml_are_read(tmp_path: Path):
    one, *_ = read_sense_data(write(tmp_path / "r.tsv", ROWS), "train")
    assert (one.key, one.tokens[one.start : one.stop], one.senses) == ("bank", ("bank",), ("shore",))
    write(tmp_path / "x.gold.key.txt", "d.s0.t0 river_bank%1:17:00:: other%1:00:00::\nd.s0.t1 be%2:42:00::\n")
    noun, verb = read_sense_data(write(tmp_path / "x.data.xml", XML), "test")
    assert (noun.key, noun.tokens[noun.start : noun.stop]) == ("river_bank%1", ("river", "bank"))
    assert len(noun.senses) == 2
    assert verb.key == "be%2"
    again = read_sense_data(write(tmp_path / "s.tsv", SEMCOR), "train")
    assert [m.key for m in again] == ["river_bank%1", "be%2"]
    assert again[0].tokens == noun.tokens


def test_plain_rows_are_segmented_as_the_model_was_trained_around_the_marked_word(tmp_path: Path):
    path = write(tmp_path / "r.tsv", "意\t关公会其[意]，遂辞而去。\tmeaning\n江山\t不爱[大好 江山]爱人\tx\n")
    one, two = read_sense_data(path, "train", lambda text: token_texts(text, "zh-char"))
    assert one.tokens == ("关", "公", "会", "其", "意", "，", "遂", "辞", "而", "去", "。")
    assert one.tokens[one.start : one.stop] == ("意",)
    assert two.tokens[two.start : two.stop] == ("大好", "江山")  # what is marked is cut at spaces only
    assert two.tokens[two.stop :] == ("爱", "人")
    elmo = Elmo(random_model(small_config(segment="zh-char")))
    seen: list[list[str]] = []
    read = elmo.run_batch
    elmo.run_batch = lambda tokens, *rest: seen.extend(tokens) or read(tokens, *rest)  # type: ignore
    polyseme.disambiguate(elmo, path, path)
    assert list(one.tokens) in seen
    polyseme.disambiguate(elmo, path, path, segment="split")
    assert ["关公会其", "意", "，遂辞而去。"] in seen


def test_vectors_that_are_not_finite_are_refused_with_their_location(tmp_path: Path, elmo: Elmo, monkeypatch):
    path, read = write(tmp_path / "r.tsv", ROWS), elmo.run_batch
    monkeypatch.setattr(elmo, "run_batch", lambda *asked: filled(read(*asked), torch.nan))
    with pytest.raises(DataError, match=r"r\.tsv:1: a vector is not finite"):
        polyseme.disambiguate(elmo, path, path)


def test_coarse_folders_are_read(tmp_path: Path):
    (tmp_path / "apple").mkdir()
    write(tmp_path / "apple" / "train.data.txt", "1\tthe apple fell\n0\tapple sued\n")
    write(tmp_path / "apple" / "train.gold.txt", "1\n0\n")
    assert [(m.key, m.start, m.senses) for m in read_sense_data(tmp_path, "train")] == [
        ("apple", 1, ("1",)),
        ("apple", 0, ("0",)),
    ]
    write(tmp_path / "apple" / "train.gold.txt", "1\n")
    with pytest.raises(DataError, match="2 sentences and 1 senses"):
        read_sense_data(tmp_path, "train")


def test_a_marked_words_vector_is_the_mean_of_its_tokens(elmo: Elmo):
    tokens = ("The", "river", "bank", "is", "green")
    examples = [
        LabelledUsage("a", "x", tokens, 1, 3),
        LabelledUsage("b", "y", tokens, 3, 4),
        LabelledUsage("c", "z", ("so",), 0, 1),
    ]
    (whole, other) = elmo.embed([list(tokens), ["so"]], layer="top")
    found = list(embed_usages(elmo, examples, "top"))
    np.testing.assert_allclose(found[0], whole[1:3].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(found[1], whole[3], atol=1e-6)
    np.testing.assert_allclose(found[2], other[0], atol=1e-6)


def test_the_context_of_a_word_is_the_forward_state_before_and_the_backward_state_after_it(elmo: Elmo):
    tokens = ("The", "river", "bank", "is", "green")
    marked = LabelledUsage("a", "x", tokens, 1, 3)
    whole = elmo.embed([list(tokens)], layer="top")[0]
    half = elmo.config.size // 2
    (found,) = embed_usages(elmo, [marked], "top", "context")
    np.testing.assert_allclose(found, np.concatenate([whole[0, :half], whole[3, half:]]), atol=1e-6)
    other = LabelledUsage("a", "x", ("The", "sea", "shore", "is", "green"), 1, 3)
    np.testing.assert_allclose(found, next(embed_usages(elmo, [other], "top", "context")), atol=1e-6)
    (joined,) = embed_usages(elmo, [marked], "top", "sentence")
    np.testing.assert_allclose(joined, np.concatenate([found, whole.mean(axis=0)]), atol=1e-6)


def test_a_word_that_is_the_whole_sentence_has_a_context(elmo: Elmo):
    layers, _ = elmo.compute_layers([["so"]])  # <S> so </S>
    half = elmo.config.size // 2
    (found,) = embed_usages(elmo, [LabelledUsage("a", "x", ("so",), 0, 1)], "top", "context")
    wanted = torch.cat([layers[-1, 0, 0, :half], layers[-1, 0, 2, half:]])
    np.testing.assert_allclose(found, wanted.numpy(), atol=1e-6)


def test_all_layers_are_read_at_once(elmo: Elmo):
    marked = [LabelledUsage("a", "x", ("The", "river", "bank"), 1, 3)]
    (rows,) = embed_usage_parts(elmo, marked, "all")
    for layer, row in enumerate(rows):
        np.testing.assert_allclose(row, next(embed_usage_parts(elmo, marked, layer)), atol=1e-6)
    with pytest.raises(UsageError, match="layer is 'all'"):
        next(embed_usages(elmo, marked, "all"))


def test_unknown_views_and_spaces_are_refused(tmp_path: Path, elmo: Elmo):
    path = write(tmp_path / "r.tsv", ROWS)
    for name, value in (("view", "eye"), ("space", "deep")):
        wrong: dict[str, Any] = {name: value}
        with pytest.raises(UsageError, match=f"{name} is .* expected one of"):
            polyseme.disambiguate(elmo, path, path, **wrong)


def test_directions_in_which_examples_of_one_sense_lie_apart_count_less():
    rng = np.random.default_rng(0)
    names = ["one", "other"] * 200
    told = np.array([[1.0] if name == "one" else [-1.0] for name in names])
    loud = 5 * rng.standard_normal((len(names), 3))  # says nothing of the sense
    vectors = np.concatenate([told + 0.3 * rng.standard_normal(told.shape), loud], axis=1)
    examples = [LabelledUsage(str(n), "w", ("w",), 0, 1, (name,)) for n, name in enumerate(names)]
    right = {}
    for space in ("centre", "senses"):
        found = Disambiguator.learn(examples, vectors.astype(np.float32), space=space, prior=0)
        right[space] = found.evaluate(examples, found.predict(examples, vectors.astype(np.float32))).accuracy
    assert right["senses"] > 0.95 > right["centre"]


def test_senses_with_one_example_each_are_learned_too(tmp_path: Path, elmo: Elmo):
    path = write(tmp_path / "r.tsv", "".join(ROWS.splitlines(keepends=True)[1:3]))
    for space in ("senses", "whiten", "none"):
        _, guesses = polyseme.disambiguate(elmo, path, path, space=space)
        assert guesses == ["shore", "money"]


def test_examples_get_their_own_senses_back(tmp_path: Path, elmo: Elmo):
    path = write(tmp_path / "r.tsv", "".join(ROWS.splitlines(keepends=True)[1:3]))
    judged, guesses = polyseme.disambiguate(elmo, path, path)
    assert guesses == ["shore", "money"]
    assert (judged.accuracy, judged.accuracy_by_word, judged.unseen, judged.count) == (1, 1, 0, 2)
    assert judged.baseline == 0.5


def test_a_word_without_examples_has_its_first_sense(tmp_path: Path, elmo: Elmo):
    index = write(tmp_path / "index.sense", "be%2:42:00:: 02604760 1 5\nbe%2:42:01:: 02604761 2 3\n")
    first = read_wordnet_senses(index)
    assert first == {"be%2": "be%2:42:00::"}
    examples = read_sense_data(write(tmp_path / "r.tsv", ROWS), "train")
    found = Disambiguator.learn(examples, embed_usages(elmo, examples, "top"), wordnet=first)
    asked = [LabelledUsage("a", "be%2", ("it", "is"), 1, 2), LabelledUsage("b", "go%2", ("go",), 0, 1)]
    guesses = found.predict(asked, embed_usages(elmo, asked, "top"))
    assert guesses == ["be%2:42:00::", None]
    with pytest.raises(UsageError, match="nothing to compare with"):
        found.evaluate(asked, guesses)


def test_adjectives_and_satellites_are_one_class():
    assert wordnet_key("red%3:00:01::") == wordnet_key("red%5:00:00:chromatic:00") == "red%3"


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.tsv", "bank\tno brackets\tx\n", r"a\.tsv:1: .*no word is marked"),
        ("a.tsv", "bank\n", r"a\.tsv:1: 1 columns, expected a word"),
        ("a.tsv", "", "no labelled words"),
        ("a.tsv", "bank\tan empty [ ] pair\tx\n", "the brackets are empty"),
        ("a.tsv", "# s\nThe\tthe\n", r"a\.tsv:2: 2 columns"),
        ("a.xml", "<corpus>", "not XML"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, name: str, text: str, says: str):
    with pytest.raises(DataError, match=says):
        read_sense_data(write(tmp_path / name, text), "train")


def test_a_malformed_index_sense_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"index\.sense:1"):
        read_wordnet_senses(write(tmp_path / "index.sense", "hello\n"))


def test_of_senses_that_lie_equally_near_the_frequent_one_is_taken():
    examples = [LabelledUsage("x", "art", ("art",), 0, 1, (sense,)) for sense in ("rare", "usual", "usual")]
    vectors = [np.ones(4, np.float32)] * 3
    found = Disambiguator.learn(examples, vectors, space="none")
    assert found.predict(examples[:1], vectors[:1]) == ["usual"]


def test_a_prior_moves_the_border_between_senses():
    examples = [LabelledUsage("x", "art", ("art",), 0, 1, (sense,)) for sense in ["rare"] + ["usual"] * 9]
    vectors = [np.array(pair, np.float32) for pair in [(1, 0)] + [(0, 1)] * 9]
    asked, between = examples[:1], [np.array((1, 0.8), np.float32)]
    assert Disambiguator.learn(examples, vectors, space="none", prior=0).predict(asked, between) == ["rare"]
    assert Disambiguator.learn(examples, vectors, space="none", prior=0.2).predict(asked, between) == [
        "usual"
    ]


def random_senses(shares: dict[str, int], spread: float) -> tuple[list[LabelledUsage], list[np.ndarray]]:
    """Random examples of one word: `shares` per sense, around one direction for each sense."""
    rng = np.random.default_rng(0)
    centres = {sense: rng.standard_normal(8) for sense in shares}
    names = [sense for sense, count in shares.items() for _ in range(count)]
    vectors = [(centres[name] + spread * rng.standard_normal(8)).astype(np.float32) for name in names]
    return [LabelledUsage(str(n), "w", ("w",), 0, 1, (name,)) for n, name in enumerate(names)], vectors


def left_out(examples: list[LabelledUsage], vectors: list[np.ndarray], prior: float) -> int:
    """Count the examples that get their sense from all others (leave-one-out)."""
    right = 0
    for number, (example, vector) in enumerate(zip(examples, vectors, strict=True)):
        others = [row for row in range(len(examples)) if row != number]
        rest, of_rest = [examples[row] for row in others], [vectors[row] for row in others]
        found = Disambiguator.learn(rest, of_rest, space="none", prior=prior)
        right += found.predict([example], [vector])[0] in example.senses
    return right


@pytest.mark.parametrize(("spread", "least"), [(0.1, 0.0), (4.0, 0.01)])
def test_the_prior_is_chosen_by_leaving_examples_out(spread: float, least: float):
    examples, vectors = random_senses({"usual": 40, "rare": 6, "once": 1}, spread)
    found = Disambiguator.learn(examples, vectors, space="none", prior="auto").prior
    counts = {prior: left_out(examples, vectors, prior) for prior in PRIORS}
    assert found >= least
    assert counts[found] == max(counts.values())
    assert all(counts[prior] < counts[found] for prior in PRIORS if prior < found)


def test_an_invalid_prior_is_refused():
    for text in ("-1", "nan", "much"):
        with pytest.raises(UsageError, match="expected a number from 0, or auto"):
            _parse_prior(text)
