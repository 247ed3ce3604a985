"""The verb export: the word vectors of a model or an index, for other programs.

word_vectors, search.index, formats.vectors.word_exports  ->  api.exporting  ->  api
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polyseme.api.search import open_source
from polyseme.choices import ExportFormat
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.formats.vectors.word_exports import WordTable, find_export_format, write_word_export
from polyseme.io.atomic import check_output_path
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.search.index import Index
from polyseme.word_vectors import WordVectors


@dataclass(frozen=True)
class ExportResult:
    """What `export` wrote.

    Attributes:
        out: The file or folder.
        words: How many words.
        size: Values per vector.

    """

    out: Path
    words: int
    size: int


def export(
    source: WordVectors | Index | Elmo | str | Path,
    out: str | Path,
    *,
    format: ExportFormat | None = None,  # noqa: A002  # the word that people look for
    uncorrected: bool = False,
    min_count: int = 1,
    force: bool = False,
    progress: ProgressOption = None,
) -> ExportResult:
    """Write the mean vector of every word for other programs: gensim, R, the Embedding Projector.

    The vectors are corrected as `nearest` corrects them, so cosines of the file are those of `nearest`.

    Args:
        source: An index, a model with word vectors (see `open_words`), or `WordVectors`.
        out: A new .vec or .txt file (word2vec, text), a .bin file (word2vec, binary), or a folder without
            an ending (vectors.tsv and metadata.tsv for the Embedding Projector).
        format: The format if the ending does not tell: "word2vec", "word2vec-binary" or "projector".
        uncorrected: Write the means of the vectors as the model computed them.
        min_count: Only words with at least this many usages.
        force: Replace `out` if it exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The path and the counts.

    Raises:
        UsageError: If `out` exists or has another ending, or no word has `min_count` usages.
        FormatError: If `source` has no word vectors.

    Example:
        >>> polyseme.export("books-index", "books.vec")
        >>> gensim.models.KeyedVectors.load_word2vec_format("books.vec").most_similar("bank")

    """
    path = Path(out).expanduser()
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
