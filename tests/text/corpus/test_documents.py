"""Files are read as documents in bounded pieces, and errors name the location."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from polyseme.errors import DataError, UsageError
from polyseme.text.corpus.documents import Piece, expand_inputs, read_pieces
from polyseme.text.segment import split_sentences


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def texts(path: Path, kind: str = "file", segment: str = "en", field: str = "text") -> list[tuple[int, str]]:
    return [(piece.document, piece.text.strip()) for piece in read_pieces([path], kind, segment, field)]


def test_files_folders_and_globs_are_listed_in_order_without_repeats(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, "x")
    files = expand_inputs([str(tmp_path / "b.txt"), str(tmp_path), str(tmp_path / "*.txt")])
    assert [file.name for file in files] == ["b.txt", "a.txt", "c.txt"]
    assert [file.name for file in expand_inputs([str(tmp_path / "**" / "c.*")])] == ["c.txt"]


def test_a_name_with_brackets_is_first_looked_up_as_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a[1].txt", "x")
    assert len(expand_inputs([str(tmp_path / "a[1].txt")])) == 1


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "There is no text"),
        (["-"], "standard input"),
        (["missing.txt"], "missing.txt: no such file"),
        (["*.nothing"], "no file matches"),
        (["/dev/null"], "neither a file nor a folder"),
    ],
)
def test_missing_inputs_are_reported(inputs: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("*", r"\*")):
        expand_inputs(inputs)


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a folder without files"):
        expand_inputs([tmp_path])


def test_a_document_is_a_file_a_line_or_a_block(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "one\ntwo\n\n \nthree\n\n\n\nfour")
    assert [number for number, _ in texts(file)] == [0] * len(texts(file))
    assert texts(file, "line") == [(0, "one"), (1, "two"), (2, "three"), (3, "four")]
    assert [text for _, text in texts(file, "block")] == ["one\ntwo", "three", "four"]
    assert len({number for number, _ in texts(file, "block")}) == 3


def test_an_unknown_kind_of_document_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'page' is not a kind of document"):
        list(read_pieces([tmp_path], "page", "en"))


def test_documents_are_numbered_over_all_files(tmp_path: Path) -> None:
    files = [write(tmp_path / name, "word") for name in ("a.txt", "b.txt")]
    assert [piece.document for piece in read_pieces(files, "file", "zh")] == [0, 1]


@pytest.mark.parametrize("segment", ["en", "auto", "zh", "split"])
def test_pieces_of_a_large_file_have_the_sentences_of_the_whole(tmp_path: Path, segment: str) -> None:
    lines = [
        f"Sentence number {n} goes\non here. Then {n} ends.\n{'' if n % 3 else chr(10)}" for n in range(99)
    ]
    text = "".join(lines)
    file = write(tmp_path / "a.txt", text)
    pieces = list(read_pieces([file], "file", segment, block_size=300))
    assert len(pieces) > 5
    assert {piece.document for piece in pieces} == {0}
    sentences = [s for piece in pieces for s in split_sentences(piece.text, segment)]
    expected = split_sentences(text, segment)
    assert [[t.text for t in s] for s in sentences] == [[t.text for t in s] for s in expected]


@pytest.mark.parametrize("kind", ["file", "line", "block"])
@pytest.mark.parametrize("glue", [" ", "。", ""])
def test_a_very_long_line_is_split_into_bounded_pieces_of_one_document(
    tmp_path: Path, kind: str, glue: str
) -> None:
    text = glue.join(["风雨"] * 4000)
    file = write(tmp_path / "a.txt", text)
    pieces = list(read_pieces([file], kind, "zh", block_size=1000, max_characters=1000))
    assert "".join(piece.text for piece in pieces) == text
    assert {piece.document for piece in pieces} == {0}
    assert max(len(piece.text) for piece in pieces) < 5000


def test_compressed_files_are_read_by_the_name_before_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("風".encode()))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"text": "two"}\n'))
    pieces = read_pieces(expand_inputs([tmp_path]), "file", "zh")
    assert [piece.text for piece in pieces] == ["風", "two"]


def test_zstandard_files_are_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "a.conllu.zst").write_bytes(zstandard.compress(CONLLU.encode()))
    assert [piece.tokenised for piece in read_pieces([tmp_path / "a.conllu.zst"], "file", "en")] == [
        True,
        True,
    ]


def test_a_byte_order_mark_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfword")
    assert texts(tmp_path / "a.txt") == [(0, "word")]


def test_each_record_of_json_lines_is_a_document(tmp_path: Path) -> None:
    rows = [{"body": "One.\n\nTwo."}, {"body": ""}, {"body": "Three \ud83d."}]
    file = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    assert texts(file, field="body") == [(0, "One.\n\nTwo."), (2, "Three \ufffd.")]


def test_a_long_record_is_split_into_pieces(tmp_path: Path) -> None:
    text = "A few words.\n\n" * 50
    file = write(tmp_path / "a.jsonl", json.dumps({"text": text}))
    pieces = list(read_pieces([file], "file", "en", block_size=100, max_characters=100))
    assert len(pieces) > 5
    assert "".join(piece.text for piece in pieces) == text
    assert {piece.document for piece in pieces} == {0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{'text': 1}", r"a.jsonl:2: not valid JSON"),
        ('["x"]', r"a.jsonl:2: a list, expected a record"),
        ('{"body": "x"}', r"a.jsonl:2: no field 'text'. Fields: 'body'"),
        ('{"text": 7}', r"a.jsonl:2: the field 'text' is a int"),
        ("[" * 100_000, r"a.jsonl:2: not valid JSON"),
    ],
)
def test_an_invalid_record_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "fine"}\n' + line + "\n")
    with pytest.raises(DataError, match=message):
        texts(file)


def row(number: str, form: str) -> str:
    return "\t".join([number, form, *"_" * 8]) + "\n"


CONLLU = (
    "# newdoc id = a\n# text = du 20 000\n"
    + row("1-2", "du")
    + row("1", "de")
    + row("2", "le")
    + row("2.1", "ghost")
    + row("3", "20 000")
    + "\n# newdoc\n"
    + row("1", "Oui")
    + "\n"
    + row("1", "Non")
)


def test_conllu_gives_the_syntactic_words_with_one_sentence_per_line(tmp_path: Path) -> None:
    pieces = list(read_pieces([write(tmp_path / "a.conllu", CONLLU)], "line", "zh"))
    assert [piece[:3] for piece in pieces] == [(0, "de le 20_000", True), (1, "Oui\nNon", True)]
    assert all(isinstance(piece, Piece) for piece in pieces)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 word\n", "a.conllu:1: 1 columns, expected 10"),
        (row("x", "word"), "a.conllu:1: the ID is 'x'"),
        (row("1", " "), "a.conllu:1: the FORM of word 1 is empty"),
    ],
)
def test_invalid_conllu_is_reported_with_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        texts(write(tmp_path / "a.conllu", line))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "第一行\n三国演义\n".encode() + "演义".encode("gb18030"),
            r"a.txt:3: not UTF-8 .*encoding='gb18030'",
        ),
        (
            "第一行 Café\n".encode() * 9 + "Café".encode("latin-1"),
            r"a.txt:10: not UTF-8 .*encoding='latin-1'",
        ),
        (b"fine\nfine\nPK\x03\x04\x00\x00", r"a.txt:3: binary data \(byte 0x00\)"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 256)) * 9, r"a.txt:1: binary data"),
    ],
)
def test_damaged_and_binary_data_is_refused_with_its_location(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        texts(tmp_path / "a.txt")
