"""What must a database be able to do for Holdfast? The seam between the SQL here and what runs it.

Statements are written with SQLite's placeholders (`?`, `?1`); an engine translates them if it must. The
comment `/* FOR UPDATE */` marks a row that nobody else may change until the transaction is over: an engine
with one writer at a time has nothing to do there, another takes the lock.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, TypeVarTuple, Unpack

from holdfast.model.errors import StoreError
from holdfast.stores.recent import Recent

Row = tuple[Any, ...]
Values = Sequence[object]
Fetch = Callable[[str, Values], Awaitable[list[Row]]]
"""Reads rows, in a transaction or beside it."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

HALTED, POLICIES, CANCELLED, APPROVALS = "halts", "policies", "cancellations", "approvals"
ACCESS = "access"
"""What a transaction may ring for."""

ACTIVE_VERSION = """
SELECT version FROM promotion WHERE tenant = '*' AND ended_by IS NULL ORDER BY number DESC LIMIT 1
"""
OPEN_CHAIN = "INSERT INTO chain_head VALUES ('*', ?, 0, ?, 1, '') ON CONFLICT DO NOTHING"
HALTS = "SELECT target, halted_by, note FROM halt WHERE tenant = '*'"
REVOKED = "SELECT name, revoked_by, note FROM revocation WHERE tenant = '*'"


class AmbiguousCommit(StoreError):
    """The commit itself failed: whether it happened must be looked up."""


class Withdrawn(Exception):
    """Raised by a job that wants none of its writes kept; `answer` is still its answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer


class Transaction(Protocol):
    """What a job writes with; all of it is kept, or nothing."""

    async def run(self, statement: str, values: Values = ()) -> int:
        """How many rows it touched."""
        ...

    async def one(self, statement: str, values: Values = ()) -> Row | None:
        """Its first row."""
        ...

    async def all(self, statement: str, values: Values = ()) -> list[Row]: ...
    async def many(self, statement: str, rows: Sequence[Values]) -> None: ...

    def record(self, tenant: str, call_id: str, kind: str, at: float, body: str) -> None:
        """Add to the writer's chain; goes in last, with the rest of the transaction."""
        ...

    async def brake(self) -> None:
        """Keep every claim out until this transaction is over: it changes what they must obey."""
        ...

    async def alone(self, office: str) -> None:
        """Wait until nobody else is doing what only one may do at a time."""
        ...

    async def turn(self, tenant: str, kind: str, *, alone: bool) -> None:
        """Until this transaction is over nobody has this turn alone, or (`alone`) at all."""
        ...

    async def halts(self, names: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Who halted or revoked which of these, and why; nobody changes it until this transaction is over."""
        ...

    async def promoted(self) -> str | None:
        """The version of the policies in force, or None; as lasting as `halts`."""
        ...

    async def shred(self) -> None:
        """What is deleted from here on must not be found in free space, as far as that can be had."""
        ...

    def ring(self, what: str) -> None:
        """Wake every process that listens for it, once this is committed."""
        ...


class Reader(Protocol):
    async def all(self, tenant: str, statement: str, values: Values = ()) -> list[Row]:
        """Rows that are committed. `tenant` is whose they are: '*' for the gateway's own business."""
        ...

    async def slow(self, tenant: str, statement: str, values: Values = ()) -> list[Row]:
        """The same, out of the way of calls: this may look at many rows."""
        ...

    async def version(self) -> int | None:
        """Another number once anything was committed since; None where nobody can tell."""
        ...


class Spool(Protocol):
    """Records of this process that wait beside the database."""

    @property
    def recent(self) -> Recent: ...

    def folded(self, seq: int) -> None:
        """Everything up to this record is in the database for good."""
        ...


class Spools(Protocol):
    """Those of every process, as they are on the disk."""

    def writers(self) -> Sequence[str]:
        """The chains of which something is there."""
        ...

    async def after(self, writer: str, seq: int, most: int) -> list[Row]:
        """What follows record `seq` of a chain, up to so many."""
        ...

    def drop(self, writer: str) -> None:
        """All of it is in the database, and its worker is gone."""
        ...


class Writer(Protocol):
    @property
    def in_order(self) -> bool:
        """Whether a job that is queued later is never done before an earlier one."""
        ...

    @property
    def recent(self) -> Recent | None:
        """What this process wrote last; None where that is not kept."""
        ...

    @property
    def spool(self) -> Spool | None:
        """Where records wait that belong to no transaction; None where each is in one."""
        ...

    @property
    def spools(self) -> Spools | None: ...

    def submit(
        self,
        tenant: str,
        durable: bool,
        job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]],
        *arguments: *Ts,
    ) -> asyncio.Future[T]:
        """Run a job in a transaction; `durable`: it must survive a power cut before it is answered."""
        ...

    def submit_long(
        self, tenant: str, job: Callable[[Transaction, Unpack[Ts]], Awaitable[T]], *arguments: *Ts
    ) -> asyncio.Future[T]:
        """Run a durable job that touches many rows."""
        ...
