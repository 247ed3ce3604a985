"""Invalid, unusual or huge input: a clear error, or vectors as for any other text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import PolysemeError, UsageError

TESTS = Path(__file__).parent
H = 8  # of small_config


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


# ---- invalid ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"layer": "last"},
            "layer is 'last', expected mean, top, concat, all, a number from 0 to 2, or 3 weights.",
        ),
        ({"layer": ""}, "layer is '', expected mean"),
        ({"layer": 3}, "layer is 3, the model has layers 0 to 2."),
        ({"layer": -1}, "layer is -1, the model has layers 0 to 2."),
        ({"layer": True}, "layer is True, expected weights as numbers, or (weights, gamma)."),
        ({"layer": None}, "layer is None, expected weights as numbers"),
        ({"layer": 1.5}, "layer is 1.5, expected weights as numbers"),
        ({"layer": []}, "layer has 0 weights, the model has 3 layers."),
        ({"layer": [0.5, 0.5]}, "layer has 2 weights, the model has 3 layers."),
        ({"layer": ([0.5, 0.5], 1.0)}, "layer has 2 weights, the model has 3 layers."),
        ({"layer": [1, 2, "x"]}, "layer is [1, 2, 'x'], expected weights as numbers"),
        ({"layer": ([1, 2, 3], None)}, "layer is ([1, 2, 3], None), expected weights as numbers"),
        ({"layer": [1, 2, float("nan")]}, "layer is [1, 2, nan], expected finite weights."),
        ({"layer": ([1, 2, 3], float("inf"))}, "layer is ([1, 2, 3], inf), expected finite weights."),
        (
            {"pool": "average"},
            "pool is 'average', expected one of mean, max, first, last, sum, concat, sentence, or None",
        ),
        ({"pool": ["mean"]}, "pool is ['mean'], expected one of mean"),
        ({"pool": False}, "pool is False, expected one of mean"),
        ({"direction": "left"}, "direction is 'left', expected one of both, forward, backward."),
        ({"direction": None}, "direction is None, expected one of both"),
        ({"segment": "chinese"}, "'chinese' is not a segmentation. Choose one of split, en, zh"),
        ({"segment": ""}, "'' is not a segmentation."),
    ],
)
@pytest.mark.parametrize("sentences", ["the bank", [["the"]], []], ids=["string", "tokens", "nothing"])
def test_an_invalid_option_is_named_with_the_valid_ones(elmo, options, message, sentences):
    with pytest.raises(UsageError) as error:
        elmo.embed(sentences, **options)
    assert str(error.value).startswith(message)
    assert isinstance(error.value, PolysemeError)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (5, "sentences is of type int, expected strings in a list or another iterable."),
        (None, "sentences is of type NoneType, expected strings in a list or another iterable."),
        (Path("a.txt"), f"sentences is of type {type(Path()).__name__}, expected strings in a list"),
        (b"the bank", 'sentences is bytes, expected text: decode it first, `sentences.decode("utf-8")`.'),
        ({"the bank"}, "sentences is a set, which has no order: pass a list, such as `sorted(sentences)`."),
        (frozenset(["the bank"]), "sentences is a frozenset, which has no order"),
        ({"a": "the bank"}, "sentences is a dict, expected a list: pass `list(sentences.values())`."),
        (np.array("the bank"), "sentences is of type ndarray, expected strings in a list"),
        (np.array([1, 2]), "sentence 0 is 1, expected a string or a list of tokens."),
        (
            ["the", float("nan")],
            "sentence 1 is a missing value (nan), expected a string or a list of tokens.",
        ),
        ([{"bank"}], "sentence 0 is {"),
        ([{"the": "bank"}], "sentence 0 is {'the': 'bank'}, expected a string or a list of tokens."),
        ([["the", None]], "token 1 of sentence 0 is a missing value (None), expected a string."),
        ([1, 2], "sentence 0 is 1, expected a string or a list of tokens."),
        (
            ["the", None],
            "sentence 1 is a missing value (None), expected a string or a list of tokens. Drop or",
        ),
        ([["the"], b"bank"], "sentence 1 is b'bank', expected a string or a list of tokens."),
        ([["the"], ["bank", 7]], "token 1 of sentence 1 is 7, expected a string."),
        ([[["the", "bank"]]], "token 0 of sentence 0 is ['the', 'bank'], expected a string."),
        ([["the", b"bank"]], "token 1 of sentence 0 is b'bank', expected a string."),
        ([["the", ""]], "token 1 of sentence 0 is empty. A token is one word"),
        ([["the", " "]], "token 1 of sentence 0 is empty."),
        ([["the", "a b"]], "token 1 of sentence 0 holds white space ('a b'). A token is one word"),
        ([["bank "]], "token 0 of sentence 0 holds white space ('bank ')"),
        ([["a\u3000b"]], r"token 0 of sentence 0 holds white space ('a\u3000b')"),
        ([["a\nb"]], r"token 0 of sentence 0 holds white space ('a\nb')"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
@pytest.mark.parametrize("method", ["embed", "outputs", "features"])
def test_invalid_sentences_are_refused_with_their_position(elmo, sentences, message, method):
    before = elmo.counts.sentences
    with pytest.raises(UsageError) as error:
        getattr(elmo, method)(sentences)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)
    assert elmo.counts.sentences == before


@pytest.mark.parametrize("text", [5, None, b"the bank", ["the", "bank"]])
def test_only_strings_can_be_segmented(elmo, text):
    with pytest.raises(UsageError, match=f"text is of type {type(text).__name__}, expected a string"):
        elmo.tokenize(text)
    with pytest.raises(UsageError, match=f"text is of type {type(text).__name__}, expected a string"):
        elmo.split_sentences(text)


def test_long_invalid_input_gives_a_short_message(elmo):
    with pytest.raises(UsageError) as error:
        elmo.embed([["many words " * 10_000]])
    assert len(str(error.value)) < 300


# ---- containers ----

TEXTS = ["the bank failed", "a river", "", "naïve 银行"]
CONTAINERS = {
    "tuple": tuple,
    "generator": lambda texts: (text for text in texts),
    "array": np.array,
    "objects": lambda texts: np.array(texts, dtype=object),
    "map": lambda texts: map(str, texts),
    "dict values": lambda texts: dict(enumerate(texts)).values(),
    "dict keys": lambda texts: dict.fromkeys(texts).keys(),
    "pandas": lambda texts: pytest.importorskip("pandas").Series(texts, index=range(10, 10 + len(texts))),
    "pandas strings": lambda texts: pytest.importorskip("pandas").Series(texts, dtype="string"),
    "polars": lambda texts: pytest.importorskip("polars").Series(texts),
    "pyarrow": lambda texts: pytest.importorskip("pyarrow").array(texts),
    "chunked": lambda texts: pytest.importorskip("pyarrow").chunked_array([texts[:2], texts[2:]]),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_ordered_container_of_strings_is_embedded(elmo, container):
    expected = elmo.embed(TEXTS)
    for vectors, expected_vectors in zip(elmo.embed(CONTAINERS[container](TEXTS)), expected, strict=True):
        np.testing.assert_array_equal(vectors, expected_vectors)
    np.testing.assert_array_equal(
        elmo.embed(CONTAINERS[container](TEXTS), pool="mean"), elmo.embed(TEXTS, pool="mean")
    )
    assert elmo.outputs(CONTAINERS[container](TEXTS))["sequence_len"].tolist() == [3, 2, 0, 2]
    assert len(elmo.features(CONTAINERS[container](TEXTS))) == 4


@pytest.mark.parametrize("container", CONTAINERS)
def test_tokens_can_be_in_any_ordered_container(elmo, container):
    tokens = ["the", "bank", "failed"]
    np.testing.assert_array_equal(
        elmo.embed([CONTAINERS[container](tokens)])[0], elmo.embed("the bank failed")
    )
    np.testing.assert_array_equal(elmo.embed(np.array([tokens, tokens]))[1], elmo.embed("the bank failed"))


def test_a_generator_is_checked_element_by_element(elmo):
    with pytest.raises(UsageError, match="sentence 1 is 5, expected a string or a list of tokens"):
        elmo.embed(text for text in ["the bank", 5])


def missing_values() -> dict[str, object]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return {
        "nan": pandas.Series(["the", "bank", None], index=[7, 8, 9]),
        "NA": pandas.Series(["the", "bank", None], dtype="string"),
        "polars": polars.Series(["the", "bank", None]),
    }


@pytest.mark.parametrize("kind", ["nan", "NA", "polars"])
def test_a_missing_value_in_a_column_is_refused_with_its_row(elmo, kind):
    with pytest.raises(UsageError, match=r"sentence 2 is a missing value \((None|nan|<NA>)\), .*dropna"):
        elmo.embed(missing_values()[kind])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_refused_with_advice(elmo, library):
    table = pytest.importorskip(library).DataFrame({"text": TEXTS})
    with pytest.raises(
        UsageError, match=r'is a DataFrame, expected one column of it, such as `\w+\["text"\]`'
    ):
        elmo.embed(table)


class HubDataset:
    """The part of a data set of Hugging Face that we use."""

    column_names = ("text",)

    def __iter__(self) -> Iterator[dict[str, str]]:
        return iter({"text": text} for text in TEXTS)


def test_other_tables_are_refused_with_advice(elmo):
    with pytest.raises(UsageError, match="is a LazyFrame: collect it first"):
        elmo.embed(pytest.importorskip("polars").LazyFrame({"text": TEXTS}))
    with pytest.raises(UsageError, match="is a HubDataset, expected one column of it"):
        elmo.embed(HubDataset())


# ---- unusual ----


@pytest.mark.parametrize(
    "token",
    ["\ud800", "a\udfffb", "\x00", "a\x00b", "\ufeff", "\u200b", "😀", "x" * 100_000, "<S>", "\u0301"],
    ids=ascii,
)
@pytest.mark.parametrize("encoding", ["bytes", "codepoints"])
def test_unusual_tokens_have_vectors(token, encoding):
    chars = {"encoding": encoding, "max_chars": 12, "dim": 3, "filters": [[1, 2], [2, 3]]}
    elmo = Elmo(random_model(small_config(chars=chars)))
    vectors = elmo.embed([["the", token, "bank"], ["the"]])[0]
    assert vectors.shape == (3, H)
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(vectors, elmo.embed(f"the {token} bank"), atol=1e-6)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.one_of(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=8))), max_size=6))
def test_any_unicode_gives_finite_vectors_or_a_clear_error(elmo, sentences):
    try:
        arrays = elmo.embed(sentences)
    except UsageError as error:
        assert "white space" in str(error) or "is empty" in str(error)  # noqa: PT017
        return
    assert len(arrays) == len(sentences)
    for sentence, array in zip(sentences, arrays, strict=True):
        assert array.shape == (len(sentence.split() if isinstance(sentence, str) else sentence), H)
        assert np.isfinite(array).all()


# ---- huge ----


def test_ten_thousand_sentences_of_one_token_are_one_call(elmo):
    words = [f"w{number}" for number in range(10_000)]
    vectors = elmo.embed([[word] for word in words], pool="mean")
    assert vectors.shape == (10_000, H)
    for number in (0, 4711, 9_999):
        np.testing.assert_allclose(vectors[number], elmo.embed(words[number])[0], atol=1e-6)


LONG = """
import resource, torch
torch.set_num_threads(1)
from builders import random_model, small_config
from polyseme.elmo import Elmo

recurrent = {{"cell": "rnn", "layers": 1, "cells": 4, "outputs": 4, "cell_clip": None}}
elmo = Elmo(random_model(small_config(recurrent=recurrent)))
words = "the bank of the river failed !".split()
elmo.embed([words * 10])
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
before = peak()
arrays = elmo.embed([words, words * {times}, words], layer="top")
print(peak() - before, *(len(array) for array in arrays))
"""


def megabytes_for(times: int) -> int:
    """The growth of a process while it embeds a sentence of 7 * times tokens."""
    done = subprocess.run(
        [sys.executable, "-c", LONG.format(times=times)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"},
    )
    grown, *lengths = map(int, done.stdout.split())
    assert lengths == [7, 7 * times, 7]
    return grown


@pytest.mark.parametrize("tokens", [21_000, pytest.param(105_000, marks=pytest.mark.slow)])
def test_a_sentence_of_many_thousand_tokens_is_embedded_in_little_memory(tokens):
    assert megabytes_for(tokens // 7) < 20 + tokens / 500  # 2 kB per token: torch keeps tensors of each step
