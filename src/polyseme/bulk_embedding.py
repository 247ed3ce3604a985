"""A text of any size to a folder of vectors: in shards, by several processes, through kills and restarts.

    embedder, formats.vectors.writers, formats.vectors.manifest, text.segment.stream  ->  bulk
        ->  integrations.ray, api

The text is cut into blocks of so many characters, at ends of lines or paragraphs. Block b belongs to share
b % n + 1 of n, so that a process passes over the others' blocks without cutting them into words. A block's
vectors go into one shard, or into several where one would grow beyond `shard_bytes`.

What must not change: memory holds a part of a block, whatever the size of text and output; a shard depends on
nothing but the model, the settings and the text, so one that is made again is the same. Hence sentences are
grouped, and words remembered, from the start of a shard.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import Direction, Pool, VectorFormat
from polyseme.elmo import CHUNK, Counts, Elmo
from polyseme.errors import UsageError
from polyseme.formats.vectors import manifest
from polyseme.formats.vectors.manifest import ALL, ManifestHeader, Shard, ShardJournal, Share, TextFile
from polyseme.formats.vectors.writers import WRITERS, cast_vectors, check_vector_format, open_writer
from polyseme.io.atomic import check_output_file
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.output import Layer, OutputSpec, resolve_output
from polyseme.text.corpus.documents import expand_inputs
from polyseme.text.fingerprint import Stamp, check_unchanged, checksum, stamp
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.reading import ReadingProgress, read_lines
from polyseme.text.segment.stream import group_lines, segment_unit

SHARD_BYTES = 256 << 20
BLOCK_CHARACTERS = 1 << 21  # at most
TOKEN_CHARACTERS, SENTENCE_CHARACTERS = 6, 120  # about; they size blocks so that a block fills a shard
FORMATS = get_args(VectorFormat)


@dataclass(frozen=True)
class BulkSettings:
    """How a folder is to be written; all but `share` is the same for every process."""

    layer: Layer = "mean"
    pool: Pool | None = None
    direction: Direction = "both"
    segment: str | None = None
    dtype: str = "float16"
    format: VectorFormat = "safetensors"
    shard_bytes: int = SHARD_BYTES
    share: Share = ALL

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise UsageError(f"format is {self.format!r}, expected one of {', '.join(FORMATS)}.")
        if self.shard_bytes < 1:
            raise UsageError(f"shard_bytes is {self.shard_bytes}, expected 1 or more.")
        check_vector_format(Path(f"shard.{self.format}"))


def parse_share(text: str) -> Share:
    """`2/4` as the second share of four."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"shard is {text!r}, expected i/n with i from 1 to n, such as 1/4.")
    return Share(int(found[1]), int(found[2]))


def is_folder(out: Path) -> bool:
    """Whether `embed` writes a folder there: where no ending says a format of one file."""
    return not out.suffix or (out.suffix.lower() not in WRITERS and out.is_dir())


def check_embed_target(
    out: Path,
    *,
    dtype: str | None,
    shard: str = "1/1",
    stateful: bool = False,
    engine: str = "local",
    force: bool = False,
) -> None:
    """Refuse an output that `embed` could not write, before a model is loaded."""
    if dtype not in (None, "float32", "float16"):
        raise UsageError(f"dtype is {dtype!r}, expected float32 or float16.")
    if engine not in ("local", "ray"):
        raise UsageError(f"engine is {engine!r}, expected local or ray.")
    share, out = parse_share(shard), out.expanduser()
    if engine == "ray" and (share.of > 1 or not is_folder(out)):
        raise UsageError(
            f"{out}: `engine='ray'` writes all shares of a folder: leave out `shard`, and name a folder."
        )
    if is_folder(out):
        if stateful:
            raise UsageError(f"{out}: a folder is written in independent blocks, without state between them.")
        _check_folder(out, share=share, force=force)
        return
    check_vector_format(out)
    check_output_file(out, force=force)
    if share.of > 1:
        raise UsageError(
            f"{out}: one file cannot be written by several processes. Name a folder to use `shard`."
        )


def _check_folder(folder: Path, *, share: Share, force: bool) -> None:
    """Refuse a folder that holds what `embed` did not write, or that cannot be written to."""
    if force and share.of > 1:
        raise UsageError(
            f"{folder}: `force` with `shard` would remove what other processes write. "
            "Remove the folder yourself, then start all of them."
        )
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder}: is a file, but a folder will be written. Choose another name.")
    passing = re.compile(r"tmp\w{8}")  # of another process, on a disk without unnamed files
    names = os.listdir(folder) if folder.is_dir() else []
    others = [name for name in names if not manifest.is_output_file(name) and not passing.fullmatch(name)]
    if others:
        raise UsageError(f"{folder}: contains other files, such as {min(others)}. Choose another folder.")


def embed_folder(
    elmo: Elmo,
    texts: Sequence[str | Path],
    folder: Path,
    bulk: BulkSettings,
    *,
    force: bool = False,
    on_progress: OnProgress = ignore_progress,
) -> Counts:
    """Write the vectors of this share of `texts` into `folder`, or what is still missing of them."""
    _check_folder(folder, share=bulk.share, force=force)
    if "-" in map(str, texts):
        raise UsageError("-: standard input cannot be read again after a kill. Write it to a file first.")
    files = expand_inputs(texts)
    spec = resolve_output(bulk.layer, bulk.pool, bulk.direction, elmo.config.layers)
    how = elmo.config.segment if bulk.segment is None else bulk.segment
    lines = (line for file in files for line in read_lines(file))
    reading = ReadingProgress(on_progress, *files, stage="embedding")
    units = (unit.text for unit in group_lines(reading.count_lines(lines), how))
    stamps = stamp(files, () if force else _known(folder))
    head = ManifestHeader(
        model=elmo.model.fingerprint(),
        settings=_settings(bulk, spec, how, elmo),
        text=tuple(_text_file(file, found) for file, found in zip(files, stamps, strict=True)),
        share=bulk.share,
    )
    _make_folder(folder, force)
    with manifest.open_journal(folder, head) as journal:
        if not journal.complete:
            writer = _ShardWriter(elmo, spec, bulk, folder, journal, reading)
            for number, block in _blocks(units, head.settings["block_characters"]):
                if bulk.share.has(number):
                    writer.write(number, (sentence for unit in block for sentence in segment_unit(unit, how)))
            check_unchanged(files, stamps)
        done = journal.shards.values()
        return Counts(
            sentences=sum(shard.sentences for shard in done),
            tokens=sum(shard.tokens for shard in done),
            truncated=sum(shard.cut for shard in done),
        )


class _ShardWriter:
    """Writes the shards of a block that are not there yet."""

    def __init__(
        self,
        elmo: Elmo,
        spec: OutputSpec,
        bulk: BulkSettings,
        folder: Path,
        journal: ShardJournal,
        reading: ReadingProgress,
    ) -> None:
        self._elmo, self._spec, self._bulk = elmo, spec, bulk
        self._folder, self._journal, self._reading = folder, journal, reading
        self._finished: dict[int, list[Shard]] = {}
        for shard in journal.shards.values():
            self._finished.setdefault(shard.block, []).append(shard)

    def write(self, block: int, sentences: Iterator[list[str]]) -> None:
        """Have all sentences of a block in shards."""
        place = 0
        for shard in sorted(self._finished.pop(block, ()), key=lambda shard: shard.first):
            if shard.first > place:  # one before it was lost
                self._fill(block, place, islice(sentences, shard.first - place), to_end=False)
            place = shard.first + shard.sentences
            if shard.last:
                return
            next(islice(sentences, shard.sentences, shard.sentences), None)  # pass over them
        self._fill(block, place, sentences, to_end=True)

    def _fill(self, block: int, first: int, sentences: Iterable[list[str]], *, to_end: bool) -> None:
        """Write sentences from number `first` of a block on, into as many shards as they need."""
        groups = chunk_sentences(sentences, CHUNK * self._elmo.batch_tokens)
        group = next(groups, None)
        while group is not None:
            path = self._folder / f"shard-{block:08d}-{first:08d}.{self._bulk.format}"
            counts, size = Counts(), 0
            self._elmo.cache.clear()
            with open_writer(path, self._empty(), pooled=self._spec.pool is not None, force=True) as dump:
                while group is not None and size < self._bulk.shard_bytes:
                    for tokens, vectors in zip(group, self._vectors(group, counts), strict=True):
                        dump.add(tokens, vectors)
                        size += vectors.nbytes + len(tokens)
                    group = next(groups, None)
            self._note(path, block, first, counts, last=to_end and group is None)
            first += counts.sentences

    def _empty(self) -> NDArray[Any]:
        empty = self._spec.empty(self._elmo.config.layers, self._elmo.config.size).numpy()
        return empty.astype(self._bulk.dtype)

    def _vectors(self, group: list[list[str]], counts: Counts) -> Iterator[NDArray[Any]]:
        arrays = self._elmo.embed_tokens(group, self._spec, counts)
        self._reading.add_tokens(sum(map(len, group)))
        return (cast_vectors(array, self._bulk.dtype) for array in arrays)

    def _note(self, path: Path, block: int, first: int, counts: Counts, *, last: bool) -> None:
        self._journal.add(
            Shard(
                file=path.name,
                block=block,
                first=first,
                sentences=counts.sentences,
                tokens=counts.tokens,
                cut=counts.truncated,
                last=last,
                bytes=path.stat().st_size,
                sha256=checksum(path),
            )
        )


def _settings(bulk: BulkSettings, spec: OutputSpec, how: str, elmo: Elmo) -> dict[str, Any]:
    """The settings in the manifest: what is asked for, and what follows from it for the blocks."""
    layers = elmo.config.layers if spec.weights is None else 1
    half = 1 if spec.direction == "both" else 2
    row = layers * elmo.config.size // half * np.dtype(bulk.dtype).itemsize
    characters = SENTENCE_CHARACTERS if spec.pool else TOKEN_CHARACTERS
    return {
        "layer": "all" if spec.weights is None else list(spec.weights),
        "pool": spec.pool,
        "direction": spec.direction,
        "dtype": bulk.dtype,
        "segment": how,
        "precision": elmo.model.network.precision,
        "format": bulk.format,
        "shard_bytes": bulk.shard_bytes,
        "block_characters": min(BLOCK_CHARACTERS, max(1, bulk.shard_bytes * characters // row)),
    }


def _blocks(units: Iterator[str], characters: int) -> Iterator[tuple[int, Iterator[str]]]:
    """Numbered runs of units with at least so many characters; one that is not used up is passed over."""
    for number, first in enumerate(units):
        block = _block(first, units, characters)
        yield number, block
        for _ in block:
            pass


def _block(unit: str, more: Iterator[str], characters: int) -> Iterator[str]:
    size = len(unit) + 1
    yield unit
    while size < characters:
        following = next(more, None)
        if following is None:
            return
        size += len(following) + 1
        yield following


def _known(folder: Path) -> list[Stamp]:
    """Files of text that need not be hashed again if they are as they were."""
    heads = manifest.read_headers(folder).values()
    files = {file.file: file for head in heads for file in head.text}
    return [Stamp(os.path.abspath(name), file.bytes, file.time, file.content) for name, file in files.items()]


def _text_file(path: Path, found: Stamp) -> TextFile:
    return TextFile(file=str(path), bytes=found.size, time=found.time, content=found.content)


def _make_folder(folder: Path, force: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if force:
            manifest.remove_output(folder)
    except OSError as problem:
        raise UsageError(f"{folder}: cannot be written ({problem.strerror}). Choose another path.") from None
