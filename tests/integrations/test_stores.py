"""`export(to=…)` into LanceDB and PostgreSQL with pgvector: neighbours, kills, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from polyseme.errors import FormatError, UsageError
from polyseme.integrations import lancedb as to_lancedb
from polyseme.integrations import postgres as to_postgres
from polyseme.io.progress import ProgressEvent, ignore_progress
from polyseme.search.index import Index
from polyseme.search.usage_table import make_usage_table
from stores import postgres_server

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]  # warnings of the libraries

TEXT = Path(__file__).parents[2] / "LICENSE"  # 1,500 words that repeat: "Work" and "License" most of all
WORD = "Work"
K = 10


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Every usage of every word of TEXT, by a bundled model."""
    return polyseme.index("en-classic", TEXT, tmp_path_factory.mktemp("stores") / "index", progress=False)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a PostgreSQL with pgvector."""
    with postgres_server() as running:
        yield running


@pytest.fixture
def address(server: str) -> Iterator[str]:
    """The address of a server whose database has no tables of ours."""
    yield server
    run_sql(server, "DROP VIEW IF EXISTS shown", "DROP TABLE IF EXISTS usages, other, customers")


def run_sql(address: str, *statements: Any, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run statements, each of which is committed, and return the rows of the last one."""
    import psycopg
    from pgvector.psycopg import register_vector

    with psycopg.connect(address, autocommit=True) as connection:
        if psycopg.types.TypeInfo.fetch(connection, "vector"):
            register_vector(connection)
        for statement in statements:
            cursor = connection.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def list_queries(index: Index, count: int = 40) -> list[np.ndarray]:
    """Query vectors: words of indexed sentences, each of which was changed."""
    queries = []
    for number in np.linspace(0, len(index) - 1, count).astype(int).tolist():
        usage = index.usage(number)
        if "[" not in usage.sentence:
            queries.append(index.query_vector(usage.word, f"And then {usage.marked()}"))
    assert len(queries) > count // 2
    return queries


def measure_recall(index: Index, query: np.ndarray, numbers: list[int]) -> float:
    """The share of `numbers` that our exact search has, or whose cosines are as high as its last one."""
    nearest = index.nearest(query, K)
    cosines = index.vectors(np.array(numbers)) @ query
    assert len(set(numbers)) == len(nearest) == K
    return float(np.mean(cosines >= nearest[-1].cosine - 1e-5))


def test_lancedb_finds_the_same_usages_as_our_exact_search(index: Index, tmp_path: Path):
    import lancedb

    written = polyseme.export(index, to=f"lancedb:{tmp_path / 'db'}")
    assert written.out == tmp_path / "db" / "usages.lance"
    table: Any = lancedb.connect(tmp_path / "db").open_table("usages")
    assert table.count_rows() == len(index)
    recalls = []
    for query in list_queries(index):
        found = table.search(query).distance_type("dot").limit(K).to_list()
        recalls.append(measure_recall(index, query, [row["id"] for row in found]))
    assert np.mean(recalls) == 1
    best = table.search(query).distance_type("dot").limit(1).to_list()[0]
    (usage,) = index.nearest(query, 1)
    assert best["sentence"][best["start"] : best["stop"]] == usage.word == best["word"]
    assert (best["sentence"], best["document"], best["line"]) == (usage.sentence, usage.document, usage.line)
    assert 1 - best["_distance"] == pytest.approx(usage.cosine, abs=1e-5)


def test_raw_vectors_would_have_other_neighbours(index: Index):
    """The reason for the correction: without it, a large part of the neighbours are others."""
    numbers = np.arange(len(index))
    raw = index.raw_vectors(numbers)
    raw /= np.linalg.norm(raw, axis=1, keepdims=True)
    corrected = index.vectors(numbers)
    shared = []
    for number in range(0, len(index), 50):
        tops = [set(np.argsort(-(rows @ rows[number]))[: K + 1]) - {number} for rows in (raw, corrected)]
        shared.append(len(tops[0] & tops[1]) / K)
    assert np.mean(shared) < 0.8


def test_postgresql_finds_the_same_usages_as_our_exact_search(index: Index, address: str):
    written = polyseme.export(index, to=address)
    assert written.out.endswith("table usages")
    assert run_sql(address, "SELECT count(*), min(id), max(id) FROM usages") == [
        (len(index), 0, len(index) - 1)
    ]
    query_sql = "SELECT id FROM usages ORDER BY vector <#> %s LIMIT 10"
    queries = list_queries(index)
    exact = [
        measure_recall(index, query, [row[0] for row in run_sql(address, query_sql, parameters=[query])])
        for query in queries
    ]
    assert np.mean(exact) == 1
    run_sql(address, "CREATE INDEX ON usages USING hnsw (vector vector_ip_ops)")
    plan = run_sql(address, f"EXPLAIN {query_sql}", parameters=[queries[0]])
    assert "using usages_vector_idx" in str(plan)
    hnsw = [
        measure_recall(index, query, [row[0] for row in run_sql(address, query_sql, parameters=[query])])
        for query in queries
    ]
    assert np.mean(hnsw) > 0.9


def test_rows_in_postgresql_are_those_of_the_index(index: Index, address: str):
    polyseme.export(index, to=address, word=WORD)
    rows = run_sql(
        address,
        "SELECT id, word, sentence, document, title, line, start, stop, vector,"
        " substr(sentence, start + 1, stop - start) FROM usages ORDER BY id",
    )
    assert [row[0] for row in rows] == index.usage_numbers(WORD).tolist()
    for row in rows:
        usage = index.usage(row[0])
        assert row[1:8] == (
            *(usage.word, usage.sentence, usage.document, usage.title),
            *(usage.line, usage.start, usage.stop),
        )
        np.testing.assert_allclose(row[8].to_numpy(), index.vectors(np.array([row[0]]))[0], atol=1e-6)
        assert row[9] == WORD


def test_an_existing_table_of_lancedb_is_replaced_with_force_only(index: Index, tmp_path: Path):
    import lancedb

    target = f"lancedb:{tmp_path / 'db'}"
    polyseme.export(index, to=target, word=WORD)
    polyseme.export(index, to=target, word=WORD, table="other")
    with pytest.raises(UsageError, match=r"usages.lance: exists already"):
        polyseme.export(index, to=target)
    database = lancedb.connect(tmp_path / "db")
    assert database.open_table("usages").count_rows() == index.count(WORD)
    polyseme.export(index, to=target, force=True)
    assert database.open_table("usages").count_rows() == len(index)
    assert database.open_table("other").count_rows() == index.count(WORD)
    assert sorted(path.name for path in (tmp_path / "db").iterdir()) == ["other.lance", "usages.lance"]
    (tmp_path / "db" / "mine.lance").mkdir()
    (tmp_path / "db" / "mine.lance" / "notes.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match=r"contains other files, notes.txt, which would be lost"):
        polyseme.export(index, to=target, table="mine", force=True)
    (tmp_path / "file").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match="file"):
        polyseme.export(index, to=f"lancedb:{tmp_path / 'file'}")


def test_an_existing_table_of_postgresql_is_replaced_with_force_only(index: Index, address: str):
    polyseme.export(index, to=address, word=WORD)
    with pytest.raises(UsageError, match=r"the table usages exists already. Choose another `table`, or"):
        polyseme.export(index, to=address)
    seen: list[int] = []

    def look(event: ProgressEvent) -> None:  # others see the old table until the new one is complete
        seen.extend(run_sql(address, "SELECT count(*) FROM usages")[0])

    polyseme.export(index, to=address, force=True, progress=look)
    assert set(seen) == {index.count(WORD)}
    assert run_sql(address, "SELECT count(*) FROM usages") == [(len(index),)]
    polyseme.export(index, to=address, table="public.other", word=WORD)
    assert run_sql(address, "SELECT count(*) FROM other") == [(index.count(WORD),)]


def test_tables_that_are_not_of_usages_are_never_replaced(index: Index, address: str):
    run_sql(address, "CREATE TABLE customers (id int)", "INSERT INTO customers VALUES (7)")
    with pytest.raises(UsageError, match="customers is not a table of usages, and would be lost"):
        polyseme.export(index, to=address, table="customers", force=True)
    assert run_sql(address, "SELECT * FROM customers") == [(7,)]
    polyseme.export(index, to=address, word=WORD)
    run_sql(address, "CREATE VIEW shown AS SELECT * FROM usages")
    with pytest.raises(UsageError, match="shown is not a table of usages"):
        polyseme.export(index, to=address, table="shown", force=True)
    with pytest.raises(UsageError, match=r"PostgreSQL refused .*view shown depends on table usages"):
        polyseme.export(index, to=address, force=True)
    assert run_sql(address, "SELECT count(*) FROM usages") == [(index.count(WORD),)]


def test_names_of_tables_are_never_run_as_sql(index: Index, address: str):
    run_sql(address, "CREATE TABLE customers (id int)")
    name = 'x"; DROP TABLE customers; --'
    polyseme.export(index, to=address, table=name, word=WORD)
    tables = run_sql(address, "SELECT relname FROM pg_class WHERE relkind = 'r'")
    assert {("customers",), (name,)} <= set(tables)
    run_sql(address, 'DROP TABLE "x""; DROP TABLE customers; --"')


def test_text_that_postgresql_cannot_hold_is_replaced(address: str, tmp_path: Path):
    table = make_usage_table(
        polyseme.index("en-classic", write(tmp_path, "The bank failed .\n"), tmp_path / "i")
    )
    (batch,) = table.batches
    columns = list(batch.columns)
    columns[2] = ["The\0 bank"] * len(batch.vectors)
    changed = table.__class__(**{**vars(table), "batches": iter([batch._replace(columns=tuple(columns))])})
    to_postgres.write_table(address, "usages", changed, force=False, on_progress=ignore_progress)
    assert run_sql(address, "SELECT DISTINCT sentence FROM usages") == [("The\ufffd bank",)]


def write(folder: Path, text: str) -> Path:
    (folder / "text.txt").write_text(text, encoding="utf-8")
    return folder / "text.txt"


def test_the_rights_that_are_missing_are_named(index: Index, address: str):
    run_sql(
        address,
        "DROP DATABASE IF EXISTS plain",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE reader LOGIN PASSWORD 'hunter2'",
        "CREATE DATABASE plain",
    )
    plain = address.replace("postgres:@/postgres", "reader:hunter2@/plain")
    assert plain != address
    with pytest.raises(UsageError, match=r"pgvector is not enabled. Ask an administrator") as refused:
        polyseme.export(index, to=plain)
    assert "hunter2" not in str(refused.value)
    run_sql(address.replace("@/postgres", "@/plain"), "CREATE EXTENSION vector")
    with pytest.raises(UsageError, match=r"PostgreSQL refused .*permission denied for schema public"):
        polyseme.export(index, to=plain)
    with pytest.raises(UsageError, match=r'no connection to PostgreSQL .*database "nowhere" does not exist'):
        polyseme.export(index, to=address.replace("@/postgres", "@/nowhere"))
    with pytest.raises(UsageError, match=r'PostgreSQL refused .*schema "none" does not exist'):
        polyseme.export(index, to=address, table="none.usages")


def test_two_exports_into_one_table_do_not_wait_for_each_other(index: Index, address: str):
    refused: list[str] = []

    def export_too(event: ProgressEvent) -> None:
        if not refused:
            with pytest.raises(UsageError) as problem:
                polyseme.export(index, to=address, word=WORD)
            refused.append(str(problem.value))

    polyseme.export(index, to=address, progress=export_too)
    assert "another export is writing usages" in refused[0]
    assert run_sql(address, "SELECT count(*) FROM usages") == [(len(index),)]


def test_an_error_while_reading_leaves_nothing(index: Index, address: str, tmp_path: Path):
    damaged = polyseme.open_index(index.folder)
    damaged.listed_documents = []
    for target in (f"lancedb:{tmp_path / 'db'}", address):
        with pytest.raises(FormatError, match="a document is not listed"):
            polyseme.export(damaged, to=target)
    assert not (tmp_path / "db").exists()
    assert run_sql(address, "SELECT to_regclass('usages')") == [(None,)]


KILLED = """
import os, signal, sys
import polyseme
from polyseme.integrations import lancedb, postgres
from polyseme.search.usage_table import make_usage_table

store, folder, target, force = sys.argv[1:]
index, force = polyseme.open_index(folder), force == "force"
table = make_usage_table(index, batch_bytes=100 * 4 * index.head["size"])

def kill(event):
    if event.done > 0.6 * event.total:
        os.kill(os.getpid(), signal.SIGKILL)

if store == "lancedb":
    from pathlib import Path
    lancedb.write_table(Path(target), table, force=force, on_progress=kill)
else:
    postgres.write_table(target, "usages", table, force=force, on_progress=kill)
"""


def run_killed(store: str, index: Index, target: str | Path, force: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", KILLED, store, str(index.folder), str(target), force]
    assert subprocess.run(command).returncode == -9


@pytest.mark.parametrize("force", ["new", "force"])
def test_a_killed_export_leaves_the_old_table_of_lancedb_or_none(index: Index, tmp_path: Path, force: str):
    import lancedb

    folder = tmp_path / "db"
    target = f"lancedb:{folder}"
    if force == "force":
        polyseme.export(index, to=target, word=WORD)
    run_killed("lancedb", index, to_lancedb.get_table_path(folder, "usages"), force)
    tables = list(lancedb.connect(folder).list_tables().tables)
    assert tables == (["usages"] if force == "force" else [])
    if tables:
        assert lancedb.connect(folder).open_table("usages").count_rows() == index.count(WORD)
    polyseme.export(index, to=target, force=force == "force")
    assert lancedb.connect(folder).open_table("usages").count_rows() == len(index)
    assert [path.name for path in folder.iterdir()] == ["usages.lance"]  # the leftovers are gone


@pytest.mark.parametrize("force", ["new", "force"])
def test_a_killed_export_leaves_the_old_table_of_postgresql_or_none(index: Index, address: str, force: str):
    if force == "force":
        polyseme.export(index, to=address, word=WORD)
    run_killed("postgres", index, address, force)
    if force == "force":
        assert run_sql(address, "SELECT count(*) FROM usages") == [(index.count(WORD),)]
    else:
        assert run_sql(address, "SELECT to_regclass('usages')") == [(None,)]
    polyseme.export(index, to=address, force=force == "force")
    assert run_sql(address, "SELECT count(*) FROM usages") == [(len(index),)]
    assert run_sql(address, "SELECT count(*) FROM pg_class WHERE relname LIKE 'polyseme%'") == [(0,)]
