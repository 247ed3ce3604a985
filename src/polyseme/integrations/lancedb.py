"""Usages as a table of LanceDB, a vector database in a folder.

    formats.vectors.usage_exports (UsageTable)  ->  integrations.lancedb  ->  DIR/TABLE.lance

LanceDB lists a table whose writing failed. So the table is written in a temporary folder, and moved into the
database when it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.errors import UsageError, require
from polyseme.formats.vectors.usage_exports import UsageTable, make_record_batch, make_schema
from polyseme.io.atomic import new_folder
from polyseme.io.progress import OnProgress

PURPOSE = "Writing to LanceDB"
ENDING = ".lance"
PARTS = ("_deletions", "_indices", "_refs", "_transactions", "_versions", "data", "tree")  # of a table
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")


def get_table_path(folder: Path, name: str) -> Path:
    """Return the folder of a table.

    Raises:
        UsageError: LanceDB has no tables of such a name.

    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"table is {name!r:.60}, expected letters from A to Z, digits, _ and -.")
    return folder / f"{name}{ENDING}"


def write_table(path: Path, table: UsageTable, *, force: bool, on_progress: OnProgress) -> None:
    """Write usages as a table of a database, which is created if it does not exist.

    Args:
        path: The folder of the table; see `get_table_path`.
        table: The usages.
        force: Replace a table of that name.
        on_progress: Receives the progress.

    Raises:
        MissingExtraError: lancedb is not installed.
        UsageError: The table exists, or cannot be written.

    """
    lancedb = require("lancedb", "lancedb", PURPOSE)
    arrow = require("pyarrow", "lancedb", PURPOSE)
    schema, problems = make_schema(arrow, table), list[BaseException]()
    stopped = False

    def read() -> Iterator[Any]:  # in a thread of LanceDB, which would wrap what is raised
        try:
            for batch in table.read(on_progress):
                if stopped:
                    return
                yield make_record_batch(arrow, schema, batch)
        except BaseException as problem:
            problems.append(problem)
            raise

    with new_folder(path, force=force, known_names=PARTS) as temporary:
        reader = arrow.RecordBatchReader.from_batches(schema, read())
        try:
            lancedb.connect(temporary).create_table(path.stem, data=reader, schema=schema)
        except (RuntimeError, OSError, ValueError) as problem:
            if problems:
                raise problems[0] from None
            raise UsageError(f"{path}: LanceDB could not write it ({problem!s:.300}).") from None
        finally:
            stopped = True  # after Ctrl-C, too
        written = temporary / path.name
        for entry in written.iterdir():
            entry.rename(temporary / entry.name)
        written.rmdir()
