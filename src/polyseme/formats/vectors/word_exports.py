"""Write one vector per word in the formats of other programs: word2vec, and the Embedding Projector's.

    api.exporting  ->  formats.vectors.word_exports  ->  gensim, R, TensorBoard, text.static_vectors

The name of the output selects the format. A new format is a function and a row of `WORD_EXPORTS`, and its
name in `polyseme.choices`. N words, H values.
What must not change: numbers are written so that fp32 reads back the same value; the output appears complete
or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import ExportFormat
from polyseme.errors import UsageError
from polyseme.io.atomic import new_file, new_folder
from polyseme.io.progress import OnProgress, ProgressEvent, RateMeter, ignore_progress

ROWS = 1024  # written at a time
VECTORS_FILE, METADATA_FILE = "vectors.tsv", "metadata.tsv"  # in the folder for the Embedding Projector


class WordTable(NamedTuple):
    """What is exported: N words with their counts and vectors."""

    words: tuple[str, ...]
    counts: NDArray[np.int64]  # (N,)
    vectors: NDArray[np.float32]  # (N, H)


class WordExport(NamedTuple):
    """A format of word vectors.

    Attributes:
        endings: Endings of the names of its files; "" is a folder.
        write: Writes a table to a path: path, table, force, progress.

    """

    endings: tuple[str, ...]
    write: Callable[[Path, WordTable, bool, OnProgress], None]


def find_export_format(out: Path, name: ExportFormat | None = None) -> WordExport:
    """Return the format of an output: the one named, or the one with its ending.

    Raises:
        UsageError: If no format has that name or that ending.

    """
    if name is not None:
        if name not in WORD_EXPORTS:
            raise UsageError(f"There is no export format {name!r}. Choose {', '.join(WORD_EXPORTS)}.")
        return WORD_EXPORTS[name]
    ending = out.suffix.lower()
    for entry in WORD_EXPORTS.values():
        if ending in entry.endings:
            return entry
    endings = ", ".join(ending for entry in WORD_EXPORTS.values() for ending in entry.endings if ending)
    raise UsageError(
        f"{out}: not the ending of an export format. Use {endings}, a folder without an ending, or name "
        "the `format`."
    )


def _write_text(path: Path, table: WordTable, force: bool, on_progress: OnProgress) -> None:
    """word2vec's text: a header with N and H, then a line per word."""
    with new_file(path, force=force) as temporary, temporary.open("wb") as stream:
        stream.write(b"%d %d\n" % table.vectors.shape)
        for word, values in zip(table.words, _format_rows(table, b" ", on_progress), strict=True):
            stream.write(b"%s %s\n" % (word.encode(), values))


def _write_binary(path: Path, table: WordTable, force: bool, on_progress: OnProgress) -> None:
    """word2vec's binary: the same header, then each word, a space, and H little-endian fp32 values."""
    with new_file(path, force=force) as temporary, temporary.open("wb") as stream:
        stream.write(b"%d %d\n" % table.vectors.shape)
        for first in _count_rows(table, on_progress):
            rows = np.ascontiguousarray(table.vectors[first : first + ROWS], "<f4")
            for word, row in zip(table.words[first : first + ROWS], rows, strict=True):
                stream.write(b"%s %s\n" % (word.encode(), row.tobytes()))


def _write_projector(path: Path, table: WordTable, force: bool, on_progress: OnProgress) -> None:
    """Two files of tab-separated values, which projector.tensorflow.org and TensorBoard load."""
    with new_folder(path, force=force, known_names=(VECTORS_FILE, METADATA_FILE)) as temporary:
        with (temporary / VECTORS_FILE).open("wb") as stream:
            stream.writelines(b"%s\n" % values for values in _format_rows(table, b"\t", on_progress))
        with (temporary / METADATA_FILE).open("wb") as stream:
            stream.write(b"word\tcount\n")
            for word, count in zip(table.words, table.counts.tolist(), strict=True):
                stream.write(b"%s\t%d\n" % (word.encode(), count))


WORD_EXPORTS: dict[ExportFormat, WordExport] = {
    "word2vec": WordExport((".txt", ".vec"), _write_text),
    "word2vec-binary": WordExport((".bin",), _write_binary),
    "projector": WordExport(("",), _write_projector),
}


def write_word_export(
    out: Path,
    table: WordTable,
    name: ExportFormat | None = None,
    *,
    force: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> None:
    """Write word vectors for another program.

    Args:
        out: The file or folder.
        table: The words.
        name: The format; None takes the one with the ending of `out`.
        force: Replace what exists.
        on_progress: Receives the progress.

    Raises:
        UsageError: If `out` exists, has no format, or a word contains white space, which separates
            columns in these formats.

    """
    write = find_export_format(out, name).write
    bad = next((word for word in table.words if word.split() != [word]), None)
    if bad is not None:
        raise UsageError(f"The word {bad!r:.60} is empty or contains white space: no export format holds it.")
    write(out, table, force, on_progress)


def _format_rows(table: WordTable, separator: bytes, on_progress: OnProgress) -> Iterator[bytes]:
    """The values of each row as text; nine digits are enough to read back the same fp32 value."""
    template = separator.join([b"%.9g"] * table.vectors.shape[1])
    for first in _count_rows(table, on_progress):
        for row in table.vectors[first : first + ROWS].tolist():
            yield template % tuple(row)


def _count_rows(table: WordTable, on_progress: OnProgress) -> Iterator[int]:
    """The first row of every ROWS rows; reports progress after each."""
    total, meter = len(table.words), RateMeter("words")
    for first in range(0, total, ROWS):
        yield first
        done = min(first + ROWS, total)
        on_progress(ProgressEvent("exporting", done, total, meter.add(done - first)))
