"""The records as one tree that proves them, read by tenant."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from holdfast.model.errors import StoreError
from holdfast.model.record import Entry, Record, Use
from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.records.chain import GENESIS, Mark
from holdfast.records.merkle import Frontier, consistency_proof, inclusion_proof, root_of
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.keyring import Keyring
from holdfast.stores.recent import MOST, Recent
from holdfast.stores.sql import own, sequencer
from holdfast.stores.sql.engine import Reader, Row, Transaction, Values, Writer
from holdfast.stores.sql.sequencer import Tree
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

_Append = Callable[[Transaction, int, Sequence[Record], Frontier | None], Awaitable[Frontier | None]]

_COLUMNS = "l.leaf, r.tenant, r.writer, r.seq, r.call_id, r.kind, r.at, r.body, r.prev, r.hash"
_ENTRIES = f"SELECT {_COLUMNS} FROM tree_leaf l JOIN record r USING (tenant, writer, seq)"  # noqa: S608
BY_CALL = f"{_ENTRIES} WHERE l.tenant = ? AND l.call_id = ? AND l.leaf > ? ORDER BY l.leaf LIMIT ?"
BY_TIME = f"{_ENTRIES} WHERE l.tenant = ? AND (l.at, l.leaf) > (?, ?) ORDER BY l.at, l.leaf LIMIT ?"
BEFORE = f"{_ENTRIES} WHERE l.tenant = ? AND (l.at, l.leaf) < (?, ?) ORDER BY l.at DESC, l.leaf DESC LIMIT ?"
BY_RECORD = f"{_ENTRIES} WHERE l.tenant = ? AND l.writer = ? AND l.seq = ?"
# From one tenant to the next: a tree has many more leaves than tenants.
TENANTS = """
WITH RECURSIVE one (tenant) AS (
  SELECT min(tenant) FROM tree_leaf
  UNION ALL SELECT (SELECT min(tenant) FROM tree_leaf WHERE tenant > one.tenant) FROM one
  WHERE one.tenant IS NOT NULL
) SELECT tenant FROM one WHERE tenant IS NOT NULL
"""
USAGE = """
SELECT {tool}, r.tenant, {caller}, {agent}, count(*), max(r.at)
FROM tree_leaf l JOIN record r USING (tenant, writer, seq)
WHERE l.tenant = ? AND l.at >= ? AND r.kind = 'intent' GROUP BY 1, 2, 3, 4 ORDER BY 1, 3, 4
"""
CHECKPOINT = "SELECT note FROM tree_checkpoint WHERE tenant = '*' AND size > ? ORDER BY size DESC LIMIT 1"
REOPEN_S = 60.0
"""Between two looks for records of writers that were thought to be over."""
ROUNDS = 40
"""Batches one look takes at most; what is left waits for the next look."""


class SqlAudit:
    def __init__(
        self,
        writer: Writer,
        reader: Reader,
        secrets: Keyring,
        clock: Clock,
        workers: Workers,
        *,
        member: str,
        tidied: Callable[[], Awaitable[None]],
    ) -> None:
        """`member` reads a member of a record's body; `tidied` removes what an erasure left behind."""
        self._writer = writer
        self._reader = reader
        self._secrets = secrets
        self._clock = clock
        self._workers = workers
        self._usage = USAGE.format(**{name: member.format(name) for name in ("tool", "caller", "agent")})
        self._tidied = tidied
        self._tree = Tree(self._read)
        self._edge: Frontier | None = None  # where the tree ended when we last appended
        self._reopened_at = clock.monotonic()
        self._turn = asyncio.Lock()
        self._folding: asyncio.Task[None] | None = None
        for recent in (writer.recent, None if writer.spool is None else writer.spool.recent):
            if recent is not None:
                recent.full = self._take_in_soon

    async def sequence(self, *, others: bool = True) -> int:
        async with self._turn:
            if self._clock.monotonic() - self._reopened_at >= REOPEN_S:
                self._reopened_at = self._clock.monotonic()
                await self._writer.submit(EVERYWHERE, False, sequencer.reopen)
            known, total = await self._sequence_own()
            if not others:
                known += self._spooled_by_others()
            return total + await self._sequence_found(known)

    async def _sequence_found(self, known: Collection[str]) -> int:
        """Whatever waits of anybody `but` these."""
        total, spools = 0, self._writer.spools
        for _ in range(ROUNDS):
            pieces = await sequencer.look(self._read, self._workers.alive, known, spools)
            if not pieces:
                break
            # Durable: a checkpoint is signed over this, and a power cut must not take it back.
            done = await self._writer.submit_long(
                EVERYWHERE, sequencer.sequence, pieces, self._edge, self._clock.now()
            )
            if done is None:
                break
            taken, self._edge = done
            total += taken
            if spools is not None:
                for piece in pieces:
                    if piece.spooled and piece.over and not piece.records:  # nothing of it is left to take
                        spools.drop(piece.writer)
        return total

    def _spooled_by_others(self) -> list[str]:
        """Who lives takes in what it wrote itself."""
        spools, own = self._writer.spools, self._writer.spool
        if spools is None:
            return []
        here = None if own is None else own.recent.writer
        return [name for name in spools.writers() if name != here and self._workers.alive(name)]

    async def _sequence_own(self) -> tuple[list[str], int]:
        """Append what this process wrote itself: whose chains that is all of, and how much it was."""
        known, total = await self._fold_own()  # first: what an outcome in a transaction follows may be there
        if self._writer.recent is not None:
            done, taken = await self._appended(self._writer.recent, own.sequence_own, own.BATCH)
            known += done
            total += taken
        return known, total

    async def _fold_own(self) -> tuple[list[str], int]:
        spool = self._writer.spool
        if spool is None:
            return [], 0
        return await self._appended(spool.recent, own.fold_own, own.FOLDED, spool.folded)

    async def _appended(
        self, recent: Recent, job: _Append, size: int, told: Callable[[int], None] | None = None
    ) -> tuple[list[str], int]:
        total, new = 0, (0, GENESIS)
        for _ in range(MOST // size):
            found = await self._read(own.HEAD, (recent.writer,))
            if not found and told is None:
                return [], total
            head: Mark = tuple(found[0]) if found else new
            if told is not None:
                told(head[0])  # somebody else may have been faster
            records = recent.after(head, size)
            if records:
                edge = await self._writer.submit_long(EVERYWHERE, job, head[0], records, self._edge)
                if edge is None:
                    return [], total
                self._edge = edge
                total += len(records)
                if told is not None:
                    told(records[-1].seq)
            elif records is None:
                return [], total
            if len(records) < size:  # what came meanwhile waits for the next look
                break
        return [recent.writer], total

    def _take_in_soon(self) -> None:
        """Many wait. A look every few seconds would find thousands, and keep calls waiting for as long."""
        if self._folding is None or self._folding.done():
            taking = self._take_in(self._sequence_own)
            self._folding = asyncio.get_running_loop().create_task(taking, name="holdfast-fold")

    async def fold(self) -> None:
        """Take in what waits of this process beside the database; what cannot be is there for the next."""
        await self._take_in(self._fold_own)

    async def _take_in(self, waiting: Callable[[], Awaitable[object]]) -> None:
        try:
            async with self._turn:
                await waiting()
        except StoreError as error:
            log.warning("records wait until the database takes them: %s", error)

    async def head(self) -> tuple[int, bytes]:
        size = await self._tree.size()
        return size, await self._tree.of(lambda nodes: root_of(nodes, size))

    async def inclusion(self, leaf: int, size: int) -> Sequence[bytes]:
        return await self._tree.of(lambda nodes: inclusion_proof(nodes, leaf, size))

    async def consistency(self, first: int, second: int) -> Sequence[bytes]:
        return await self._tree.of(lambda nodes: consistency_proof(nodes, first, second))

    async def of_call(self, tenant: str, call_id: str, after: int, limit: int) -> Sequence[Entry]:
        return _entries(await self._reader.all(tenant, BY_CALL, (tenant, call_id, after, limit)))

    async def since(self, tenant: str, at: float, after: int, limit: int) -> Sequence[Entry]:
        return _entries(await self._reader.all(tenant, BY_TIME, (tenant, at, after, limit)))

    async def before(self, tenant: str, at: float, leaf: int, limit: int) -> Sequence[Entry]:
        return _entries(await self._reader.all(tenant, BEFORE, (tenant, at, leaf, limit)))

    async def find(self, tenant: str, writer: str, seq: int) -> Entry | None:
        found = _entries(await self._reader.all(tenant, BY_RECORD, (tenant, writer, seq)))
        return found[0] if found else None

    async def checkpoint(self, leaf: int) -> str | None:
        found = await self._read(CHECKPOINT, (leaf,))
        return str(found[0][0]) if found else None

    async def keep_checkpoint(self, size: int, note: str) -> None:
        await self._writer.submit(EVERYWHERE, False, sequencer.keep_checkpoint, size, note)

    async def note(self, tenant: str, act: str, by: str, *, about: str = "", **members: Any) -> None:
        now = self._clock.now()
        body = act_body(now, act, by, **members)
        await self._writer.submit(tenant, True, sequencer.note, tenant, about, "control", now, body)

    async def tenants(self) -> Sequence[str]:
        found = await self._reader.slow(EVERYWHERE, TENANTS)
        return [str(tenant) for (tenant,) in found if tenant != EVERYWHERE]

    async def usage(self, since: float) -> Sequence[Use]:
        tenants = await self._reader.slow(EVERYWHERE, TENANTS)
        return [
            Use(*row)
            for (tenant,) in tenants
            for row in await self._reader.slow(tenant, self._usage, (tenant, since))
        ]

    async def prune(self, tenant: str, before: float, anchored: int) -> int:
        total = 0
        now = self._clock.now()
        while gone := await self._writer.submit_long(tenant, sequencer.prune, tenant, before, anchored, now):
            total += gone
        return total

    async def erase(self, tenant: str, by: str) -> bool:
        gone = await self._writer.submit(tenant, True, sequencer.erase, tenant, by, self._clock.now())
        await self._tidied()
        await self.notice_erasures()
        return gone

    async def notice_erasures(self) -> None:
        kept = await self._read("SELECT tenant, wrapped FROM tenant_key")
        self._secrets.forget_but({str(tenant): wrapped for tenant, wrapped in kept})

    async def _read(self, statement: str, values: Values = ()) -> list[Row]:
        return await self._reader.all(EVERYWHERE, statement, values)


def _entries(rows: Sequence[Row]) -> list[Entry]:
    return [Entry(leaf, Record(*record)) for leaf, *record in rows]
