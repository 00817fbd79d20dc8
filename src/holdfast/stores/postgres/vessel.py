"""A schema built in one transaction, in which the one in use steps aside: others see the old, then the new.

Nobody may be at work on the store: every worker holds a lock, and none can register while this has the roll.
"""

from collections.abc import Sequence

from holdfast.model.errors import StoreError
from holdfast.stores.backup.snapshot import Row, Values
from holdfast.stores.backup.tables import TABLES
from holdfast.stores.postgres.connection import LOST, Connection, connect, describe, hang_up
from holdfast.stores.postgres.dialect import said, translated
from holdfast.stores.postgres.migrate import migrate
from holdfast.stores.postgres.roll import GRACE_S, HELD, LOCKS, LOOK
from holdfast.stores.postgres.snapshot import FAILED, PATIENT, SCHEMA, SHAPES, steps_of

ASIDE = f"{SCHEMA}_restoring"
BEFORE = f"{SCHEMA}_before_"
_KEPT = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, $1)"


class PostgresVessel:
    def __init__(self, url: str, place: str) -> None:
        self._url = url
        self._place = place
        self._connection: Connection | None = None
        self._replaces = False

    async def build(self, shape: int) -> None:
        if shape not in SHAPES:
            raise StoreError(
                f"the backup has version {shape}, and this holdfast knows {max(SHAPES)} for PostgreSQL;"
                " use the holdfast it was made with, or a newer one"
            )
        try:
            self._connection = await connect(self._url, settings={**PATIENT, "holdfast.tenant": "*"})
            self._transaction = self._connection.transaction(isolation="read_committed")
            await self._transaction.start()
            await self._step_aside(self._connection)
            await migrate(self._connection, steps_of(shape))
            for table in TABLES:
                await self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - what a step put there
        except FAILED as error:
            raise self._failed(error) from error

    async def run(self, statement: str, values: Values = ()) -> int:
        text, used = said(statement, values)
        try:
            status = await self._open.execute(text, *used)
        except FAILED as error:
            raise self._failed(error) from error
        return int(status.rpartition(" ")[2]) if status[-1:].isdigit() else 0

    async def all(self, statement: str, values: Values = ()) -> list[Row]:
        text, used = said(statement, values)
        return [tuple(row) for row in await self._open.fetch(text, *used)]

    async def many(self, statement: str, rows: Sequence[Values]) -> None:
        try:
            await self._open.executemany(translated(statement)[0], rows)
        except (*FAILED, ValueError) as error:
            raise self._failed(error) from error

    async def upgrade(self) -> None:
        await migrate(self._open)

    async def kept(self) -> int:
        numbers = [name.rpartition("_")[2] for (name,) in await self._open.fetch(_KEPT, BEFORE)]
        return max((int(number) for number in numbers if number.isdecimal()), default=0)

    async def launch(self, number: int) -> str | None:
        try:
            if self._replaces:
                await self._open.execute(f"ALTER SCHEMA {ASIDE} RENAME TO {BEFORE}{number}")
            await self._transaction.commit()
        except FAILED as error:
            raise self._failed(error) from error
        return f"{self._place}, schema {BEFORE}{number}" if self._replaces else None

    async def abandon(self) -> None:
        """Closing rolls back what was not launched."""
        if self._connection is not None:
            await hang_up(self._connection)
            self._connection = None

    async def _step_aside(self, connection: Connection) -> None:
        self._replaces = await connection.fetchval("SELECT to_regclass('holdfast.worker')") is not None
        if not self._replaces:
            return
        await connection.execute("LOCK TABLE holdfast.worker IN EXCLUSIVE MODE")
        held = await connection.fetch(HELD, LOCKS)
        seen = [silent for _, silent in await connection.fetch(LOOK)]
        if held or any(silent < GRACE_S for silent in seen):
            raise StoreError(
                "a gateway has this store open, or had it a moment ago; stop every 'holdfast' process that"
                f" uses it, on every machine, and wait {GRACE_S:g} s"
            )
        await connection.execute(f"ALTER SCHEMA {SCHEMA} RENAME TO {ASIDE}")

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise StoreError("nothing is being restored")
        return self._connection

    def _failed(self, error: BaseException) -> StoreError:
        return StoreError(f"the backup cannot be loaded: {describe(error)}; nothing was touched")


async def before(url: str, number: int) -> str | None:
    """The schema that keeps what was there before the life `number`; None when there is none."""
    name = f"{BEFORE}{number}"
    try:
        connection = await connect(url)
    except LOST as error:
        raise StoreError(f"the database cannot be opened: {describe(error)}") from error
    try:
        found = await connection.fetchval("SELECT to_regclass($1)", f"{name}.schema_migration")
        return None if found is None else name
    finally:
        await hang_up(connection)
