"""Build an index of every usage in a corpus: in constant memory, block by block, resumable after a kill.

    elmo  ->  search.build  ->  search.usage_writer (block-*.safetensors), search.statistics, index.json

index.json notes the settings and which blocks are complete; the same call resumes after the last of them.
When all text is read, `search.statistics` computes the other files from the blocks.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from polyseme.choices import IndexPrecision, IndexView, SpaceKind
from polyseme.elmo import Elmo
from polyseme.errors import DataError, TooLittleTextError, UsageError
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.io.atomic import check_output_folder, check_replaceable_folder, remove_killed_writes
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.search.approximate import GRAPH_FILE
from polyseme.search.space import check_space
from polyseme.search.statistics import LENGTHS_FILE, SPACE_FILE, write_statistics
from polyseme.search.usage_store import (
    FORMAT,
    HEAD,
    INDEX_VIEWS,
    PRECISIONS,
    get_block_path,
    list_documents,
    note_documents,
    read_head,
    write_head,
)
from polyseme.search.usage_vectors import check_view
from polyseme.search.usage_writer import (
    UsageWriter,
    WordFilter,
    batch_sentences,
    count_words,
    read_indexed_sentences,
)
from polyseme.text.corpus.documents import Document, expand_inputs, read_documents
from polyseme.text.corpus.headings import check_documents
from polyseme.text.corpus.metadata import Metadata
from polyseme.text.encodings import AUTO, check_encoding
from polyseme.text.fingerprint import digest, stamp
from polyseme.text.reading import Line, ReadingProgress

BLOCK_USAGES = 100_000  # a block is closed once it has this many


def build_index(
    elmo: Elmo,
    texts: Sequence[str | Path],
    folder: Path,
    *,
    layer: Layer = "top",
    view: IndexView = "word",
    filters: WordFilter = WordFilter(),  # noqa: B008  # frozen
    segment: str | None = None,
    documents: str = "file",
    meta: str | Path | None = None,
    encoding: str = AUTO,
    space: SpaceKind = "whiten",
    precision: IndexPrecision = "fp16",
    model: str | None = None,
    add: bool = False,
    force: bool = False,
    block_usages: int = BLOCK_USAGES,
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Any]:
    """Build an index, or resume one.

    Args:
        elmo: The model.
        texts: Files and folders.
        folder: The folder of the index.
        layer: "top", "mean", a number from 0, weights, or (weights, gamma).
        view: "word", or "context": what is around a word, without the word itself.
        filters: Which words to index; counts are those of `texts` alone.
        segment: How to split text; as the model was trained if None.
        documents: What is a document; see `read_documents`.
        meta: Metadata of the documents: a table, or a pattern for file names; see `text.corpus.metadata`.
        encoding: The encoding of the texts; "auto" detects it.
        space: The correction of the vectors; see `search.space`.
        precision: Of the vectors on disk: "fp16" or "fp32".
        model: The name or path of the model, which is noted in the index.
        add: Add `texts` to a finished index.
        force: Replace an index.
        block_usages: Usages in a block, at least: a block ends with a batch of sentences.
        on_progress: Receives progress.

    Returns:
        The head of the index.

    Raises:
        UsageError: A setting is invalid, or differs from that of the index in the folder.
        DataError: There is no usage to index, or a vector cannot be stored.

    """
    check_space(space)
    if precision not in PRECISIONS:
        raise UsageError(f"precision is {precision!r}, expected one of {', '.join(PRECISIONS)}.")
    files = [Path(file) for file in expand_inputs(texts)]
    check_view(view, INDEX_VIEWS)
    spec = resolve_output(layer, None, "both", elmo.config.layers, context=view == "context")
    weights = spec.require_weights("usage")
    settings = {
        "polyseme_index": FORMAT,
        "model": elmo.model.fingerprint(),
        "name": model,
        "layer": layer if isinstance(layer, str | int) else list(weights),  # they include gamma
        "view": view,
        "segment": elmo.choose_segment(segment),
        "space": space,
        "precision": precision,
        "size": elmo.config.size,
        "filters": asdict(filters),
        "split": None if check_documents(documents) == "file" else documents,
        "encoding": None if check_encoding(encoding) == AUTO else encoding,
    }
    metadata = Metadata.parse(meta)
    with lock_output(folder):
        head = _open_head(folder, settings, files, add=add, force=force)
        first = head["corpora"][-1].get("first", 1)
        read = partial(read_documents, files, documents, encoding, metadata, first=first)
        try:
            _write_blocks(elmo, folder, head, files, read, spec, filters, block_usages, on_progress)
        except BaseException as problem:
            if isinstance(problem, DataError) or not _has_blocks(head):  # nothing that a second call resumes
                _remove_last_corpus(folder, head)
            raise
        write_statistics(folder, head)
    return head


def _open_head(
    folder: Path, settings: dict[str, Any], files: list[Path], *, add: bool, force: bool
) -> dict[str, Any]:
    """The head of a new index, of one to resume, or of one to add text to."""
    contents = [file_stamp.content for file_stamp in stamp(files)]
    names = [os.path.abspath(file) for file in files]
    corpus = {"files": names, "content": digest(contents), "contents": contents, "done": False}
    if force or not (folder / HEAD).exists():
        if add:
            arguments = "`add=True` and `force=True`" if force else "`add=True`"
            raise UsageError(f"{folder}: no index to add to. Leave out {arguments}.")
        _prepare_folder(folder, force=force)
        head = {**settings, "documents": [], "corpora": [corpus], "blocks": []}
        write_head(folder, head)
        return head
    head = read_head(folder)
    _check_settings(folder, head, settings)
    last = head["corpora"][-1]
    if last["content"] != corpus["content"] and not last["done"]:
        raise UsageError(
            f"{folder}: not finished, and of another text. Finish it first, or use `force=True`."
        )
    if any(indexed["content"] == corpus["content"] for indexed in head["corpora"]):
        return head
    _check_unchanged(folder, head, corpus)
    if not add:
        raise UsageError(
            f"{folder}: an index of another text. Use `add=True` to add this text, or `force=True`."
        )
    _check_not_indexed(folder, head, corpus)
    corpus["first"] = 1 + max((document.number for document in list_documents(head)), default=0)
    corpus["before"] = len(head["documents"])
    head["corpora"].append(corpus)
    write_head(folder, head)
    return head


def _check_settings(folder: Path, head: dict[str, Any], settings: dict[str, Any]) -> None:
    """Refuse an index that was built with other settings; the name of the model may differ."""
    as_stored = json.loads(json.dumps(settings))
    differing = [name for name, value in as_stored.items() if name != "name" and head.get(name) != value]
    if differing:
        raise UsageError(
            f"{folder}: an index with another {', '.join(differing)}. Use the same settings, another "
            "`out`, or `force=True`."
        )


def _check_unchanged(folder: Path, head: dict[str, Any], corpus: dict[str, Any]) -> None:
    """Refuse a file that was indexed with other content: some of its usages would be indexed twice."""
    indexed_contents = {
        os.path.abspath(name): content
        for indexed in head["corpora"]
        for name, content in zip(indexed["files"], indexed.get("contents", ()), strict=False)
    }
    for file, content in zip(corpus["files"], corpus["contents"], strict=True):
        if indexed_contents.get(file, content) != content:
            raise UsageError(
                f"{file}: has changed since it was indexed in {folder}. Build the index again: `force=True`."
            )


def _check_not_indexed(folder: Path, head: dict[str, Any], corpus: dict[str, Any]) -> None:
    """Refuse a file whose content is in the index already, under any name."""
    contents = {content for indexed in head["corpora"] for content in indexed.get("contents", ())}
    whole_corpora = {indexed["content"] for indexed in head["corpora"]}  # all that older indexes note
    for file, content in zip(corpus["files"], corpus["contents"], strict=True):
        if content in contents or digest([content]) in whole_corpora:
            raise UsageError(f"{file}: already in the index {folder}. Leave it out: its usages would double.")


def _prepare_folder(folder: Path, *, force: bool) -> None:
    """Make an empty folder; `force` replaces an index, but never a folder with other files."""
    check_output_folder(folder, force=True)
    if folder.exists() and force:
        index_files = [path.name for path in folder.iterdir() if _is_index_file(path)]
        check_replaceable_folder(folder, force=True, known_names=index_files)
        shutil.rmtree(folder)
    elif folder.is_dir():
        remove_killed_writes(folder / HEAD)  # of a process that was killed before there was an index
        if any(folder.iterdir()):
            raise UsageError(f"{folder}: exists already and is not an index. Choose another name.")
    folder.mkdir(parents=True, exist_ok=True)


def _is_index_file(path: Path) -> bool:
    """Whether a file belongs to an index, or is a temporary file that a killed process left."""
    names = (HEAD, SPACE_FILE, LENGTHS_FILE, WORDS_FILE, GRAPH_FILE)
    temporary = tuple(f".{Path(name).stem}-" for name in names)
    return path.name in names or path.name.startswith(("block-", ".block-", *temporary))


def _write_blocks(
    elmo: Elmo,
    folder: Path,
    head: dict[str, Any],
    files: list[Path],
    read: Callable[[], Iterator[tuple[Document, Iterator[Line]]]],
    spec: OutputSpec,
    filters: WordFilter,
    block_usages: int,
    on_progress: OnProgress,
) -> None:
    """Write the missing blocks of the last corpus, whose documents `read` reads."""
    corpus = len(head["corpora"]) - 1
    if head["corpora"][corpus]["done"]:
        return
    segment = head["segment"]
    word_list = elmo.word_list
    counts = None
    if filters.needs_counts:
        counting = ReadingProgress(on_progress, *files, stage="counting")
        counts = count_words(read(), segment, counting, word_list)
    is_kept = filters.make_test(counts)
    finished_units = [block["units"] for block in head["blocks"] if block["corpus"] == corpus]
    reading = ReadingProgress(on_progress, *files, stage="indexing")
    skip = finished_units[-1] if finished_units else 0
    sentences = read_indexed_sentences(read(), segment, skip, reading, word_list)
    if is_kept is not None:  # the model need not read sentences without an indexed word
        sentences = (numbered for numbered in sentences if any(map(is_kept, numbered[1].words)))
    units = 0
    with UsageWriter(elmo, spec, folder, head) as writer:
        for units, batch in batch_sentences(elmo, sentences):
            writer.add(batch, is_kept)
            reading.add_tokens(sum(len(sentence.words) for sentence in batch))
            if len(writer) >= block_usages:
                writer.close(units)
        writer.close(units)
    head["corpora"][corpus]["done"] = True
    if not _has_blocks(head):
        raise TooLittleTextError(
            f"{', '.join(map(str, files[:3]))}: no usage to index: no text, or no word passes the filters."
        )
    write_head(folder, head)


def _has_blocks(head: dict[str, Any]) -> bool:
    """Whether the last corpus has a complete block."""
    return any(block["corpus"] == len(head["corpora"]) - 1 for block in head["blocks"])


def _remove_last_corpus(folder: Path, head: dict[str, Any]) -> None:
    """Restore an index as it was before its last corpus; delete it if it has no other."""
    corpus = head["corpora"].pop()
    if head["corpora"]:
        kept = [block for block in head["blocks"] if block["corpus"] < len(head["corpora"])]
        removed = range(len(kept), len(head["blocks"]))
        head["blocks"] = kept
        note_documents(head, list_documents(head)[: corpus.get("before", len(head["documents"]))])
        write_head(folder, head)
        for number in removed:
            get_block_path(folder, number).unlink(missing_ok=True)
        return
    for path in [path for path in folder.iterdir() if _is_index_file(path)]:
        path.unlink()
    with suppress(OSError):
        folder.rmdir()
