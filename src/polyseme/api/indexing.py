"""The verb index: the vector of every usage of every word of a corpus.

search.build  ->  api.indexing  ->  api
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from polyseme.choices import GraphDtype, IndexPrecision, IndexView, SpaceKind
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.model.output import Layer
from polyseme.search.approximate import check_graph
from polyseme.search.build import build_index
from polyseme.search.index import Index, open_index
from polyseme.search.usage_writer import WordFilter
from polyseme.text.reading import read_lines
from polyseme.text.validate import check_path, list_paths


def index(
    model: Elmo | str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    layer: Layer = "top",
    view: IndexView = "word",
    min_count: int = 1,
    max_count: int | None = None,
    stop: str | Path | Iterable[str] = (),
    only: str | Path | Iterable[str] = (),
    segment: str | None = None,
    documents: str = "file",
    meta: str | Path | None = None,
    encoding: str = "auto",
    space: SpaceKind = "whiten",
    precision: IndexPrecision = "fp16",
    graph: GraphDtype | None = None,
    device: str = "cpu",
    add: bool = False,
    force: bool = False,
    progress: ProgressOption = None,
) -> Index:
    """Index every usage of every word of a corpus.

    The vectors go to the folder `out` block by block. The same call resumes an index that was interrupted.

    Args:
        model: The ELMo, loaded or as a path.
        texts: Files and folders; .gz and .zst are decompressed, the text of .html and .epub is extracted.
        out: The folder of the index.
        layer: Layer of the vectors: "top", "mean", a number from 0, weights, or (weights, gamma).
        view: "word" for the vector of the word, "context" for the states of the model around it, without the
            word itself; `change` is closer to human judgements with "context".
        min_count: Only words with at least this many usages in `texts`.
        max_count: Only words with at most this many usages in `texts`.
        stop: Words to leave out, or a file of them, separated by white space.
        only: The only words to keep, or a file of them.
        segment: How to split text into tokens; as the model was trained if None.
        documents: What is a document: "file", "line", "block" (between blank lines), "chapters-zh",
            "chapters-en", "auto" (chapters of both), or a regular expression for headings.
        meta: Metadata of the documents: a tab-separated table with a header, whose first column is a
            file or the title of a document; or a regular expression for file names, such as
            "(?P<year>[0-9]{4})".
        encoding: The encoding of the texts; "auto" detects it for each file.
        space: Correction of the vectors before cosines are computed: "none", "centre", "components" or
            "whiten".
        precision: Precision of the vectors on disk.
        graph: Also build a graph for approximate search, of vectors in this type.
        device: Where to compute, if the model is loaded here; see `load`.
        add: Add `texts` to an index that exists.
        force: Replace an index that exists.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The index, open.

    Raises:
        UsageError: If `out` holds something else or an index with other settings.
        DataError: If a text cannot be read, or no usage is left to index.

    Example:
        >>> index = polyseme.index("en", "books/", "books-index", min_count=5)
        >>> polyseme.nearest(index, "bank", context="He sat on the river bank .")

    """
    if graph is not None:
        check_graph(graph)
    elmo = ensure_loaded(model, device=device)
    folder = Path(check_path(out, "out")).expanduser()
    filters = WordFilter(min_count, max_count, _read_words(stop), _read_words(only))
    with open_progress(progress) as on_progress:
        build_index(
            elmo,
            list_paths(texts, "texts"),
            folder,
            layer=layer,
            view=view,
            filters=filters,
            segment=segment,
            documents=documents,
            meta=meta,
            encoding=encoding,
            space=space,
            precision=precision,
            model=elmo.path,
            add=add,
            force=force,
            on_progress=on_progress,
        )
        built = open_index(folder, elmo)
        if graph is not None:
            built.add_graph(graph, on_progress)
    return built


def _read_words(words: str | Path | Iterable[str]) -> tuple[str, ...]:
    """The words of a file or an iterable, each once, sorted."""
    if isinstance(words, str | Path):
        words = (word for line in read_lines(words) for word in line.text.split())
    return tuple(sorted(set(words)))
