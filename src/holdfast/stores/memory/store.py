"""A whole store that ends with the process."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from holdfast.model import defaults
from holdfast.ports import Clock
from holdfast.records.chain import Chain, Record
from holdfast.stores.boot import Boot
from holdfast.stores.keyring import DictTenantKeys, Keyring
from holdfast.stores.memory.access import MemoryAccess
from holdfast.stores.memory.alerts import MemoryAlerts
from holdfast.stores.memory.approvals import MemoryApprovals
from holdfast.stores.memory.audit import MemoryAudit
from holdfast.stores.memory.bundles import MemoryBundles
from holdfast.stores.memory.capabilities import MemoryCapabilities
from holdfast.stores.memory.controls import MemoryControls
from holdfast.stores.memory.jobs import MemoryJobs
from holdfast.stores.memory.labels import MemoryLabels
from holdfast.stores.memory.ledger import MemoryLedger
from holdfast.stores.memory.outbox import MemoryOutbox
from holdfast.stores.memory.runs import MemoryRuns
from holdfast.stores.memory.sessions import MemorySessions
from holdfast.stores.memory.shelf import Shelf
from holdfast.stores.memory.signs import MemorySigns
from holdfast.stores.memory.standing import MemoryPlans, MemoryRules
from holdfast.stores.memory.tokens import MemoryTokens
from holdfast.stores.memory.upstream_sessions import MemoryUpstreamSessions
from holdfast.stores.memory.views import MemoryViews
from holdfast.stores.worker import Workers


class OneBoot:
    """A machine that was started once, and whose time is the clock's."""

    id = "memory"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.monotonic()


class OneWorker:
    """The only worker there is."""

    id = "w_memory"

    def alive(self, worker: str) -> bool:
        return worker == self.id

    def leads(self) -> bool:
        return True


class MemoryStore:
    lives = None  # it ends with the process, and nobody puts it back

    def __init__(
        self,
        clock: Clock,
        *,
        approval_s: float = defaults.APPROVAL_S,
        boot: Boot | None = None,
        workers: Workers | None = None,
    ) -> None:
        worker = workers or OneWorker()
        self._shelf = Shelf(Chain(worker.id))
        keys = DictTenantKeys()
        self.secrets = Keyring(tenant_keys=keys)
        self.ledger = MemoryLedger(self._shelf, self.secrets, clock, boot or OneBoot(clock), worker)
        self.approvals = MemoryApprovals(self._shelf, clock, approval_s, worker)
        self.controls = MemoryControls(self._shelf, clock)
        self.audit = MemoryAudit(self._shelf, self.secrets, keys, clock)
        self.views = MemoryViews(self.audit)
        self.bundles = MemoryBundles(self._shelf, clock)
        self.capabilities = MemoryCapabilities(self._shelf)
        self.labels = MemoryLabels(self._shelf, clock)
        self.runs = MemoryRuns(self._shelf, clock)
        self.upstream_sessions = MemoryUpstreamSessions(self._shelf, clock, worker)
        self.jobs = MemoryJobs(self._shelf, clock, worker)
        self.outbox = MemoryOutbox(self._shelf, clock)
        self.tokens = MemoryTokens(self.secrets)
        self.sessions = MemorySessions(clock)
        self.rules = MemoryRules(self._shelf, clock)
        self.plans = MemoryPlans(self._shelf, clock)
        self.access = MemoryAccess(self._shelf, clock)
        self.alerts = MemoryAlerts(self._shelf, clock)
        self.signs = MemorySigns(self.views)

    @property
    def records(self) -> list[Record]:
        return list(self._shelf.records)

    def listen(self, hear: Callable[[str], None]) -> None:
        """There is no other process."""

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
