r"""Count what is odd about a text while it is read, and log it once per file.

    text.encodings (UTF-8)  ->  text.oddities  ->  text.reading, the log

Counted: the detected encoding, a byte order mark, lines that end with \r\n, full-width spaces, lines with a
page number only, headers that come back on every page, the licence of Project Gutenberg. Nothing but the byte
order mark is removed: a number on its own line may be a verse.
"""

from __future__ import annotations

import io
import logging
import re
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO

from polyseme.text.encodings import AUTO, Utf8Stream

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

logger = logging.getLogger(__name__)

_PAGE_NUMBER = re.compile(
    rb"^[ \t]*(?:[-\xe2\x80\x93\x94 ]{0,8}\d{1,4}[-\xe2\x80\x93\x94 ]{0,8}|page \d{1,4}|"
    + "第 ?\\d{1,4} ?页".encode()
    + rb")[ \t]*\r?$",
    re.MULTILINE | re.IGNORECASE,
)
_LICENCE = re.compile(rb"^\*\*\* ?(?:START|END) OF (?:THE|THIS) PROJECT GUTENBERG", re.MULTILINE)
_SHORT_LINE = re.compile(rb"^[^\n]{4,120}$", re.MULTILINE)
_FULL_WIDTH_SPACE = "\u3000".encode()
_SENTENCE_ENDS = tuple(mark.encode() for mark in "。！？”」…!?.\"',;:：；，—-")
_MIN_PAGES = 5  # fewer numbers on lines of their own may be anything
_MIN_REPEATS = 10  # of a header
_MAX_LINES = 100_000  # distinct short lines that are counted
_MAX_REST = 200  # bytes of a line that goes on in the next block
_logged: set[str] = set()  # files that have been reported


class NotedStream(io.RawIOBase):
    """The bytes of a text as UTF-8, which also counts what is odd about it.

    Args:
        source: The bytes.
        name: What the log calls the text.
        encoding: A codec, or "auto" to detect it.
        prose: Whether it is running text; in tables and labels, numbers on lines of their own are no noise.

    Attributes:
        counts: How often each oddity occurs: "CRLF line breaks", "full-width spaces", "page numbers".

    """

    def __init__(self, source: BinaryIO, name: str, encoding: str = AUTO, *, prose: bool = True) -> None:
        self._decoded, self._name = Utf8Stream(source, name, encoding), name
        self._is_named, self._is_prose = encoding != AUTO, prose
        self._rest = b""
        self._short_lines: Counter[bytes] = Counter()
        self.counts: Counter[str] = Counter()

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        """Fill a buffer; 0 at the end."""
        size = self._decoded.readinto(target)
        if self._is_prose and self._name not in _logged:  # a second reading counts nothing
            self._count(bytes(memoryview(target).cast("B")[:size]))
        return size

    def _count(self, block: bytes) -> None:
        text = self._rest + block
        end = text.rfind(b"\n") + 1 if block else len(text)
        lines, self._rest = text[:end], text[end:][:_MAX_REST]
        self.counts["CRLF line breaks"] += lines.count(b"\r\n")
        self.counts["full-width spaces"] += lines.count(_FULL_WIDTH_SPACE)
        self.counts["page numbers"] += len(_PAGE_NUMBER.findall(lines))
        self.counts["lines of the Project Gutenberg licence"] += len(_LICENCE.findall(lines))
        for line in _SHORT_LINE.findall(lines) if len(self._short_lines) < _MAX_LINES else ():
            header = line.strip()
            if not header.endswith(_SENTENCE_ENDS):
                self._short_lines[header] += 1

    def describe(self) -> tuple[bool, list[str]]:
        """Whether the reader should check the text, and what is odd about it."""
        notes = []
        detected = self._decoded.detected
        if detected is not None and detected.codec != "utf-8" and not self._is_named:
            notes.append(f"read as {detected.name}; if it is not, name its encoding")
        if self.counts["page numbers"] < _MIN_PAGES:
            self.counts["page numbers"] = 0
        headers = [count for count in self._short_lines.values() if count >= _MIN_REPEATS]
        self.counts["repeated headers"] = sum(headers) if self.counts["page numbers"] else 0
        noise = ("page numbers", "repeated headers", "lines of the Project Gutenberg licence")
        is_doubtful = bool(notes) or any(self.counts[name] for name in noise)
        if detected is not None and detected.mark and detected.codec == "utf-8":
            notes.append("a byte order mark")
        notes += [f"{count:,} {name}" for name, count in self.counts.items() if count]
        return is_doubtful, notes

    def log_notes(self) -> None:
        """Log what is odd, unless this file has been reported."""
        if self._name in _logged:
            return
        _logged.add(self._name)
        is_doubtful, notes = self.describe()
        if notes:
            level = logging.WARNING if is_doubtful else logging.INFO
            logger.log(level, "%s: %s.", self._name, "; ".join(notes))
