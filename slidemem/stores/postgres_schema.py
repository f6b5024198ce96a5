"""Decides which version of tables and functions a PostgreSQL store has, and how an older one becomes a newer one.

Whoever comes first upgrades, under an advisory lock and in one transaction; whoever comes later finds it done. A
role that may not is needed only where there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from typing import Any, Final

from slidemem.errors import StoreError

Run = Callable[..., Awaitable[Sequence[Sequence[Any]]]]  # a statement, and its parameters: rows

_TABLES: Final = ("postgres_tables.sql",)  # each makes version n + 1 of version n
_FUNCTIONS: Final = "postgres.sql"  # of the newest version
_LOCK: Final = 0x736C6D6D  # "slmm"


async def prepare(run: Run, schema: str, where: str) -> None:
    """Bring a schema to the newest version.

    Args:
        run: runs a statement on one connection in autocommit.
        schema: its name.
        where: the database, for errors.

    Raises:
        StoreError: it is of a newer slidemem.
    """
    if await _version(run, schema, where) == len(_TABLES):
        return
    await run("BEGIN")
    try:
        await run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = await _version(run, schema, where)
        if found < len(_TABLES):
            await _upgrade(run, schema, found)
        await run("COMMIT")
    except BaseException:
        await run("ROLLBACK")
        raise


async def _version(run: Run, schema: str, where: str) -> int:
    """The version of a schema; 0 when it is not there."""
    # a look into the catalog itself: to_regclass may answer from before another's lock was given up
    tables = "SELECT count(*) FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'version'"
    ((there,),) = await run(tables, (schema,))
    if not there:
        return 0
    ((found,),) = await run(_of(schema, "SELECT version FROM SCHEMA.version"))
    if found > len(_TABLES):
        reason = f"the schema {schema} is of version {found} and this slidemem knows versions up to {len(_TABLES)}"
        raise StoreError(where, reason, "upgrade slidemem, or give it another prefix")
    return int(found)


async def _upgrade(run: Run, schema: str, found: int) -> None:
    ((there,),) = await run("SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = %s", (schema,))
    if not there:  # CREATE ... IF NOT EXISTS asks for the right even where it is
        await run(_of(schema, "CREATE SCHEMA SCHEMA."))
    for name in (*_TABLES[found:], _FUNCTIONS):
        await run(_of(schema, (files("slidemem.stores") / name).read_text("utf-8")))
    await run(_of(schema, "CREATE TABLE IF NOT EXISTS SCHEMA.version(version int NOT NULL)"))
    await run(_of(schema, "DELETE FROM SCHEMA.version"))
    await run(_of(schema, "INSERT INTO SCHEMA.version VALUES (%s)"), (len(_TABLES),))


def _of(schema: str, statement: str) -> str:
    return statement.replace("CREATE SCHEMA SCHEMA.", f"CREATE SCHEMA {schema}").replace("SCHEMA.", f"{schema}.")
