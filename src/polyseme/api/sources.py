"""Open what the verbs about words read: indexes, and the word vectors of models.

search.index, word_vectors  ->  api.sources  ->  api.neighbours, api.meanings, api.exporting
"""

from __future__ import annotations

from pathlib import Path

from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.model.output import Layer
from polyseme.search.index import Index, is_index, open_index
from polyseme.search.selection import Documents
from polyseme.word_vectors import WordVectors, open_words

MEGABYTE = 10**6
BUILD_INDEX = "`polyseme.index(model, texts, out)`"


def open_source(
    source: WordVectors | Index | Elmo | str | Path,
    *,
    for_usages: bool = False,
    layer: Layer | None = None,
    uncorrected: bool = False,
    memory: int | None = None,
    model: Elmo | str | Path | None = None,
) -> Index | WordVectors:
    """Open what `nearest` searches: an index, or the word vectors of a model.

    Args:
        source: An index, word vectors or a model, open or as a path.
        for_usages: Whether usages are searched (`context`), which needs an index.
        layer: Refuse an index of another layer.
        uncorrected: With an index: leave its vectors as the model computed them.
        memory: With an index: megabytes of vectors to keep in memory.
        model: The ELMo of an index, if it has moved.

    Returns:
        An open index, or word vectors.

    Raises:
        UsageError: If an option is set that needs an index, or the path of one.

    """
    if isinstance(source, str | Path) and is_index(source):
        opened = open_index(source, model, memory=_to_bytes(memory), corrected=not uncorrected)
        if layer is not None:
            opened.check_layer(layer)
        if model is not None:
            opened.elmo  # noqa: B018  # refuses a model that the index was not built with
        return opened
    options = {"uncorrected": uncorrected, "memory": memory is not None, "model": model is not None}
    if isinstance(source, Index):
        for name, is_set in options.items():
            if is_set:
                raise UsageError(f"`{name}` needs the path of the index: this one is open already.")
        if layer is not None:
            source.check_layer(layer)
        return source
    for name, is_set in ({"context": for_usages} | options | {"layer": layer is not None}).items():
        if is_set:
            argument = f", layer={layer!r}" if name == "layer" else ""
            build = f"`polyseme.index(model, texts, out{argument})`"
            raise UsageError(f"{describe_source(source)}: `{name}` needs an index. Build one: {build}.")
    return source if isinstance(source, WordVectors) else open_model_words(source)


def open_model_words(model: Elmo | str | Path) -> WordVectors:
    """The word vectors stored beside a model."""
    path = model.path if isinstance(model, Elmo) else model
    if path is None:
        raise FormatError(
            "This model was not loaded from a folder, so no word vectors are stored beside it. Compute them "
            "with `polyseme.mean_vectors(model, sentences)`."
        )
    return open_words(path)


def open_part(
    index: Index | str | Path, documents: Documents | None = None, memory: int | None = None
) -> Index:
    """Open an index, or the part of it that some of its documents are.

    Args:
        index: An index, open or as a path.
        documents: Only these documents; see `Index.restrict`.
        memory: Megabytes of vectors to keep in memory, if the index is opened here.

    Returns:
        An open index.

    Raises:
        UsageError: If no document fits.

    """
    opened = index if isinstance(index, Index) else open_index(index, memory=_to_bytes(memory))
    return opened if documents is None else opened.restrict(documents)


def _to_bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MEGABYTE


def describe_source(source: WordVectors | Index | Elmo | str | Path) -> str:
    """What to call a source in an error message."""
    return str(source) if isinstance(source, str | Path) else type(source).__name__
