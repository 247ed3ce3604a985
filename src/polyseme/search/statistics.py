"""The parts of an index that follow from its blocks: the space, the lengths in it, the mean of each word.

    search.usage_store  ->  search.statistics (space, lengths and words .safetensors)
        ->  search.build, search.index

They are made when all text is read, and made anew where one is missing or damaged. H values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors
from polyseme.formats.vectors.word_file import WORDS_FILE as WORDS
from polyseme.formats.vectors.word_file import StoredWords, write_words
from polyseme.io.atomic import new_file
from polyseme.model.fast.kernels import dots, native
from polyseme.model.fast.parallel import run_parallel
from polyseme.search.space import Space, fit_space, measure_anisotropy
from polyseme.search.usage_store import UsageBlock, Vectors, block_path, lent, write_head
from polyseme.word_vectors import WordVectors, read_word_vectors

SAMPLE = 20_000  # usages that the correction of the space is fitted to
ROWS = 1024  # vectors that are worked on at a time: they stay in the cache
PIECE = 25 * ROWS  # vectors that a core takes at a time
ROUNDING = 1e-6  # of a number in fp32: what is left of a vector less itself
SPACE, LENGTHS = "space.safetensors", "lengths.safetensors"
ADVICE = "Give the same polyseme index command again: it makes this part anew from the blocks."


class Anisotropy(NamedTuple):
    """The mean cosine of random pairs of usages: as the model gives them, and in the corrected space."""

    before: float
    after: float


def finish(folder: Path, head: dict[str, Any]) -> None:
    """Make the parts, unless they are there and whole: from a sample, then one pass over the blocks."""
    if head.get("finished") == len(head["blocks"]) and _whole(folder, head):
        return
    blocks = [UsageBlock(block_path(folder, number)) for number in range(len(head["blocks"]))]
    every = max(1, -(-sum(map(len, blocks)) // SAMPLE))
    sample = np.concatenate([np.asarray(block.vectors[::every], np.float32) for block in blocks])
    space = fit_space(sample, head["space"])
    tensors = {"centre": space.centre} | ({} if space.matrix is None else {"turn": space.matrix})

    def words() -> None:
        write_words(folder / WORDS, average_usages(blocks, centred=head["space"] != "none"), force=True)

    def figures() -> None:
        head["anisotropy"] = Anisotropy(
            measure_anisotropy(sample), measure_anisotropy(sample, space)
        )._asdict()

    lengths = measure_lengths(space, [block.vectors for block in blocks], beside=(words, figures))
    for name, values in ((SPACE, tensors), (LENGTHS, {"lengths": lengths})):
        with new_file(folder / name, force=True) as new:
            save_file(values, new)
    head["finished"] = len(head["blocks"])
    write_head(folder, head)


def _whole(folder: Path, head: dict[str, Any]) -> bool:
    """Whether all parts can be read and fit the blocks; what index.json lacks counts as missing."""
    try:
        read_space(folder, head)
        read_lengths(folder, sum(block["usages"] for block in head["blocks"]))
        read_means(folder)
    except FormatError:
        return False
    return "anisotropy" in head


def measure_lengths(
    space: Space, blocks: Sequence[Vectors], beside: Sequence[Callable[[], object]] = ()
) -> NDArray[np.float32]:
    """The length of each vector of all blocks in the corrected space; the work `beside` is done meanwhile.

    A vector that is the centre has no direction there: its length is infinite, so that all its cosines are 0.
    Each piece of work has a core of its own: products that are split over the cores wait for each other.
    """
    ends = np.cumsum([0, *map(len, blocks)]).tolist()
    found = np.empty(ends[-1], np.float32)
    lengths = _lengths_by(space)

    def some(part: Vectors, first: int) -> None:
        found[first : first + len(part)] = lengths(part)

    works: list[Callable[[], object]] = [
        partial(some, block[place : place + PIECE], first + place)
        for block, first in zip(blocks, ends, strict=False)
        for place in range(0, len(block), PIECE)
    ]
    with torch.no_grad():  # only then side by side
        run_parallel([*beside, *works])
    stretch = 1.0 if space.matrix is None else float(np.linalg.norm(space.matrix))
    nothing = ROUNDING * stretch * float(np.linalg.norm(space.centre))
    found[found <= max(nothing, float(np.finfo(np.float32).tiny))] = np.inf
    return found


def _lengths_by(space: Space) -> Callable[[Vectors], NDArray[np.float32]]:
    """What gives the lengths of vectors in the corrected space: the C library, where it can."""
    if space.matrix is not None and native.is_available():
        return dots.TransformedNorms(space.centre, space.matrix).lengths
    centre = torch.from_numpy(space.centre)
    turn = None if space.matrix is None else torch.from_numpy(space.matrix)

    def lengths(vectors: Vectors) -> NDArray[np.float32]:
        found = [np.empty(0, np.float32)]
        for _, wide in _pieces(vectors):
            moved = wide.sub_(centre)
            found.append(torch.linalg.vector_norm(moved if turn is None else moved @ turn, dim=1).numpy())
        return np.concatenate(found)

    return lengths


def _pieces(vectors: Vectors) -> Iterator[tuple[slice, Tensor]]:
    """Vectors as fp32, few enough to stay in the cache; the next piece takes the memory of the one before."""
    room = torch.empty(min(ROWS, len(vectors)), vectors.shape[1])
    for first in range(0, len(vectors), ROWS):
        rows = slice(first, min(first + ROWS, len(vectors)))
        yield rows, room[: rows.stop - rows.start].copy_(lent(vectors[rows]))


def average_usages(blocks: Sequence[UsageBlock], *, centred: bool) -> StoredWords:
    """The mean of the usages of each word, words by falling count; of one count the first comes first.

    Sums are taken in fp32, first within a block. `centred`: cosines are those around the mean of all words.
    """
    counts: Counter[str] = Counter()
    for block in blocks:
        found = np.bincount(block.words, minlength=len(block.types)).tolist()
        counts.update(dict(zip(block.types, found, strict=True)))
    words = tuple(word for word, _ in counts.most_common())
    means = _sums(blocks, {word: row for row, word in enumerate(words)})
    times = np.array([counts[word] for word in words], np.int64)
    means /= np.maximum(times, 1)[:, None]
    centre = means.mean(axis=0, dtype=np.float64) if centred and words else np.zeros(means.shape[1])
    return StoredWords(words, times, means, centre.astype(np.float32))


def _sums(blocks: Sequence[UsageBlock], rows_of: dict[str, int]) -> NDArray[np.float32]:
    """The sum of the usages of each word, in its row."""
    size = blocks[0].vectors.shape[1]
    sums = np.zeros((len(rows_of), size), np.float32)
    room = np.empty((max(len(block.types) for block in blocks), size), np.float32)
    for block in blocks:
        own = room[: len(block.types)]
        own.fill(0)
        _add(own, block.words, block.vectors)
        _add(sums, np.array([rows_of[word] for word in block.types], np.int32), own)
    return sums


def _add(sums: NDArray[np.float32], rows: NDArray[np.int32], vectors: Vectors) -> None:
    """Each of the vectors (N, H) to its row of the sums."""
    if native.is_available():
        dots.add_rows(sums, rows, vectors)
        return
    places, room = torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(sums)
    for some, wide in _pieces(vectors):
        room.index_add_(0, places[some], wide)


def read_space(folder: Path, head: dict[str, Any]) -> Space:
    """The correction of the space."""
    size, path = head["size"], folder / SPACE
    tensors = _load(path, "the correction of the space and its figures")
    centre, turn = tensors.get("centre"), tensors.get("turn")
    if centre is None or centre.shape != (size,) or (turn is not None and turn.shape != (size, size)):
        raise FormatError(f"{path}: does not fit the index. {ADVICE}")
    if not (np.isfinite(centre).all() and (turn is None or np.isfinite(turn).all())):
        raise FormatError(f"{path}: damaged: numbers that are not finite. {ADVICE}")
    return Space(head["space"], centre, turn)


def read_lengths(folder: Path, count: int) -> NDArray[np.float32]:
    """The lengths of all usages in the corrected space."""
    path = folder / LENGTHS
    found: NDArray[np.float32] | None = _load(path, "the lengths of the vectors").get("lengths")
    if found is None or found.shape != (count,):
        raise FormatError(f"{path}: does not fit the blocks. {ADVICE}")
    if not (found > 0).all():
        raise FormatError(f"{path}: damaged: lengths that are none. {ADVICE}")
    return found


def read_means(folder: Path) -> WordVectors:
    """The mean of each word."""
    return read_word_vectors(_found(folder / WORDS), ADVICE)


def _load(path: Path, what: str) -> dict[str, NDArray[Any]]:
    tensors = read_tensors(_found(path), what, ADVICE)
    return {name: values.numpy() for name, values in tensors.items()}


def _found(path: Path) -> Path:
    if not path.exists():
        raise FormatError(f"{path}: this part of the index is missing. {ADVICE}")
    return path
