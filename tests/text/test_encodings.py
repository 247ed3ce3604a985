"""Text of any encoding is read as UTF-8; what cannot be known is not guessed."""

from __future__ import annotations

import io
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import DataError, UsageError
from polyseme.text.encodings import Utf8Stream, check_encoding, detect_encoding
from polyseme.text.reading import read_lines

SIMPLIFIED = (
    "话说天下大势，分久必合，合久必分。周末七国分争，并入于秦。及秦灭之后，楚、汉分争，又并入于汉。\n"
)
TRADITIONAL = (
    "話說天下大勢，分久必合，合久必分。周末七國分爭，並入於秦。及秦滅之後，楚、漢分爭，又並入於漢。裏\n"
)
GERMAN = "Er hörte die Glocken läuten, als er über die Straße ging; “schön”, sagte sie.\n"
FRENCH = "L'été dernier, à Noël, une œuvre créée là où elle était née… déjà vu.\n"
SENTENCES = {
    "utf-8": SIMPLIFIED + GERMAN,
    "utf-8-sig": SIMPLIFIED,
    "gb18030": SIMPLIFIED,
    "big5": TRADITIONAL.replace("裏", ""),
    "cp950": TRADITIONAL,
    "big5hkscs": TRADITIONAL + "喺度嘅嘢",
    "utf-16": SIMPLIFIED,
    "utf-16-le": SIMPLIFIED,
    "utf-16-be": TRADITIONAL,
    "utf-32": SIMPLIFIED,
    "cp1252": GERMAN + FRENCH,
    "latin-1": "Er hörte die Glocken läuten, über die Straße.\n",
}


def decode(raw: bytes, encoding: str = "auto") -> str:
    return io.BufferedReader(Utf8Stream(io.BytesIO(raw), "a.txt", encoding)).read().decode()


@pytest.mark.parametrize("encoding", SENTENCES)
@pytest.mark.parametrize("repeats", [1, 3000])
def test_common_encodings_are_detected(encoding: str, repeats: int) -> None:
    text = SENTENCES[encoding] * repeats
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("text", ["Hello, world.\r\nA second line.\n", "Ein Satz – noch einer.\n"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_latin_text_in_utf16_is_detected(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@settings(max_examples=150, deadline=None)
@given(
    encoding=st.sampled_from(["gb18030", "cp950", "utf-16-le", "utf-16-be", "cp1252"]),
    start=st.integers(0, 60),
    ascii_before=st.integers(0, 70_000),
    line_break=st.sampled_from(["\n", "\r\n"]),
)
def test_a_text_comes_back_wherever_it_is_cut(
    encoding: str, start: int, ascii_before: int, line_break: str
) -> None:
    text = (SENTENCES[encoding] * 3)[start:].replace("\n", line_break)
    if not encoding.startswith("utf-16"):  # its first characters decide
        text = "ascii\n" * (ascii_before // 6) + text
    assert decode(text.encode(encoding)) == text


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_pass_unchanged_or_are_decoded_or_are_refused(raw: bytes) -> None:
    stream = Utf8Stream(io.BytesIO(raw), "a.txt")
    try:
        text = io.BufferedReader(stream).read()
    except DataError as problem:
        assert str(problem).startswith("a.txt:")  # noqa: PT017
        return
    if stream.detected is None or stream.detected.codec == "utf-8":
        assert text == raw[stream.detected.mark if stream.detected else 0 :]
    else:
        assert text.decode("utf-8", "surrogatepass").encode(stream.detected.codec, "surrogatepass") == raw[
            stream.detected.mark :
        ] or stream.detected.codec in ("gb18030", "cp950", "big5hkscs")


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет, мир! Как дела сегодня утром?", "cp1251"),
        ("Привет, мир! Как дела сегодня утром?", "koi8-r"),
        ("日本語のテキストです。これはなんですか。", "shift_jis"),
        ("日本語のテキストです。これはなんですか。", "euc-jp"),
        ("한국어 텍스트입니다. 이것은 무엇입니까?", "euc-kr"),
    ],
)
def test_other_encodings_are_not_guessed_but_can_be_named(text: str, encoding: str) -> None:
    assert detect_encoding(text.encode(encoding)) is None
    assert decode(text.encode(encoding), check_encoding(encoding)) == text


def test_damaged_utf8_is_not_taken_for_another_encoding() -> None:
    raw = SIMPLIFIED.encode()
    assert detect_encoding(raw[:50] + b"\xff" + raw[50:]) is None


def test_a_damaged_line_is_named_and_the_lines_before_it_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(SIMPLIFIED.encode("gb18030") * 300 + b"\xff\xff\n" + SIMPLIFIED.encode("gb18030"))
    lines = read_lines(path)
    for _ in range(300):
        assert next(lines).text == SIMPLIFIED.strip()
    with pytest.raises(DataError, match=r"a\.txt:301: not GB18030 \(byte 0xff near column 1\).*`encoding`"):
        next(lines)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(1, 256)) * 9, r"a\.txt:1: binary data \(byte 0x89\), not text"),
        (b"fine\nfine\nPK\x03\x04\x00\xff", r"a\.txt:3: binary data \(byte 0xff\).*`encoding='utf-16'`"),
        (b"fine\n" * 40_000 + b"\xd0\xcf\x11\xe0" * 99, r"a\.txt:40001: binary data \(byte 0xd0\)"),
    ],
)
def test_binary_data_is_not_called_text_in_another_encoding(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    lines = read_lines(path)
    for _ in range(content.count(b"fine\n")):
        assert next(lines).text == "fine"
    with pytest.raises(DataError, match=message):
        next(lines)
    assert list(read_lines(path, "latin-1"))  # as the user says


def test_a_named_encoding_is_used_even_if_another_is_likely(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("caf\u00e9".encode())
    assert next(read_lines(path, "latin-1")).text == "cafÃ©"
    path.write_bytes("\ufeff银行".encode("utf-16-le"))
    assert next(read_lines(path, "utf-16")).text == "银行"
    with pytest.raises(DataError, match=r"a\.txt:1: not UTF-8"):
        next(read_lines(path, "utf-8"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gbk18030", "Did you mean gb18030"),
        ("base64", "is not an encoding"),
        ("rot13", "is not an"),
        ("", "is not an"),
    ],
)
def test_an_unknown_encoding_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_encoding(name)


def test_gbk_and_big5_are_read_with_their_extensions() -> None:
    assert (check_encoding("GBK"), check_encoding("gb2312"), check_encoding("Big5")) == (
        "gb18030",
        "gb18030",
        "cp950",
    )


def test_what_is_odd_about_a_file_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.txt"
    pages = "".join(f"　　{SIMPLIFIED.strip()}\r\n红楼梦 上册\r\n- {number} -\r\n" for number in range(20))
    path.write_bytes(pages.encode("gb18030"))
    with caplog.at_level(logging.INFO, logger="polyseme.text.oddities"):
        for _ in range(2):
            assert len(list(read_lines(path, prose=True))) == 60
    (record,) = caplog.records
    for note in ("GB18030", "60 CRLF", "40 full-width spaces", "20 page numbers", "20 repeated headers"):
        assert note in record.getMessage()
    assert record.levelno == logging.WARNING


def test_a_plain_file_is_not_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text(SIMPLIFIED + "1\n2\n", encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="polyseme.text.oddities"):
        list(read_lines(tmp_path / "a.txt", prose=True))
    assert not caplog.records


def test_numbers_in_a_table_are_no_page_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "labels.txt").write_text("0\n1\n" * 20, encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="polyseme.text.oddities"):
        list(read_lines(tmp_path / "labels.txt"))
    assert not caplog.records
