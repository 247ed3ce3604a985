"""Read files of any kind and size as documents, in pieces of bounded size.

    text.reading, text.conllu  ->  text.corpus.documents  ->  text.corpus.workers, text.corpus.build

Input: files, folders and globs. Output: `Piece`s for a corpus, or `Document`s with their lines for an index,
one at a time.

    .jsonl .ndjson   one record per line; the text is in a named field; a record is a document
    .conllu          the FORM column of the syntactic words; ranges (1-2) and empty nodes (1.1) are skipped,
                     white space inside a word becomes _ ; `# newdoc` opens a document, else it is the file
    .epub            a chapter is a document, with its title
    .fasta           a sequence is a document, with its name (also .faa and .fna)
    anything else    plain text or HTML; a document is the file, a line, a block between blank lines, or what
                     is below a heading (text.corpus.headings)

`.gz` and `.zst` may follow the name. A large document is split into several pieces with the
same number: at a blank line where a line break does not end a sentence (`en`, `auto`), else at
a line break. Only a paragraph or line above `max_characters` is split inside, at a line break, at
white space or after 。！？.

What must not change: pieces depend on the files and the arguments only.
"""

from __future__ import annotations

import glob
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import DataError, UsageError
from polyseme.json_text import parse_json
from polyseme.text.conllu import read_conllu
from polyseme.text.corpus.headings import (
    HeadingFinder,
    check_documents,
    is_pattern,
    split_at_blank_lines,
    split_at_headings,
)
from polyseme.text.corpus.metadata import Metadata
from polyseme.text.encodings import AUTO, describe_binary, is_text
from polyseme.text.length_batches import chunk_by_size
from polyseme.text.markup import read_html
from polyseme.text.reading import (
    Line,
    detect_text_format,
    expand_path,
    list_files,
    open_bytes,
    open_text,
    read_chapters,
    read_fasta,
    read_file_lines,
    read_lines,
)
from polyseme.text.segment.stream import MAX_CHARACTERS

_BLOCK_SIZE = 1 << 20  # bytes read at once
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n")
_SENTENCE_ENDS = tuple(mark.encode() for mark in "。！？")


class Piece(NamedTuple):
    """A document, or a part of one."""

    document: int  # number of the document, from 0, over all files
    text: str
    tokenised: bool  # tokens are separated by spaces and lines are sentences, whatever the settings say
    size: int  # bytes of the decompressed file
    title: str = ""  # of the document: a heading, a chapter of an EPUB book
    file: str = ""  # if the document is a file or has a title


class Document(NamedTuple):
    """A document of plain text, HTML or EPUB."""

    file: str
    number: int  # from 1 over all files; 0 for what is before the first heading of a file
    title: str  # a heading, a chapter, the title of a page; "" if there is none
    meta: Mapping[str, str]  # see text.corpus.metadata

    @property
    def name(self) -> str:
        """The title, else the file without its folder."""
        return self.title or Path(self.file).name


class _PieceLimits(NamedTuple):
    block_size: int  # bytes read at once
    characters: int  # of a paragraph or line; a longer one is split inside


class _DecodedBlock(NamedTuple):
    text: str
    line: int  # the number of its first line
    whole: bool  # False: its last line goes on in the next block
    size: int


_Part = tuple[bool, str, int]  # opens a document, text, bytes
_TitledPart = tuple[bool, str, int, str]  # the same and the title
_MAX_FRONT = 100_000  # characters before the first heading that are no document of their own


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
    """`jsonl`, `conllu`, `html`, `epub`, `fasta` or `text`, by the name of the file."""
    name = file.name.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith((".jsonl", ".ndjson")):
        return "jsonl"
    return "conllu" if name.endswith(".conllu") else detect_text_format(file) or "text"


def read_documents(
    files: Sequence[str | Path],
    documents: str = "file",
    encoding: str = AUTO,
    meta: Metadata | None = None,
    first: int = 1,
) -> Iterator[tuple[Document, Iterator[Line]]]:
    """Read the documents of files of plain text, HTML, EPUB and FASTA, each with its lines.

    The lines of a document must be read before the next document.

    Args:
        files: The files.
        documents: What is a document: "file", "line", "block", "chapters-zh", "chapters-en", "auto", or a
            regular expression for headings. Chapters of an EPUB book and sequences of a FASTA
            file are documents with "file" and "auto".
        encoding: The encoding of the files; "auto" detects it.
        meta: What is known about the documents.
        first: The number of the first document.

    Raises:
        UsageError: There is no such file, or `documents` is invalid.
        DataError: A file cannot be read or decoded.

    Example:
        >>> for document, lines in read_documents(["sanguo.txt"], "chapters-zh"):
        ...     print(document.number, document.title, sum(len(line.text) for line in lines))

    """
    check_documents(documents)
    metadata = meta or Metadata()
    number = first - 1
    for file in files:
        count = 0  # numbered documents of this file
        for (ordinal, title), run in groupby(_label_lines(file, documents, encoding), key=itemgetter(0, 1)):
            count += ordinal > 0
            chosen = number + count if ordinal else 0
            document = Document(str(file), chosen, title, metadata.find(file, title))
            yield document, (line for _, _, line in run)
        number += count
    metadata.log_unused()


def _label_lines(file: str | Path, documents: str, encoding: str) -> Iterator[tuple[int, str, Line]]:
    """The lines of a file with the number and the title of their document; 0 is what is before headings."""
    kind = detect_text_format(file)
    if kind == "epub" and documents in ("file", "auto"):
        return _label_chapters(file)
    if kind == "fasta" and documents in ("file", "auto"):
        records = enumerate(read_fasta(file), start=1)
        return ((ordinal, name, Line(str(file), ordinal, text)) for ordinal, (name, text) in records)
    lines = read_file_lines(file, encoding, prose=True)
    if documents in ("line", "block"):
        return split_at_blank_lines(lines, documents)
    if is_pattern(documents):
        return _number_front(split_at_headings(lines, HeadingFinder(documents)))
    title = ""
    if kind == "html":
        with open_bytes(file) as stream:
            title = read_html(stream, str(file), encoding).title
    return ((1, title, line) for line in lines)


def _label_chapters(file: str | Path) -> Iterator[tuple[int, str, Line]]:
    line = 0
    for ordinal, chapter in enumerate(read_chapters(file), start=1):
        for text in chapter.text.split("\n"):
            line += 1
            yield ordinal, chapter.title, Line(str(file), line, text)


def _number_front(lines: Iterable[tuple[int, str, Line]]) -> Iterator[tuple[int, str, Line]]:
    """Number what is before the first heading, too, if there is no heading or it is long."""
    front: list[tuple[int, str, Line]] = []
    size, shift = 0, 0
    waits = True  # for the first heading
    for ordinal, title, line in lines:
        if waits:
            size += len(line.text)
            if ordinal == 0 and size <= _MAX_FRONT:
                front.append((ordinal, title, line))
                continue
            waits, shift = False, int(size > _MAX_FRONT and ordinal == 0)
            yield from ((shift, "", waiting) for _, _, waiting in front)
        yield ordinal + shift, title, line
    if waits:
        yield from ((1, "", waiting) for _, _, waiting in front)


def read_pieces(
    files: Sequence[Path],
    documents: str,
    segment: str,
    field: str = "text",
    block_size: int = _BLOCK_SIZE,
    max_characters: int = MAX_CHARACTERS,
    encoding: str = AUTO,
) -> Iterator[Piece]:
    """Read the documents of files, without blank ones.

    Args:
        files: The files, from `expand_inputs`.
        documents: What is a document in plain text; see `read_documents`.
        segment: How the text will be segmented, which decides where documents may be split.
        field: The field of JSON lines with the text.
        block_size: Bytes to read at once.
        max_characters: A longer paragraph or line is split inside.
        encoding: The encoding of the files; "auto" detects it.

    """
    check_documents(documents)
    limits = _PieceLimits(block_size, max_characters)
    number = -1
    for file in files:
        kind = detect_kind(file)
        parts: Iterable[_Part]
        if kind == "jsonl":
            parts = _read_records(file, field, segment, limits, encoding)
        elif kind == "conllu":
            parts = _read_conllu_documents(file, limits, encoding)
        elif kind in ("epub", "fasta") or is_pattern(documents):
            for is_new, text, size, title in _read_titled(file, documents, segment, limits, encoding):
                number += is_new
                if text and not text.isspace():
                    yield Piece(number, text, False, size, title, str(file))
            continue
        else:
            parts = _read_plain(file, documents, segment, limits, encoding)
        for is_new, text, size in parts:
            number += is_new
            if text and not text.isspace():
                is_file = kind in ("text", "html") and documents == "file"
                yield Piece(number, text, kind == "conllu", size, "", str(file) if is_file else "")


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


def _read_titled(
    file: Path, documents: str, segment: str, limits: _PieceLimits, encoding: str
) -> Iterator[_TitledPart]:
    """Documents with titles, from their lines."""
    for document, lines in read_documents([file], documents, encoding):
        blocks = _join_lines(lines, limits.block_size)
        for is_new, text, size in _split_by_file(blocks, segment, limits.characters):
            yield is_new, text, size, document.title


def _join_lines(lines: Iterable[Line], block_size: int) -> Iterator[_DecodedBlock]:
    """Blocks of complete lines; a line that is too long is split."""
    for group in chunk_by_size(lines, block_size, lambda line: len(line.text) + 1):
        text = "".join(f"{line.text}\n" for line in group)
        if len(text) <= 2 * block_size:
            yield _DecodedBlock(text, group[0].number, True, len(text.encode("utf-8", "surrogatepass")))
        else:
            yield from _slice_text(text, block_size)


def _read_plain(
    file: Path, documents: str, segment: str, limits: _PieceLimits, encoding: str
) -> Iterator[_Part]:
    blocks = _read_blocks(file, limits.block_size, encoding)
    if documents == "line":
        return _split_by_line(blocks)
    if documents == "block":
        return _split_by_block(blocks, limits.characters)
    return _split_by_file(blocks, segment, limits.characters)


def _split_by_file(blocks: Iterable[_DecodedBlock], segment: str, max_characters: int) -> Iterator[_Part]:
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


def _split_by_line(blocks: Iterable[_DecodedBlock]) -> Iterator[_Part]:
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


def _split_by_block(blocks: Iterable[_DecodedBlock], max_characters: int) -> Iterator[_Part]:
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


def _read_blocks(file: Path, block_size: int, encoding: str) -> Iterator[_DecodedBlock]:
    """Complete lines of a plain text file, about `block_size` bytes at once; a longer line is split."""
    number, rest = 1, b""
    with open_text(file, encoding, prose=True) as stream:
        while True:
            more = stream.read(block_size)
            raw = rest + more
            if not raw:
                return
            end = raw.rfind(b"\n") + 1 if more else len(raw)
            if not end and len(raw) < block_size:  # the next bytes may end the line
                rest = raw
                continue
            whole = end > 0
            end = end or _find_split(raw)
            text = _decode(file, number, raw[:end], encoding)
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


def _decode(file: Path, number: int, raw: bytes, encoding: str) -> str:
    zero = raw.find(0)
    try:
        if zero < 0:
            return raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        if is_text(raw[max(problem.start - 2048, 0) : problem.start + 2048]):
            deque(read_lines(file, encoding), maxlen=0)  # finds the location and guesses the encoding
        zero = problem.start
    line = number + raw.count(b"\n", 0, zero)
    raise DataError(describe_binary(file, line, raw[zero]))


def _read_records(
    file: Path, field: str, segment: str, limits: _PieceLimits, encoding: str
) -> Iterator[_Part]:
    for line in read_lines(file, encoding):
        size = len(line.text) + 1
        if not line.text or line.text.isspace():
            continue
        text = _read_field(line, field)
        parts: Iterable[_Part] = [(True, text, 0)]
        if len(text) > limits.characters:
            parts = _split_by_file(_slice_text(text, limits.block_size), segment, limits.characters)
        for is_new, part, _ in parts:
            yield is_new, part, size
            size = 0


def _slice_text(text: str, block_size: int) -> Iterator[_DecodedBlock]:
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
        record = parse_json(line.text)
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
    return text


def _read_conllu_documents(file: Path, limits: _PieceLimits, encoding: str) -> Iterator[_Part]:
    """Documents of a CoNLL-U file; a line of text is a sentence."""
    is_new, pending, characters, size = True, list[str](), 0, 0
    for sentence in read_conllu(read_lines(file, encoding)):
        if pending and (sentence.opens_document or characters > limits.characters // 4):
            yield is_new, "\n".join(pending), size
            is_new, pending, characters, size = False, [], 0, 0
        is_new = is_new or sentence.opens_document
        pending.append(" ".join(word.form for word in sentence.words))
        characters += len(pending[-1])
        size += sentence.size
    yield is_new, "\n".join(pending), size
