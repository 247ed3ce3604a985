"""The verb export: word vectors, the usages of a word, or all usages with their vectors, for other programs.

word_vectors        ->  formats.vectors.word_exports  ->  api.exporting  ->  api
search.index        ->  io.csv_tables                 ->  api.exporting
search.usage_table  ->  api.usage_stores              ->  api.exporting
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polyseme.api.sources import BUILD_INDEX, describe_source, open_source
from polyseme.api.usage_stores import find_store, is_database
from polyseme.choices import ExportFormat
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.formats.vectors.word_exports import WordTable, find_export_format, write_word_export
from polyseme.io.atomic import check_output_path, new_file
from polyseme.io.csv_tables import write_csv
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.search.index import Index
from polyseme.search.selection import Documents
from polyseme.search.usage_table import make_usage_table
from polyseme.word_vectors import WordVectors


@dataclass(frozen=True)
class ExportResult:
    """What `export` wrote.

    Attributes:
        out: The file or folder; of a database, its address without the password, and the table.
        words: How many words; 1 if the usages of one were written.
        size: Values per vector; 0 in a .csv file.
        usages: How many usages; 0 if words were written.

    """

    out: Path | str
    words: int
    size: int
    usages: int = 0


def export(
    source: WordVectors | Index | Elmo | str | Path,
    out: str | Path | None = None,
    *,
    to: str | Path | None = None,
    table: str | None = None,
    format: ExportFormat | None = None,  # noqa: A002  # the word that people look for
    uncorrected: bool = False,
    min_count: int = 1,
    word: str | None = None,
    documents: Documents | None = None,
    bom: bool = True,
    force: bool = False,
    progress: ProgressOption = None,
) -> ExportResult:
    """Write the mean vector of every word (`out`), or every usage with its vector (`to`), for other programs.

    The vectors are corrected as `nearest` corrects them, so their cosines are those of `nearest`. With
    `word`, an `out` that ends in .csv gets a row per usage: keyword in context, with document, line and
    metadata.

    `to` gets a row per usage with its vector, of length 1: id, word, sentence, document, title, line, start,
    stop, the metadata of the document, vector. `Index.query_vector` makes vectors to search for there.

    Args:
        source: An index, a model with word vectors (see `open_words`), or `WordVectors`.
        out: A new .vec or .txt file (word2vec, text), a .bin file (word2vec, binary), or a folder without
            an ending (vectors.tsv and metadata.tsv for the Embedding Projector); with `word`, a .csv file.
        to: Instead of `out`: a .parquet file, "lancedb:DIR" (a database in a folder), or
            "postgresql://USER@HOST/DATABASE" (with pgvector). Needs an index.
        table: The table of a database, "usages" by default; in PostgreSQL also SCHEMA.TABLE.
        format: The format if the ending does not tell: "word2vec", "word2vec-binary" or "projector".
        uncorrected: Write the vectors, or the means of them, as the model computed them.
        min_count: Only words with at least this many usages.
        word: Only usages of this word, in a .csv file or with `to`; needs an index.
        documents: Only usages in these documents, as in `nearest`.
        bom: Begin a .csv file with a byte order mark, without which Excel garbles Chinese.
        force: Replace the output if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The path and the counts.

    Raises:
        UsageError: If the output exists or is of no known kind, no word has `min_count` usages, or a database
            cannot be written.
        UnknownWordError: If `word` has no usages.
        FormatError: If `source` has no word vectors.

    Example:
        >>> polyseme.export("books-index", "books.vec")
        >>> gensim.models.KeyedVectors.load_word2vec_format("books.vec").most_similar("bank")
        >>> polyseme.export("books-index", to="postgresql://localhost/books")

    """
    if to is not None and out is None:
        return _export_table(
            source, to, table, format, uncorrected, min_count, word, documents, force, progress
        )
    path = _check_out(out, to, table)
    if word is not None or path.suffix.lower() == ".csv":
        return _export_usages(source, path, word, documents, bom, force)
    if documents is not None:
        raise UsageError("`documents` has no effect without `word`. Leave it out.")
    find_export_format(path, format)
    check_output_path(path, force=force)
    opened = open_source(source)
    words = opened.words if isinstance(opened, Index) else opened
    kept = words.counts >= min_count
    if not kept.any():
        raise UsageError(f"No word has {min_count:,} usages. Lower `min_count`.")
    vectors = words.vectors[kept] if uncorrected else words.vectors[kept] - words.centre
    names = tuple(word for word, is_kept in zip(words.words, kept, strict=True) if is_kept)
    with lock_output(path), open_progress(progress) as on_progress:
        word_table = WordTable(names, words.counts[kept], vectors)
        write_word_export(path, word_table, format, force=force, on_progress=on_progress)
    return ExportResult(path, *vectors.shape)


def _export_usages(
    source: WordVectors | Index | Elmo | str | Path,
    path: Path,
    word: str | None,
    documents: Documents | None,
    bom: bool,
    force: bool,
) -> ExportResult:
    """Write the usages of a word as a table: left context, word, right context, and where they are."""
    if word is None:
        raise UsageError(f"{path}: a .csv file gets the usages of a word. Add `word`.")
    if path.suffix.lower() != ".csv":
        raise UsageError(f"{path}: usages are written as .csv. Choose such a name, or leave out `word`.")
    check_output_path(path, force=force)
    opened = open_source(source)
    if not isinstance(opened, Index):
        raise UsageError(f"{source}: `word` needs an index. Build one: {BUILD_INDEX}.")
    index = opened if documents is None else opened.restrict(documents)
    numbers = index.usage_numbers(word)
    listed = [index.listed_documents[number] for number in index.document_numbers(numbers).tolist()]
    fields = sorted({name for document in listed for name in document.meta})
    rows = (
        [
            usage.sentence[: usage.start],
            usage.sentence[usage.start : usage.stop],
            usage.sentence[usage.stop :],
            usage.document,
            usage.title,
            usage.line,
            *(document.meta.get(name, "") for name in fields),
        ]
        for usage, document in zip(map(index.usage, numbers.tolist()), listed, strict=True)
    )
    with lock_output(path), new_file(path, force=force) as new:
        count = write_csv(new, ["left", "word", "right", "document", "title", "line", *fields], rows, bom=bom)
    return ExportResult(path, 1, 0, count)


def _check_out(out: str | Path | None, to: str | Path | None, table: str | None) -> Path:
    """The path of word vectors or a .csv file; refuses what belongs to `to`."""
    if out is None or to is not None:
        raise UsageError("Name either `out`, for word vectors, or `to`, for every usage with its vector.")
    path = Path(out).expanduser()
    if is_database(out):  # the message must not have its password
        raise UsageError("A database is not a path for word vectors. Pass it as `to`.")
    if path.suffix.lower() == ".parquet":
        raise UsageError(f"{path}: word vectors are not written as Parquet. For all usages, pass it as `to`.")
    if table is not None:
        raise UsageError("`table` has no effect without `to`. Leave it out.")
    return path


def _export_table(
    source: WordVectors | Index | Elmo | str | Path,
    to: str | Path,
    table: str | None,
    format: ExportFormat | None,  # noqa: A002
    uncorrected: bool,
    min_count: int,
    word: str | None,
    documents: Documents | None,
    force: bool,
    progress: ProgressOption,
) -> ExportResult:
    """Write usages with their vectors to a Parquet file or a database."""
    if format is not None:
        raise UsageError("`format` has no effect with `to`. Leave it out.")
    store = find_store(to, table, force=force)
    opened = open_source(source, uncorrected=uncorrected)
    if not isinstance(opened, Index):
        raise UsageError(f"{describe_source(source)}: `to` needs an index. Build one: {BUILD_INDEX}.")
    index = opened if documents is None else opened.restrict(documents)
    usages = make_usage_table(index, word, min_count)
    with open_progress(progress) as on_progress:
        store.write(usages, on_progress)
    return ExportResult(store.name, usages.words, usages.size, usages.count)
