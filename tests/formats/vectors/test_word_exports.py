"""Word vectors in the formats of other programs, read back by our reader and by gensim."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import polyseme
from polyseme.choices import ExportFormat
from polyseme.formats.vectors.word_exports import WORD_EXPORTS
from polyseme.io.progress import ProgressEvent
from polyseme.word_vectors import WordVectors

FILES = ["words.vec", "words.txt", "words.bin"]


def make_words(count: int = 40, size: int = 6) -> WordVectors:
    rng = np.random.default_rng(1)
    names = ("的", "naïve", "12", "-0.5", "𝒳", "a_b", *(f"word{number}" for number in range(count - 6)))
    vectors = (rng.normal(size=(count, size)) * 10.0 ** rng.integers(-30, 30, (count, 1))).astype(np.float32)
    return WordVectors(
        names, np.arange(count, 0, -1), vectors, rng.normal(size=size).astype(np.float32) * np.float32(1e-3)
    )


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("uncorrected", [False, True])
def test_our_reader_reads_back_the_same_numbers(tmp_path: Path, name: str, uncorrected: bool):
    words = make_words()
    written = polyseme.export(words, tmp_path / name, uncorrected=uncorrected)
    assert (written.words, written.size, written.out) == (40, 6, tmp_path / name)
    read = polyseme.read_vectors(tmp_path / name)
    assert tuple(read.words) == words.words
    expected = words.vectors if uncorrected else words.vectors - words.centre
    np.testing.assert_array_equal(read.matrix, expected)


@pytest.mark.parametrize("name", FILES)
def test_gensim_finds_the_neighbours_that_nearest_finds(tmp_path: Path, name: str):
    keyed_vectors = pytest.importorskip("gensim.models").KeyedVectors
    polyseme.export("en-classic", tmp_path / name, min_count=50)
    loaded = keyed_vectors.load_word2vec_format(str(tmp_path / name), binary=name.endswith(".bin"))
    expected = polyseme.nearest("en-classic", "mother", 8, min_count=50)
    neighbours = loaded.most_similar("mother", topn=8)
    assert [word for word, _ in neighbours] == [neighbour.word for neighbour in expected]
    np.testing.assert_allclose([cosine for _, cosine in neighbours], [n.cosine for n in expected], atol=1e-6)


def test_the_projector_gets_a_table_of_vectors_and_one_of_words(tmp_path: Path):
    words = make_words()
    polyseme.export(words, tmp_path / "projector", uncorrected=True)
    vectors = np.loadtxt(tmp_path / "projector" / "vectors.tsv", delimiter="\t", dtype=np.float32)
    np.testing.assert_array_equal(vectors, words.vectors)
    lines = (tmp_path / "projector" / "metadata.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["word\tcount", "的\t40"]
    assert [line.split("\t")[0] for line in lines[1:]] == list(words.words)


def test_rare_words_are_left_out(tmp_path: Path):
    polyseme.export(make_words(), tmp_path / "words.vec", min_count=30)
    assert len(polyseme.read_vectors(tmp_path / "words.vec")) == 11
    with pytest.raises(polyseme.UsageError, match="No word has 99 usages"):
        polyseme.export(make_words(), tmp_path / "none.vec", min_count=99)


def test_a_format_can_be_named_whatever_the_ending(tmp_path: Path):
    polyseme.export(make_words(), tmp_path / "vectors.w2v", format="word2vec-binary")
    polyseme.export(make_words(), tmp_path / "vectors.bin")
    assert (tmp_path / "vectors.w2v").read_bytes() == (tmp_path / "vectors.bin").read_bytes()


@pytest.mark.parametrize(
    ("name", "message"), [("words.xml", "not the ending of an export format"), ("kept.vec", "force=True")]
)
def test_another_ending_or_an_existing_file_is_refused(tmp_path: Path, name: str, message: str):
    (tmp_path / "kept.vec").write_text("kept", encoding="utf-8")
    with pytest.raises(polyseme.UsageError, match=message):
        polyseme.export(make_words(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.vec"]
    assert (tmp_path / "kept.vec").read_text(encoding="utf-8") == "kept"


@pytest.mark.parametrize("name", [*FILES, "projector"])
def test_an_interrupted_export_leaves_the_old_target(tmp_path: Path, name: str):
    polyseme.export(make_words(), tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def stop(event: ProgressEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        polyseme.export(make_words(80), tmp_path / name, force=True, progress=stop)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    polyseme.export(make_words(80), tmp_path / name, force=True)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} != before


def test_a_word_with_white_space_is_refused(tmp_path: Path):
    words = WordVectors(
        ("New York",), np.ones(1, np.int64), np.ones((1, 2), np.float32), np.zeros(2, np.float32)
    )
    with pytest.raises(polyseme.UsageError, match="'New York' is empty or contains white space"):
        polyseme.export(words, tmp_path / "words.vec")
    assert not list(tmp_path.iterdir())


def test_every_format_has_a_name_among_the_choices():
    assert set(WORD_EXPORTS) == set(get_args(ExportFormat))
