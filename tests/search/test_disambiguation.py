"""Word-sense disambiguation from labelled examples, and the file formats of the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from builders import filled, random_model, small_config
from polyseme.cli.meanings import _parse_prior
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.search.disambiguation import PRIORS, Disambiguator
from polyseme.search.sense_data import LabelledUsage, read_sense_data, read_wordnet_senses, wordnet_key
from polyseme.search.space import fit_space
from polyseme.search.usage_vectors import TOPIC_WEIGHT, embed_usage_parts, embed_usages
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
    row, *_ = read_sense_data(write(tmp_path / "r.tsv", ROWS), "train")
    assert (row.key, row.tokens[row.start : row.stop], row.senses) == ("bank", ("bank",), ("shore",))
    write(tmp_path / "x.gold.key.txt", "d.s0.t0 river_bank%1:17:00:: other%1:00:00::\nd.s0.t1 be%2:42:00::\n")
    noun, verb = read_sense_data(write(tmp_path / "x.data.xml", XML), "test")
    assert (noun.key, noun.tokens[noun.start : noun.stop]) == ("river_bank%1", ("river", "bank"))
    assert len(noun.senses) == 2
    assert verb.key == "be%2"
    semcor = read_sense_data(write(tmp_path / "s.tsv", SEMCOR), "train")
    assert [usage.key for usage in semcor] == ["river_bank%1", "be%2"]
    assert semcor[0].tokens == noun.tokens


def test_raw_text_is_segmented_around_the_marked_word_as_the_model_was_trained(tmp_path: Path):
    path = write(tmp_path / "r.tsv", "意\t关公会其[意]，遂辞而去。\tmeaning\n江山\t不爱[大好 江山]爱人\tx\n")
    first, second = read_sense_data(path, "train", lambda text: token_texts(text, "zh-char"))
    assert first.tokens == ("关", "公", "会", "其", "意", "，", "遂", "辞", "而", "去", "。")
    assert first.tokens[first.start : first.stop] == ("意",)
    assert second.tokens[second.start : second.stop] == (
        "大好",
        "江山",
    )  # marked text is split at spaces only
    assert second.tokens[second.stop :] == ("爱", "人")
    elmo = Elmo(random_model(small_config(segment="zh-char")))
    embedded: list[list[str]] = []
    run_batch = elmo.run_batch
    elmo.run_batch = lambda batch, *rest: embedded.extend(batch) or run_batch(batch, *rest)  # type: ignore
    polyseme.disambiguate(elmo, path, path)
    assert list(first.tokens) in embedded
    polyseme.disambiguate(elmo, path, path, segment="split")
    assert ["关公会其", "意", "，遂辞而去。"] in embedded


@pytest.mark.parametrize("examples", [5, "bank\ta [bank]\tx\n"])
def test_examples_that_are_no_path_are_refused(tmp_path: Path, elmo: Elmo, examples: Any):
    path = write(tmp_path / "r.tsv", ROWS)
    for name, arguments in (("train", (examples, path)), ("test", (path, examples))):
        with pytest.raises(UsageError, match=rf"{name} is .*, expected the path of labelled examples"):
            polyseme.disambiguate(elmo, *arguments)


def test_vectors_that_are_not_finite_are_refused_with_their_location(tmp_path: Path, elmo: Elmo, monkeypatch):
    path, run_batch = write(tmp_path / "r.tsv", ROWS), elmo.run_batch
    monkeypatch.setattr(elmo, "run_batch", lambda *args: filled(run_batch(*args), torch.nan))
    with pytest.raises(DataError, match=r"r\.tsv:1: a vector is not finite"):
        polyseme.disambiguate(elmo, path, path)


def test_folders_of_coarse_senses_are_read(tmp_path: Path):
    (tmp_path / "apple").mkdir()
    write(tmp_path / "apple" / "train.data.txt", "1\tthe apple fell\n0\tapple sued\n")
    write(tmp_path / "apple" / "train.gold.txt", "1\n0\n")
    assert [(usage.key, usage.start, usage.senses) for usage in read_sense_data(tmp_path, "train")] == [
        ("apple", 1, ("1",)),
        ("apple", 0, ("0",)),
    ]
    write(tmp_path / "apple" / "train.gold.txt", "1\n")
    with pytest.raises(DataError, match="2 sentences and 1 senses"):
        read_sense_data(tmp_path, "train")


def test_the_vector_of_a_marked_word_is_the_mean_of_its_tokens(elmo: Elmo):
    tokens = ("The", "river", "bank", "is", "green")
    examples = [
        LabelledUsage("a", "x", tokens, 1, 3),
        LabelledUsage("b", "y", tokens, 3, 4),
        LabelledUsage("c", "z", ("so",), 0, 1),
    ]
    sentence, short_sentence = elmo.embed([list(tokens), ["so"]], layer="top")
    vectors = list(embed_usages(elmo, examples, "top"))
    np.testing.assert_allclose(vectors[0], sentence[1:3].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(vectors[1], sentence[3], atol=1e-6)
    np.testing.assert_allclose(vectors[2], short_sentence[0], atol=1e-6)


def test_the_context_of_a_word_is_the_forward_state_before_and_the_backward_state_after_it(elmo: Elmo):
    tokens = ("The", "river", "bank", "is", "green")
    usage = LabelledUsage("a", "x", tokens, 1, 3)
    sentence = elmo.embed([list(tokens)], layer="top")[0]
    half = elmo.config.size // 2
    (context,) = embed_usages(elmo, [usage], "top", "context")
    np.testing.assert_allclose(context, np.concatenate([sentence[0, :half], sentence[3, half:]]), atol=1e-6)
    other_word = LabelledUsage("a", "x", ("The", "sea", "shore", "is", "green"), 1, 3)
    np.testing.assert_allclose(context, next(embed_usages(elmo, [other_word], "top", "context")), atol=1e-6)
    (joined,) = embed_usages(elmo, [usage], "top", "sentence")
    others = sentence[[0, 3, 4]].mean(axis=0)
    np.testing.assert_allclose(joined, np.concatenate([context, TOPIC_WEIGHT * others]), atol=1e-5)


def test_rare_words_weigh_more_in_the_sentence():
    elmo = Elmo(random_model(small_config()))
    tokens = ("the", "bank", "failed", "!")
    assert elmo.weigh_tokens(tokens).tolist() == [1, 1, 1, 1]
    elmo.fit_sentences([["the", "river"], ["the", "the", "the"], ["the", "bank", "failed"]])
    weights = elmo.weigh_tokens(tokens)
    assert weights[0] < weights[2] < weights[3]
    sentence = elmo.embed([list(tokens)], layer="top")[0]
    (joined,) = embed_usages(elmo, [LabelledUsage("a", "x", tokens, 1, 2)], "top", "sentence")
    expected = TOPIC_WEIGHT * np.average(sentence[[0, 2, 3]], axis=0, weights=weights[[0, 2, 3]])
    np.testing.assert_allclose(joined[elmo.config.size :], expected, atol=1e-5)


def test_joined_layers_are_those_of_every_layer(elmo: Elmo):
    usages = [LabelledUsage("a", "x", ("The", "river", "bank"), 1, 3)]
    (joined,) = embed_usages(elmo, usages, "concat", "sentence")
    layers = [next(embed_usages(elmo, usages, layer, "sentence")) for layer in range(3)]
    np.testing.assert_allclose(joined, np.concatenate(layers), atol=1e-6)


def test_a_word_that_is_the_whole_sentence_has_a_context(elmo: Elmo):
    layers, _ = elmo.compute_layers([["so"]])  # <S> so </S>
    half = elmo.config.size // 2
    (context,) = embed_usages(elmo, [LabelledUsage("a", "x", ("so",), 0, 1)], "top", "context")
    expected = torch.cat([layers[-1, 0, 0, :half], layers[-1, 0, 2, half:]])
    np.testing.assert_allclose(context, expected.numpy(), atol=1e-6)
    (joined,) = embed_usages(elmo, [LabelledUsage("a", "x", ("so",), 0, 1)], "top", "sentence")
    assert not joined[2 * half :].any()  # no other word


def test_a_correction_of_few_vectors_is_that_of_all_their_directions():
    rng = np.random.default_rng(0)
    few, size = rng.standard_normal((5, 8)), 8
    space = fit_space(few, "whiten")
    variances, axes = np.linalg.eigh(np.cov(few.T))
    share = size / (len(few) + size)
    scales = 1 / np.sqrt((1 - share) * variances.clip(0) + share * variances.mean())
    assert space.matrix is not None
    np.testing.assert_allclose(space.matrix, (axes * scales) @ axes.T, atol=1e-5)
    removed = fit_space(few, "components").transform(few) @ axes[:, -2:]
    np.testing.assert_allclose(removed, 0, atol=1e-5)


def test_the_mean_of_few_examples_counts_less():
    senses = ["once"] + ["often"] * 20
    examples = [LabelledUsage("x", "art", ("art",), 0, 1, (sense,)) for sense in senses]
    vectors = [np.array(pair, np.float32) for pair in [(1, 0)] + [(0, 1)] * 20]
    learned = Disambiguator.learn(examples, vectors, space="none", prior=0.0)
    for x, sense in ((1.1, "often"), (3.0, "once")):
        assert learned.predict(examples[:1], [np.array((x, 1), np.float32)]) == [sense]


def test_layer_all_gives_every_layer_at_once(elmo: Elmo):
    usages = [LabelledUsage("a", "x", ("The", "river", "bank"), 1, 3)]
    (rows,) = embed_usage_parts(elmo, usages, "all")
    for layer, row in enumerate(rows):
        np.testing.assert_allclose(row, next(embed_usage_parts(elmo, usages, layer)), atol=1e-6)
    with pytest.raises(UsageError, match="layer is 'all'"):
        next(embed_usages(elmo, usages, "all"))


def test_unknown_views_and_spaces_are_refused(tmp_path: Path, elmo: Elmo):
    path = write(tmp_path / "r.tsv", ROWS)
    for name, value in (("view", "eye"), ("space", "deep")):
        options: dict[str, Any] = {name: value}
        with pytest.raises(UsageError, match=f"{name} is .* expected one of"):
            polyseme.disambiguate(elmo, path, path, **options)


def test_directions_that_vary_within_a_sense_count_less():
    rng = np.random.default_rng(0)
    names = ["shore", "money"] * 200
    signal = np.array([[1.0] if name == "shore" else [-1.0] for name in names])
    noise = 5 * rng.standard_normal((len(names), 3))  # independent of the sense
    vectors = np.concatenate([signal + 0.3 * rng.standard_normal(signal.shape), noise], axis=1)
    examples = [LabelledUsage(str(n), "w", ("w",), 0, 1, (name,)) for n, name in enumerate(names)]
    vectors = vectors.astype(np.float32)
    accuracy = {}
    for space in ("centre", "senses"):
        learned = Disambiguator.learn(examples, vectors, space=space, prior=0)
        accuracy[space] = learned.evaluate(examples, learned.predict(examples, vectors)).accuracy
    assert accuracy["senses"] > 0.95 > accuracy["centre"]


def test_senses_with_one_example_each_are_learned(tmp_path: Path, elmo: Elmo):
    path = write(tmp_path / "r.tsv", "".join(ROWS.splitlines(keepends=True)[1:3]))
    for space in ("senses", "whiten", "none"):
        _, predictions = polyseme.disambiguate(elmo, path, path, space=space)
        assert predictions == ["shore", "money"]


def test_training_examples_are_predicted_with_their_senses(tmp_path: Path, elmo: Elmo):
    path = write(tmp_path / "r.tsv", "".join(ROWS.splitlines(keepends=True)[1:3]))
    scores, predictions = polyseme.disambiguate(elmo, path, path)
    assert predictions == ["shore", "money"]
    assert (scores.accuracy, scores.accuracy_by_word, scores.unseen, scores.count) == (1, 1, 0, 2)
    assert scores.baseline == 0.5


def test_a_word_without_examples_gets_its_first_wordnet_sense(tmp_path: Path, elmo: Elmo):
    index = write(tmp_path / "index.sense", "be%2:42:00:: 02604760 1 5\nbe%2:42:01:: 02604761 2 3\n")
    first_senses = read_wordnet_senses(index)
    assert first_senses == {"be%2": "be%2:42:00::"}
    examples = read_sense_data(write(tmp_path / "r.tsv", ROWS), "train")
    learned = Disambiguator.learn(examples, embed_usages(elmo, examples, "top"), wordnet=first_senses)
    unseen = [LabelledUsage("a", "be%2", ("it", "is"), 1, 2), LabelledUsage("b", "go%2", ("go",), 0, 1)]
    predictions = learned.predict(unseen, embed_usages(elmo, unseen, "top"))
    assert predictions == ["be%2:42:00::", None]
    with pytest.raises(UsageError, match="nothing to compare with"):
        learned.evaluate(unseen, predictions)


def test_adjectives_and_satellites_are_one_class():
    assert wordnet_key("red%3:00:01::") == wordnet_key("red%5:00:00:chromatic:00") == "red%3"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "bank\tno brackets\tx\n", r"a\.tsv:1: .*no word is marked"),
        ("a.tsv", "bank\n", r"a\.tsv:1: 1 columns, expected a word"),
        ("a.tsv", "", "no labelled words"),
        ("a.tsv", "bank\tan empty [ ] pair\tx\n", "the brackets are empty"),
        ("a.tsv", "# s\nThe\tthe\n", r"a\.tsv:2: 2 columns"),
        ("a.xml", "<corpus>", "not XML"),
    ],
)
def test_malformed_files_are_refused(tmp_path: Path, name: str, text: str, message: str):
    with pytest.raises(DataError, match=message):
        read_sense_data(write(tmp_path / name, text), "train")


def test_a_malformed_index_sense_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match=r"index\.sense:1"):
        read_wordnet_senses(write(tmp_path / "index.sense", "hello\n"))


def test_of_equally_near_senses_the_most_frequent_is_predicted():
    examples = [LabelledUsage("x", "art", ("art",), 0, 1, (sense,)) for sense in ("rare", "usual", "usual")]
    vectors = [np.ones(4, np.float32)] * 3
    learned = Disambiguator.learn(examples, vectors, space="none")
    assert learned.predict(examples[:1], vectors[:1]) == ["usual"]


def test_a_prior_favours_frequent_senses():
    examples = [
        LabelledUsage("x", "art", ("art",), 0, 1, (sense,)) for sense in ["rare"] * 3 + ["usual"] * 27
    ]
    vectors = [np.array(pair, np.float32) for pair in [(1, 0)] * 3 + [(0, 1)] * 27]
    between = [np.array((1, 0.5), np.float32)]
    for prior, sense in ((0, "rare"), (0.2, "usual")):
        learned = Disambiguator.learn(examples, vectors, space="none", prior=prior)
        assert learned.predict(examples[:1], between) == [sense]


def random_senses(counts: dict[str, int], spread: float) -> tuple[list[LabelledUsage], list[np.ndarray]]:
    """Random examples of one word: `counts` per sense, around one direction for each sense."""
    rng = np.random.default_rng(0)
    centres = {sense: rng.standard_normal(8) for sense in counts}
    names = [sense for sense, count in counts.items() for _ in range(count)]
    vectors = [(centres[name] + spread * rng.standard_normal(8)).astype(np.float32) for name in names]
    return [LabelledUsage(str(n), "w", ("w",), 0, 1, (name,)) for n, name in enumerate(names)], vectors


def count_leave_one_out(examples: list[LabelledUsage], vectors: list[np.ndarray], prior: float) -> int:
    """Count the examples that are predicted correctly from all others."""
    correct = 0
    for number, (example, vector) in enumerate(zip(examples, vectors, strict=True)):
        other_examples = examples[:number] + examples[number + 1 :]
        other_vectors = vectors[:number] + vectors[number + 1 :]
        learned = Disambiguator.learn(other_examples, other_vectors, space="none", prior=prior)
        correct += learned.predict([example], [vector])[0] in example.senses
    return correct


@pytest.mark.parametrize(("spread", "min_prior"), [(0.1, 0.0), (4.0, 0.01)])
def test_the_prior_is_chosen_by_leave_one_out(spread: float, min_prior: float):
    examples, vectors = random_senses({"usual": 40, "rare": 6, "once": 1}, spread)
    chosen = Disambiguator.learn(examples, vectors, space="none", prior="auto").prior
    counts = {prior: count_leave_one_out(examples, vectors, prior) for prior in PRIORS}
    assert chosen >= min_prior
    assert counts[chosen] == max(counts.values())
    assert all(counts[prior] < counts[chosen] for prior in PRIORS if prior < chosen)


def test_an_invalid_prior_is_refused():
    for text in ("-1", "nan", "much"):
        with pytest.raises(UsageError, match="expected a number from 0, or auto"):
            _parse_prior(text)
