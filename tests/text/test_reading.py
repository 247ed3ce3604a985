"""Files are read as lines."""

import gzip
import io
import os
import re
import sys

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from polyseme.errors import DataError, UsageError
from polyseme.text.reading import Line, ReadingProgress, measure_bytes, read_lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.txt"


def texts(path):
    return [line.text for line in read_lines(path)]


def test_lines_end_at_newlines_only(path):
    path.write_bytes("one\r\ntwo\u2028\x0b\x85\rtoo\n\nfour".encode())
    assert list(read_lines(path)) == [
        Line(str(path), 1, "one"),
        Line(str(path), 2, "two\u2028\x0b\x85\rtoo"),
        Line(str(path), 3, ""),
        Line(str(path), 4, "four"),
    ]


def test_an_empty_file_has_no_lines_and_a_final_newline_adds_none(path):
    path.write_bytes(b"")
    assert texts(path) == []
    path.write_bytes(b"a\0b\n")
    assert texts(str(path)) == ["a\0b"]


@given(text=st.text(max_size=30))
def test_any_text_is_read_as_written(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    expected = [line.removesuffix("\r") for line in text.split("\n")]
    assert texts(path) == (expected if expected[-1] or text.endswith("\r") else expected[:-1])


def test_a_byte_order_mark_is_removed_only_at_the_start(path):
    path.write_bytes(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n")
    assert texts(path) == ["a", "\ufeffb"]


def test_compressed_files_with_one_or_more_frames_are_read(tmp_path):
    content = "中文\n".encode() * 50_000
    files = {
        "a.gz": gzip.compress(content) * 2,
        "a.zst": zstandard.compress(content) * 2,
        "unnamed": zstandard.compress(content * 2),
    }
    for name, packed in files.items():
        (tmp_path / name).write_bytes(packed)
        assert texts(tmp_path / name) == ["中文"] * 100_000


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.gz", gzip.compress), ("a.zst", zstandard.ZstdCompressor(write_checksum=True).compress)],
)
def test_a_truncated_or_damaged_compressed_file_is_refused(tmp_path, name, pack):
    whole = pack(os.urandom(3000).hex().encode())
    for broken in (whole[:-9], whole[:200], whole[:100] + b"\xff" * 30 + whole[130:], b"plain", b""):
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(DataError, match=f"{name}: (damaged|not )"):
            texts(tmp_path / name)


def test_the_files_of_a_folder_are_sorted_and_hidden_files_are_skipped(tmp_path):
    for name in ("b.txt", "a/z.txt", "a/y.txt", ".hidden", ".git/x", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert texts(tmp_path) == ["a/y.txt", "a/z.txt", "a.txt", "b.txt"]


def test_a_folder_without_files_and_a_missing_file_are_reported(tmp_path):
    with pytest.raises(DataError, match="a folder without files"):
        texts(tmp_path)
    with pytest.raises(UsageError, match=r"no\.txt: no such file"):
        texts(tmp_path / "no.txt")


def test_a_file_without_permission_is_reported(path, monkeypatch):
    def raise_permission_error(*_):
        # Raised here because root may read every file.
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("polyseme.text.reading.open", raise_permission_error, raising=False)
    with pytest.raises(DataError, match=r"a\.txt: no permission"):
        texts(path)


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_read_as_bytes_and_left_open(monkeypatch, packed):
    content = "一\nb".encode()
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(content) if packed else content), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(read_lines("-")) == [Line("stdin", 1, "一"), Line("stdin", 2, "b")]
    assert not stdin.closed
    assert not stdin.buffer.closed


@pytest.mark.parametrize(("encoding", "text"), [("gb18030", "他来到了北京大学"), ("latin-1", "un café noir")])
def test_a_line_of_another_encoding_is_reported_with_the_location_and_a_guess(path, encoding, text):
    path.write_bytes("一二三四五六".encode() * 9 + b"\n" + "一a".encode() + text.encode(encoding))
    first = next(byte for byte in text.encode(encoding) if byte > 127)
    column = 3 + text.encode(encoding).index(first)
    location = rf"a\.txt:2: not UTF-8 \(byte 0x{first:02x} at column {column}\)"
    with pytest.raises(DataError, match=rf"{location}.*`encoding='"):
        texts(path)


def test_lines_before_an_invalid_line_are_returned(path):
    path.write_bytes(b"good\n\xff\n")
    lines = read_lines(path)
    assert next(lines).text == "good"
    with pytest.raises(DataError):
        next(lines)


def test_progress_is_reported_in_bytes_and_tokens(path):
    path.write_text("one two\n三\n")
    events = []
    reading = ReadingProgress(events.append, path, stage="embedding")
    for line in reading.count_lines(read_lines(path)):
        reading.add_tokens(len(line.text.split()))
    assert [(event.stage, event.done, event.total) for event in events] == [
        ("embedding", 8, 12),
        ("embedding", 12, 12),
    ]
    assert re.fullmatch(r"3 tokens, [\d,]+/s", events[-1].detail)


def test_the_total_is_unknown_for_standard_input_and_compressed_files(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text\n"))
    assert measure_bytes("-") is None
    assert measure_bytes(tmp_path / "a.gz") is None
    (tmp_path / "a.gz").rename(tmp_path / ".hidden")
    (tmp_path / "b").write_bytes(b"text\n")
    assert measure_bytes(tmp_path, tmp_path / "b") == 10
