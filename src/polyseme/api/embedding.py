"""Texts to files of vectors; a model and the sentences of texts, for all verbs.

embedder, bulk, formats.vectors.writers  ->  api.embedding  ->  api
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from polyseme.bulk_embedding import (
    SHARD_BYTES,
    BulkSettings,
    Format,
    check_embed_target,
    embed_folder,
    is_folder,
    parse_share,
)
from polyseme.elmo import BATCH_TOKENS, CHUNK, Elmo, load
from polyseme.errors import UsageError
from polyseme.formats.vectors.writers import cast_vectors, open_writer
from polyseme.integrations.ray import Cluster, embed_on_ray
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.model.output import Direction, Layer, Pool, resolve_output
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.reading import ReadingProgress, read_lines
from polyseme.text.segment.stream import sentences_of_lines


@dataclass(frozen=True)
class Embedded:
    """What `embed` wrote."""

    out: Path
    sentences: int
    tokens: int
    cut: int  # tokens longer than the model's character limit


def embed(
    model: Elmo | str | Path,
    text: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    layer: Layer = "mean",
    pool: Pool | None = None,
    direction: Direction = "both",
    segment: str | None = None,
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    precision: str | None = None,
    dtype: Literal["float32", "float16"] | None = None,
    format: Format = "safetensors",  # noqa: A002  # the word that people look for
    shard: str = "1/1",
    shard_bytes: int = SHARD_BYTES,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    actors: int | None = None,
    options: str | Path | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> Embedded:
    """Write the vectors of all sentences of `text` (files, folders, .gz, .zst or -) to `out`.

    An ending of `out` says the format of one file, of float32 unless `dtype` says otherwise. A name without
    one is a folder for bulk work, of float16: files of `format` with about `shard_bytes` each and a manifest;
    the same call goes on where it was killed, and with `shard` as i/n it does the i-th of n shares. The
    engine "ray" has `actors` of a Ray cluster at `address` (None: of this machine) do all shares of a folder.
    With `split`, a line is a sentence and an empty line an empty one, so that the numbers agree with
    the lines. `stateful` carries the state from sentence to sentence, from zeros, as bilm-tf's dumps do.
    progress: see `polyseme.io.progress`.
    """
    out = Path(out).expanduser()
    check_embed_target(out, dtype=dtype, shard=shard, stateful=stateful, engine=engine, force=force)
    texts = [text] if isinstance(text, str | Path) else list(text)
    if is_folder(out):
        plan = BulkSettings(
            layer, pool, direction, segment, dtype or "float16", format, shard_bytes, parse_share(shard)
        )
        with open_progress(progress) as on_progress:
            if engine == "ray":
                path, cluster = _path_of(model), Cluster(address, actors, batch_tokens, precision)
                done = embed_on_ray(
                    path, options, texts, out, plan, cluster, force=force, on_progress=on_progress
                )
            else:
                elmo = loaded(model, batch_tokens, options, precision)
                done = embed_folder(elmo, texts, out, plan, force=force, on_progress=on_progress)
        return Embedded(out, done.sentences, done.tokens, done.truncated)
    elmo = loaded(model, batch_tokens, options, precision)
    spec = resolve_output(layer, pool, direction, elmo.config.layers)
    kind = dtype or "float32"
    empty = spec.empty(elmo.config.layers, elmo.config.size).numpy().astype(kind)
    if stateful:
        elmo.reset()
    with (
        open_progress(progress) as on_progress,
        open_writer(out, empty, pooled=pool is not None, force=force) as dump,
        elmo.track_counts() as counts,
    ):
        reading = ReadingProgress(on_progress, *texts, stage="embedding")
        sentences = sentences_of(elmo, texts, segment, reading)
        for chunk in chunk_sentences(sentences, 1 if stateful else CHUNK * elmo.batch_tokens):
            vectors = elmo.embed_tokens(chunk, spec, counts, stateful=stateful)
            for sentence, array in zip(chunk, vectors, strict=True):
                dump.add(sentence, cast_vectors(array, kind))
            reading.add_tokens(sum(map(len, chunk)))
    return Embedded(out, counts.sentences, counts.tokens, counts.truncated)


def sentences_of(
    elmo: Elmo,
    texts: Sequence[str | Path],
    segment: str | None,
    reading: ReadingProgress | None = None,
) -> Iterator[list[str]]:
    """The sentences of texts as lists of words, cut as the model was trained unless told otherwise."""
    how = elmo.config.segment if segment is None else segment
    lines = (line for text in texts for line in read_lines(text))
    return sentences_of_lines(lines if reading is None else reading.count_lines(lines), how)


def loaded(
    model: Elmo | str | Path,
    batch_tokens: int = BATCH_TOKENS,
    options: str | Path | None = None,
    precision: str | None = None,
) -> Elmo:
    """The model itself, or the one at that path."""
    if isinstance(model, Elmo):
        return model
    return load(model, options, precision=precision, batch_tokens=batch_tokens)


def _path_of(model: Elmo | str | Path) -> str | Path:
    if isinstance(model, Elmo):
        raise UsageError("The engine ray needs the path of a model: each actor loads it for itself.")
    return model
