"""Opens a configuration, wires the ports, and carries proposals through the life of a call."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from holdfast import config as configuration
from holdfast import settlement
from holdfast.config import Config
from holdfast.gateway.wiring import Adapt, Parts, Store, assemble, functions
from holdfast.lifecycle import live, receive
from holdfast.model import defaults
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Call, Principal, Proposal
from holdfast.model.errors import Code, Forbidden, HoldfastError, NotFound, remedy
from holdfast.model.fields import FieldError
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation
from holdfast.model.scopes import covers_all
from holdfast.model.vocabulary import State
from holdfast.ports import Listing
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream

log = logging.getLogger(__name__)

Source = Config | Mapping[str, Any] | str | os.PathLike[str]
"""A configuration, a mapping of its keys, or the file it is in."""

DRAIN_S = 10.0
"""How long closing waits for calls under way; what is left then is found again by the sweep."""
FORGET_EVERY = 100
"""Sweeps between two looks for outcomes whose window is over."""


class Gateway:
    """One open gateway. `Gateway.open` makes one from a configuration; `holdfast.testing` in memory."""

    def __init__(self, parts: Parts, config: Config) -> None:
        self.config = config
        self.identity = parts.identity
        self._ports = parts.ports
        self._runtime = parts.runtime
        self._reports = parts.reports
        self._live: dict[str, tuple[Call, asyncio.Task[Observation]]] = {}
        self._closing = False
        self._housekeeping: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def open(cls, config: Source, *, adapt: Adapt | None = None) -> AsyncIterator["Gateway"]:
        """Open what the configuration describes, and close it again at the end."""
        ready = _configured(config)
        upstreams, clock = functions(ready), SystemClock()
        async with SqliteStore(ready.store_path, clock, approval_s=ready.approvals.expire_s) as store:
            gateway = cls(assemble(ready, store, upstreams, clock=clock, ids=RandomIds(), adapt=adapt), ready)
            try:
                yield gateway.start()
            finally:
                await gateway.close()

    @classmethod
    def assemble(
        cls, config: Source, store: Store, upstreams: Mapping[str, FunctionUpstream], **ports: Any
    ) -> "Gateway":
        """A gateway around parts that are open already; `start` and `close` are the caller's."""
        ready = _configured(config)
        return cls(assemble(ready, store, upstreams, **ports), ready)

    def start(self) -> "Gateway":
        if self._housekeeping is None:
            self._housekeeping = asyncio.create_task(self._keep_house(), name="holdfast-housekeeping")
        return self

    async def close(self) -> None:
        """Take nothing new, let what runs finish, and stop."""
        self._closing = True
        if self._housekeeping is not None:
            self._housekeeping.cancel()
        under_way = [task for _, task in self._live.values()]
        if under_way:
            await asyncio.wait(under_way, timeout=DRAIN_S)
        await self._runtime.close(DRAIN_S)

    # --- calls ----------------------------------------------------------------------------

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | bytes | None = None,
        *,
        principal: Principal | None = None,
        **details: Any,
    ) -> Observation:
        """Propose one call: `key`, `version`, `task`, `step`, `deadline_ms`, `if_match`, `preview`, ..."""
        return await self.propose(
            Proposal(
                tool=name,
                arguments={} if arguments is None else arguments,
                principal=principal or self.identity.at_terminal(),
                environment=self.config.environment,
                **details,
            )
        )

    async def propose(self, proposal: Proposal) -> Observation:
        """Carry a proposal through its life.

        The call lives in a task of its own: whoever waits for it may go away, a
        dispatched write is finished and written down all the same.
        """
        call = receive(proposal, self._ports)
        turned_away = self._ingress(call)
        if turned_away is not None:
            return turned_away
        task = asyncio.create_task(live(call, self._ports, self._runtime))
        self._live[call.nonce] = (call, task)
        task.add_done_callback(lambda _: self._live.pop(call.nonce, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            _stop(call)
            raise

    def unparsed(
        self, message: str, field_errors: tuple[FieldError, ...] = (), *, structural: bool = False
    ) -> Observation:
        """What a server answers when a body never became a proposal."""
        code = Code.STRUCTURAL_VIOLATION if structural else Code.SYNTACTIC_PARSE_FAIL
        return Observation(
            call_id=self._ports.ids.call(),
            tool="",
            status=Status.REFUSED,
            code=code,
            message=message,
            field_errors=field_errors,
            remedy=remedy(code),
            trace_id=self._ports.ids.trace(),
        )

    def _ingress(self, call: Call) -> Observation | None:
        """Before everything else, and without a record: this is what keeps the rest standing."""
        wait_ms = self._ports.ingress.admit(call.principal)
        if wait_ms is None and not self._closing:
            return None
        code = Code.TOOL_UNAVAILABLE if self._closing else Code.RATE_LIMITED
        text = (
            "the gateway is shutting down"
            if self._closing
            else f"too many proposals at once; wait {wait_ms} ms"
        )
        return Observation(
            call_id=call.id,
            tool=call.proposal.tool,
            status=Status.REFUSED,
            code=code,
            message=text,
            remedy=remedy(code, wait_ms or 1_000),
            trace_id=call.trace_id,
            key=call.proposal.key,
        )

    # --- looking --------------------------------------------------------------------------

    def tools(self, principal: Principal) -> list[Listing]:
        """What this principal may use, and nothing else."""
        return [
            listing
            for listing in self._ports.catalog.list()
            if covers_all(principal.scopes, listing.tool.contract.security.required_scopes)
        ]

    async def find(self, principal: Principal, call_id: str) -> Observation | None:
        """The call as the ledger knows it now; None when it is unknown or not yours."""
        found = await self._ports.ledger.find_call(principal.tenant, call_id)
        if found is None or not (found.ref.principal == principal.id or self._operates(principal)):
            return None
        if found.state is State.HELD:
            return await self._held(found)
        return settlement.current(found)

    async def _held(self, found: Operation) -> Observation:
        asked = await self._ports.approvals.find(found.ref)
        code = Code.APPROVAL_REQUIRED
        status, text = Status.HELD, "waiting for approval"
        if asked is not None and asked.answer is Answer.APPROVED:
            text = "approved; call again with the same key"
        elif asked is not None and asked.answer is not Answer.PENDING:
            status, code, text = Status.REFUSED, Code.APPROVAL_DENIED, "denied; this key stays denied"
        return Observation(
            call_id=found.call_id,
            tool=found.ref.tool,
            version=found.version,
            status=status,
            code=code,
            message=text,
            remedy=remedy(code),
            approval=None if asked is None else asked.shown(self._ports.base_url),
            trace_id=found.trace_id,
            key=found.ref.key,
            key_source=found.key_source,
        )

    def findings(self) -> list[str]:
        """What `doctor` should tell about the catalog."""
        return list(self._reports)

    async def ready(self) -> dict[str, str | bool]:
        if self._closing:
            return {"ready": False, "store": "closing"}
        try:
            await self._ports.ledger.find_call("-", "-")
        except HoldfastError as error:
            return {"ready": False, "store": str(error)}
        return {"ready": True, "store": "ok", "policy": self._ports.policy.version}

    # --- operating ------------------------------------------------------------------------

    async def settle(
        self, by: Principal, call_id: str, outcome: Literal["committed", "no-effect"], note: str
    ) -> Observation:
        """A person says what became of an operation whose outcome is unknown."""
        self._need_operator(by)
        found = await self._own(by, call_id)
        if found.orphaned:
            found = await settlement.give_up(found, self._ports)
        if found.state is not State.UNKNOWN:
            raise HoldfastError(
                f"call {call_id!r} is {found.state.value}; only an unknown outcome can be settled"
            )
        said = settlement.by_person(found, outcome == "committed", by.user, note)
        if not await self._ports.ledger.settle(found, said):
            raise HoldfastError(f"call {call_id!r} changed in the meantime; look at it again")
        return await self.find(by, call_id) or settlement.current(found)

    async def halt(self, by: Principal, target: str, note: str = "") -> None:
        """Stop `all`, an upstream, a tool or a principal, at once in every process."""
        self._need_operator(by)
        self._known_target(target)
        await self._ports.controls.halt(target, by.user, note)

    async def resume(self, by: Principal, target: str) -> bool:
        self._need_operator(by)
        return await self._ports.controls.resume(target, by.user)

    async def halts(self) -> Mapping[str, str]:
        return await self._ports.controls.halts()

    async def cancel(self, by: Principal, call_id: str) -> str:
        """Stop a call that has not acted yet; `cancelled`, `requested` of another process, or `too late`."""
        for call, _ in self._live.values():
            if call.id == call_id and (call.principal.id == by.id or self._operates(by)):
                return _stop(call)
        found = await self._own(by, call_id)
        if found.state is State.HELD:
            said = settlement.cancelled(found, by.user)
            return "cancelled" if await self._ports.ledger.settle(found, said) else "too late"
        if not found.state.running:
            return "too late"
        await self._ports.controls.request_cancel(by.tenant, call_id, by.user)
        return "requested"

    async def approvals(self, by: Principal) -> Sequence[Approval]:
        """Open questions in this tenant that `by` asked or could answer."""
        return [
            asked
            for asked in await self._ports.approvals.open(by.tenant)
            if asked.ref.principal == by.id or asked.requester == by.user or by.roles & set(asked.need)
        ]

    async def decide(self, by: Principal, approval_id: str, approve: bool, note: str = "") -> Approval:
        """Answer an approval; nobody above `user` answers their own."""
        asked = await self._ports.approvals.get(by.tenant, approval_id)
        if asked is None:
            raise NotFound(f"there is no approval {approval_id!r} here")
        role = asked.role_of(by)
        if role is None:
            wanted = ", ".join(sorted(asked.need))
            raise Forbidden(f"approval {approval_id!r} needs another person with a role of: {wanted}")
        return await self._ports.approvals.decide(asked, by, role, approve, note)

    def _operates(self, by: Principal) -> bool:
        """An operator; where there is none, the person at the terminal."""
        if "operator" in by.roles:
            return True
        return "user" in by.roles and not self._ports.people.holders(by.tenant, "operator")

    def _need_operator(self, by: Principal) -> None:
        if not self._operates(by):
            raise Forbidden(f"{by.user!r} is no operator here; this needs the role 'operator'")

    def _known_target(self, target: str) -> None:
        listings = self._ports.catalog.list()
        known = (
            {"all"}
            | {entry.upstream for entry in listings}
            | {entry.tool.contract.tool for entry in listings}
        )
        if target not in known and "/" not in target:
            raise NotFound(
                f"nothing here is called {target!r}; halt 'all', an upstream, a tool or 'user/agent'"
            )

    async def _own(self, by: Principal, call_id: str) -> Operation:
        found = await self._ports.ledger.find_call(by.tenant, call_id)
        if found is None or not (found.ref.principal == by.id or self._operates(by)):
            raise NotFound(f"there is no call {call_id!r} of yours in the ledger")
        return found

    # --- housekeeping ---------------------------------------------------------------------

    async def _keep_house(self) -> None:
        """Settle what dead workers left, obey cancellations, forget what is over."""
        turn = 0
        while True:
            try:
                await self.tidy(forget=turn % FORGET_EVERY == 0)
            except Exception:
                log.exception("housekeeping failed; it is tried again")
            turn += 1
            await self._ports.clock.sleep(defaults.SWEEP_S)

    async def tidy(self, *, forget: bool = False) -> int:
        """One round of housekeeping; returns how many operations were settled."""
        wanted = set(await self._ports.controls.cancellations())
        for call, _ in list(self._live.values()):
            if call.id in wanted:
                _stop(call)
        if forget:
            await self._ports.ledger.forget()
        return await settlement.sweep(self._ports)


def _configured(config: Source) -> Config:
    if isinstance(config, str | os.PathLike):
        return configuration.load(config)
    return config if isinstance(config, Config) else configuration.parse(config)


def _stop(call: Call) -> str:
    """Cancel what has not acted: a dispatched write is never torn down."""
    dispatched = call.work is not None
    call.cancelled = True
    if not dispatched:
        return "cancelled"
    if call.writes:
        return "too late"
    call.work.cancel()
    return "cancelled"
