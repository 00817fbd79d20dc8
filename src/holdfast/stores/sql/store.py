"""Everything durable around one writer and one reader: made without effects, then opened, then closed."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from holdfast.ports import Clock
from holdfast.stores.backup.lives import SqlLives
from holdfast.stores.boot import Boot
from holdfast.stores.keyring import Keyring
from holdfast.stores.sql.access import SqlAccess
from holdfast.stores.sql.alerts import SqlAlerts
from holdfast.stores.sql.approvals import SqlApprovals
from holdfast.stores.sql.audit import SqlAudit
from holdfast.stores.sql.bundles import SqlBundles
from holdfast.stores.sql.capabilities import SqlCapabilities
from holdfast.stores.sql.controls import SqlControls
from holdfast.stores.sql.engine import Reader, Writer
from holdfast.stores.sql.jobs import SqlJobs
from holdfast.stores.sql.labels import SqlLabels
from holdfast.stores.sql.ledger import SqlLedger
from holdfast.stores.sql.outbox import SqlOutbox
from holdfast.stores.sql.runs import SqlRuns
from holdfast.stores.sql.sessions import SqlSessions
from holdfast.stores.sql.signs import SqlSigns
from holdfast.stores.sql.slots import SqlSlots
from holdfast.stores.sql.standing import SqlPlans, SqlRules
from holdfast.stores.sql.tokens import SqlTokens
from holdfast.stores.sql.upstream_sessions import SqlUpstreamSessions
from holdfast.stores.sql.views import SqlViews
from holdfast.stores.watch import Watch
from holdfast.stores.worker import Workers


class SqlStore(ABC):
    """Its ports are there once it is open. An engine opens its connections and then calls `_serve`."""

    clock: Clock
    """Tells the time that counts here."""
    secrets: Keyring
    ledger: SqlLedger
    approvals: SqlApprovals
    controls: SqlControls
    audit: SqlAudit
    views: SqlViews
    bundles: SqlBundles
    capabilities: SqlCapabilities
    labels: SqlLabels
    runs: SqlRuns
    upstream_sessions: SqlUpstreamSessions
    slots: SqlSlots
    jobs: SqlJobs
    outbox: SqlOutbox
    tokens: SqlTokens
    access: SqlAccess
    sessions: SqlSessions
    rules: SqlRules
    plans: SqlPlans
    lives: SqlLives
    alerts: SqlAlerts
    signs: SqlSigns

    def __init__(
        self, root: Callable[[], bytes], approval_s: float, boot: Boot | None, workers: Workers | None
    ) -> None:
        """`root` tells the secret that protects payloads."""
        self._root = root
        self._approval_s = approval_s
        self._boot = boot
        self._workers = workers
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        async with AsyncExitStack() as opening:  # what was opened is closed again if the rest fails
            await self._open(opening)
            self._opened = opening.pop_all()

    async def close(self) -> None:
        """The writer first, so that everything submitted is still written."""
        await self._opened.aclose()

    @abstractmethod
    def listen(self, hear: Callable[[str], None]) -> None:
        """Tell of what other processes do, where that can be heard."""

    @abstractmethod
    async def _open(self, opening: AsyncExitStack) -> None: ...

    def _serve(
        self,
        writer: Writer,
        reader: Reader,
        watch: Watch,
        boot: Boot,
        workers: Workers,
        *,
        member: str,
        tidied: Callable[[], Awaitable[None]],
    ) -> None:
        secrets, clock = self.secrets, self.clock
        self.ledger = SqlLedger(writer, reader, secrets, clock, boot, workers, watch)
        self.approvals = SqlApprovals(writer, reader, secrets, clock, self._approval_s, workers)
        self.controls = SqlControls(writer, reader, clock)
        self.audit = SqlAudit(writer, reader, secrets, clock, workers, member=member, tidied=tidied)
        self.views = SqlViews(writer, reader, workers)
        self.bundles = SqlBundles(writer, reader, clock)
        self.capabilities = SqlCapabilities(writer, reader, clock)
        self.labels = SqlLabels(writer, reader, clock)
        self.runs = SqlRuns(writer, reader, secrets, clock)
        self.upstream_sessions = SqlUpstreamSessions(writer, reader, secrets, clock, workers)
        self.slots = SqlSlots(writer, clock, workers.id)
        self.jobs = SqlJobs(writer, reader, secrets, clock, workers)
        self.outbox = SqlOutbox(writer, reader, secrets, clock)
        self.tokens = SqlTokens(writer, reader, secrets)
        self.access = SqlAccess(writer, reader, clock)
        self.sessions = SqlSessions(writer, reader, secrets, clock)
        self.rules = SqlRules(writer, reader, secrets, clock)
        self.plans = SqlPlans(writer, reader, secrets, clock)
        self.lives = SqlLives(writer, reader, secrets, clock)
        self.alerts = SqlAlerts(writer, reader, clock)
        self.signs = SqlSigns(reader)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
