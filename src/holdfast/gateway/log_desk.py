"""Who may read the log, and what do they read there?"""

from collections.abc import Sequence
from typing import BinaryIO

from holdfast.config import Config
from holdfast.gateway.auditing import ALL_TENANTS, CALL_RECORDS, Auditing, LogState
from holdfast.gateway.auditors import audits, need_auditor
from holdfast.gateway.logfile import exported
from holdfast.gateway.operators import need_operator, operates
from holdfast.gateway.recall import Recalled, recall
from holdfast.identity import Identity
from holdfast.model.call import Principal
from holdfast.model.errors import NotFound
from holdfast.model.record import Entry, Proof
from holdfast.ports import Bundles, Ports


class LogDesk:
    def __init__(
        self, config: Config, identity: Identity, ports: Ports, bundles: Bundles, auditing: Auditing
    ) -> None:
        self._config, self._identity, self._ports = config, identity, ports
        self._bundles, self._auditing = bundles, auditing

    def open_to(self, by: Principal) -> bool:
        """Whether they may read it."""
        return audits(by, self._ports.people)

    async def since(self, by: Principal, at: float, after: int, limit: int) -> Sequence[Entry]:
        """The records of `by`'s tenant from a time on, in the order of their times."""
        self._need_auditor(by)
        return await self._auditing.since(by.tenant, at, after, limit)

    async def of_call(self, by: Principal, call_id: str, after: int, limit: int) -> Sequence[Entry]:
        """The records of one call, in the order of the tree."""
        self._need_auditor(by)
        return await self._auditing.of_call(by.tenant, call_id, after, limit)

    async def before(
        self, by: Principal, at: float, leaf: int, limit: int, *, own: bool = False
    ) -> Sequence[Entry]:
        """The records of `by`'s tenant before a time and leaf, newest first; `own`: the gateway's own."""
        self._need_auditor(by)
        if own:
            need_operator(by, self._ports.people)
        return await self._auditing.before(ALL_TENANTS if own else by.tenant, at, leaf, limit)

    async def state(self, by: Principal) -> LogState:
        """How long the log is, and what was signed of it."""
        self._need_auditor(by)
        return await self._auditing.state()

    async def export(self, by: Principal, since: float | None) -> BinaryIO:
        """The tenant's records as `holdfast audit export` writes them; the file is gone once it is closed."""
        await self.note_export(by, by.tenant, since)
        await self._auditing.tidy(sign_now=True)
        return await exported(self._config, by.tenant, since)

    async def note_export(self, by: Principal, tenant: str | None, since: float | None) -> None:
        """Record that somebody takes the log away; without a tenant, everybody's."""
        self._need_auditor(by)
        if tenant != by.tenant and not self._identity.only_tenant(by.tenant):
            need_operator(by, self._ports.people)
        await self._auditing.note(tenant or ALL_TENANTS, "export", by.user, since=since)

    async def prove(self, by: Principal, record: str, *, own: bool = False) -> Proof:
        """That a record of `by`'s tenant is in the log, for somebody who sees nothing else of it.

        `own`: for an operator, of the gateway's own too.
        """
        self._need_auditor(by)
        try:
            return await self._auditing.proof(by.tenant, record)
        except NotFound:
            if not (own and operates(by, self._ports.people)):
                raise
            return await self._auditing.proof(ALL_TENANTS, record)

    async def recall(self, by: Principal, call_id: str) -> Recalled:
        """How a past call was decided, and whether it would be decided the same now."""
        entries = await self.of_call(by, call_id, -1, CALL_RECORDS)
        if not entries:
            raise NotFound(f"there are no records of a call {call_id!r} here")
        return await recall(by.tenant, call_id, entries, self._ports, self._bundles)

    async def erase(self, by: Principal, tenant: str) -> bool:
        """Make everything stored for a tenant unreadable; its proofs stay. False when nothing was kept."""
        need_operator(by, self._ports.people)
        return await self._auditing.erase(tenant, by.user)

    def _need_auditor(self, by: Principal) -> None:
        need_auditor(by, self._ports.people)
