"""Embed text of any size into a folder of vectors: in shards, by several processes, with restarts.

    embedding_pipeline, formats.vectors.writers, formats.vectors.manifest, text.segment.stream
        ->  bulk_embedding  ->  integrations.ray, api

The text is divided into blocks of a number of characters, at ends of lines or paragraphs. Block b belongs to
part b % n + 1 of n, so that a process skips the blocks of the others without segmenting them. The vectors of
a block go into one shard, or into several if one would exceed `shard_bytes`.

Reading, embedding and writing overlap; what goes into which shard is decided while reading.

What must not change: memory holds a part of a block, whatever the size of text and output. A shard depends
only on the model, the settings and the text, so writing it again gives the same bytes. Hence sentences are
chunked, and the token cache starts empty, at the start of each shard.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import Direction, Pool, VectorFormat
from polyseme.elmo import CHUNK, Counts, Elmo
from polyseme.embedding_pipeline import embed_groups
from polyseme.errors import UsageError
from polyseme.formats.vectors import manifest
from polyseme.formats.vectors.file_formats import (
    VECTOR_FORMATS,
    find_vector_format,
    has_vector_ending,
)
from polyseme.formats.vectors.manifest import ALL, ManifestHeader, Part, Shard, ShardJournal, TextFile
from polyseme.formats.vectors.writers import open_writer
from polyseme.io.atomic import check_output_file
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.text.corpus.documents import expand_inputs
from polyseme.text.fingerprint import Stamp, check_unchanged, checksum, stamp
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.reading import ReadingProgress, read_lines
from polyseme.text.segment.stream import group_lines

SHARD_BYTES = 256 << 20
MAX_BLOCK_CHARACTERS = 1 << 21
TOKEN_CHARACTERS, SENTENCE_CHARACTERS = 6, 120  # rough averages, to size blocks so that one fills a shard


@dataclass(frozen=True)
class BulkSettings:
    """Settings of a folder of vectors; all but `part` are the same for every process."""

    layer: Layer = "mean"
    pool: Pool | None = None
    direction: Direction = "both"
    segment: str | None = None
    encoding: str = "auto"
    dtype: str = "float16"
    format: VectorFormat = "safetensors"
    shard_bytes: int = SHARD_BYTES
    part: Part = ALL

    def __post_init__(self) -> None:
        if self.format not in VECTOR_FORMATS:
            raise UsageError(f"format is {self.format!r}, expected one of {', '.join(VECTOR_FORMATS)}.")
        if self.shard_bytes < 1:
            raise UsageError(f"shard_bytes is {self.shard_bytes}, expected 1 or more.")
        find_vector_format(Path(f"shard.{self.format}"))  # an error if a package is missing


def parse_part(text: str) -> Part:
    """Parse `2/4` as the second part of four."""
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"shard is {text!r}, expected i/n with i from 1 to n, such as 1/4.")
    return Part(int(match[1]), int(match[2]))


def is_folder(out: Path) -> bool:
    """Whether `out` names a folder: it does unless it has the ending of a vector format."""
    return not out.suffix or (not has_vector_ending(out) and out.is_dir())


def check_embed_output(
    out: Path,
    *,
    dtype: str | None,
    shard: str = "1/1",
    stateful: bool = False,
    engine: str = "local",
    force: bool = False,
) -> None:
    """Refuse an output that `embed` could not write, before loading a model."""
    if dtype not in (None, "float32", "float16"):
        raise UsageError(f"dtype is {dtype!r}, expected float32 or float16.")
    if engine not in ("local", "ray"):
        raise UsageError(f"engine is {engine!r}, expected local or ray.")
    part, out = parse_part(shard), out.expanduser()
    if engine == "ray" and (part.of > 1 or not is_folder(out)):
        raise UsageError(
            f"{out}: the engine ray writes a whole folder. Leave out `shard`, and name a folder, not a file."
        )
    if is_folder(out):
        if stateful:
            raise UsageError(
                f"{out}: a folder is written in independent blocks, without `stateful`. Name a file."
            )
        _check_folder(out, part=part, force=force)
        return
    find_vector_format(out)
    check_output_file(out, force=force)
    if part.of > 1:
        raise UsageError(f"{out}: several processes cannot write one file. Name a folder for `shard`.")


def _check_folder(folder: Path, *, part: Part, force: bool) -> None:
    """Refuse a folder with files that `embed` did not write."""
    if force and part.of > 1:
        raise UsageError(
            f"{folder}: `force` with `shard` would remove the files of the other processes. "
            "Remove the folder yourself, then start all of them."
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file, but a folder will be written. Choose another name.")
    temporary = re.compile(r"tmp\w{8}")  # of another process, on a file system without unnamed files
    names = os.listdir(folder) if folder.is_dir() else []
    foreign = [name for name in names if not manifest.is_output_file(name) and not temporary.fullmatch(name)]
    if foreign:
        raise UsageError(f"{folder}: contains other files, such as {min(foreign)}. Choose another folder.")


def embed_folder(
    elmo: Elmo,
    texts: Sequence[str | Path],
    folder: Path,
    bulk: BulkSettings,
    *,
    force: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Counts:
    """Write the vectors of one part of `texts` into `folder`; shards that exist already are kept.

    Args:
        elmo: The model.
        texts: Files and folders of text.
        folder: The output.
        bulk: Settings of the folder, with the part that this process does.
        force: Remove what an earlier run wrote.
        on_progress: Receives progress events.

    Returns:
        Counts of the whole part, earlier runs included.

    Raises:
        UsageError: If the folder was begun with another model, text or setting.

    """
    _check_folder(folder, part=bulk.part, force=force)
    if "-" in map(str, texts):
        raise UsageError(
            "-: standard input cannot be read again after an interruption. Write it to a file first."
        )
    files = expand_inputs(texts)
    spec = resolve_output(bulk.layer, bulk.pool, bulk.direction, elmo.config.layers)
    segment = elmo.choose_segment(bulk.segment)
    lines = (line for file in files for line in read_lines(file, bulk.encoding, prose=True))
    reading = ReadingProgress(on_progress, *files, stage="embedding")
    units = (unit.text for unit in group_lines(reading.count_lines(lines), segment))
    stamps = stamp(files, () if force else _read_known_stamps(folder))
    header = ManifestHeader(
        model=elmo.model.fingerprint(),
        settings=_make_manifest_settings(bulk, spec, segment, elmo),
        text=tuple(_make_text_file(file, its_stamp) for file, its_stamp in zip(files, stamps, strict=True)),
        part=bulk.part,
    )
    _make_folder(folder, force)
    with manifest.open_journal(folder, header) as journal:
        if not journal.complete:
            plan = _ShardPlan(spec, bulk, _count_row_bytes(bulk, spec, elmo), CHUNK * elmo.batch_tokens)
            finished = _group_by_block(journal.shards.values())
            groups = (
                group
                for number, block in _number_blocks(units, header.settings["block_characters"])
                if bulk.part.has(number)
                for group in plan.plan_block(number, _segment(elmo, block, segment), finished.get(number, ()))
            )
            writer = _ShardWriter(elmo, spec, bulk, folder, journal, reading)
            with closing(embed_groups(elmo, groups, spec, bulk.dtype)) as embedded:
                for shard, its_groups in groupby(embedded, key=lambda item: item[0].shard):
                    writer.write(shard, its_groups)
            check_unchanged(files, stamps)
        shards = journal.shards.values()
        return Counts(
            sentences=sum(shard.sentences for shard in shards),
            tokens=sum(shard.tokens for shard in shards),
            truncated=sum(shard.truncated for shard in shards),
        )


class _ShardGroup(NamedTuple):
    """Consecutive sentences of one shard, which are embedded together."""

    block: int
    first: int  # number of the first sentence of the shard, in the block
    sentences: list[list[str]]
    starts_cold: bool  # the first group of the shard: the token cache starts empty
    last: bool  # the last group of the block

    @property
    def shard(self) -> tuple[int, int]:
        """Block and number of the shard, which all its groups share."""
        return self.block, self.first


class _ShardPlan:
    """Which sentences go into which missing shard."""

    def __init__(self, spec: OutputSpec, bulk: BulkSettings, row_bytes: int, min_tokens: int) -> None:
        self._pooled, self._shard_bytes = spec.pool is not None, bulk.shard_bytes
        self._row_bytes, self._min_tokens = row_bytes, min_tokens

    def plan_block(
        self, block: int, sentences: Iterator[list[str]], finished: Iterable[Shard]
    ) -> Iterator[_ShardGroup]:
        """Group the sentences of a block that no finished shard has."""
        number = 0
        for shard in sorted(finished, key=lambda shard: shard.first):
            if shard.first > number:  # a shard before this one was lost
                yield from self._plan(block, number, islice(sentences, shard.first - number), to_end=False)
            number = shard.first + shard.sentences
            if shard.last:
                return
            next(islice(sentences, shard.sentences, shard.sentences), None)  # skip them
        yield from self._plan(block, number, sentences, to_end=True)

    def _plan(
        self, block: int, first: int, sentences: Iterable[list[str]], *, to_end: bool
    ) -> Iterator[_ShardGroup]:
        """Divide sentences, beginning with number `first` of a block, into as many shards as they need."""
        groups = chunk_sentences(sentences, self._min_tokens)
        group, size, number = next(groups, None), 0, first
        while group is not None:
            following, starts_cold = next(groups, None), number == first
            yield _ShardGroup(block, first, group, starts_cold, last=to_end and following is None)
            size += sum(map(self._count_bytes, group))
            number += len(group)
            if size >= self._shard_bytes:
                first, size = number, 0
            group = following

    def _count_bytes(self, tokens: list[str]) -> int:
        """About the bytes of a sentence in a shard."""
        return (1 if self._pooled else len(tokens)) * self._row_bytes + len(tokens)


class _ShardWriter:
    """Writes shards and records them in the journal."""

    def __init__(
        self,
        elmo: Elmo,
        spec: OutputSpec,
        bulk: BulkSettings,
        folder: Path,
        journal: ShardJournal,
        reading: ReadingProgress,
    ) -> None:
        self._elmo, self._pooled, self._format = elmo, spec.pool is not None, bulk.format
        self._folder, self._journal, self._reading = folder, journal, reading
        self._empty = spec.empty(elmo.config.layers, elmo.config.size).numpy().astype(bulk.dtype)

    def write(self, shard: tuple[int, int], groups: Iterable[tuple[_ShardGroup, list[NDArray[Any]]]]) -> None:
        """Write the groups of a shard."""
        block, first = shard
        path = self._folder / f"shard-{block:08d}-{first:08d}.{self._format}"
        counts, last = Counts(), False
        with open_writer(path, self._empty, pooled=self._pooled, force=True) as writer:
            for group, vectors in groups:
                for tokens, array in zip(group.sentences, vectors, strict=True):
                    writer.add(tokens, array)
                self._elmo.add_counts(group.sentences, counts)
                self._reading.add_tokens(sum(map(len, group.sentences)))
                last = group.last
        self._journal.add(
            Shard(
                file=path.name,
                block=block,
                first=first,
                sentences=counts.sentences,
                tokens=counts.tokens,
                truncated=counts.truncated,
                last=last,
                bytes=path.stat().st_size,
                sha256=checksum(path),
            )
        )


def _make_manifest_settings(bulk: BulkSettings, spec: OutputSpec, segment: str, elmo: Elmo) -> dict[str, Any]:
    """Settings as the manifest has them, with the size of blocks that follows from them."""
    row_bytes = _count_row_bytes(bulk, spec, elmo)
    characters = SENTENCE_CHARACTERS if spec.pool else TOKEN_CHARACTERS
    return {
        "layer": spec.layer if spec.weights is None else list(spec.weights),
        "pool": spec.pool,
        "direction": spec.direction,
        "dtype": bulk.dtype,
        "segment": segment,
        **({} if bulk.encoding == "auto" else {"encoding": bulk.encoding}),
        "precision": elmo.model.network.precision,
        "format": bulk.format,
        "shard_bytes": bulk.shard_bytes,
        "block_characters": min(MAX_BLOCK_CHARACTERS, max(1, bulk.shard_bytes * characters // row_bytes)),
    }


def _count_row_bytes(bulk: BulkSettings, spec: OutputSpec, elmo: Elmo) -> int:
    """The bytes of one vector, or of the vectors of all layers."""
    layers = spec.count_layers(elmo.config.layers)
    half = 1 if spec.direction == "both" else 2
    return layers * elmo.config.size // half * np.dtype(bulk.dtype).itemsize


def _group_by_block(shards: Iterable[Shard]) -> dict[int, list[Shard]]:
    blocks: dict[int, list[Shard]] = {}
    for shard in shards:
        blocks.setdefault(shard.block, []).append(shard)
    return blocks


def _segment(elmo: Elmo, units: Iterable[str], segment: str) -> Iterator[list[str]]:
    return (sentence for unit in units for sentence in elmo.segment_unit(unit, segment))


def _number_blocks(units: Iterator[str], characters: int) -> Iterator[tuple[int, Iterator[str]]]:
    """Numbered blocks of units with at least `characters`; what is not read of a block is skipped."""
    for number, first in enumerate(units):
        block = _take_block(first, units, characters)
        yield number, block
        for _ in block:
            pass


def _take_block(unit: str, more: Iterator[str], characters: int) -> Iterator[str]:
    """One block, which begins with `unit`."""
    size = len(unit) + 1
    yield unit
    while size < characters:
        following = next(more, None)
        if following is None:
            return
        size += len(following) + 1
        yield following


def _read_known_stamps(folder: Path) -> list[Stamp]:
    """Stamps of text files in the manifests: unchanged files need not be hashed again."""
    headers = manifest.read_headers(folder).values()
    files = {file.file: file for header in headers for file in header.text}
    return [Stamp(os.path.abspath(name), file.bytes, file.time, file.content) for name, file in files.items()]


def _make_text_file(path: Path, its_stamp: Stamp) -> TextFile:
    return TextFile(file=str(path), bytes=its_stamp.size, time=its_stamp.time, content=its_stamp.content)


def _make_folder(folder: Path, force: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force:
            manifest.remove_output(folder)
    except OSError as problem:
        raise UsageError(
            f"{folder}: cannot be written ({problem.strerror}). Choose another folder."
        ) from None
