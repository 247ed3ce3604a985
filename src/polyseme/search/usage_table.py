"""The usages of an index as a table, in the order of the text, for Parquet files and stores.

    search.index  ->  search.usage_table  ->  formats.vectors.usage_exports (UsageTable)  ->  api.exporting

The vectors are those that a search compares: in the space of the index, and of length 1. Pages of the index
that were read are released, so memory holds one batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from polyseme.errors import UsageError
from polyseme.formats.vectors.usage_exports import UsageBatch, UsageTable, name_columns
from polyseme.search.index import Index

BATCH_BYTES = 16 << 20  # of the vectors of a batch
Rows = NDArray[np.int64]


def make_usage_table(
    index: Index, word: str | None = None, min_count: int = 1, *, batch_bytes: int = BATCH_BYTES
) -> UsageTable:
    """Prepare the usages of an index, or of a part of one, to be written.

    Args:
        index: The index.
        word: Only usages of this word.
        min_count: Only words with at least this many usages.
        batch_bytes: Bytes of the vectors of a batch.

    Raises:
        UnknownWordError: `word` has no usages.
        UsageError: No word has `min_count` usages.

    """
    all_counts = index.counts() if word is None else {word: index.count(word)}
    counts = {name: count for name, count in all_counts.items() if count >= min_count}
    if not counts:
        raise UsageError(f"No word has {min_count:,} usages. Lower `min_count`.")
    fields = sorted({name for document in index.listed_documents for name in document.meta})
    size = index.head["size"]
    batches = _read_batches(index, counts, fields, max(1, batch_bytes // (4 * size)))
    return UsageTable(name_columns(fields), size, sum(counts.values()), len(counts), batches)


def _read_batches(
    index: Index, counts: dict[str, int], fields: list[str], batch_rows: int
) -> Iterator[UsageBatch]:
    documents = index.listed_documents
    for number, start in enumerate(index.block_starts[:-1].tolist()):
        block, chosen = index.blocks[number], _choose_rows(index, number, counts)
        for first in range(0, len(chosen), batch_rows):
            rows = chosen[first : first + batch_rows]
            numbers = rows + start
            vectors = index.vectors(numbers)
            vectors[np.isinf(index.lengths[numbers])] = 0  # without a direction: every cosine is 0
            words, sentences, starts, stops, files, lines, titles = zip(
                *block.read_rows(rows, documents), strict=True
            )
            metas = [documents[number].meta for number in block.document_numbers(rows).tolist()]
            of_documents = [[meta.get(field) for meta in metas] for field in fields]
            columns = (numbers.tolist(), words, sentences, files, titles, lines, starts, stops, *of_documents)
            block.release()
            yield UsageBatch(columns, vectors)


def _choose_rows(index: Index, number: int, counts: dict[str, int]) -> Rows:
    """The rows of a block that are usages of these words, and belong to the part."""
    block = index.blocks[number]
    is_wanted = np.array([name in counts for name in block.types], np.bool_)
    chosen = is_wanted[block.words]
    if index.kept is not None:
        chosen &= index.kept[index.block_starts[number] : index.block_starts[number + 1]]
    return np.flatnonzero(chosen)
