"""The verb export: the word vectors of a model or an index, or the usages of a word, for other programs.

word_vectors, search.index, formats.vectors.word_exports, io.csv_tables  ->  api.exporting  ->  api
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polyseme.api.sources import BUILD_INDEX, open_source
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
from polyseme.word_vectors import WordVectors


@dataclass(frozen=True)
class ExportResult:
    """What `export` wrote.

    Attributes:
        out: The file or folder.
        words: How many words; 1 if their usages were written.
        size: Values per vector; 0 if usages were written.
        usages: How many usages of one word.

    """

    out: Path
    words: int
    size: int
    usages: int = 0


def export(
    source: WordVectors | Index | Elmo | str | Path,
    out: str | Path,
    *,
    format: ExportFormat | None = None,  # noqa: A002  # the word that people look for
    uncorrected: bool = False,
    min_count: int = 1,
    word: str | None = None,
    documents: Documents | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> ExportResult:
    """Write the mean vector of every word, or every usage of one word, for other programs.

    The vectors are corrected as `nearest` corrects them, so cosines of the file are those of `nearest`. With
    `word`, a .csv file gets a row per usage: keyword in context, with document, line and metadata.

    Args:
        source: An index, a model with word vectors (see `open_words`), or `WordVectors`.
        out: A new .vec or .txt file (word2vec, text), a .bin file (word2vec, binary), or a folder without
            an ending (vectors.tsv and metadata.tsv for the Embedding Projector); with `word`, a .csv file.
        format: The format if the ending does not tell: "word2vec", "word2vec-binary" or "projector".
        uncorrected: Write the means of the vectors as the model computed them.
        min_count: Only words with at least this many usages.
        word: Write all usages of this word instead; needs an index.
        documents: Only usages in these documents, as in `nearest`.
        force: Replace `out` if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The path and the counts.

    Raises:
        UsageError: If `out` exists or has another ending, or no word has `min_count` usages.
        UnknownWordError: If `word` has no usages.
        FormatError: If `source` has no word vectors.

    Example:
        >>> polyseme.export("books-index", "books.vec")
        >>> gensim.models.KeyedVectors.load_word2vec_format("books.vec").most_similar("bank")

    """
    path = Path(out).expanduser()
    if word is not None or path.suffix.lower() == ".csv":
        return _export_usages(source, path, word, documents, force)
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
        table = WordTable(names, words.counts[kept], vectors)
        write_word_export(path, table, format, force=force, on_progress=on_progress)
    return ExportResult(path, *vectors.shape)


def _export_usages(
    source: WordVectors | Index | Elmo | str | Path,
    path: Path,
    word: str | None,
    documents: Documents | None,
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
        count = write_csv(new, ["left", "word", "right", "document", "title", "line", *fields], rows)
    return ExportResult(path, 1, 0, count)
