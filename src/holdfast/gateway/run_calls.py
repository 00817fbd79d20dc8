"""How does a run make its calls? As any caller does, in the name of whoever wanted it."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from holdfast.chains.calls import StepCall
from holdfast.chains.engine import Interrupted
from holdfast.model.call import Principal, Proposal
from holdfast.model.contract import Contract
from holdfast.model.errors import Code, StoreError
from holdfast.model.messages import STORE_AWAY
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import OperationRef
from holdfast.model.run import Run
from holdfast.model.upstream_session import SessionState
from holdfast.model.vocabulary import Environment, State
from holdfast.ports import Ports, partner
from holdfast.settlement import current, settle_taken_back

BUSY_S = 0.25
"""Between two looks at a step that a process which is gone, or slow, has under way."""
UNSENT = 3
"""So often a step is proposed again whose time was over, as while the store was away, before it was begun."""


class RunCalls:
    """Implements `chains.calls.Calls`."""

    def __init__(
        self,
        run: Run,
        by: Principal,
        ports: Ports,
        environment: Environment,
        propose: Callable[[Proposal], Awaitable[Observation]],
        stop: Callable[[Principal, OperationRef], Awaitable[None]],
        closing: Callable[[], bool],
    ) -> None:
        """`closing`: whether this process takes nothing new, which says nothing of the run."""
        self._run = run
        self._by = by
        self._ports = ports
        self._environment = environment
        self._propose = propose
        self._stop = stop
        self._closing = closing

    def contract(self, tool: str, version: str | None) -> Contract | None:
        listing = self._ports.catalog.find(tool, version)
        return None if listing is None else listing.tool.contract

    async def call(self, wanted: StepCall) -> Observation:
        origin = self._run.origin
        proposal = Proposal(
            tool=wanted.tool,
            arguments=wanted.arguments,
            principal=self._by,
            key=wanted.key,
            task=self._run.id,
            step=wanted.step,
            environment=self._environment,
            release="caller",
            trace_id=None if origin is None else origin.trace_id,
            parent=None if origin is None else origin.parent,
            part_of=self._run.call_id,
            after=wanted.after,
        )
        clock, deadline_s = self._ports.clock, wanted.deadline_s
        ends_at = math.inf if deadline_s is None else clock.monotonic() + deadline_s
        for _ in range(UNSENT + 1):
            left = ends_at - clock.monotonic()
            left_ms = None if deadline_s is None else max(1, round(left * 1000))
            seen = await self._proposed(proposal._replace(deadline_ms=left_ms))
            if not _is_unsent(seen) or clock.monotonic() >= ends_at:
                break
        return seen

    async def _proposed(self, proposal: Proposal) -> Observation:
        """What came of it; while another process has it under way it is waited for."""
        while True:
            if self._closing():
                raise Interrupted
            seen = await self._propose(proposal)
            if seen.code is Code.TOOL_UNAVAILABLE and self._closing():
                raise Interrupted
            if seen.code is Code.RESOURCE_EXHAUSTED and (seen.message or "").startswith(STORE_AWAY):
                raise StoreError(f"step {proposal.step!r}: {seen.message}")  # which is no failure of the step
            if seen.code is not Code.KEY_IN_USE:
                return seen
            await self._ports.clock.sleep(BUSY_S)

    def partner(self, namespace: str, session: str, role: str) -> Contract | None:
        return partner(self._ports.catalog.list(), namespace, session, role)

    async def roll_back(self, session_id: str, why: str) -> SessionState | None:
        tenant, sessions, ending = self._by.tenant, self._ports.upstream_sessions, self._ports.session_ending
        if sessions is None or ending is None:
            return None
        await ending.roll_back(tenant, session_id, why)
        found = await sessions.get(tenant, session_id)
        return None if found is None else found.state

    async def became(self, key: str, tool: str) -> Observation | None:
        for name in self._stand_ins(tool):  # at most one of them has acted
            operation = await self._ports.ledger.find(self._ref(key, name))
            if operation is not None and operation.state not in (State.HELD, State.NO_EFFECT):
                return current(operation)
        return None

    async def arguments_of(self, key: str, tool: str) -> Any:
        operation = await self._ports.ledger.find(self._ref(key, tool))
        kept = None if operation is None else operation.payload
        return None if kept is None else orjson.loads(kept)["arguments"]

    async def taken_back(self, key: str, tool: str, by: str) -> None:
        operation = await self._ports.ledger.find(self._ref(key, tool))
        if operation is not None:
            await settle_taken_back(operation, by, "run", self._ports.ledger)

    async def stop(self, key: str, tool: str) -> None:
        for name in self._stand_ins(tool):
            await self._stop(self._by, self._ref(key, name))

    def _stand_ins(self, tool: str) -> list[str]:
        """A tool, and those that it may have fallen back on."""
        known = self._ports.capabilities
        able = known.get(tool)
        others = [] if able is None else [name for name, one in known.items() if one == able and name != tool]
        return [tool, *others]

    def _ref(self, key: str, tool: str) -> OperationRef:
        return OperationRef(self._by.tenant, self._by.id, tool, key)


def _is_unsent(seen: Observation) -> bool:
    """Its time was over and nothing was tried, which is no failure of the step."""
    return seen.status is Status.FAILED and seen.code is Code.TIMEOUT and not seen.attempts
