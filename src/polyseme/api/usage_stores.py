"""Where `export` writes usages with their vectors: a Parquet file, LanceDB or PostgreSQL.

    the argument `to`  ->  api.usage_stores  ->  formats.vectors.usage_exports
                                             ->  integrations.lancedb, integrations.postgres

A target is checked before the index is opened. No message quotes what may be a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from polyseme.errors import UsageError
from polyseme.formats.vectors.usage_exports import UsageTable, write_parquet
from polyseme.integrations import lancedb, postgres
from polyseme.io.atomic import check_output_file, check_replaceable_folder
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import OnProgress
from polyseme.text.validate import check_path

TABLE = "usages"  # unless it is named
TARGETS = "a .parquet file, lancedb:DIR or postgresql://USER@HOST/DATABASE"
_DATABASE = re.compile(rf"(lancedb|{'|'.join(postgres.SCHEMES)}):(.*)", re.DOTALL)


class UsageStore(NamedTuple):
    """Where usages go.

    Attributes:
        name: What to call it: a path, or an address without password.
        write: Writes a table of usages, completely or not at all.

    """

    name: Path | str
    write: Callable[[UsageTable, OnProgress], None]


def is_database(target: str | Path) -> bool:
    """Whether a target is a database instead of a path."""
    return _DATABASE.match(str(target)) is not None


def find_store(to: str | Path, table: str | None = None, *, force: bool = False) -> UsageStore:
    """Find out where usages go, and check that they may be written there.

    Args:
        to: The target; see `TARGETS`.
        table: The table of a database.
        force: Replace a file or table that exists.

    Raises:
        MissingExtraError: PostgreSQL needs a package that is not installed.
        UsageError: It is no target, or exists.

    """
    database = _DATABASE.match(str(to))
    if database is None:
        return _find_file(str(check_path(to, "to", TARGETS)), table, force)
    text = str(to)
    name = TABLE if table is None else table
    if database[1] != "lancedb":
        shown = postgres.describe_address(text)

        def write_postgres(usages: UsageTable, on_progress: OnProgress) -> None:
            postgres.write_table(text, name, usages, force=force, on_progress=on_progress)

        return UsageStore(f"{shown}, table {name}", write_postgres)
    folder = database[2]
    if not folder or "://" in folder:
        raise UsageError("LanceDB is written to a folder: lancedb:DIR. For a bucket, write a .parquet file.")
    path = lancedb.get_table_path(Path(folder).expanduser(), name)
    check_replaceable_folder(path, force=force, known_names=lancedb.PARTS)

    def write_lancedb(usages: UsageTable, on_progress: OnProgress) -> None:
        with lock_output(path):
            lancedb.write_table(path, usages, force=force, on_progress=on_progress)

    return UsageStore(path, write_lancedb)


def _find_file(text: str, table: str | None, force: bool) -> UsageStore:
    """A Parquet file."""
    path = Path(text).expanduser()
    if "://" in text:
        raise UsageError(f"{text.partition('://')[0]}:// is not a target for usages. Use {TARGETS}.")
    if path.suffix.lower() != ".parquet":
        raise UsageError(f"{path}: not a target for usages. Use {TARGETS}.")
    if table is not None:
        raise UsageError(f"{path}: `table` has no effect with a file. Leave it out.")
    check_output_file(path, force=force)

    def write(usages: UsageTable, on_progress: OnProgress) -> None:
        with lock_output(path):
            write_parquet(path, usages, force=force, on_progress=on_progress)

    return UsageStore(path, write)
