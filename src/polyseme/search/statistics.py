"""What an index computes from its blocks: the space, the lengths in it, the mean vector of each word.

    search.usage_store  ->  search.statistics (space, lengths and words .safetensors)
        ->  search.build, search.index

Computed when all text is read, and again if a file is missing or damaged. H values.
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
from torch import Tensor

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors, write_tensors
from polyseme.formats.vectors.word_file import LARGEST, WORDS_FILE, StoredWords, write_words
from polyseme.io.atomic import new_file
from polyseme.io.checked import check_array, refuse_damaged
from polyseme.model.fast.kernels import dots, native
from polyseme.model.fast.parallel import run_parallel
from polyseme.search.space import Space, fit_space, measure_anisotropy
from polyseme.search.usage_store import ADVICE as REBUILD
from polyseme.search.usage_store import UsageBlock, Vectors, as_tensor, get_block_path, write_head
from polyseme.word_vectors import WordVectors, read_word_vectors

Array = NDArray[np.float32]
MAX_SAMPLE = 20_000  # usages that the space is fitted to
ROWS = 1024  # vectors at a time: they stay in the cache
PIECE = 25 * ROWS  # vectors that a core takes at a time
ROUNDING = 1e-6  # relative error of fp32: what is left of a vector minus itself
SPACE_FILE, LENGTHS_FILE = "space.safetensors", "lengths.safetensors"
SHORTEST = 1e-12  # a cosine divided by less may be infinite
ADVICE = "Run the same `polyseme.index(model, texts, out)` again: it computes this file from the blocks."


class Anisotropy(NamedTuple):
    """The mean cosine of random usages: as the model computes them, and in the corrected space."""

    before: float
    after: float


def write_statistics(folder: Path, head: dict[str, Any]) -> None:
    """Compute and write the files, unless they are complete: from a sample, then one pass over the blocks."""
    if head.get("finished") == len(head["blocks"]) and _is_complete(folder, head):
        return
    blocks = [UsageBlock(get_block_path(folder, number)) for number in range(len(head["blocks"]))]
    step = max(1, -(-sum(map(len, blocks)) // MAX_SAMPLE))
    sample = np.concatenate([np.asarray(block.vectors[::step], np.float32) for block in blocks])
    if not np.isfinite(sample).all():
        raise FormatError(f"{folder}: damaged: vectors that are not finite. {REBUILD}")
    space = fit_space(sample, head["space"])
    tensors = {"centre": space.centre} | ({} if space.matrix is None else {"turn": space.matrix})

    def write_means() -> None:
        means = average_usages(blocks, centred=head["space"] != "none")
        write_words(folder / WORDS_FILE, means, force=True)

    def note_anisotropy() -> None:
        before, after = measure_anisotropy(sample), measure_anisotropy(sample, space)
        head["anisotropy"] = Anisotropy(before, after)._asdict()

    vectors = [block.vectors for block in blocks]
    lengths = measure_lengths(space, vectors, meanwhile=(write_means, note_anisotropy))
    for name, values in ((SPACE_FILE, tensors), (LENGTHS_FILE, {"lengths": lengths})):
        with new_file(folder / name, force=True) as new:
            write_tensors(new, {key: torch.from_numpy(array) for key, array in values.items()})
    head["finished"] = len(head["blocks"])
    write_head(folder, head)


def _is_complete(folder: Path, head: dict[str, Any]) -> bool:
    """Whether all files can be read and fit the blocks, and index.json has every value."""
    try:
        read_space(folder, head)
        read_lengths(folder, sum(block["usages"] for block in head["blocks"]))
        read_means(folder, head["size"])
    except FormatError:
        return False
    return "anisotropy" in head


def measure_lengths(
    space: Space, blocks: Sequence[Vectors], meanwhile: Sequence[Callable[[], object]] = ()
) -> Array:
    """Return the length of each vector of all blocks in the corrected space.

    A vector that equals the centre has no direction there: its length is infinite, so that its cosines are 0.
    The work `meanwhile` runs in parallel. Each piece of work has one core: products that are split over the
    cores wait for each other.
    """
    starts = np.cumsum([0, *map(len, blocks)]).tolist()
    lengths = np.empty(starts[-1], np.float32)
    measure = _choose_length_function(space)

    def measure_piece(piece: Vectors, first: int) -> None:
        lengths[first : first + len(piece)] = measure(piece)

    pieces: list[Callable[[], object]] = [
        partial(measure_piece, block[row : row + PIECE], start + row)
        for block, start in zip(blocks, starts, strict=False)
        for row in range(0, len(block), PIECE)
    ]
    with torch.no_grad():  # without it threads do not run in parallel
        run_parallel([*meanwhile, *pieces])
    norm = 1.0 if space.matrix is None else float(np.linalg.norm(space.matrix))
    smallest = ROUNDING * norm * float(np.linalg.norm(space.centre))
    lengths[lengths <= max(smallest, float(np.finfo(np.float32).tiny))] = np.inf
    return lengths


def _choose_length_function(space: Space) -> Callable[[Vectors], Array]:
    """What computes lengths in the corrected space: the C library if available, else torch."""
    if space.matrix is not None and native.is_available():
        return dots.TransformedNorms(space.centre, space.matrix).lengths
    centre = torch.from_numpy(space.centre)
    matrix = None if space.matrix is None else torch.from_numpy(space.matrix)

    def measure(vectors: Vectors) -> Array:
        parts = [np.empty(0, np.float32)]
        for _, wide in _widen(vectors):
            centred = wide.sub_(centre)
            transformed = centred if matrix is None else centred @ matrix
            parts.append(torch.linalg.vector_norm(transformed, dim=1).numpy())
        return np.concatenate(parts)

    return measure


def _widen(vectors: Vectors) -> Iterator[tuple[slice, Tensor]]:
    """Vectors as fp32, few at a time to stay in the cache; each piece reuses the memory of the one before."""
    buffer = torch.empty(min(ROWS, len(vectors)), vectors.shape[1], dtype=torch.float32, device="cpu")
    for first in range(0, len(vectors), ROWS):
        rows = slice(first, min(first + ROWS, len(vectors)))
        yield rows, buffer[: rows.stop - rows.start].copy_(as_tensor(vectors[rows]))


def count_usages(blocks: Sequence[UsageBlock], keep: NDArray[np.bool_] | None = None) -> Counter[str]:
    """Count the usages of each word, in the order of the text; `keep` (U,) counts only some of them."""
    counts: Counter[str] = Counter()
    for block, kept in _pair_with_kept(blocks, keep):
        words = block.words if kept is None else block.words[kept]
        block_counts = np.bincount(words, minlength=len(block.types)).tolist()
        counts.update(
            {
                word: count
                for word, count in zip(block.types, block_counts, strict=True)
                if count or keep is None
            }
        )
    return counts


def _pair_with_kept(
    blocks: Sequence[UsageBlock], keep: NDArray[np.bool_] | None
) -> Iterator[tuple[UsageBlock, NDArray[np.bool_] | None]]:
    """Every block, with which of its usages are kept; None keeps all."""
    start = 0
    for block in blocks:
        yield block, None if keep is None else keep[start : start + len(block)]
        start += len(block)


def average_usages(
    blocks: Sequence[UsageBlock], *, centred: bool, keep: NDArray[np.bool_] | None = None
) -> StoredWords:
    """Return the mean vector of each word, the most frequent first; of equals the one that occurs first.

    Sums are taken in fp32, first within a block. If `centred`, cosines are around the mean of the words.
    `keep` (U,) takes only some of the usages.
    """
    counts = count_usages(blocks, keep)
    words = tuple(word for word, _ in counts.most_common())
    means = _sum_usages(blocks, {word: row for row, word in enumerate(words)}, keep)
    usages = np.array([counts[word] for word in words], np.int64)
    means /= np.maximum(usages, 1)[:, None]
    centre = means.mean(axis=0, dtype=np.float64) if centred and words else np.zeros(means.shape[1])
    return StoredWords(words, usages, means, centre.astype(np.float32))


def _sum_usages(
    blocks: Sequence[UsageBlock], rows_of: dict[str, int], keep: NDArray[np.bool_] | None
) -> Array:
    """The sum of the vectors of each word, in its row."""
    size = blocks[0].vectors.shape[1]
    sums = np.zeros((len(rows_of), size), np.float32)
    buffer = np.empty((max(len(block.types) for block in blocks), size), np.float32)
    for block, kept in _pair_with_kept(blocks, keep):
        block_sums = buffer[: len(block.types)]
        block_sums.fill(0)
        if kept is None:
            _add_rows(block_sums, block.words, block.vectors)
        elif kept.any():
            _add_rows(block_sums, block.words[kept], block.vectors[kept])
        present = [position for position, word in enumerate(block.types) if word in rows_of]
        rows = np.array([rows_of[block.types[position]] for position in present], np.int32)
        _add_rows(sums, rows, block_sums if len(present) == len(block.types) else block_sums[present])
    return sums


def _add_rows(sums: Array, rows: NDArray[np.int32], vectors: Vectors) -> None:
    """Add each of the vectors (N, H) to its row of the sums."""
    if native.is_available():
        dots.add_rows(sums, rows, vectors)
        return
    row_tensor, sum_tensor = torch.from_numpy(rows.astype(np.int64)), torch.from_numpy(sums)
    for span, wide in _widen(vectors):
        sum_tensor.index_add_(0, row_tensor[span], wide)


def read_space(folder: Path, head: dict[str, Any]) -> Space:
    """Read the correction of the space.

    Raises:
        FormatError: The file is missing, damaged, or does not fit the index.

    """
    size, path = head["size"], folder / SPACE_FILE
    tensors = _read_arrays(path, "the correction of the space")
    centre, matrix = tensors.get("centre"), tensors.get("turn")
    centre = check_array(centre, f"{path}: damaged: centre", ("f4",), (size,), finite=True, advice=ADVICE)
    if matrix is not None:
        check_array(matrix, f"{path}: damaged: turn", ("f4",), (size, size), finite=True, advice=ADVICE)
    largest = max(float(np.abs(values).max()) for values in (centre, matrix) if values is not None)
    if largest > LARGEST:
        raise FormatError(f"{path}: damaged: values up to {largest:.1g}. {ADVICE}")
    return Space(head["space"], centre, matrix)


def read_lengths(folder: Path, count: int) -> Array:
    """Read the lengths of all usages in the corrected space.

    Raises:
        FormatError: The file is missing, damaged, or does not fit the blocks.

    """
    path = folder / LENGTHS_FILE
    lengths: Array | None = _read_arrays(path, "the lengths of the vectors").get("lengths")
    lengths = check_array(lengths, f"{path}: damaged: lengths", ("f4",), (count,), advice=ADVICE)
    if not (lengths > SHORTEST).all():  # nor NaN; infinite is that of a usage without a direction
        raise FormatError(f"{path}: damaged: lengths that are not positive. {ADVICE}")
    return lengths


def read_means(folder: Path, size: int) -> WordVectors:
    """Read the mean vector of each word.

    Raises:
        FormatError: The file is missing or damaged.

    """
    path = _check_exists(folder / WORDS_FILE)
    words = read_word_vectors(path, ADVICE)
    check_array(words.vectors, f"{path}: damaged: vectors", ("f4",), (None, size), advice=ADVICE)
    return words


def _read_arrays(path: Path, what: str) -> dict[str, NDArray[Any]]:
    tensors = read_tensors(_check_exists(path), what, ADVICE)
    with refuse_damaged(path, f"a file of {what}", ADVICE):  # numpy lacks some dtypes of torch
        return {name: values.numpy() for name, values in tensors.items()}


def _check_exists(path: Path) -> Path:
    if not path.exists():
        raise FormatError(f"{path}: this file of the index is missing. {ADVICE}")
    return path
