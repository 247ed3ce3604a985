"""`export(to=…)`: which rows a table of usages has, the Parquet file, and which targets are refused.

LanceDB and PostgreSQL are in tests/integrations/test_stores.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import polyseme
from builders import random_model, small_config
from polyseme.errors import FormatError, MissingExtraError, UnknownWordError, UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.formats.vectors.usage_exports import name_columns
from polyseme.io.progress import ProgressEvent
from polyseme.search.index import Index
from polyseme.search.statistics import write_statistics
from polyseme.search.usage_store import UsageBlockWriter, get_block_path, write_head
from polyseme.search.usage_table import make_usage_table
from programs import Ran

TEXTS = {
    "1790_whig.txt": "He sat on the river bank .\nThe bank failed , and the bank closed .\n",
    "1861_tory.txt": "她 在 河 边 。\nThe river rose .\nThe war began .\n",
}
COLUMNS = ["id", "word", "sentence", "document", "title", "line", "start", "stop"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with an index of TEXTS in several blocks."""
    monkeypatch.chdir(tmp_path)
    save_pretrained(random_model(small_config(), words=("the", "bank", "river")), tmp_path / "m")
    (tmp_path / "texts").mkdir()
    for name, text in TEXTS.items():
        (tmp_path / "texts" / name).write_text(text, encoding="utf-8")
    polyseme.index("m", "texts", "index", meta=r"(?P<year>\d{4})_(?P<line>\w+)\.txt")
    return tmp_path


@pytest.fixture
def index(folder: Path) -> Index:
    return polyseme.open_index("index", "m")


def read(path: str = "usages.parquet") -> dict[str, list[Any]]:
    return pyarrow.parquet.read_table(path).to_pydict()


def test_a_row_is_a_usage_with_its_location_its_metadata_and_its_direction(index: Index):
    written = polyseme.export(index, to="usages.parquet")
    assert (written.out, written.usages, written.words) == (
        Path("usages.parquet"),
        len(index),
        len(index.words),
    )
    rows = read()
    assert list(rows) == [*COLUMNS, "meta_line", "year", "vector"]
    assert rows["id"] == list(range(len(index)))
    for number in rows["id"]:
        usage = index.usage(number)
        assert [rows[name][number] for name in COLUMNS[1:]] == [
            *(usage.word, usage.sentence, usage.document, usage.title),
            *(usage.line, usage.start, usage.stop),
        ]
        expected = ["1790", "whig"] if "1790" in usage.document else ["1861", "tory"]
        assert [rows["year"][number], rows["meta_line"][number]] == expected
    vectors = np.array(rows["vector"], np.float32)
    np.testing.assert_array_equal(vectors, index.vectors(np.arange(len(index))))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_types_of_the_columns_are_those_that_other_programs_expect(index: Index):
    polyseme.export(index, to="usages.parquet")
    schema = pyarrow.parquet.read_schema("usages.parquet")
    size = index.head["size"]
    assert [str(field.type) for field in schema] == [
        *("int64", "string", "string", "string", "string", "int32", "int32", "int32", "string", "string"),
        f"fixed_size_list<element: float>[{size}]",
    ]


def test_the_exported_vectors_have_the_neighbours_of_our_own_search(index: Index):
    polyseme.export(index, to="usages.parquet")
    vectors = np.array(read()["vector"], np.float32)
    for word, sentence in (("bank", "The bank rose ."), ("river", "the river"), ("war", "The war failed .")):
        query = index.query_vector(word, sentence)
        order = np.argsort(-(vectors @ query), kind="stable")[:10]
        nearest = index.usages(word, sentence, 10)
        np.testing.assert_allclose(vectors[order] @ query, [usage.cosine for usage in nearest], atol=1e-5)
        assert order.tolist() == [usage.number for usage in nearest]


def test_without_correction_the_vectors_are_those_of_the_model(folder: Path):
    polyseme.export("index", to="usages.parquet", uncorrected=True)
    raw = polyseme.open_index("index").raw_vectors(np.arange(3))
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    np.testing.assert_allclose(read()["vector"][:3], expected, atol=1e-6)


def test_a_usage_without_a_direction_is_written_as_zeros(folder: Path, monkeypatch: pytest.MonkeyPatch):
    index = polyseme.open_index("index")
    index.lengths = index.lengths.copy()
    index.lengths[4] = np.inf  # as for a vector that equals the centre of the space: its cosines are 0
    polyseme.export(index, to="usages.parquet")
    lengths = np.linalg.norm(read()["vector"], axis=1)
    assert np.flatnonzero(lengths == 0).tolist() == [4]


def test_words_documents_and_counts_select_the_usages(index: Index):
    everything = [index.usage(number) for number in range(len(index))]

    def exported(**selection: Any) -> list[int]:
        polyseme.export(index, to="usages.parquet", force=True, **selection)
        return list(read()["id"])

    assert exported(word="bank") == [u.number for u in everything if u.word == "bank"]
    assert exported(documents="year=1861") == [u.number for u in everything if "1861" in u.document]
    assert exported(word="river", documents="2") == [
        u.number for u in everything if u.word == "river" and "1861" in u.document
    ]
    assert exported(min_count=2) == [u.number for u in everything if index.count(u.word) >= 2]
    with pytest.raises(UnknownWordError, match="Did you mean river"):
        exported(word="rivers")
    with pytest.raises(UsageError, match=r"No word has 99 usages. Lower `min_count`"):
        exported(min_count=99)


def test_small_batches_give_the_same_rows(index: Index):
    (whole,) = make_usage_table(index).batches
    parts = list(make_usage_table(index, batch_bytes=3 * 4 * index.head["size"]).batches)
    assert max(len(part.vectors) for part in parts) == 3
    np.testing.assert_allclose(np.concatenate([part.vectors for part in parts]), whole.vectors, atol=1e-6)
    for number, values in enumerate(whole.columns):
        assert [value for part in parts for value in part.columns[number]] == list(values)


def test_metadata_never_takes_the_name_of_another_column():
    assert list(name_columns(["id", "meta_id", "vector"]))[8:] == ["meta_id", "meta_meta_id", "meta_vector"]


def test_progress_is_reported_and_an_error_leaves_no_file(index: Index):
    events: list[ProgressEvent] = []
    polyseme.export(index, to="usages.parquet", progress=events.append)
    assert (events[-1].stage, events[-1].done, events[-1].total) == ("exporting", len(index), len(index))

    def stop(event: ProgressEvent) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        polyseme.export(index, to="other.parquet", progress=stop)
    assert not [path for path in Path.cwd().iterdir() if "other" in path.name]


def test_a_damaged_index_leaves_no_file(folder: Path):
    index = polyseme.open_index("index")
    index.listed_documents = index.listed_documents[:1]
    with pytest.raises(FormatError, match="a document is not listed"):
        polyseme.export(index, to="usages.parquet")
    assert not [path for path in Path.cwd().iterdir() if "usages" in path.name]


PASSWORD = "hunter2"
BAD_TARGETS: list[tuple[dict[str, Any], str]] = [
    ({}, "Name either `out`"),
    ({"out": "words.vec", "to": "usages.parquet"}, "Name either `out`"),
    ({"out": "usages.parquet"}, "For all usages, pass it as `to`"),
    ({"out": f"postgresql://me:{PASSWORD}@host/db"}, "Pass it as `to`"),
    ({"out": Path(f"postgresql://me:{PASSWORD}@host/db")}, "Pass it as `to`"),
    ({"out": "lancedb:db"}, "Pass it as `to`"),
    ({"out": "words.vec", "table": "x"}, "`table` has no effect without `to`"),
    ({"to": "usages.feather"}, "not a target for usages. Use a .parquet file, lancedb:DIR or postgresql:"),
    ({"to": ""}, "not a target for usages"),
    ({"to": f"mysql://me:{PASSWORD}@host/db"}, "mysql:// is not a target for usages"),
    ({"to": f"postgresql+psycopg://me:{PASSWORD}@host/db"}, "psycopg:// is not a target"),
    ({"to": "s3://bucket/usages.parquet"}, "s3:// is not a target"),
    ({"to": 7}, "to is of type int"),
    ({"to": "usages.parquet", "table": "x"}, "`table` has no effect with a file"),
    ({"to": "usages.parquet", "format": "word2vec"}, "`format` has no effect with `to`"),
    ({"to": "texts", "force": True}, "not a target for usages"),
    ({"to": "lancedb:"}, "lancedb:DIR"),
    ({"to": "lancedb:s3://bucket/db"}, "For a bucket, write a .parquet file"),
    ({"to": "lancedb:db", "table": "../up"}, "table is '../up', expected letters"),
    ({"to": f"postgresql://me:{PASSWORD}/x@host/db"}, "%2F for /"),
    ({"to": f"postgresql://me:x@{PASSWORD}@host/db"}, "%40 for @"),
    ({"to": f"postgresql://me:%zz{PASSWORD}@host/db"}, "cannot be read"),
    ({"to": f"postgresql:/me:{PASSWORD}@host/db"}, "cannot be read"),
    ({"to": f"postgresql://me:{PASSWORD}@host/db?passwort={PASSWORD}"}, "cannot be read"),
    ({"to": f"postgresql://me:{PASSWORD}@127.0.0.1:1/db"}, "me@127.0.0.1:1/db: no connection to PostgreSQL"),
    ({"to": f"postgres://127.0.0.1:1/db?password={PASSWORD}"}, "127.0.0.1:1/db: no connection to PostgreSQL"),
    ({"to": f"postgresql://me:{PASSWORD}@no-such-host.invalid/db"}, "no connection to PostgreSQL"),
    ({"to": "postgresql://127.0.0.1:1/db", "table": "a.b.c"}, "expected TABLE or SCHEMA.TABLE"),
    ({"to": "postgresql://127.0.0.1:1/db", "table": "x" * 64}, "at most 63 bytes"),
    ({"to": "postgresql://127.0.0.1:1/db", "table": "x\0y"}, "expected TABLE"),
    ({"to": "postgresql://127.0.0.1:1/db", "table": ""}, "expected TABLE"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_TARGETS, ids=lambda value: str(value)[:60])
def test_a_bad_target_is_one_line_without_the_password(arguments: dict[str, Any], message: str, folder: Path):
    before = sorted(folder.rglob("*"))
    with pytest.raises(UsageError) as refused:
        polyseme.export("index", **arguments)
    assert message in str(refused.value)
    assert PASSWORD not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    assert sorted(folder.rglob("*")) == before


def test_only_an_index_has_usages(folder: Path):
    with pytest.raises(UsageError, match=r"en-classic: `to` needs an index. Build one"):
        polyseme.export("en-classic", to="usages.parquet")
    assert not Path("usages.parquet").exists()


def test_what_exists_is_replaced_with_force_only(index: Index):
    polyseme.export(index, to="usages.parquet", word="bank")
    with pytest.raises(UsageError, match=r"usages.parquet: exists already"):
        polyseme.export(index, to="usages.parquet")
    assert len(read()["id"]) == 3
    polyseme.export(index, to="usages.parquet", force=True)
    assert len(read()["id"]) == len(index)
    Path("folder.parquet").mkdir()
    with pytest.raises(UsageError, match="is a folder, but a file will be written"):
        polyseme.export(index, to="folder.parquet", force=True)


@pytest.mark.parametrize(
    ("module", "to", "command"),
    [
        ("pyarrow", "x.parquet", r'Writing x.parquet needs pyarrow: pip install "polyseme\[parquet\]"'),
        ("lancedb", "lancedb:db", r'Writing to LanceDB needs lancedb: pip install "polyseme\[lancedb\]"'),
        (
            "psycopg",
            "postgresql://127.0.0.1:1/db",
            r'Writing to PostgreSQL needs psycopg: pip install "polyseme\[postgres\]"',
        ),
    ],
)
def test_a_missing_extra_is_named(module: str, to: str, command: str, folder: Path, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=command):
        polyseme.export("index", to=to)
    assert {path.name for path in folder.iterdir()} == {"m", "texts", "index"}


def test_the_command_writes_usages_and_refuses_in_its_own_terms(
    run: Callable[..., Ran], folder: Path, index: Index
):
    written = run("export", "index", "--to", "usages.parquet")
    assert written.out == f"usages.parquet: {len(index)} usages of {len(index.words)} words\n"
    ran = run("export", "index", "--to", "bank.parquet", "--word", "bank")
    assert ran.out == "bank.parquet: 3 usages of bank\n"
    for arguments, message in (
        (["--to", "usages.parquet"], "--force"),
        (["usages.parquet"], "pass it as --to"),
        ([], "Name either `out`"),
        (["--to", f"postgresql://me:{PASSWORD}@127.0.0.1:1/db"], "no connection to PostgreSQL"),
        ([f"postgresql://me:{PASSWORD}@127.0.0.1:1/db"], "Pass it as --to"),
        (["--to", "lancedb:db", "--format", "word2vec"], "--format has no effect with --to"),
    ):
        refused = run("export", "index", *arguments)
        assert refused.code == 2
        assert message in refused.err
        assert PASSWORD not in refused.err
        assert len(refused.err.strip().splitlines()) == 1


MEASURE = """
import resource, sys, polyseme
index = polyseme.open_index(sys.argv[1])
polyseme.export(index, to=sys.argv[2], progress=False)
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def write_large_index(folder: Path, blocks: int) -> Path:
    """An index of random vectors of 512 values, 20,000 usages in each block."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(blocks):
        writer = UsageBlockWriter(get_block_path(folder, number), 512)
        for line in range(5_000):
            writer.add(
                "the bank failed .", 0, line, ["the", "bank", "failed", "."], [0, 4, 9, 16], [3, 8, 15, 17]
            )
            writer.add_vectors(rng.standard_normal((4, 512), np.float32).astype(np.float16))
        writer.close()
    head: dict[str, Any] = {
        "polyseme_index": 1,
        "model": "",
        "layer": "top",
        "segment": "split",
        "view": "word",
    }
    head |= {"space": "centre", "size": 512, "documents": ["a.txt"], "corpora": [{"content": ""}]}
    head["blocks"] = [{"usages": 20_000, "corpus": 0}] * blocks
    write_head(folder, head)
    write_statistics(folder, head)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_index(tmp_path: Path):
    peaks = []
    for blocks in (3, 12):
        index, out = write_large_index(tmp_path / f"{blocks}", blocks), tmp_path / f"{blocks}.parquet"
        command = [sys.executable, "-c", MEASURE, str(index), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) >> 10)
        assert out.stat().st_size > blocks * 20_000 * 512 * 3  # bytes; four per value before compression
    assert peaks[1] - peaks[0] < 60, peaks
