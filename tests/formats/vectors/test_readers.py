"""Reading vectors from files and folders without loading them, and refusing damaged ones.

L layers, H = both directions.
"""

from __future__ import annotations

import json
import resource
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

import polyseme
from polyseme.errors import FormatError, UsageError
from polyseme.formats.vectors.manifest import ALL, ManifestHeader, Shard, open_journal
from polyseme.formats.vectors.parquet import ParquetWriter
from polyseme.formats.vectors.readers import open_vectors
from polyseme.formats.vectors.writers import open_writer
from polyseme.text.fingerprint import checksum

L, H = 3, 4
ENDINGS = [".hdf5", ".npz", ".parquet", ".safetensors"]
SENTENCES = [["the", "bank"], [], ["他", "x" * 100, "naïve"], ["!"], []]
SHAPES = [(-1, H), (L, -1, H), (H,), (L, H)]


def arrays(*shape: int, dtype: str = "float32") -> list[NDArray[np.floating]]:
    """One array per sentence; in `shape`, -1 is the axis of tokens."""
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=[len(s) if size < 0 else size for size in shape]).astype(dtype) for s in SENTENCES
    ]


def write(path: Path, values: list[NDArray[np.floating]]) -> Path:
    """Write SENTENCES with their vectors. Pooled vectors have no axis of tokens."""
    pooled = values[0].shape == values[2].shape
    with open_writer(path, values[1], pooled=pooled) as writer:
        for tokens, array in zip(SENTENCES, values, strict=True):
            writer.add(tokens, array)
    return path


def write_folder(folder: Path, ending: str = ".safetensors", shards: int = 5) -> Path:
    """Write a folder in which each shard has all SENTENCES."""
    folder.mkdir()
    with open_journal(folder, ManifestHeader(model="m", settings={}, text=(), part=ALL)) as journal:
        for block in range(shards):
            path = write(folder / f"shard-{block:08d}-00000000{ending}", arrays(-1, H))
            size, sha = path.stat().st_size, checksum(path)
            counts = {"first": 0, "sentences": 5, "tokens": 6, "truncated": 0}
            journal.add(Shard(file=path.name, block=block, **counts, last=True, bytes=size, sha256=sha))
    return folder


# ---- one file ----


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_vectors_are_read_as_they_were_written(ending, dtype, shape, tmp_path):
    values = arrays(*shape, dtype=dtype)
    with open_vectors(write(tmp_path / f"x{ending}", values)) as vectors:
        assert len(vectors) == 5
        for array, expected in zip(vectors, values, strict=True):
            assert array.dtype == np.dtype(dtype)
            assert array.shape == expected.shape
            np.testing.assert_array_equal(array, expected)
        vectors.verify()


@pytest.mark.parametrize("ending", [".hdf5", ".parquet", ".safetensors"])
@pytest.mark.parametrize("shape", [(-1, H), (H,)], ids=str)
def test_the_tokens_of_a_sentence_are_read(ending, shape, tmp_path):
    with open_vectors(write(tmp_path / f"x{ending}", arrays(*shape))) as vectors:
        assert [vectors.sentence(number) for number in range(5)] == SENTENCES


def test_missing_tokens_are_an_error(tmp_path):
    with pytest.raises(UsageError, match=r"x\.npz: \.npz stores no tokens"):
        open_vectors(write(tmp_path / "x.npz", arrays(-1, H))).sentence(0)
    with open_writer(tmp_path / "x.hdf5", np.empty((0, H), np.float32), pooled=False) as writer:
        writer.add(["w" * 70_000], np.ones((1, H), np.float32))
    with pytest.raises(UsageError, match="the tokens of sentence 0 are not stored"):
        open_vectors(tmp_path / "x.hdf5").sentence(0)


@pytest.mark.parametrize("ending", ENDINGS)
def test_indexes_and_slices_work_as_in_a_list(ending, tmp_path):
    values = arrays(-1, H)
    vectors = open_vectors(write(tmp_path / f"x{ending}", values))
    np.testing.assert_array_equal(vectors[-3], values[2])
    assert [len(array) for array in vectors[1:-1]] == [0, 3, 1]
    assert [len(array) for array in vectors[::-2]] == [0, 3, 2]
    for number in (5, -6):
        with pytest.raises(IndexError, match=f"sentence {number}: .* has 5"):
            vectors[number]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_without_sentences_is_empty(ending, tmp_path):
    with open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False):
        pass
    assert list(open_vectors(tmp_path / f"x{ending}")) == []


def test_parquet_reads_sentences_from_every_row_group(tmp_path):
    path = tmp_path / "x.parquet"
    writer = ParquetWriter(path, arrays(-1, H)[0][:0], False, group_bytes=30)
    for array in arrays(-1, H):
        writer.add(["x"] * len(array), array)
    writer.close()
    assert pq.ParquetFile(path).metadata.num_row_groups == 3
    vectors = open_vectors(path)
    for number in (4, 0, 3, 1, 2):
        np.testing.assert_array_equal(vectors[number], arrays(-1, H)[number])


def test_a_vector_file_is_plain_safetensors(tmp_path):
    tensors = load_file(write(tmp_path / "x.safetensors", arrays(L, -1, H)))
    assert tensors["vectors"].shape == (6, L, H)
    assert tensors["rows"].tolist() == [0, 2, 2, 5, 6, 6]
    text = tensors["text"].tobytes()
    assert text.rstrip().decode() == "the bank他 " + "x" * 100 + " naïve!"
    assert text[: tensors["text_ends"][1]] == b"the bank"


def test_a_safetensors_file_is_read_without_loading_it(tmp_path):
    row = np.zeros((1000, 1024), np.float32)
    with open_writer(tmp_path / "x.safetensors", row[:0], pooled=False) as writer:
        for _ in range(100):  # 400 MB
            writer.add(["w"] * 1000, row)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_vectors(tmp_path / "x.safetensors") as vectors:
        assert vectors[99].shape == (1000, 1024)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10


# ---- foreign and damaged files ----


def test_a_path_without_vectors_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("x")
    (tmp_path / "folder").mkdir()
    for name, message in (("no.npz", "no such file"), ("x.txt", "not the ending of a vector format")):
        with pytest.raises(UsageError, match=message):
            open_vectors(tmp_path / name)
    with pytest.raises(FormatError, match=r"folder: not a folder of vectors: manifest\.json is missing"):
        open_vectors(tmp_path / "folder")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("size", [0, 10, 200])
def test_a_truncated_file_is_named(ending, size, tmp_path):
    path = write(tmp_path / f"x{ending}", arrays(-1, H))
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(FormatError, match=rf"x\{ending}: "):
        open_vectors(path).verify()


def test_foreign_files_with_a_known_ending_are_refused(tmp_path):
    save_file({"w": np.zeros(3)}, tmp_path / "x.safetensors")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "x.npy").rename(tmp_path / "x.npz")
    for ending in (".safetensors", ".parquet", ".npz"):
        with pytest.raises(FormatError, match=rf"x\{ending}: .*not "):
            open_vectors(tmp_path / f"x{ending}")


def test_hdf5_links_to_other_files_are_not_followed(tmp_path):
    write(tmp_path / "secret.hdf5", arrays(-1, H))
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["0"] = h5py.ExternalLink("secret.hdf5", "0")
    with pytest.raises(FormatError, match="link"):
        open_vectors(tmp_path / "x.hdf5")[0]


def test_row_numbers_outside_the_file_are_refused(tmp_path):
    path = write(tmp_path / "x.safetensors", arrays(-1, H))
    tensors = {name: tensor.copy() for name, tensor in load_file(path).items()}
    tensors["rows"][-1] = 7
    save_file(tensors, path, metadata={"format": "polyseme-vectors", "pooled": "false"})
    with pytest.raises(FormatError, match="the tensor rows is inconsistent"):
        open_vectors(path)


# ---- folders ----


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_folder_reads_as_one_list_with_few_open_files(ending, tmp_path):
    folder = write_folder(tmp_path / "out", ending)
    with polyseme.open_vectors(folder, max_open_shards=2) as vectors:
        assert len(vectors) == 25
        assert [len(array) for array in vectors] == [2, 0, 3, 1, 0] * 5
        assert len(vectors._open) == 2
        np.testing.assert_array_equal(vectors[22], arrays(-1, H)[2])


@pytest.mark.parametrize("damage", ["changed", "truncated", "missing"])
def test_a_damaged_shard_is_named_with_its_checksum_and_the_others_stay_readable(damage, tmp_path):
    folder = write_folder(tmp_path / "out")
    shard = folder / "shard-00000002-00000000.safetensors"
    sha, data = checksum(shard), shard.read_bytes()
    if damage == "missing":
        shard.unlink()
    else:
        shard.write_bytes(data[:-1] if damage == "truncated" else data[:1030] + b"?" + data[1031:])
    vectors = open_vectors(folder)
    assert [len(array) for array in vectors[:10] + vectors[15:]] == [2, 0, 3, 1, 0] * 4
    for read in (lambda: vectors[10], lambda: vectors.sentence(12), vectors.verify):
        with pytest.raises(FormatError, match=rf"shard-00000002-00000000\.safetensors: .*SHA-256 {sha}"):
            read()
    if damage == "changed":  # without the check, a changed value goes unnoticed
        assert len(open_vectors(folder, check=False)[10]) == 2


def test_verify_names_all_damaged_shards(tmp_path):
    folder = write_folder(tmp_path / "out")
    for block in (1, 3):
        (folder / f"shard-0000000{block}-00000000.safetensors").write_bytes(b"")
    with pytest.raises(FormatError, match=r"shard-00000001.*shard-00000003"):
        open_vectors(folder).verify()


def test_an_invalid_manifest_is_refused(tmp_path):
    folder = write_folder(tmp_path / "out")
    (folder / "manifest.json").write_text('{"head": 1}')
    with pytest.raises(FormatError, match=r"manifest\.json: not a manifest of vectors \(head"):
        open_vectors(folder)


def test_a_manifest_of_a_later_version_is_refused(tmp_path):
    folder = write_folder(tmp_path / "out")
    manifest = folder / "manifest.json"
    values = json.loads(manifest.read_text(encoding="utf-8"))
    values["head"]["version"] = 2
    manifest.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(FormatError, match=r"not a manifest of vectors .*version: Input should be less than"):
        open_vectors(folder)
