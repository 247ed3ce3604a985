"""Group sentences into batches: by length for the model, in order for streams.

    sentences or their lengths  ->  text.length_batches  ->  elmo, language, search, tasks, corpus workers

Knows nothing of models. What must not change: the groups depend on the lengths and the limits only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def batch_by_length(
    lengths: Sequence[int], *, max_tokens: int | None = None, max_sentences: int | None = None
) -> Iterator[list[int]]:
    """Group sentences of similar length, longest first, so that little is padded.

    Args:
        lengths: The number of tokens of each sentence, as the model reads it.
        max_tokens: The size of a batch, padding included. A longer sentence is a batch by itself.
        max_sentences: The number of sentences in a batch.

    Yields:
        The positions in `lengths` of the sentences of one batch. Sentences of equal length keep their order.

    Example:
        >>> list(batch_by_length([3, 5, 1, 3], max_tokens=6))
        [[1], [0, 3], [2]]

    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    start = 0
    while start < len(order):
        size = len(order) if max_sentences is None else max_sentences
        if max_tokens is not None:
            longest = max(1, lengths[order[start]])
            size = min(size, max(1, max_tokens // longest))
        yield order[start : start + size]
        start += size


def chunk_by_size(
    items: Iterable[Item], min_size: int, size_of: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Collect consecutive items until their sizes add up to `min_size`.

    Args:
        items: What to group, read one at a time.
        min_size: A chunk ends with the item that reaches this size; the last chunk may be smaller.
        size_of: The size of an item.

    Yields:
        The items of one chunk, in their order.

    """
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += size_of(item)
        if size >= min_size:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def chunk_sentences(sentences: Iterable[list[str]], min_tokens: int) -> Iterator[list[list[str]]]:
    """Collect consecutive sentences with `min_tokens` tokens together; an empty sentence counts as one."""
    return chunk_by_size(sentences, min_tokens, lambda sentence: max(1, len(sentence)))
