"""Summaries of sentences: ranks, redundancy, long texts, bad input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
import task_files
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.search.summaries import TextSentence, choose_sentences, rank_sentences, summarise_sentences


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return task_files.elmo()


def test_the_sentence_that_is_like_most_others_has_the_highest_rank() -> None:
    vectors = np.array([[1, 0.1, 0], [1, -0.1, 0.1], [1, 0, 0], [-1, 2, 0], [-1, -2, 1]], np.float32)
    ranks, cosines = rank_sentences(vectors, np.full(5, 9, np.float32))
    assert ranks.sum() == pytest.approx(1, abs=1e-5)
    assert int(ranks.argmax()) in (0, 1, 2)
    assert cosines.shape == (5, 5)


def test_diversity_passes_over_a_repetition() -> None:
    ranks = np.array([0.4, 0.39, 0.1], np.float32)
    cosines = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]], np.float32)
    assert choose_sentences(ranks, cosines, 2, 0.0) == [0, 1]
    assert choose_sentences(ranks, cosines, 2, 0.5) == [0, 2]
    assert choose_sentences(ranks, cosines, 9, 0.5) == [0, 2, 1]


def test_sentences_are_parts_of_the_text_in_its_order(elmo: Elmo) -> None:
    text = "the film is good .\nthe plot was bad .\n  the film is very good .\na sad actor ."
    summary = polyseme.summarise(elmo, text, sentences=3)
    assert summary.total == 4
    assert [s.number for s in summary.sentences] == sorted(s.number for s in summary.sentences)
    for sentence in summary.sentences:
        assert sentence.offsets is not None
        assert text[slice(*sentence.offsets)] == sentence.text
    assert max(sentence.rank for sentence in summary.sentences) <= 1
    assert set(summary.as_dict()) == {"text", "sentences", "total"}
    assert len(polyseme.summarise(elmo, "good .", sentences=5).sentences) == 1


def test_a_file_has_the_summary_of_its_text(elmo: Elmo, tmp_path: Path) -> None:
    text = "the film is good .\nthe plot was bad .\nthe film is very good .\na sad actor .\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert polyseme.summarise(elmo, tmp_path / "a.txt").text == polyseme.summarise(elmo, text).text


def test_a_long_text_is_read_in_blocks(elmo: Elmo) -> None:
    widest = 0

    def read() -> list[TextSentence]:
        words = ["film", "story", "plot", "actor", "good", "bad", "sad"]
        return [
            TextSentence([words[n % 7], words[n % 5], words[n % 3], "."], f"sentence {n}", n)
            for n in range(900)
        ]

    def note(event: polyseme.ProgressEvent) -> None:
        nonlocal widest
        widest += 1

    summary = summarise_sentences(elmo, iter(read()), 3, 0.3, block=100, on_progress=note)
    assert (summary.total, len(summary.sentences), widest) == (900, 3, 9)


@pytest.mark.parametrize(
    ("text", "options", "error", "message"),
    [
        ("", {}, DataError, "no sentences"),
        ("a .", {"sentences": 0}, UsageError, "sentences is 0"),
        ("a .", {"diversity": 2.0}, UsageError, "diversity is 2"),
    ],
)
def test_bad_input_is_refused(
    elmo: Elmo, text: str, options: dict[str, float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        polyseme.summarise(elmo, text, **options)  # type: ignore[arg-type]
