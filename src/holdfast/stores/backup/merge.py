"""What happened between the backup and its return? Everything a lost store knows, taken over once or again.

Each part can be taken a second time without harm: whoever is interrupted starts again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.stores.backup import accounts, holdings
from holdfast.stores.backup.given import take_given
from holdfast.stores.backup.operations import Taken, take_operations
from holdfast.stores.backup.questions import take_approvals
from holdfast.stores.backup.rows import Table, table
from holdfast.stores.backup.snapshot import Row, Snapshot
from holdfast.stores.backup.standing import take_standing
from holdfast.stores.backup.tail import head, take_tail
from holdfast.stores.backup.upstream_sessions import take_lines, take_sessions
from holdfast.stores.sql.engine import Reader, Transaction, Writer
from holdfast.stores.sql.sequencer import Tree

_HELD = (
    "SELECT {}, o.epoch, o.nonce FROM reservation r"
    " LEFT JOIN operation o ON o.tenant = r.tenant AND o.call_id = r.call_id"
)
_HELD_HERE = "SELECT DISTINCT tenant, call_id, owner, at FROM reservation"
_ATTEMPT = "SELECT epoch, nonce FROM operation WHERE tenant = ? AND call_id = ?"


Job = Callable[[Transaction, Table, Sequence[Row]], Awaitable[Any]]


@dataclass(slots=True)
class Merged:
    """What one source added."""

    source: str
    operations: int = 0
    unknown: int = 0
    approvals: int = 0
    tenants: int = 0
    erased: int = 0
    tokens: int = 0
    records: int = 0
    halts: list[str] = field(default_factory=list)
    promotions: list[str] = field(default_factory=list)
    promoted: bool = True
    """Whether these are in force again."""
    unreadable: int = 0
    """Calls an export tells of without saying which operation they were."""
    log_fault: str | None = None
    """Why the log could not be continued to its old end."""


class Merge:
    """Takes over what one source has; `since` is when the store here began its new life."""

    def __init__(self, source: Snapshot, writer: Writer, reader: Reader, since: float, now: float) -> None:
        self._source = source
        self._writer = writer
        self._reader = reader
        self._since = since
        self._now = now
        self._merged = Merged(source.place)

    async def run(self) -> Merged:
        size, _ = await head(self._reader)
        older = await Tree(self._source.all).size() < size  # it knows less than the backup did
        if not older:
            await self._keys()
        await self._operations(_add if older else take_approvals)
        await self._rest()
        tail = await take_tail(self._source, self._writer, self._reader)
        self._merged.records, self._merged.log_fault = tail
        return self._merged

    async def _keys(self) -> None:
        there: dict[str, bytes] = dict(await self._source.all("SELECT tenant, wrapped FROM tenant_key"))
        erased = frozenset(tenant for (tenant,) in await self._source.all(holdings.ERASED))
        born, gone = await self._writer.submit("*", True, holdings.take_keys, there, erased, self._now)
        self._merged.tenants, self._merged.erased = born, gone

    async def _operations(self, approvals: Job) -> None:
        operations, taken = await table(self._source, "operation"), Taken()
        async for rows in self._source.stream(operations.select):
            taken = taken.plus(
                await self._writer.submit_long("*", take_operations, operations, rows, self._since, self._now)
            )
        self._merged.operations, self._merged.unknown = taken
        await self._each("job", _add)  # what goes on at an upstream is followed here from now on
        await self._each("upstream_session", take_sessions)
        await self._each("upstream_session_line", take_lines)
        self._merged.approvals = sum(await self._each("approval", approvals))
        await self._each("vote", _add)
        await self._reservations()
        await self._each("budget", accounts.take_budgets)
        await self._writer.submit_long("*", accounts.sum_reserved)

    async def _reservations(self) -> None:
        held: list[accounts.Attempt] = []
        for tenant, call_id, owner, at in await self._reader.all("*", _HELD_HERE):
            found = await self._source.all(_ATTEMPT, (tenant, call_id))
            if found:
                held.append((tenant, call_id, *found[0]))
            elif owner and at < self._since:
                held.append((tenant, call_id, None, None))
        await self._writer.submit_long("*", accounts.drop_reservations, held)
        reservations = await table(self._source, "reservation")
        names = ", ".join(f"r.{name}" for name in reservations.columns)
        async for rows in self._source.stream(_HELD.format(names)):
            given = [(row[:-2], (row[0], row[1], row[-2], row[-1])) for row in rows]
            await self._writer.submit_long("*", accounts.take_reservations, reservations, given)

    async def _rest(self) -> None:
        await self._each("rate", accounts.take_rates)
        await self._each("cancel", _add)
        for name in ("standing_rule", "plan", "plan_step"):
            await self._each(name, take_standing)
        for name in ("access_key", "access_grant", "revocation"):
            await self._each(name, take_given)
        await self._each("session_label", _add)  # what was lifted there and is held here stays held
        self._merged.tokens = sum(await self._each("token", holdings.take_tokens))
        for pulled in await self._each("halt", holdings.take_halts):
            self._merged.halts += pulled
        bundles, promotions = await table(self._source, "bundle"), await table(self._source, "promotion")
        kept = await self._source.all(bundles.select)
        promoted = await self._source.all(f"{promotions.select} ORDER BY number")
        self._merged.promotions, self._merged.promoted = await self._writer.submit(
            "*", True, holdings.take_promotions, (bundles, kept), (promotions, promoted)
        )

    async def _each(self, name: str, job: Job) -> list[Any]:
        """What `job` says of each batch of a table's rows."""
        whole = await table(self._source, name)
        return [
            await self._writer.submit_long("*", job, whole, rows)
            async for rows in self._source.stream(whole.select)
        ]


async def _add(transaction: Transaction, table: Table, rows: Sequence[Row]) -> int:
    return await table.add(transaction, rows)
