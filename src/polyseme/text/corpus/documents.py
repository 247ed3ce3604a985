"""Read files of any kind and size as documents, in pieces of bounded size.

    text.reading, text.conllu  ->  text.corpus.documents  ->  text.corpus.workers, text.corpus.build

Input: files, folders and globs. Output: `Piece`s, one at a time.

    .jsonl .ndjson   one record per line; the text is in a named field; a record is a document
    .conllu          the FORM column of the syntactic words; ranges (1-2) and empty nodes (1.1) are skipped,
                     white space inside a word becomes _ ; `# newdoc` opens a document, else it is the file
    anything else    plain text; a document is the file, a line, or a block between blank lines

`.gz` and `.zst` may follow the name. A large document is split into several pieces with the
same number: at a blank line where a line break does not end a sentence (`en`, `auto`), else at
a line break. Only a paragraph or line above `max_characters` is split inside, at a line break, at
white space or after 。！？.

What must not change: pieces depend on the files and the arguments only.
"""

from __future__ import annotations

import glob
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from polyseme.errors import DataError, UsageError
from polyseme.text.conllu import read_conllu
from polyseme.text.corpus.settings import Documents
from polyseme.text.reading import Line, expand_path, list_files, open_bytes, read_lines
from polyseme.text.segment.stream import MAX_CHARACTERS

_BLOCK_SIZE = 1 << 20  # bytes read at once
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n")
_SENTENCE_ENDS = tuple(mark.encode() for mark in "。！？")
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\x1b")


class Piece(NamedTuple):
    """A document, or a part of one."""

    document: int  # number of the document, from 0, over all files
    text: str
    tokenised: bool  # tokens are separated by spaces and lines are sentences, whatever the settings say
    size: int  # bytes of the decompressed file


class _PieceLimits(NamedTuple):
    block_size: int  # bytes read at once
    characters: int  # of a paragraph or line; a longer one is split inside


class _DecodedBlock(NamedTuple):
    text: str
    line: int  # the number of its first line
    whole: bool  # False: its last line goes on in the next block
    size: int


_Part = tuple[bool, str, int]  # opens a document, text, bytes


def expand_inputs(inputs: Sequence[str | Path]) -> list[Path]:
    """List the files of files, folders (all files below, sorted, without hidden ones) and globs, each once.

    Raises:
        UsageError: There is no such file or folder, or no file matches.
        DataError: A folder has no files.

    """
    if not inputs:
        raise UsageError("There is no text. Name one or more files, folders or globs.")
    files: dict[Path, Path] = {}
    for path in inputs:
        for file in _expand(expand_path(path)):
            files.setdefault(file.resolve(), file)
    return list(files.values())


def detect_kind(file: Path) -> str:
    """`jsonl`, `conllu` or `text`, by the name of the file."""
    name = file.name.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    return "conllu" if name.endswith(".conllu") else "text"


def read_pieces(
    files: Sequence[Path],
    documents: str,
    segment: str,
    field: str = "text",
    block_size: int = _BLOCK_SIZE,
    max_characters: int = MAX_CHARACTERS,
) -> Iterator[Piece]:
    """Read the documents of files, without blank ones.

    Args:
        files: The files, from `expand_inputs`.
        documents: What is a document in plain text: file, line or block.
        segment: How the text will be segmented, which decides where documents may be split.
        field: The field of JSON lines with the text.
        block_size: Bytes to read at once.
        max_characters: A longer paragraph or line is split inside.

    """
    kinds = get_args(Documents)
    if documents not in kinds:
        raise UsageError(f"{documents!r} is not a kind of document. Choose one of {', '.join(kinds)}.")
    limits = _PieceLimits(block_size, max_characters)
    number = -1
    for file in files:
        kind = detect_kind(file)
        if kind == "jsonl":
            parts = _read_records(file, field, segment, limits)
        elif kind == "conllu":
            parts = _read_conllu_documents(file, limits)
        else:
            parts = _read_plain(file, documents, segment, limits)
        for is_new, text, size in parts:
            number += is_new
            if text and not text.isspace():
                yield Piece(number, text, kind == "conllu", size)


def _expand(name: str) -> list[Path]:
    """The files of one input."""
    path = Path(name)
    if name == "-":
        raise UsageError(
            "A corpus cannot come from standard input, because it is read twice. Save it to a file."
        )
    if path.is_dir():
        contents = [file for file in list_files(path) if file.is_file()]
        if not contents:
            raise DataError(f"{name}: a folder without files. Hidden files (.name) do not count.")
        return contents
    if path.is_file():
        return [path]
    if path.exists():
        raise UsageError(f"{name}: neither a file nor a folder. Save the text to a file.")
    if not glob.has_magic(name):
        raise UsageError(
            f"{name}: no such file or folder. Check the path (the working directory is {Path.cwd()})."
        )
    matches = [Path(match) for match in sorted(glob.glob(name, recursive=True))]
    if not matches:
        raise UsageError(
            f"{name}: no file matches. Check the pattern (the working directory is {Path.cwd()})."
        )
    files = [match for match in matches if match.is_file()] or matches  # else the folders that match
    return [file for match in files for file in _expand(str(match))]


def _read_plain(file: Path, documents: str, segment: str, limits: _PieceLimits) -> Iterator[_Part]:
    blocks = _blocks(file, limits.block_size)
    if documents == "line":
        return _by_line(blocks)
    if documents == "block":
        return _by_block(blocks, limits.characters)
    return _by_file(blocks, segment, limits.characters)


def _by_file(blocks: Iterable[_DecodedBlock], segment: str, max_characters: int) -> Iterator[_Part]:
    """One document; where a line break does not end a sentence, pieces end at blank lines."""
    is_new, pending, size = True, "", 0
    paragraphs = segment in ("en", "auto")
    for block in blocks:
        pending, size = pending + block.text, size + block.size
        end = _find_paragraph_end(pending, max_characters) if paragraphs else len(pending)
        if end:
            yield is_new, pending[:end], size
            is_new, pending, size = False, pending[end:], 0
    yield is_new, pending, size


def _find_paragraph_end(text: str, max_characters: int) -> int:
    """The end of the last complete paragraph; 0 if more text may belong to it."""
    last = deque(_BLANK_LINE.finditer(text), maxlen=1)
    if last:
        return last[0].end()
    return 0 if len(text) < max_characters else text.rfind("\n") + 1 or len(text)


def _by_line(blocks: Iterable[_DecodedBlock]) -> Iterator[_Part]:
    """A line that is not blank is a document."""
    is_new = True
    for block in blocks:
        lines = block.text.split("\n")
        for number, line in enumerate(lines):
            last = number == len(lines) - 1
            if line and not line.isspace():
                yield is_new, line, block.size // len(lines)
                is_new = False
            is_new = is_new or not last or block.whole


def _by_block(blocks: Iterable[_DecodedBlock], max_characters: int) -> Iterator[_Part]:
    """Lines between blank lines are a document."""
    is_new, pending, size = True, "", 0
    for block in blocks:
        pending, size = pending + block.text, size + block.size
        *ended, pending = _BLANK_LINE.split(pending)
        for text in ended:
            if text and not text.isspace():
                yield is_new, text, size // (len(ended) + 1)
            is_new = True
        size = len(pending)
        if len(pending) >= max_characters:  # one line, or lines: the rest has the same number
            end = pending.rfind("\n") if block.whole else len(pending)
            if end > 0 and not pending[:end].isspace():
                yield is_new, pending[:end], end
                is_new, pending, size = False, pending[end:], len(pending) - end
    yield is_new, pending, size


def _blocks(file: Path, block_size: int) -> Iterator[_DecodedBlock]:
    """Complete lines of a plain text file, about `block_size` bytes at once; a longer line is split."""
    number, rest, first = 1, b"", True
    with open_bytes(file) as stream:
        while True:
            more = stream.read(block_size)
            raw = rest + more
            if first:
                raw, first = raw.removeprefix(b"\xef\xbb\xbf"), False
            if not raw:
                return
            end = raw.rfind(b"\n") + 1 if more else len(raw)
            if not end and len(raw) < block_size:  # the next bytes may end the line
                rest = raw
                continue
            whole = end > 0
            end = end or _find_split(raw)
            text = _decode(file, number, raw[:end])
            yield _DecodedBlock(text, number, whole, end)
            number += text.count("\n")
            rest = raw[end:]


def _find_split(raw: bytes) -> int:
    """Where to split a line that is too long: after white space, after a sentence, or after any character."""
    end = max(raw.rfind(b" "), raw.rfind(b"\t")) + 1
    if not end:
        end = max((index + 3 for mark in _SENTENCE_ENDS if (index := raw.rfind(mark)) >= 0), default=0)
    if not end:
        end = len(raw) - 1
        while end > len(raw) - 4 and raw[end] & 0xC0 == 0x80:  # back to the start of the last character
            end -= 1
    return end


def _decode(file: Path, number: int, raw: bytes) -> str:
    zero = raw.find(0)
    try:
        if zero < 0:
            return raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        if _is_text(raw[max(problem.start - 2048, 0) : problem.start + 2048]):
            deque(read_lines(file), maxlen=0)  # finds the location and guesses the encoding
        zero = problem.start
    if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        deque(read_lines(file), maxlen=0)
    line = number + raw.count(b"\n", 0, zero)
    raise DataError(
        f"{file}:{line}: binary data (byte 0x{raw[zero]:02x}), not text. "
        "Leave the file out; if it is UTF-16, convert it: iconv -f UTF-16 -t UTF-8"
    )


def _is_text(raw: bytes) -> bool:
    """Whether bytes that are not UTF-8 look like text in another encoding: few control characters."""
    return len(raw) - len(raw.translate(None, _CONTROLS)) <= len(raw) // 50


def _read_records(file: Path, field: str, segment: str, limits: _PieceLimits) -> Iterator[_Part]:
    for line in read_lines(file):
        size = len(line.text) + 1
        if not line.text or line.text.isspace():
            continue
        text = _read_field(line, field)
        parts: Iterable[_Part] = [(True, text, 0)]
        if len(text) > limits.characters:
            parts = _by_file(_slices(text, limits.block_size), segment, limits.characters)
        for is_new, part, _ in parts:
            yield is_new, part, size
            size = 0


def _slices(text: str, block_size: int) -> Iterator[_DecodedBlock]:
    """Parts of a long text that end at a line break or at white space."""
    start = 0
    while start < len(text):
        stop = start + block_size
        if stop < len(text):
            stop = max(text.rfind("\n", start, stop), text.rfind(" ", start, stop)) + 1 or stop
        yield _DecodedBlock(text[start:stop], 1, True, 0)
        start = stop


def read_record(line: Line) -> dict[str, Any]:
    """Parse a line of JSON lines as a record.

    Raises:
        DataError: The line is not JSON, or not a record.

    """
    location = line.location
    try:
        record = json.loads(line.text)
    except (ValueError, RecursionError) as problem:
        raise DataError(
            f"{location}: not valid JSON ({problem}). JSON lines have one record per line."
        ) from None
    if not isinstance(record, dict):
        raise DataError(f'{location}: a {type(record).__name__}, expected a record: {{"text": …}}.')
    return record


def _read_field(line: Line, field: str) -> str:
    location = line.location
    record = read_record(line)
    if field not in record:
        names = ", ".join(map(repr, list(record)[:8])) or "none"
        raise DataError(
            f"{location}: no field {field!r}. Fields: {names}. Set corpus.field to the one with text."
        )
    text = record[field]
    if not isinstance(text, str):
        raise DataError(f"{location}: the field {field!r} is a {type(text).__name__}, expected text.")
    if any("\ud800" <= c <= "\udfff" for c in text):  # half a character, written as \ud83d
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _read_conllu_documents(file: Path, limits: _PieceLimits) -> Iterator[_Part]:
    """Documents of a CoNLL-U file; a line of text is a sentence."""
    is_new, pending, characters, size = True, list[str](), 0, 0
    for sentence in read_conllu(read_lines(file)):
        if pending and (sentence.opens_document or characters > limits.characters // 4):
            yield is_new, "\n".join(pending), size
            is_new, pending, characters, size = False, [], 0, 0
        is_new = is_new or sentence.opens_document
        pending.append(" ".join(word.form for word in sentence.words))
        characters += len(pending[-1])
        size += sentence.size
    yield is_new, "\n".join(pending), size
