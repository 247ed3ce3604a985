"""Usages as a table of PostgreSQL, with vectors of pgvector.

    formats.vectors.usage_exports (UsageTable)  ->  integrations.postgres  ->  postgresql://HOST/DATABASE

Everything is one transaction: other sessions see the old table, or none, until the new one is complete, and
after a kill nothing is left. Statements are composed by psycopg, never from text. Passwords appear in no
message: of an address only user, host, port and database are shown.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from polyseme.errors import UsageError, require
from polyseme.formats.vectors.usage_exports import COLUMNS, VECTOR, UsageTable, Values
from polyseme.io.progress import OnProgress

SCHEMES = ("postgresql", "postgres")
PURPOSE = "Writing to PostgreSQL"
TIMEOUT = 10  # seconds to connect, unless the address says otherwise
MOST_VALUES = 16_000  # of a vector of pgvector
LONGEST_NAME = 63  # bytes; PostgreSQL would cut the rest off
SQL_TYPES = {"int64": "int8", "int32": "int4", "string": "text"}


def describe_address(address: str) -> str:
    """Return an address without its password and its options.

    Raises:
        MissingExtraError: psycopg is not installed.
        UsageError: It is not an address.

    """
    values = _parse_address(address)
    user = f"{values['user']}@" if "user" in values else ""
    port = f":{values['port']}" if "port" in values else ""
    host, socket = values.get("host", ""), ""
    if host.startswith("/"):
        host, socket = "", f"?host={host}"
    return f"postgresql://{user}{host}{port}/{values.get('dbname', '')}{socket}"


def _parse_address(address: str) -> dict[str, Any]:
    psycopg = require("psycopg", "postgres", PURPOSE)
    try:
        values = dict(psycopg.conninfo.conninfo_to_dict(address))
    except psycopg.Error:  # its message may quote the password
        values = {"host": "@"}
    # An unescaped @ or / in a password makes the rest of it a part of what would be shown.
    is_misread = any("@" in str(values.get(name, "")) for name in ("host", "port", "dbname"))
    if is_misread or not str(values.get("port", "0")).replace(",", "0").isdecimal():
        raise UsageError(
            "The address of the database cannot be read. Write postgresql://USER@HOST:PORT/DATABASE, and "
            "special characters of a password as in a URL (%40 for @, %2F for /)."
        )
    return {name: value for name, value in values.items() if value is not None}


def write_table(address: str, name: str, table: UsageTable, *, force: bool, on_progress: OnProgress) -> None:
    """Write usages as a table of a database.

    Args:
        address: A connection URI of libpq; a password can also be in PGPASSWORD or ~/.pgpass.
        name: TABLE or SCHEMA.TABLE.
        table: The usages.
        force: Replace a table of that name that an export wrote.
        on_progress: Receives the progress.

    Raises:
        MissingExtraError: psycopg or pgvector is not installed.
        UsageError: The server does not answer, or refuses; the table exists.

    """
    psycopg = require("psycopg", "postgres", PURPOSE)
    pgvector = require("pgvector.psycopg", "postgres", PURPOSE)
    shown, parts = describe_address(address), _split_name(name)
    if table.size > MOST_VALUES:
        raise UsageError(f"{shown}: pgvector holds {MOST_VALUES:,} values, but a vector has {table.size:,}.")
    with _connect(psycopg, address, shown) as connection:
        target = psycopg.sql.Identifier(*parts)
        _take_lock(connection, shown, name)
        _ensure_pgvector(psycopg, connection, shown)
        pgvector.register_vector(connection)
        replaced = _check_existing(connection, target.as_string(connection), shown, name, force)
        temporary = psycopg.sql.Identifier(*parts[:-1], f"polyseme_{secrets.token_hex(8)}")
        _fill(psycopg, connection, temporary, table, on_progress)
        if replaced:
            connection.execute(psycopg.sql.SQL("DROP TABLE {}").format(target))
        rename = psycopg.sql.SQL("ALTER TABLE {} RENAME TO {}")
        connection.execute(rename.format(temporary, psycopg.sql.Identifier(parts[-1])))
        connection.execute(psycopg.sql.SQL("ALTER TABLE {} ADD PRIMARY KEY (id)").format(target))


def _split_name(name: str) -> list[str]:
    parts = name.split(".")
    too_long = any(len(part.encode("utf-8", "replace")) > LONGEST_NAME for part in parts)
    if len(parts) > 2 or not all(parts) or not name.isprintable() or too_long:
        raise UsageError(
            f"table is {name!r:.80}, expected TABLE or SCHEMA.TABLE, at most {LONGEST_NAME} bytes each."
        )
    return parts


@contextmanager
def _connect(psycopg: ModuleType, address: str, shown: str) -> Iterator[Any]:
    """Open a connection; its transaction is committed at the end, or rolled back after an error."""
    values = {"connect_timeout": TIMEOUT, "application_name": "polyseme"} | _parse_address(address)
    try:
        connection = psycopg.connect(**values)
    except psycopg.Error as problem:
        raise UsageError(
            f"{shown}: no connection to PostgreSQL ({_summarise(problem, values)}). Check the address."
        ) from None
    try:
        with connection:
            yield connection
    except psycopg.Error as problem:
        raise UsageError(f"{shown}: PostgreSQL refused ({_summarise(problem, values)}).") from None


def _summarise(problem: Exception, values: dict[str, Any]) -> str:
    """The message of an error on one line, without a password."""
    text = " ".join(str(problem).split()) or type(problem).__name__
    for name, value in values.items():
        if "password" in name and value:
            text = text.replace(str(value), "…")
    return text[:400]


def _take_lock(connection: Any, shown: str, name: str) -> None:
    """Let one export at a time write a table; the lock ends with the transaction."""
    row = connection.execute(
        "SELECT pg_try_advisory_xact_lock(hashtext(%s))", [f"polyseme {name}"]
    ).fetchone()
    if not row[0]:
        raise UsageError(f"{shown}: another export is writing {name}. Wait until it ends.")


def _ensure_pgvector(psycopg: ModuleType, connection: Any, shown: str) -> None:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile):
        raise UsageError(f"{shown}: the server has no pgvector. Install it there (0.5 or later).") from None
    except psycopg.errors.InsufficientPrivilege:
        raise UsageError(
            f"{shown}: pgvector is not enabled. Ask an administrator for: CREATE EXTENSION vector"
        ) from None


def _check_existing(connection: Any, quoted: str, shown: str, name: str, force: bool) -> bool:
    """Whether there is a table of that name, which may be replaced."""
    found = connection.execute("SELECT to_regclass(%s)::oid", [quoted]).fetchone()[0]
    if found is None:
        return False
    if not force:
        raise UsageError(
            f"{shown}: the table {name} exists already. Choose another `table`, or `force=True` to replace "
            "it."
        )
    query = (
        "SELECT relkind = 'r', array(SELECT attname::text FROM pg_attribute"
        " WHERE attrelid = pg_class.oid AND attnum > 0) FROM pg_class WHERE oid = %s"
    )
    is_table, names = connection.execute(query, [found]).fetchone()
    if not is_table or not {*COLUMNS, VECTOR} <= set(names):
        raise UsageError(
            f"{shown}: {name} is not a table of usages, and would be lost. Choose another `table`."
        )
    return True


def _fill(
    psycopg: ModuleType, connection: Any, target: Any, table: UsageTable, on_progress: OnProgress
) -> None:
    """Create a table and copy the rows into it."""
    sql = psycopg.sql
    types = {name: SQL_TYPES[kind] for name, kind in table.types.items()}
    columns = [sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(kind)) for n, kind in types.items()]
    columns.append(sql.SQL("{} vector({})").format(sql.Identifier(VECTOR), sql.Literal(table.size)))
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(target, sql.SQL(", ").join(columns)))
    copy_from = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)").format(target)
    with connection.cursor() as cursor, cursor.copy(copy_from) as copy:
        copy.set_types([*types.values(), "vector"])
        for batch in table.read(on_progress):
            columns_without_nul = map(_replace_nul, batch.columns)
            for row in zip(*columns_without_nul, batch.vectors, strict=True):
                copy.write_row(row)


def _replace_nul(values: Values) -> Values:
    """Replace NUL, which text of PostgreSQL cannot have, by a character of the same length."""
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in values]
