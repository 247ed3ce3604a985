"""A model and a corpus to an index of every usage: in constant memory, block by block, through kills.

    embedder  ->  search.build  ->  search.usage_writer (block-*.safetensors), search.statistics, index.json

index.json notes what was asked for and which blocks are whole; the same call goes on behind the last of them.
When all text is read, `search.statistics` makes from the blocks what search needs beside them.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polyseme.choices import IndexPrecision, IndexView, SpaceKind
from polyseme.elmo import Elmo
from polyseme.errors import DataError, UsageError
from polyseme.formats.vectors.word_file import WORDS_FILE as WORDS
from polyseme.io.atomic import check_output_folder, check_replaceable_folder
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.search.approximate import FILE as GRAPH
from polyseme.search.space import check_space
from polyseme.search.statistics import LENGTHS, SPACE, finish
from polyseme.search.usage_store import (
    FORMAT,
    HEAD,
    INDEX_VIEWS,
    PRECISIONS,
    read_head,
    write_head,
)
from polyseme.search.usage_vectors import check_view
from polyseme.search.usage_writer import UsageWriter, WordFilter, batches, count_words, sentences_of
from polyseme.text.corpus.documents import expand_inputs
from polyseme.text.fingerprint import digest, stamp
from polyseme.text.reading import ReadingProgress

BLOCK_USAGES = 100_000


def build_index(
    elmo: Elmo,
    texts: Sequence[str | Path],
    folder: Path,
    *,
    layer: Layer = "top",
    view: IndexView = "word",
    filters: WordFilter = WordFilter(),  # noqa: B008  # frozen
    segment: str | None = None,
    space: SpaceKind = "whiten",
    precision: IndexPrecision = "fp16",
    model: str | None = None,
    add: bool = False,
    force: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Any]:
    """Build the index of `texts` in `folder`, or go on with it; `add`: to one that is whole.

    Gives the head of the index. The filters of counts look at `texts` alone, not at what was there before.
    """
    check_space(space)
    if precision not in PRECISIONS:
        raise UsageError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}.")
    files = [Path(file) for file in expand_inputs(texts)]
    how = elmo.config.segment if segment is None else segment
    check_view(view, INDEX_VIEWS)
    spec = resolve_output(layer, None, "both", elmo.config.layers, context=view == "context")
    weights = spec.require_weights("usage")
    asked = {
        "polyseme_index": FORMAT,
        "model": elmo.model.fingerprint(),
        "name": model,
        "layer": layer if isinstance(layer, str | int) else list(weights),  # gamma within
        "view": view,
        "segment": how,
        "space": space,
        "precision": precision,
        "size": elmo.config.size,
        "filters": asdict(filters),
    }
    head = _begin(folder, asked, files, add=add, force=force)
    _read_texts(elmo, folder, head, files, spec, filters, on_progress)
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
    check_output_folder(folder, force=True)
    if folder.exists() and force:
        check_replaceable_folder(
            folder, force=True, known_names=[path.name for path in folder.iterdir() if _is_ours(path)]
        )
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
    spec: OutputSpec,
    filters: WordFilter,
    on_progress: OnProgress,
) -> None:
    """Write the blocks that are missing of the last corpus."""
    corpus = len(head["corpora"]) - 1
    if head["corpora"][corpus]["done"]:
        return
    how = head["segment"]
    keeps = filters.chosen(count_words(files, how, on_progress) if filters.counting else None)
    done = [block["units"] for block in head["blocks"] if block["corpus"] == corpus]
    reading = ReadingProgress(on_progress, *files, stage="indexing")
    sentences = sentences_of(files, how, done[-1] if done else 0, reading)
    if keeps is not None:  # sentences that nothing is kept of need not be read by the model
        sentences = (one for one in sentences if any(map(keeps, one[1].words)))
    units = 0
    with UsageWriter(elmo, spec, folder, head) as filling:
        for units, some in batches(elmo, sentences):
            filling.add(some, keeps)
            reading.add_tokens(sum(len(usage.words) for usage in some))
            if len(filling) >= BLOCK_USAGES:
                filling.close(units)
        filling.close(units)
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
