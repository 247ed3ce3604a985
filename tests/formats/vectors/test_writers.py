"""Files of vectors: what is in them, and that they are there whole or not at all.

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
from polyseme.formats.vectors.file_formats import vector_format_of
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
    """SENTENCES with their vectors; the second has no tokens, so it is what a dump calls empty."""
    with open_writer(path, vectors[1], pooled=pooled, **options) as dump:
        for tokens, array in zip(SENTENCES, vectors, strict=True):
            dump.add(tokens, array)
    return path


def read(path: Path) -> dict[str, np.ndarray]:
    """Every array of an .hdf5 or .npz file by its key."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    with h5py.File(path) as file:
        return {key: file[key][()] for key in file}


# ---- hdf5, npz ----


@pytest.mark.parametrize("ending", [".hdf5", ".h5", ".npz"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(-1, H), (L, -1, H), (H,), (L, H)], ids=str)
def test_a_sentence_is_an_array_under_its_number(ending, dtype, shape, tmp_path):
    vectors = arrays(*shape, dtype=dtype)
    found = read(write(tmp_path / f"x{ending}", vectors, pooled=-1 not in shape))
    assert sorted(found) == ["0", "1", "2"]
    for key, array in enumerate(vectors):
        assert found[str(key)].dtype == np.dtype(dtype)
        assert found[str(key)].shape == array.shape
        np.testing.assert_array_equal(found[str(key)], array)


def test_hdf5_keeps_the_tokens_in_an_attribute(tmp_path):
    with h5py.File(write(tmp_path / "x.hdf5", arrays(-1, H))) as file:
        assert [file[key].attrs["sentence"] for key in "012"] == [" ".join(tokens) for tokens in SENTENCES]


def test_hdf5_takes_sentences_that_no_attribute_can_hold(tmp_path):
    sentences = [["w"] * 100_000, ["bad\ud800", "nul\0"], ["字" * 20_000], ["字" * 20_001]]
    with open_writer(tmp_path / "x.hdf5", np.empty((0, H), np.float32), pooled=False) as dump:
        for tokens in sentences:
            dump.add(tokens, np.ones((len(tokens), H), np.float32))
    with h5py.File(tmp_path / "x.hdf5") as file:
        assert file["0"].shape == (100_000, H)
        assert dict(file["0"].attrs) == {}
        assert file["1"].attrs["sentence"] == "bad? nul "
        assert len(file["2"].attrs["sentence"]) == 20_000
        assert dict(file["3"].attrs) == {}


def test_arrays_in_any_order_of_memory_are_written_as_they_read(tmp_path):
    tokens, turned = ["a", "b"], np.arange(8, dtype=np.float32).reshape(H, 2).T
    for ending in (".npz", ".hdf5"):
        with open_writer(tmp_path / f"x{ending}", turned[:0], pooled=False) as dump:
            dump.add(tokens, turned)
        np.testing.assert_array_equal(read(tmp_path / f"x{ending}")["0"], turned)


# ---- parquet ----


def vectors_of(table: pa.Table) -> np.ndarray:
    """The column `vector` in the shape that the schema names."""
    shape = [int(size) for size in table.schema.metadata[b"shape"].split(b",")]
    return np.array(table["vector"].to_pylist(), "float32").reshape(-1, *shape)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(-1, H), (L, -1, H)], ids=str)
def test_parquet_has_a_row_a_token(dtype, shape, tmp_path):
    vectors = arrays(*shape, dtype=dtype)
    table = pq.read_table(write(tmp_path / "x.parquet", vectors))
    assert table.column_names == ["sentence", "place", "token", "vector"]
    assert table["sentence"].to_pylist() == [0, 0, 2, 2, 2]
    assert table["place"].to_pylist() == [0, 1, 0, 1, 2]
    assert table["token"].to_pylist() == [token for tokens in SENTENCES for token in tokens]
    kind = pa.float32() if dtype == "float32" else pa.float16()
    assert table.schema.field("vector").type == pa.list_(kind, H if len(shape) == 2 else L * H)
    by_token = np.concatenate([array if len(shape) == 2 else array.swapaxes(0, 1) for array in vectors])
    np.testing.assert_array_equal(vectors_of(table), by_token)


@pytest.mark.parametrize("shape", [(H,), (L, H)], ids=str)
def test_parquet_has_a_row_a_pooled_sentence(shape, tmp_path):
    vectors = arrays(*shape)
    table = pq.read_table(write(tmp_path / "x.parquet", vectors, pooled=True))
    assert table.column_names == ["sentence", "text", "vector"]
    assert table["sentence"].to_pylist() == [0, 1, 2]
    assert table["text"].to_pylist() == [" ".join(tokens) for tokens in SENTENCES]
    np.testing.assert_array_equal(vectors_of(table), vectors)


def test_parquet_is_written_in_groups_of_rows(tmp_path):
    rng = np.random.default_rng(0)
    wanted = [rng.normal(size=(length, H)).astype(np.float32) for length in (3, 4, 0, 50, 1)]
    writer = ParquetWriter(tmp_path / "x.parquet", wanted[2], False, group_bytes=100)
    for array in wanted:
        writer.add(["w"] * len(array), array)
    writer.close()
    assert pq.ParquetFile(tmp_path / "x.parquet").metadata.num_row_groups == 3
    table = pq.read_table(tmp_path / "x.parquet")
    np.testing.assert_array_equal(vectors_of(table), np.concatenate(wanted))
    assert table["sentence"].to_pylist() == [0] * 3 + [1] * 4 + [3] * 50 + [4]


def test_parquet_takes_odd_tokens(tmp_path):
    with open_writer(tmp_path / "x.parquet", np.empty((0, H), np.float32), pooled=False) as dump:
        dump.add(["bad\ud800", "nul\0", "x" * 100_000], np.ones((3, H), np.float32))
    assert pq.read_table(tmp_path / "x.parquet")["token"].to_pylist() == ["bad?", "nul\0", "x" * 100_000]


def test_parquet_without_pyarrow_names_the_command_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError, match=r'The format of x\.parquet needs pyarrow: pip install "polyseme'
    ):
        vector_format_of(Path("x.parquet"))


# ---- nothing to write, nothing left behind ----


@pytest.mark.parametrize("ending", [".hdf5", ".npz"])
def test_a_text_without_sentences_gives_a_file_without_arrays(ending, tmp_path):
    with open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False):
        pass
    assert read(tmp_path / f"x{ending}") == {}


@pytest.mark.parametrize(
    ("empty", "pooled"), [((0, H), False), ((L, 0, H), False), ((H,), True), ((L, H), True)], ids=str
)
def test_a_text_without_sentences_gives_a_table_of_the_same_kind(empty, pooled, tmp_path):
    with open_writer(tmp_path / "x.parquet", np.zeros(empty, np.float16), pooled=pooled):
        pass
    shape = (L, -1, H) if len(empty) == 3 else empty if pooled else (-1, H)
    full = pq.read_schema(write(tmp_path / "y.parquet", arrays(*shape, dtype="float16"), pooled=pooled))
    table = pq.read_table(tmp_path / "x.parquet")
    assert len(table) == 0
    assert table.schema.equals(full, check_metadata=True)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_behind_after_an_error(ending, problem, tmp_path):
    def fail() -> None:
        with open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False) as dump:
            dump.add(["a", "b"], np.ones((2, H), np.float32))
            raise problem("stop")

    with pytest.raises(problem, match="stop"):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_error_keeps_its_name_even_if_the_file_cannot_be_finished(ending, tmp_path, monkeypatch):
    writer: Any = vector_format_of(Path(f"x{ending}")).writer
    close = writer.close

    def broken(self: Any) -> None:
        close(self)
        raise RuntimeError("cannot be finished")

    monkeypatch.setattr(writer, "close", broken)
    with (
        pytest.raises(ValueError, match="the first error"),
        open_writer(tmp_path / f"x{ending}", np.empty((0, H), np.float32), pooled=False),
    ):
        raise ValueError("the first error")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_file_that_exists_is_kept_unless_force_is_used(ending, tmp_path):
    path = tmp_path / f"x{ending}"
    path.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write(path, arrays(-1, H))
    assert path.read_text() == "mine"
    write(path, arrays(-1, H), force=True)
    assert path.stat().st_size > 4
    assert list(tmp_path.iterdir()) == [path]


def test_the_ending_may_be_in_capitals(tmp_path):
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


def test_an_hdf5_dump_can_be_read_as_bilm_tf_and_allennlp_read_it(tmp_path):
    write(tmp_path / "x.hdf5", arrays(L, -1, H))
    with h5py.File(tmp_path / "x.hdf5") as file:  # numbers as strings, (L, tokens, H) float32, no groups
        assert json.loads(f"[{','.join(file)}]") == [0, 1, 2]
        assert all(isinstance(item, h5py.Dataset) for item in file.values())
        assert file["2"].shape == (L, 3, H)
        assert file["2"].dtype == np.float32
