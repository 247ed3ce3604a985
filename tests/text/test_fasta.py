"""FASTA files are read as one sequence per line, with their names as documents."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.errors import DataError
from polyseme.text import fasta
from polyseme.text.corpus.documents import read_documents, read_pieces
from polyseme.text.fasta import FastaRecord, FastaStream, parse_fasta
from polyseme.text.reading import read_fasta, read_lines

TEXT = b"; an old comment\r\n>sp|P69905|HBA_HUMAN Hemoglobin\r\nMVLSP\r\nAD KT\r\n\r\n>b\nGSAQ*\n"
RECORDS = [FastaRecord("sp|P69905|HBA_HUMAN", "MVLSPADKT"), FastaRecord("b", "GSAQ")]


def parse(text: bytes) -> list[FastaRecord]:
    return list(parse_fasta(io.BytesIO(text), "x.fasta"))


def test_a_record_has_the_first_word_of_its_header_and_the_letters_of_its_lines():
    assert parse(TEXT) == RECORDS
    assert parse(b"") == []


@pytest.mark.parametrize("ending", [".fasta", ".faa", ".fna.gz"])
def test_lines_and_documents_are_sequences(tmp_path: Path, ending: str):
    path = tmp_path / f"proteins{ending}"
    path.write_bytes(gzip.compress(TEXT) if ending.endswith("gz") else TEXT)
    assert list(read_fasta(path)) == RECORDS
    assert [line.text for line in read_lines(path)] == ["MVLSPADKT", "GSAQ"]
    documents = [
        (document.number, document.title, [line.text for line in lines])
        for document, lines in read_documents([path])
    ]
    assert documents == [(1, "sp|P69905|HBA_HUMAN", ["MVLSPADKT"]), (2, "b", ["GSAQ"])]
    pieces = [(piece.document, piece.title, piece.text) for piece in read_pieces([path], "file", "letters")]
    assert pieces == [(0, "sp|P69905|HBA_HUMAN", "MVLSPADKT\n"), (1, "b", "GSAQ\n")]


def test_a_long_sequence_is_read_in_small_steps_without_loss():
    letters = b"ACDEFGHIKL" * 50_000
    stream = FastaStream(io.BytesIO(b">long\n" + b"\n".join([letters[:7], letters[7:]])), "x.fasta")
    assert io.BufferedReader(stream, 64).read() == letters + b"\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"MKV\n", r"^x\.fasta:1: a sequence before the first name"),
        (b">a\n>b\nMK\n", r"^x\.fasta:1: a has no sequence"),
        (b">a\nMK\n>b\n*\n", r"^x\.fasta:3: b has no sequence"),
        (b">\nMK\n", r"^x\.fasta:1: a record without a name"),
        (b">a\nM\xffK\n", r"^x\.fasta:2: not UTF-8 \(byte 0xff\)"),
    ],
)
def test_a_malformed_record_is_refused_with_its_line(text: bytes, message: str):
    with pytest.raises(DataError, match=message):
        parse(text)


def test_a_sequence_that_is_too_long_is_refused_while_it_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fasta, "MAX_SEQUENCE", 10)
    with pytest.raises(DataError, match=r"^x\.fasta:1: the sequence of a has more than 10 letters"):
        parse(b">a\nACDEFG\nHIKLM\n")


def test_sequences_are_embedded_by_letter_and_stay_in_order(tmp_path: Path):
    path = tmp_path / "proteins.fasta"
    path.write_bytes(TEXT)
    polyseme.embed("en-classic", path, out=tmp_path / "v.npz", segment="letters", pool="mean", progress=False)
    vectors = polyseme.open_vectors(tmp_path / "v.npz")
    expected = polyseme.load("en-classic").embed(["MVLSPADKT", "GSAQ"], segment="letters", pool="mean")
    assert len(vectors) == 2
    assert np.allclose([vectors[0], vectors[1]], expected, atol=1e-6)
