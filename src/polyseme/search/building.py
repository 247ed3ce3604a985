"""A model and a corpus to an index of every usage: in constant memory, block by block, through kills.

    embedder, text.stream  ->  search.building  ->  index.json, block-*.safetensors  ->  search.parts

index.json notes what was asked for and which blocks are whole; the same call goes on behind the last of them.
When all text is read, `search.parts` makes from the blocks what search needs beside them.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.bulk import fingerprint
from polyseme.embedder import CHUNK, Elmo
from polyseme.errors import DataError, UsageError
from polyseme.formats.word_file import NAME as WORDS
from polyseme.model.choice import Choice, Layer, choose
from polyseme.search.blocks import (
    FORMAT,
    HEAD,
    PRECISIONS,
    NewBlock,
    Precision,
    Vectors,
    block_path,
    read_head,
    write_head,
)
from polyseme.search.graph import FILE as GRAPH
from polyseme.search.parts import LENGTHS, SPACE, finish
from polyseme.search.space import Kind, check_kind
from polyseme.text.documents import expand_inputs
from polyseme.text.fingerprint import digest, stamp
from polyseme.text.reading import read_lines
from polyseme.text.stream import placed_units, sentences_of_unit
from polyseme.writing import check_folder, check_place

BLOCK_USAGES = 100_000
LARGEST = float(np.finfo(np.float16).max)
FP32 = "say --precision fp32, with --force or another --out."
Watch = Callable[[int], None]  # is told how many tokens were read
Keeps = Callable[[str], bool]  # whether the usages of a word are kept


@dataclass(frozen=True)
class Filters:
    """Which words have their usages kept."""

    min_count: int = 1
    max_count: int | None = None
    stop: tuple[str, ...] = ()  # never these
    only: tuple[str, ...] = ()  # these alone, if any

    def chosen(self, counts: Counter[str] | None) -> Keeps | None:
        """Whether a word is kept, None if all are; `counts` of the corpus, where a count matters."""
        if not (self.stop or self.only or self.counting):
            return None
        stop, only = frozenset(self.stop), frozenset(self.only)
        most = self.max_count

        def keeps(word: str) -> bool:
            if word in stop or (only and word not in only):
                return False
            if counts is None:
                return True
            return counts[word] >= self.min_count and (most is None or counts[word] <= most)

        return keeps

    @property
    def counting(self) -> bool:
        """Whether the corpus must be counted first."""
        return self.min_count > 1 or self.max_count is not None


@dataclass(frozen=True)
class Usage:
    """A sentence of the corpus: its text, where it stands, its words and where each begins in it."""

    text: str
    document: str
    line: int
    words: list[str]
    starts: list[int]


def sentences_of(texts: Sequence[Path], how: str, skip: int = 0) -> Iterator[tuple[int, Usage]]:
    """The sentences of files, each with the number of text units that are through with it."""
    lines = (line for text in texts for line in read_lines(text))
    for number, unit in enumerate(islice(placed_units(lines, how), skip, None), start=skip + 1):
        find, end, line = unit.text.index, 0, unit.number
        for words in sentences_of_unit(unit.text, how):
            if not words:
                continue
            first = find(words[0], end)
            line += unit.text.count("\n", end, first)
            end, starts = first, []
            for word in words:
                start = find(word, end)
                starts.append(start - first)
                end = start + len(word)
            text = unit.text[first:end].replace("\n", " ")
            yield number, Usage(text, unit.source, line, words, starts)
            line += unit.text.count("\n", first, end)


def build_index(
    elmo: Elmo,
    texts: Sequence[str | Path],
    folder: Path,
    *,
    layer: Layer = "top",
    filters: Filters = Filters(),  # noqa: B008  # frozen
    segment: str | None = None,
    space: Kind = "whiten",
    precision: Precision = "fp16",
    model: str | None = None,
    add: bool = False,
    force: bool = False,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Build the index of `texts` in `folder`, or go on with it; `add`: to one that is whole.

    Gives the head of the index. The filters of counts look at `texts` alone, not at what was there before.
    """
    check_kind(space)
    if precision not in PRECISIONS:
        raise UsageError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}.")
    files = [Path(file) for file in expand_inputs(texts)]
    how = elmo.config.segment if segment is None else segment
    choice = choose(layer, None, "both", elmo.config.layers)
    if choice.weights is None:
        raise UsageError("layer is 'all', but a usage has one vector: choose top, mean, a number or weights.")
    asked = {
        "polyseme_index": FORMAT,
        "model": fingerprint(elmo),
        "name": model,
        "layer": layer if isinstance(layer, str | int) else list(choice.weights),  # gamma within
        "segment": how,
        "space": space,
        "precision": precision,
        "size": elmo.config.size,
        "filters": asdict(filters),
    }
    head = _begin(folder, asked, files, add=add, force=force)
    _read_texts(elmo, folder, head, files, choice, filters, watch)
    finish(folder, head)
    return head


def _begin(
    folder: Path, asked: dict[str, Any], files: list[Path], *, add: bool, force: bool
) -> dict[str, Any]:
    """The head of a new index, of one that goes on, or of one that gets more text."""
    contents = [found.content for found in stamp(files)]
    names = [os.path.abspath(file) for file in files]
    corpus = {"files": names, "content": digest(contents), "contents": contents, "done": False}
    if force or not (folder / HEAD).exists():
        if add:
            raise UsageError(f"{folder}: no index to add to. Leave out --add{' and --force' * force}.")
        _make_room(folder, force=force)
        head = {**asked, "documents": [], "corpora": [corpus], "blocks": []}
        write_head(folder, head)
        return head
    head = read_head(folder)
    same = {
        name: head.get(name) == value
        for name, value in json.loads(json.dumps(asked)).items()
        if name != "name"
    }
    wrong = [name for name, equal in same.items() if not equal]
    if wrong:
        raise UsageError(
            f"{folder}: an index with another {', '.join(wrong)}. Use the same, choose another --out, or say "
            "--force."
        )
    last = head["corpora"][-1]
    if last["content"] != corpus["content"] and not last["done"]:
        raise UsageError(f"{folder}: not finished, and of another text. Finish it first, or say --force.")
    if any(one["content"] == corpus["content"] for one in head["corpora"]):
        return head
    _refuse_changed(folder, head, corpus)
    if not add:
        raise UsageError(
            f"{folder}: an index of another text. Say --add to put this one into it too, or --force."
        )
    _refuse_doubles(folder, head, corpus)
    head["corpora"].append(corpus)
    write_head(folder, head)
    return head


def _refuse_changed(folder: Path, head: dict[str, Any], corpus: dict[str, Any]) -> None:
    """Refuse a file that was indexed with another content: its usages would be there twice."""
    known = {
        os.path.abspath(name): content
        for one in head["corpora"]
        for name, content in zip(one["files"], one.get("contents", ()), strict=False)
    }
    for file, content in zip(corpus["files"], corpus["contents"], strict=True):
        if known.get(file, content) != content:
            raise UsageError(
                f"{file}: has changed since it went into the index {folder}. Build that anew: say --force."
            )


def _refuse_doubles(folder: Path, head: dict[str, Any], corpus: dict[str, Any]) -> None:
    """Refuse a file that the index holds already, whatever its name was."""
    known = {content for one in head["corpora"] for content in one.get("contents", ())}
    wholes = {one["content"] for one in head["corpora"]}  # older indexes note nothing else
    for file, content in zip(corpus["files"], corpus["contents"], strict=True):
        if content in known or digest([content]) in wholes:
            raise UsageError(f"{file}: in the index {folder} already. Leave it out: its usages would double.")


def _make_room(folder: Path, *, force: bool) -> None:
    """An empty folder; with `force` an index that stands there goes, anything else stays and is refused."""
    check_place(folder, force=True)
    if folder.exists() and force:
        check_folder(folder, force=True, ours=[path.name for path in folder.iterdir() if _is_ours(path)])
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: exists already and is no index. Choose another name.")
    folder.mkdir(parents=True, exist_ok=True)


def _is_ours(path: Path) -> bool:
    """Whether a file is a part of an index, or what a killed process left of one."""
    parts = (HEAD, SPACE, LENGTHS, WORDS, GRAPH)
    begun = tuple(f".{Path(name).stem}-" for name in parts)
    return path.name in parts or path.name.startswith(("block-", ".block-", *begun))


def _read_texts(
    elmo: Elmo,
    folder: Path,
    head: dict[str, Any],
    files: list[Path],
    choice: Choice,
    filters: Filters,
    watch: Watch | None,
) -> None:
    """Write the blocks that are missing of the last corpus."""
    corpus = len(head["corpora"]) - 1
    if head["corpora"][corpus]["done"]:
        return
    how = head["segment"]
    counts = _count(files, how) if filters.counting else None
    done = [block["units"] for block in head["blocks"] if block["corpus"] == corpus]
    keeps = filters.chosen(counts)
    block, units = NewBlock(elmo.config.size, head["precision"], BLOCK_USAGES + BLOCK_USAGES // 8), 0
    sentences = sentences_of(files, how, done[-1] if done else 0)
    if keeps is not None:  # sentences that nothing is kept of need not be read by the model
        sentences = (one for one in sentences if any(map(keeps, one[1].words)))
    for units, some in _batches(elmo, sentences):
        with elmo.call() as counted:
            vectors = elmo.vectors([usage.words for usage in some], choice, counted)
        _add(block, head["documents"], some, vectors, keeps)
        if watch is not None:
            watch(sum(len(usage.words) for usage in some))
        if len(block) >= BLOCK_USAGES:
            _write_block(folder, head, block, corpus, units)
    if len(block):
        _write_block(folder, head, block, corpus, units)
    head["corpora"][corpus]["done"] = True
    if not any(one["corpus"] == corpus for one in head["blocks"]):
        _forget_last(folder, head)
        raise DataError(
            f"{', '.join(map(str, files[:3]))}: no usage to index: no text, or no word that the filters keep."
        )
    write_head(folder, head)


def _forget_last(folder: Path, head: dict[str, Any]) -> None:
    """Leave an index as it was before its last corpus; one that has no other goes."""
    head["corpora"].pop()
    if head["corpora"]:
        write_head(folder, head)
        return
    for path in [path for path in folder.iterdir() if _is_ours(path)]:
        path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _batches(elmo: Elmo, sentences: Iterator[tuple[int, Usage]]) -> Iterator[tuple[int, list[Usage]]]:
    """Sentences of whole units with enough tokens to be embedded together, and how many units are through."""
    some: list[Usage] = []
    size, last = 0, 0
    for number, usage in sentences:
        if size >= CHUNK * elmo.batch_tokens and number != last:
            yield last, some
            some, size = [], 0
        some.append(usage)
        size += len(usage.words)
        last = number
    if some:
        yield last, some


def _add(
    block: NewBlock,
    documents: list[str],
    usages: list[Usage],
    vectors: list[NDArray[np.float32]],
    keeps: Keeps | None,
) -> None:
    """Put sentences and the vectors of their words into a block; a vector is rounded once, in the cache."""
    if keeps is not None:
        usages, vectors = _kept(usages, vectors, keeps)
    room = block.room(sum(map(len, vectors)))
    rows, last = torch.from_numpy(room), 0
    for array in vectors:
        first, last = last, last + len(array)
        rows[first:last] = torch.from_numpy(array)
    if not _finite(room):
        _refuse(usages, vectors)
    for usage in usages:
        if not documents or documents[-1] != usage.document:
            documents.append(usage.document)
        block.add(usage.text, len(documents) - 1, usage.line, usage.words, usage.starts)


def _kept(
    usages: list[Usage], vectors: list[NDArray[np.float32]], keeps: Keeps
) -> tuple[list[Usage], list[NDArray[np.float32]]]:
    """The sentences in which words are kept, with these words and their vectors alone."""
    left, found = [], []
    for usage, array in zip(usages, vectors, strict=True):
        places = [place for place, word in enumerate(usage.words) if keeps(word)]
        if places:
            words = [usage.words[place] for place in places]
            left.append(replace(usage, words=words, starts=[usage.starts[place] for place in places]))
            found.append(array[places])
    return left, found


def _finite(rows: Vectors) -> bool:
    """Whether all numbers are finite: the exponent of others has all bits set."""
    wide = rows.dtype == np.float32
    bits, most = (rows.view(np.int32), 0x7F80_0000) if wide else (rows.view(np.int16), 0x7C00)
    return not rows.size or int((bits & (most | (most - 1))).max()) < most


def _refuse(usages: list[Usage], vectors: list[NDArray[np.float32]]) -> None:
    """Say which sentence has a vector that cannot be kept."""
    for usage, array in zip(usages, vectors, strict=True):
        place, peak = f"{usage.document}:{usage.line}", float(np.abs(array).max(initial=0))
        if not math.isfinite(peak):
            raise DataError(f"{place}: a vector is not finite. Is the model broken?")
        if peak > LARGEST:
            raise DataError(
                f"{place}: a vector has values beyond {LARGEST:.0f}, the most that fp16 holds: {FP32}"
            )


def _write_block(folder: Path, head: dict[str, Any], block: NewBlock, corpus: int, units: int) -> None:
    number, usages = len(head["blocks"]), len(block)
    block.write(block_path(folder, number))
    head["blocks"].append({"usages": usages, "corpus": corpus, "units": units})
    write_head(folder, head)


def _count(files: list[Path], how: str) -> Counter[str]:
    return Counter(word for _, usage in sentences_of(files, how) for word in usage.words)
