"""Files of vectors: their contents, and that they are written completely or not at all.

L layers, T tokens, H = both directions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from polyseme.errors import MissingExtraError, UsageError
from polyseme.formats.vectors.file_formats import find_vector_format
from polyseme.formats.vectors.parquet import ParquetWriter
from polyseme.formats.vectors.writers import open_writer

L, H = 3, 4
ENDINGS = [".hdf5", ".h5", ".npz", ".parquet", ".safetensors"]
SENTENCES = [["the", "bank"], [], ["他", "x" * 100, "naïve"]]


def arrays(*shape: int, dtype: str = "float32") -> list[np.ndarray]:
    """One array per sentence of SENTENCES; in `shape`, -1 is the axis of tokens."""
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=[len(s) if size < 0 else size for size in shape]).astype(dtype) for s in SENTENCES
    ]


def write(path: Path, vectors: list[np.ndarray], *, pooled: bool = False, **options: Any) -> Path:
    """Write SENTENCES with their vectors; the second has no tokens, so its array is the empty one."""
    with open_writer(path, vectors[1], pooled=pooled, **options) as writer:
        for tokens, array in zip(SENTENCES, vectors, strict=True):
            writer.add(tokens, array)
    return path


def read(path: Path) -> dict[str, np.ndarray]:
    """Read all arrays of an .hdf5 or .npz file, by key."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    with h5py.File(path) as file:
        return {key: file[key][()] for key in file}


# ---- hdf5, npz ----


@pytest.mark.parametrize("ending", [".hdf5", ".h5", ".npz"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(-1, H), (L, -1, H), (H,), (L, H)], ids=str)
def test_each_sentence_is_an_array_under_its_number(ending, dtype, shape, tmp_path):
    vectors = arrays(*shape, dtype=dtype)
    stored = read(write(tmp_path / f"x{ending}", vectors, pooled=-1 not in shape))
    assert sorted(stored) == ["0", "1", "2"]
    for key, array in enumerate(vectors):
        assert stored[str(key)].dtype == np.dtype(dtype)
        assert stored[str(key)].shape == array.shape
        np.testing.assert_array_equal(stored[str(key)], array)


def test_hdf5_stores_the_tokens_in_an_attribute(tmp_path):
    with h5py.File(write(tmp_path / "x.hdf5", arrays(-1, H))) as file:
        assert [file[key].attrs["sentence"] for key in "012"] == [" ".join(tokens) for tokens in SENTENCES]


def test_hdf5_writes_sentences_too_long_for_an_attribute(tmp_path):
    sentences = [["w"] * 100_000, ["bad\ud800", "nul\0"], ["字" * 20_000], ["字" * 20_001]]
    with open_writer(tmp_path / "x.hdf5", np.empty((0, H), np.float32), pooled=False) as writer:
        for tokens in sentences:
            writer.add(tokens, np.ones((len(tokens), H), np.float32))
    with h5py.File(tmp_path / "x.hdf5") as file:
        assert file["0"].shape == (100_000, H)
        assert dict(file["0"].attrs) == {}
        assert file["1"].attrs["sentence"] == "bad? nul "
        assert len(file["2"].attrs["sentence"]) == 20_000
        assert dict(file["3"].attrs) == {}


def test_arrays_in_any_memory_order_are_written_correctly(tmp_path):
    tokens, transposed = ["a", "b"], np.arange(8, dtype=np.float32).reshape(H, 2).T
    for ending in (".npz", ".hdf5"):
        with open_writer(tmp_path / f"x{ending}", transposed[:0], pooled=False) as writer:
            writer.add(tokens, transposed)
        np.testing.assert_array_equal(read(tmp_path / f"x{ending}")["0"], transposed)


# ---- parquet ----


def vectors_of(table: pa.Table) -> np.ndarray:
    """The column `vector`, in the shape that the schema declares."""
    shape = [int(size) for size in table.schema.metadata[b"shape"].split(b",")]
    return np.array(table["vector"].to_pylist(), "float32").reshape(-1, *shape)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(-1, H), (L, -1, H)], ids=str)
def test_parquet_has_a_row_per_token(dtype, shape, tmp_path):
    vectors = arrays(*shape, dtype=dtype)
    table = pq.read_table(write(tmp_path / "x.parquet", vectors))
    assert table.column_names == ["sentence", "place", "token", "vector"]
    assert table["sentence"].to_pylist() == [0, 0, 2, 2, 2]
    assert table["place"].to_pylist() == [0, 1, 0, 1, 2]
    assert table["token"].to_pylist() == [token for tokens in SENTENCES for token in tokens]
    value_type = pa.float32() if dtype == "float32" else pa.float16()
    assert table.schema.field("vector").type == pa.list_(value_type, H if len(shape) == 2 else L * H)
    by_token = np.concatenate([array if len(shape) == 2 else array.swapaxes(0, 1) for array in vectors])
    np.testing.assert_array_equal(vectors_of(table), by_token)


@pytest.mark.parametrize("shape", [(H,), (L, H)], ids=str)
def test_parquet_has_a_row_per_pooled_sentence(shape, tmp_path):
    vectors = arrays(*shape)
    table = pq.read_table(write(tmp_path / "x.parquet", vectors, pooled=True))
    assert table.column_names == ["sentence", "text", "vector"]
    assert table["sentence"].to_pylist() == [0, 1, 2]
    assert table["text"].to_pylist() == [" ".join(tokens) for tokens in SENTENCES]
    np.testing.assert_array_equal(vectors_of(table), vectors)


def test_parquet_is_written_in_row_groups(tmp_path):
    rng = np.random.default_rng(0)
    arrays_written = [rng.normal(size=(length, H)).astype(np.float32) for length in (3, 4, 0, 50, 1)]
    writer = ParquetWriter(tmp_path / "x.parquet", arrays_written[2], False, group_bytes=100)
    for array in arrays_written:
        writer.add(["w"] * len(array), array)
    writer.close()
    assert pq.ParquetFile(tmp_path / "x.parquet").metadata.num_row_groups == 3
    table = pq.read_table(tmp_path / "x.parquet")
    np.testing.assert_array_equal(vectors_of(table), np.concatenate(arrays_written))
    assert table["sentence"].to_pylist() == [0] * 3 + [1] * 4 + [3] * 50 + [4]


def test_parquet_writes_unusual_tokens(tmp_path):
    with open_writer(tmp_path / "x.parquet", np.empty((0, H), np.float32), pooled=False) as writer:
        writer.add(["bad\ud800", "nul\0", "x" * 100_000], np.ones((3, H), np.float32))
    assert pq.read_table(tmp_path / "x.parquet")["token"].to_pylist() == ["bad?", "nul\0", "x" * 100_000]


def test_without_pyarrow_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r'The format of x\.parquet needs pyarrow: pip install "polyseme'
    ):
        find_vector_format(Path("x.parquet"))


# ---- empty texts, errors and existing files ----


@pytest.mark.parametrize("ending", [".hdf5", ".npz"])
def test_a_text_without_sentences_gives_a_file_without_arrays(ending, tmp_path):
    with open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False):
        pass
    assert read(tmp_path / f"x{ending}") == {}


@pytest.mark.parametrize(
    ("empty", "pooled"), [((0, H), False), ((L, 0, H), False), ((H,), True), ((L, H), True)], ids=str
)
def test_a_text_without_sentences_gives_a_table_with_the_same_schema(empty, pooled, tmp_path):
    with open_writer(tmp_path / "x.parquet", np.zeros(empty, np.float16), pooled=pooled):
        pass
    shape = (L, -1, H) if len(empty) == 3 else empty if pooled else (-1, H)
    full = pq.read_schema(write(tmp_path / "y.parquet", arrays(*shape, dtype="float16"), pooled=pooled))
    table = pq.read_table(tmp_path / "x.parquet")
    assert len(table) == 0
    assert table.schema.equals(full, check_metadata=True)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_no_file_behind(ending, problem, tmp_path):
    def fail() -> None:
        with open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False) as writer:
            writer.add(["a", "b"], np.ones((2, H), np.float32))
            raise problem("stop")

    with pytest.raises(problem, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_first_error_is_raised_even_if_closing_the_file_fails(ending, tmp_path, monkeypatch):
    writer: Any = find_vector_format(Path(f"x{ending}")).writer
    close = writer.close

    def failing_close(self: Any) -> None:
        close(self)
        raise RuntimeError("cannot be finished")

    monkeypatch.setattr(writer, "close", failing_close)
    with (
        pytest.raises(ValueError, match="the first error"),
        open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False),
    ):
        raise ValueError("the first error")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_existing_file_is_replaced_only_with_force(ending, tmp_path):
    path = tmp_path / f"x{ending}"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write(path, arrays(-1, H))
    assert path.read_text() == "mine"
    write(path, arrays(-1, H), force=True)
    assert path.stat().st_size > 4
    assert list(tmp_path.iterdir()) == [path]


def test_the_ending_may_be_in_upper_case(tmp_path):
    for ending in (".HDF5", ".NPZ", ".Parquet"):
        assert write(tmp_path / f"x{ending}", arrays(-1, H)).is_file()
    assert len(pq.read_table(tmp_path / "x.Parquet")) == 5


@pytest.mark.parametrize("name", ["x", "x.txt", "x.hdf5.tmp", "x.json", ".hdf5"])
def test_an_unknown_ending_is_refused_with_the_known_ones(name, tmp_path):
    with pytest.raises(
        UsageError, match=r"not the ending of a vector format\. Use one of \.safetensors, \.parquet"
    ):
        write(tmp_path / name, arrays(-1, H))
    assert list(tmp_path.iterdir()) == []


def test_an_hdf5_file_has_the_layout_of_bilm_tf_and_allennlp(tmp_path):
    write(tmp_path / "x.hdf5", arrays(L, -1, H))
    with h5py.File(tmp_path / "x.hdf5") as file:  # numbers as strings, (L, tokens, H) float32, no groups
        assert json.loads(f"[{','.join(file)}]") == [0, 1, 2]
        assert all(isinstance(item, h5py.Dataset) for item in file.values())
        assert file["2"].shape == (L, 3, H)
        assert file["2"].dtype == np.float32
