"""Columns of vectors in Arrow, pandas, polars and datasets: values, types, missing texts, Parquet, DuckDB."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import polyseme
from polyseme.elmo import Elmo
from polyseme.errors import UsageError
from polyseme.integrations.frames import add_vectors, embed_column

TEXTS = {
    "en-classic": ["He sat on the bank of the river.", "The bank lent him the money.", "Why?", ""],
    "zh-classic": ["他在银行工作。", "河水上涨了，大家都很担心。", "为什么？", ""],
}


@pytest.fixture(scope="module", params=list(TEXTS))
def elmo(request: pytest.FixtureRequest) -> Elmo:
    return polyseme.load(request.param)


@pytest.fixture
def texts(elmo: Elmo) -> list[str]:
    return TEXTS[str(elmo.path)]


def stack(rows: Any) -> Any:
    return np.array(list(rows), np.float32)


def test_a_column_becomes_a_fixed_size_list_with_the_vectors_of_embed(elmo, texts):
    expected = elmo.embed(texts, pool="mean")
    columns = (
        texts,
        pa.array(texts),
        pa.chunked_array([texts[:1], texts[1:]]),
        pd.Series(texts),
        pl.Series(texts),
    )
    for column in columns:
        vectors = embed_column(elmo, column)
        assert vectors.type == pa.list_(pa.float32(), elmo.config.size)
        np.testing.assert_array_equal(vectors.flatten().to_numpy().reshape(4, -1), expected)
    assert embed_column(elmo, [], layer="concat", pool="concat").type.list_size == 9 * elmo.config.size
    half = embed_column(elmo, texts, direction="forward", layer="top", pool="max")
    expected = elmo.embed(texts, direction="forward", layer="top", pool="max")
    np.testing.assert_array_equal(stack(half.to_pylist()), expected)


def test_a_missing_text_has_a_missing_vector(elmo, texts):
    with_gap = [texts[0], None, texts[1]]
    expected = elmo.embed([texts[0], texts[1]], pool="mean")
    for column in (with_gap, pd.Series(with_gap), pl.Series(with_gap), pa.array(with_gap)):
        vectors = embed_column(elmo, column)
        assert vectors.null_count == 1
        assert vectors[1].as_py() is None
        np.testing.assert_allclose(stack([vectors[0].as_py(), vectors[2].as_py()]), expected, atol=1e-6)


def test_an_arrow_table_keeps_how_its_vectors_were_made_in_parquet(elmo, texts, tmp_path):
    table = pa.table({"n": range(4), "text": texts})
    result = add_vectors(table, "text", elmo, to="v", pool="max")
    assert table.column_names == ["n", "text"]
    pq.write_table(result, tmp_path / "x.parquet")
    again = pq.read_table(tmp_path / "x.parquet")
    assert again.equals(result)
    field = again.schema.field("v")
    assert field.type == pa.list_(pa.float32(), elmo.config.size)
    made = json.loads(field.metadata[b"polyseme"])
    assert made | {"version": ""} == {
        "version": "",
        "model": elmo.path,
        "layer": "mean",
        "pool": "max",
        "direction": "both",
        "segment": None,
    }
    replaced = add_vectors(result, "text", elmo, to="v", pool="mean")
    assert replaced.column_names == ["n", "text", "v"]
    np.testing.assert_array_equal(stack(replaced["v"].to_pylist()), elmo.embed(texts, pool="mean"))
    batch = add_vectors(table.to_batches()[0], "text", elmo)
    assert batch.schema.field("vector").type == field.type


def test_a_pandas_frame_keeps_its_index_and_its_type_in_parquet(elmo, texts, tmp_path):
    frame = pd.DataFrame({"text": texts, "n": range(4)}, index=[3, 1, 4, 2])
    result = add_vectors(frame, "text", elmo)
    vector = pd.ArrowDtype(pa.list_(pa.float32(), elmo.config.size))
    assert list(frame.columns) == ["text", "n"]
    assert result["vector"].dtype == vector
    assert list(result.index) == [3, 1, 4, 2]
    expected = elmo.embed(texts, pool="mean")
    np.testing.assert_array_equal(np.stack(result["vector"]), expected)
    result.to_parquet(tmp_path / "x.parquet")
    again = pd.read_parquet(tmp_path / "x.parquet", dtype_backend="pyarrow")
    assert again["vector"].dtype.pyarrow_dtype.list_size == elmo.config.size
    np.testing.assert_array_equal(np.stack(again["vector"]), expected)


def test_a_polars_frame_has_an_array_column_also_in_parquet(elmo, texts, tmp_path):
    result = add_vectors(pl.DataFrame({"text": texts}), "text", elmo)
    assert result.schema["vector"] == pl.Array(pl.Float32, elmo.config.size)
    expected = elmo.embed(texts, pool="mean")
    np.testing.assert_array_equal(result["vector"].to_numpy(), expected)
    result.write_parquet(tmp_path / "x.parquet")
    again = pl.read_parquet(tmp_path / "x.parquet")
    assert again.equals(result)
    lazy = pl.scan_parquet(tmp_path / "x.parquet").select(
        pl.col("text").map_batches(
            lambda column: pl.from_arrow(embed_column(elmo, column)),
            return_dtype=pl.Array(pl.Float32, elmo.config.size),
        )
    )
    np.testing.assert_array_equal(lazy.collect()["text"].to_numpy(), expected)


def test_a_column_that_does_not_exist_raises_the_error_of_the_library():
    elmo = polyseme.load("en-classic")
    tables: list[tuple[Any, type[Exception]]] = [
        (pa.table({"a": ["x"]}), KeyError),
        (pd.DataFrame({"a": ["x"]}), KeyError),
        (pl.DataFrame({"a": ["x"]}), pl.exceptions.ColumnNotFoundError),
    ]
    for table, kind in tables:
        with pytest.raises(kind, match="text"):
            add_vectors(table, "text", elmo)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": None}, 'Set pool="mean"'),
        ({"layer": "all"}, 'layer="concat" for all layers'),
        ({"pool": "average"}, "pool is 'average'"),
        ({"num_proc": 2}, "num_proc is for Hugging Face datasets"),
        ({"table": pl.LazyFrame({"text": ["a"]})}, r"table is a LazyFrame: pass `table.collect\(\)`"),
        ({"table": {"text": ["a"]}}, "table is of type dict, expected a table of pyarrow"),
        ({"table": pa.table({"text": [1]})}, "sentence 0 is 1, expected a string"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    arguments: dict[str, Any] = {"table": pa.table({"text": ["a"]}), "column": "text"} | options
    with pytest.raises(UsageError, match=message):
        add_vectors(model=polyseme.load("en-classic"), **arguments)
    with pytest.raises(UsageError, match=r"model is of type NoneType, expected what polyseme\.load returns"):
        embed_column(None, ["a"])  # type: ignore[arg-type]


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("num_proc", [None, 2])
def test_a_dataset_gets_a_typed_column_and_is_cached(elmo, texts, num_proc, tmp_path):
    import datasets

    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": texts * 50}), rows)
    dataset = datasets.Dataset.from_parquet(str(rows), cache_dir=str(tmp_path))
    result = add_vectors(dataset, "text", elmo, num_proc=num_proc)
    assert dataset.column_names == ["text"]
    assert result.features["vector"] == datasets.List(datasets.Value("float32"), length=elmo.config.size)
    expected = elmo.embed(texts * 50, pool="mean")
    np.testing.assert_allclose(result.with_format("numpy")["vector"], expected, atol=1e-6)
    again = add_vectors(dataset, "text", polyseme.load(str(elmo.path)), num_proc=num_proc)
    assert again.cache_files == result.cache_files != []
    result.to_parquet(str(tmp_path / "x.parquet"))
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert schema.field("vector").type.list_size == elmo.config.size


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_sets_of_a_dataset_streams_and_missing_texts():
    import datasets

    elmo = polyseme.load("en-classic")
    dataset = datasets.Dataset.from_dict({"text": ["a bank", None, "a river"]})
    result = add_vectors(datasets.DatasetDict({"train": dataset, "test": dataset}), "text", elmo, to="v")
    assert list(result) == ["train", "test"]
    assert result["test"][1]["v"] is None
    expected = elmo.embed("a river", pool="mean")
    np.testing.assert_allclose(result["test"][2]["v"], expected, atol=1e-6)
    stream = add_vectors(dataset.to_iterable_dataset(), "text", elmo)
    assert stream.features["vector"].length == 256
    np.testing.assert_allclose(list(stream)[2]["vector"], expected, atol=1e-6)
    with pytest.raises(UsageError, match="a stream is read by one process"):
        add_vectors(dataset.to_iterable_dataset(), "text", elmo, num_proc=2)
    with pytest.raises(KeyError, match="Column 'body' not in the dataset"):
        add_vectors(dataset, "body", elmo)


@pytest.mark.integrations
@pytest.mark.filterwarnings("ignore")  # of the libraries
def test_duckdb_reads_the_vectors_and_calls_the_model(elmo, texts, tmp_path):
    import duckdb

    size = elmo.config.size
    table = add_vectors(pa.table({"n": range(3), "text": texts[:3]}), "text", elmo)
    pq.write_table(table, tmp_path / "x.parquet")
    query = elmo.embed(texts[1], pool="mean")
    vectors = elmo.embed(texts[:3], pool="mean")
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    con: Any = duckdb.connect()
    con.register("arrow_table", table)
    for source in ("arrow_table", f"'{tmp_path / 'x.parquet'}'"):
        cosine = f"array_cosine_similarity(vector::float[{size}], ?::float[{size}])"
        sql = f"select {cosine} from {source} order by n"
        rows = con.execute(sql, [query.tolist()]).fetchall()
        np.testing.assert_allclose(np.array(rows)[:, 0], cosines, atol=1e-5)
    con.create_function(
        "elmo", lambda column: embed_column(elmo, column), ["VARCHAR"], f"FLOAT[{size}]", type="arrow"
    )
    rows = con.execute("select elmo(text) from arrow_table order by n").fetchall()
    np.testing.assert_allclose(np.array(rows)[:, 0], vectors, atol=1e-6)
