"""Read FASTA files: the sequences of proteins or genes, with their names.

    bytes of UTF-8  ->  text.fasta  ->  text.reading (a sequence per line), text.corpus.documents (with names)

A record is a line that begins with `>`, whose first word is the name, and the lines of its sequence up to the
next record, which may be broken anywhere. White space in a sequence, a `*` at its end and lines that begin
with `;` are left out. Output: one line per record, in constant memory but for the longest sequence.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from polyseme.errors import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_SEQUENCE = 64_000_000  # letters; the longest known proteins have some 36,000
ENDINGS = (".fasta", ".faa", ".fna")


class FastaRecord(NamedTuple):
    """A sequence and its name.

    Attributes:
        name: The first word behind `>`.
        sequence: The letters, without white space.

    """

    name: str
    sequence: str


def is_fasta(name: str) -> bool:
    """Whether a file is in FASTA, by its name; `.gz` and `.zst` may follow."""
    return name.lower().removesuffix(".gz").removesuffix(".zst").endswith(ENDINGS)


def parse_fasta(stream: BinaryIO, name: str) -> Iterator[FastaRecord]:
    """Yield the records of a file.

    Args:
        stream: Its bytes.
        name: What error messages call the file.

    Raises:
        DataError: If there is a sequence before the first name, a record without a sequence or a name, a
            sequence that is too long, or a byte that is not UTF-8.

    """
    record, start, size = "", 0, 0
    letters: list[str] = []
    number = 0
    for number, raw in enumerate(stream, start=1):
        try:
            line = raw.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}:{number}: not UTF-8 (byte 0x{raw[error.start]:02x}). FASTA files are plain ASCII; "
                "is the file compressed or damaged?"
            ) from error
        if line.startswith(">"):
            if start:
                yield _finish(record, letters, name, start)
            record, letters, start, size = (line[1:].split() or [""])[0], [], number, 0
            if not record:
                raise DataError(f"{name}:{number}: a record without a name. Write one behind the >.")
        elif line and not line.startswith(";"):
            if not start:
                raise DataError(
                    f"{name}:{number}: a sequence before the first name. FASTA records begin with a line "
                    "such as >P12345; rename the file if it is plain text."
                )
            size += len(line)
            if size > MAX_SEQUENCE:
                raise DataError(
                    f"{name}:{start}: the sequence of {record} has more than {MAX_SEQUENCE:,} letters. "
                    "Split it into several records."
                )
            letters.append("".join(line.split()))
    if start:
        yield _finish(record, letters, name, start)


def _finish(record: str, letters: list[str], name: str, start: int) -> FastaRecord:
    sequence = "".join(letters).removesuffix("*")
    if not sequence:
        raise DataError(f"{name}:{start}: {record} has no sequence. Add it, or remove the record.")
    return FastaRecord(record, sequence)


class FastaStream(io.RawIOBase):
    """The sequences of a FASTA file as bytes, one per line."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._records = parse_fasta(stream, name)
        self._rest = memoryview(b"")  # of the current line

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        """Fill a buffer; 0 at the end."""
        if not self._rest:
            record = next(self._records, None)
            self._rest = memoryview(b"" if record is None else f"{record.sequence}\n".encode())
        view = memoryview(target).cast("B")
        size = min(len(view), len(self._rest))
        view[:size], self._rest = self._rest[:size], self._rest[size:]
        return size
