"""Static word vectors are read from files of every format."""

import gzip

import numpy as np
import pytest

from polyseme.errors import DataError, FormatError, UsageError
from polyseme.text.static_vectors import read_vectors

WORDS = ["the", "的", "of"]
MATRIX = np.array([[0.5, -1, 2], [0, 0.25, 1e-3], [3, 4, 5]], np.float32)
ROWS = "the 0.5 -1 2\n的 0 0.25 1e-3\nof 3 4 5\n"


def binary(words=WORDS, matrix=MATRIX, end=b"\n", header=None) -> bytes:
    body = b"".join(w.encode() + b" " + row.tobytes() + end for w, row in zip(words, matrix, strict=True))
    return (header or f"{len(words)} {matrix.shape[1]}\n".encode()) + body


FORMATS = {
    "word2vec text": b"3 3\n" + ROWS.encode(),
    "GloVe": ROWS.encode(),
    "fastText .vec": b"3 3\n" + ROWS.replace("\n", " \n").encode(),
    "word2vec binary": binary(),
    "word2vec binary without line ends": binary(end=b""),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "vectors"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_the_format_is_detected_from_the_content(path, content, pack):
    path.write_bytes(pack(content))
    vectors = read_vectors(path)
    assert list(vectors.words) == WORDS
    assert vectors.dim == 3
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_array_equal(vectors.matrix, MATRIX)


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_reading_can_be_limited_to_words_or_to_the_first_rows(path, content):
    path.write_bytes(content)
    vectors = read_vectors(path, only=["of", "的", "zebra"])
    assert dict(vectors.words) == {"的": 0, "of": 1}
    np.testing.assert_array_equal(vectors.matrix, MATRIX[1:])
    assert list(read_vectors(path, limit=2).words) == WORDS[:2]
    assert read_vectors(path, only=[]).matrix.shape == (0, 3)
    with pytest.raises(UsageError, match="limit is -1"):
        read_vectors(path, limit=-1)


def test_a_missing_word_gets_zeros_and_is_counted(path):
    path.write_text(ROWS)
    vectors = read_vectors(path)
    rows, missing = vectors.lookup(["of", "zebra", "the", "The"])
    np.testing.assert_array_equal(rows, [[3, 4, 5], [0, 0, 0], [0.5, -1, 2], [0, 0, 0]])
    assert rows.dtype == np.float32
    assert missing == 2
    assert "of" in vectors
    assert "The" not in vectors
    assert vectors.lookup([])[0].shape == (0, 3)


def test_words_with_spaces_and_numbers_as_words_are_read(path):
    path.write_text("1 2 3 4\n. . . 1 2 3\nat name@domain.com 4 5 6\n 7 8 9\n\u00a0 1 1 1\n")
    assert list(read_vectors(path).words) == ["1", ". . .", "at name@domain.com", "", "\u00a0"]


def test_the_first_of_two_equal_words_wins(path):
    path.write_text("2 1\na 1\na 2\n")
    vectors = read_vectors(path)
    assert vectors.matrix.tolist() == [[1.0]]
    assert len(vectors) == 1


def test_a_word_that_is_not_utf8_does_not_stop_reading(path):
    path.write_bytes(b"2 2\n\xe4\xb8 1 2\nb 3 4\n")
    assert list(read_vectors(path).words) == ["\ufffd", "b"]
    path.write_bytes(binary(["a", "b", "c"]).replace(b"b ", b"\xe4 "))
    assert list(read_vectors(path).words) == ["a", "\ufffd", "c"]


def test_a_binary_vector_may_start_with_the_bytes_of_a_line_break(path):
    matrix = np.frombuffer(b"\n\n\n\x3f" * 3 + b"\0\0\x80\x3f" * 3, "<f4").reshape(2, 3)
    path.write_bytes(binary(["a", "b"], matrix))
    np.testing.assert_array_equal(read_vectors(path).matrix, matrix)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 1 2 3\nb 1 2\n", r"vectors:2: 3 columns, expected 4"),
        ("a 1 2 3\nb 1 2 3 4\n", r"vectors:2: 5 columns, expected 4"),
        ("2 3\na 1 2 3\n\n", r"vectors:3: 0 columns, expected 4"),
        ("2 3\na 1 2 3\nb 1 x 3\n", r"vectors:3: 'x' is not a number"),
        ("a 1 2 3\nb 1 nan 3\n", r"vectors:2: the vector of 'b' contains NaN"),
        ("a 1 2 3\nb 1 1e300 3\n", r"vectors:2: the vector of 'b' contains NaN or infinity"),
        ("", r"vectors:1: no vectors: "),
        ("just some words\n", r"vectors:1: expected a word and its numbers"),
    ],
)
def test_an_invalid_line_is_reported(path, content, message):
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_vectors(path)


def test_an_invalid_binary_vector_is_reported(path):
    path.write_bytes(binary(matrix=np.array([[1, 2, 3], [np.inf, 1, 1], [1, 1, 1]], np.float32)))
    with pytest.raises(DataError, match="vector 2: the vector of '的'"):
        read_vectors(path)


@pytest.mark.parametrize("size", [-1, -5, -14, -17])
def test_a_truncated_binary_file_is_refused(path, size):
    path.write_bytes(binary(end=b"")[:size])
    with pytest.raises(FormatError, match="truncated"):
        read_vectors(path)


@pytest.mark.parametrize("header", [b"999999999999999999 3\n", b"9 65536\n"])
def test_a_wrong_header_does_not_allocate_memory(path, header):
    for content in (binary(header=header), header + ROWS.encode()):
        path.write_bytes(content)
        with pytest.raises((FormatError, DataError)):
            read_vectors(path)


def test_absurd_sizes_are_refused(path):
    path.write_bytes(b"3 999999999999\n" + ROWS.encode())
    with pytest.raises(FormatError, match="vectors of 999999999999 numbers"):
        read_vectors(path)


def test_a_text_file_shorter_than_its_header_is_refused(path):
    path.write_bytes(b"4 3\n" + ROWS.encode())
    with pytest.raises(FormatError, match="3 vectors, the header declares 4"):
        read_vectors(path)


def test_a_fasttext_model_is_refused_with_advice(path):
    path.write_bytes((793712314).to_bytes(4, "little") + b"\0" * 100)
    with pytest.raises(FormatError, match=r"Use its \.vec file"):
        read_vectors(path)


def test_files_of_other_kinds_are_refused(path, tmp_path):
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(FormatError, match="not word vectors"):
        read_vectors(path)
    with pytest.raises(UsageError, match="no such file"):
        read_vectors(tmp_path / "none")
    with pytest.raises(UsageError, match="a folder"):
        read_vectors(tmp_path)
    with pytest.raises(UsageError, match="standard input"):
        read_vectors("-")
