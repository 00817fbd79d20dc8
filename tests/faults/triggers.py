"""A PostgreSQL whose Nth write fails, or every write while its disk is full, by the server's own hand.

A trigger on every table asks a sequence for its next number: numbers are never given back, not even by a
transaction that fails, so the Nth write fails once and the same write succeeds when it is tried again. On a
full disk a table cannot grow: whoever writes is refused, and reads go on.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

AUDIT = ("record", "chain_head", "tree_leaf", "tree_node", "tree_checkpoint")
_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'holdfast'::regnamespace"
_COUNT = """
CREATE SEQUENCE holdfast.fault;
CREATE FUNCTION holdfast.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('holdfast.fault') = {number} THEN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NULL;
END $$
"""
_ON = (
    "CREATE TRIGGER fault BEFORE INSERT OR UPDATE OR DELETE ON holdfast.{}"
    " FOR EACH STATEMENT EXECUTE FUNCTION holdfast.fail()"
)
_WHILE_FULL = """
CREATE TABLE public.full_disk ();
CREATE FUNCTION holdfast.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT 1 FROM public.full_disk) THEN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
  END IF;
  RETURN NULL;
END $$
"""
_SEEN = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM holdfast.fault"
_GONE = "DROP FUNCTION holdfast.fail() CASCADE; DROP SEQUENCE holdfast.fault"


class Writes:
    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._number = number

    async def failed(self) -> bool:
        connection = await asyncpg.connect(self._url)
        try:
            seen: int = await connection.fetchval(_SEEN)
            return seen >= self._number
        finally:
            await connection.close()


class FullDisk:
    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def fill(self) -> None:
        await self._connection.execute("INSERT INTO public.full_disk DEFAULT VALUES")

    async def make_room(self) -> None:
        await self._connection.execute("DELETE FROM public.full_disk")


@asynccontextmanager
async def full_disk(url: str) -> AsyncIterator[FullDisk]:
    """The database at `url`, whose disk may be full until the block ends."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_WHILE_FULL)
        await _put_on(connection)
        yield FullDisk(connection)
        await connection.execute("DROP FUNCTION holdfast.fail() CASCADE; DROP TABLE public.full_disk")
    finally:
        await connection.close()


async def _put_on(connection: "asyncpg.Connection[asyncpg.Record]", tables: tuple[str, ...] = ()) -> None:
    for table in tables or [row[0] for row in await connection.fetch(_TABLES)]:
        await connection.execute(_ON.format(table))


@asynccontextmanager
async def failing_write(url: str, number: int, tables: tuple[str, ...] = ()) -> AsyncIterator[Writes]:
    """Counts the writes to these tables, or to all."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(_COUNT.format(number=number))
        await _put_on(connection, tables)
        yield Writes(url, number)
        await connection.execute(_GONE)
    finally:
        await connection.close()
