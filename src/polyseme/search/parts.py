"""The parts of an index that follow from its blocks: the space, the lengths in it, the mean of each word.

    search.blocks  ->  search.parts (space, lengths and words .safetensors)  ->  search.building, search.index

They are made when all text is read, and made anew where one is missing or damaged. H values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from polyseme.errors import FormatError
from polyseme.formats.tensors import read_tensors
from polyseme.formats.word_file import NAME as WORDS
from polyseme.formats.word_file import read_words
from polyseme.search.blocks import Block, Vectors, block_path, write_head
from polyseme.search.space import Space, crowding, fit
from polyseme.words import WordVectors
from polyseme.writing import new_file

SAMPLE = 20_000  # usages that the correction of the space is fitted to
ROWS = 8192  # vectors that are moved at a time
SPACE, LENGTHS = "space.safetensors", "lengths.safetensors"
ADVICE = "Give the same polyseme index command again: it makes this part anew from the blocks."


class Crowding(NamedTuple):
    """The mean cosine of random pairs of usages: as the model gives them, and in the corrected space."""

    before: float
    after: float


def finish(folder: Path, head: dict[str, Any]) -> None:
    """Make the parts, unless they are there and whole; each takes one pass over the blocks."""
    if head.get("finished") == len(head["blocks"]) and _whole(folder, head):
        return
    blocks = [Block(block_path(folder, number)) for number in range(len(head["blocks"]))]
    every = max(1, -(-sum(map(len, blocks)) // SAMPLE))
    sample = np.concatenate([np.asarray(block.vectors[::every], np.float32) for block in blocks])
    space = fit(sample, head["space"])
    tensors = {"centre": space.centre} | ({} if space.turn is None else {"turn": space.turn})
    lengths = np.concatenate([lengths_in(space, block.vectors) for block in blocks])
    for name, values in ((SPACE, tensors), (LENGTHS, {"lengths": lengths})):
        with new_file(folder / name, force=True) as new:
            save_file(values, new)
    words = mean_of_words(blocks, head["size"], centred=head["space"] != "none")
    words.save(folder / WORDS, force=True)
    head["crowding"] = Crowding(crowding(sample), crowding(sample, space))._asdict()
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
    return "crowding" in head


def lengths_in(space: Space, vectors: Vectors) -> NDArray[np.float32]:
    """The length of each vector in the corrected space, block by block of rows."""
    found = np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), ROWS):
        found[start : start + ROWS] = np.linalg.norm(space.move(vectors[start : start + ROWS]), axis=1)
    return np.maximum(found, np.finfo(np.float32).tiny)


def mean_of_words(blocks: Sequence[Block], size: int, *, centred: bool = True) -> WordVectors:
    """The mean of the usages of each word, words by falling count; cosines around the mean of all words."""
    rows: dict[str, int] = {}
    for block in blocks:
        for word in block.types:
            rows.setdefault(word, len(rows))
    sums, counts = np.zeros((len(rows), size)), np.zeros(len(rows), np.int64)
    for block in blocks:
        own = np.array([rows[word] for word in block.types], np.int64)[block.words]
        order = np.argsort(own, kind="stable")
        ordered = own[order]
        starts = (
            np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(own) else np.zeros(0, int)
        )
        if len(starts):
            added = np.add.reduceat(np.asarray(block.vectors[:], np.float32)[order], starts, axis=0)
            sums[ordered[starts]] += added
        counts += np.bincount(own, minlength=len(rows))
    means = sums / np.maximum(counts, 1)[:, None]
    order = np.argsort(-counts, kind="stable")
    names = list(rows)
    centre = means.mean(axis=0) if centred and len(means) else np.zeros(size)
    words = tuple(names[row] for row in order)
    return WordVectors(words, counts[order], means[order].astype(np.float32), centre.astype(np.float32))


def read_space(folder: Path, head: dict[str, Any]) -> Space:
    """The correction of the space."""
    size, path = head["size"], folder / SPACE
    tensors = _load(path, "the correction of the space and its figures")
    centre, turn = tensors.get("centre"), tensors.get("turn")
    if centre is None or centre.shape != (size,) or (turn is not None and turn.shape != (size, size)):
        raise FormatError(f"{path}: does not fit the index. {ADVICE}")
    return Space(head["space"], centre, turn)


def read_lengths(folder: Path, count: int) -> NDArray[np.float32]:
    """The lengths of all usages in the corrected space."""
    path = folder / LENGTHS
    found: NDArray[np.float32] | None = _load(path, "the lengths of the vectors").get("lengths")
    if found is None or found.shape != (count,):
        raise FormatError(f"{path}: does not fit the blocks. {ADVICE}")
    return found


def read_means(folder: Path) -> WordVectors:
    """The mean of each word."""
    return WordVectors(*read_words(_found(folder / WORDS), ADVICE))


def _load(path: Path, what: str) -> dict[str, NDArray[Any]]:
    tensors = read_tensors(_found(path), what, ADVICE)
    return {name: values.numpy() for name, values in tensors.items()}


def _found(path: Path) -> Path:
    if not path.exists():
        raise FormatError(f"{path}: this part of the index is missing. {ADVICE}")
    return path
