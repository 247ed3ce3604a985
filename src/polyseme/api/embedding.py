"""The verb embed: texts to files of vectors. Also loads models and reads sentences for the other verbs.

embedding_pipeline, bulk_embedding, integrations.ray, formats.vectors.writers  ->  api.embedding  ->  api
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from polyseme.bulk_embedding import (
    SHARD_BYTES,
    BulkSettings,
    check_embed_output,
    embed_folder,
    is_folder,
    parse_part,
)
from polyseme.choices import Direction, Engine, ModelPrecision, Pool, VectorDtype, VectorFormat
from polyseme.elmo import BATCH_TOKENS, CHUNK, Elmo, ensure_loaded
from polyseme.embedding_pipeline import PlainGroup, embed_groups
from polyseme.errors import UsageError
from polyseme.formats.vectors.manifest import Part
from polyseme.formats.vectors.writers import cast_vectors, open_writer
from polyseme.integrations.ray import Cluster, embed_on_ray
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import OnProgress, ProgressOption, open_progress
from polyseme.model.output import Layer, resolve_output
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.reading import ReadingProgress, read_lines
from polyseme.text.validate import check_path, list_paths

MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class EmbedResult:
    """What `embed` wrote.

    Attributes:
        out: The file or folder.
        sentences: How many sentences.
        tokens: How many tokens.
        truncated: How many tokens were longer than the model reads.

    """

    out: Path
    sentences: int
    tokens: int
    truncated: int


def embed(
    model: Elmo | str | Path,
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    layer: Layer = "mean",
    pool: Pool | None = None,
    direction: Direction = "both",
    segment: str | None = None,
    encoding: str = "auto",
    stateful: bool = False,
    batch_tokens: int = BATCH_TOKENS,
    precision: ModelPrecision | None = None,
    device: str = "cpu",
    dtype: VectorDtype | None = None,
    format: VectorFormat = "safetensors",  # noqa: A002  # the word that people look for
    shard: str = "1/1",
    shard_mb: float = SHARD_BYTES / MEBIBYTE,
    engine: Engine = "local",
    address: str | None = None,
    actors: int | None = None,
    options: str | Path | None = None,
    force: bool = False,
    progress: ProgressOption = None,
) -> EmbedResult:
    """Write the vectors of all sentences of texts to a file or a folder.

    A file is written in one go, in the format of its ending. A path without an ending is a folder of files
    with a manifest: the same call resumes it after an interruption, and several processes can share the work.

    Args:
        model: The ELMo, loaded or as a path.
        texts: Files, folders, or "-" for standard input; .gz and .zst are decompressed, the text of .html and
            .epub is extracted.
        out: A new .hdf5, .npz, .parquet or .safetensors file, or a folder.
        layer: "mean", "top", "concat", "all", a number from 0, weights, or (weights, gamma).
        pool: One vector per sentence, by this pooling of its tokens; None is one vector per token.
        direction: "both", "forward" or "backward".
        segment: How to split text into sentences and tokens; as the model was trained if None. With "split" a
            line is a sentence, and an empty line an empty sentence.
        encoding: The encoding of the texts; "auto" detects it for each file.
        stateful: Carry the state from sentence to sentence, as bilm-tf does; only for files.
        batch_tokens: Size of a batch in tokens, if the model is loaded here.
        precision: Precision of the computation, if the model is loaded here; see `load`.
        device: Where to compute, if the model is loaded here; see `load`.
        dtype: Type of the numbers; None is float32 for a file and float16 for a folder.
        format: Format of the files of a folder.
        shard: Write only part i of n of a folder, as "i/n".
        shard_mb: Approximate size of a file of a folder, in MiB.
        engine: "ray" distributes the parts of a folder over a Ray cluster.
        address: Address of the Ray cluster; None starts Ray on this machine.
        actors: Number of Ray actors, each with a copy of the model; None is one per core.
        options: The options.json of an .hdf5 model, if it is in another folder.
        force: Replace what `out` holds.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The path and the counts.

    Raises:
        UsageError: If `out` exists, or arguments do not fit each other.
        DataError: If a text cannot be read.

    Example:
        >>> polyseme.embed("en", "books/", "vectors.parquet", layer="top")
        >>> polyseme.embed("en", "books/", "vectors", shard="1/4")  # the first of four processes

    """
    out = Path(check_path(out, "out")).expanduser()
    if not shard_mb > 0:
        raise UsageError(f"`shard_mb` is {shard_mb:g}, expected more than 0.")
    check_embed_output(out, dtype=dtype, shard=shard, stateful=stateful, engine=engine, force=force)
    paths = list_paths(texts, "texts")
    if is_folder(out):
        bulk = BulkSettings(
            layer=layer,
            pool=pool,
            direction=direction,
            segment=segment,
            encoding=encoding,
            dtype=dtype or "float16",
            format=format,
            shard_bytes=round(shard_mb * MEBIBYTE),
            part=parse_part(shard),
        )
        with lock_output(_name_part(out, bulk.part)), open_progress(progress) as on_progress:
            if engine == "ray":
                if device != "cpu":
                    raise UsageError(
                        "`engine='ray'` computes on CPUs. Leave out `device`, or use `engine='local'`."
                    )
                path, cluster = _require_path(model), Cluster(address, actors, batch_tokens, precision)
                counts = embed_on_ray(
                    path, options, paths, out, bulk, cluster, force=force, on_progress=on_progress
                )
            else:
                elmo = ensure_loaded(model, batch_tokens, options, precision, device)
                counts = embed_folder(elmo, paths, out, bulk, force=force, on_progress=on_progress)
        return EmbedResult(out, counts.sentences, counts.tokens, counts.truncated)
    elmo = ensure_loaded(model, batch_tokens, options, precision, device)
    with lock_output(out), open_progress(progress) as on_progress:
        return _embed_file(
            elmo, paths, out, layer, pool, direction, segment, encoding, stateful, dtype, force, on_progress
        )


def _name_part(out: Path, part: Part) -> Path:
    """What a process locks that writes a part of a folder: others may write the other parts."""
    return out if part.of == 1 else out.with_name(f"{out.name}-{part.number}-of-{part.of}")


def _embed_file(
    elmo: Elmo,
    texts: Sequence[str | Path],
    out: Path,
    layer: Layer,
    pool: Pool | None,
    direction: Direction,
    segment: str | None,
    encoding: str,
    stateful: bool,
    dtype: VectorDtype | None,
    force: bool,
    on_progress: OnProgress,
) -> EmbedResult:
    """Write one file."""
    spec = resolve_output(layer, pool, direction, elmo.config.layers)
    stored_type = dtype or "float32"
    empty = spec.empty(elmo.config.layers, elmo.config.size).numpy().astype(stored_type)
    reading = ReadingProgress(on_progress, *texts, stage="embedding")
    sentences = read_sentences(elmo, texts, segment, encoding, reading)
    if stateful:
        elmo.reset()
    with (
        open_writer(out, empty, pooled=pool is not None, force=force) as writer,
        elmo.track_counts() as counts,
    ):
        if stateful:
            for sentence in sentences:
                (vectors,) = elmo.embed_tokens([sentence], spec, counts, stateful=True)
                writer.add(sentence, cast_vectors(vectors, stored_type))
                reading.add_tokens(len(sentence))
            return EmbedResult(out, counts.sentences, counts.tokens, counts.truncated)
        groups = map(PlainGroup, chunk_sentences(sentences, CHUNK * elmo.batch_tokens))
        with closing(embed_groups(elmo, groups, spec, stored_type)) as embedded:
            for group, arrays in embedded:
                for sentence, array in zip(group.sentences, arrays, strict=True):
                    writer.add(sentence, array)
                elmo.add_counts(group.sentences, counts)
                reading.add_tokens(sum(map(len, group.sentences)))
    return EmbedResult(out, counts.sentences, counts.tokens, counts.truncated)


def read_sentences(
    elmo: Elmo,
    texts: Sequence[str | Path],
    segment: str | None,
    encoding: str = "auto",
    reading: ReadingProgress | None = None,
) -> Iterator[list[str]]:
    """Yield the sentences of texts as token lists; None segments as the model was trained."""
    lines = (line for text in texts for line in read_lines(text, encoding, prose=True))
    counted_lines = lines if reading is None else reading.count_lines(lines)
    return elmo.segment_lines(counted_lines, segment)


def _require_path(model: Elmo | str | Path) -> str | Path:
    if isinstance(model, Elmo):
        raise UsageError("`engine='ray'` needs the path of a model: each actor loads it.")
    return model
