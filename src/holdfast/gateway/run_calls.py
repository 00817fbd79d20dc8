"""How does a run make its calls? As any caller does, in the name of whoever wanted it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.chains.engine import Interrupted
from holdfast.model.call import Principal, Proposal
from holdfast.model.contract import Contract
from holdfast.model.errors import Code
from holdfast.model.observation import Observation
from holdfast.model.operation import OperationRef
from holdfast.model.run import Run
from holdfast.model.vocabulary import Environment, State
from holdfast.ports import Ports
from holdfast.settlement import current

BUSY_S = 0.25
"""Between two looks at a step that a process which is gone, or slow, has under way."""


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

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, key: str, step: str, deadline_s: float | None
    ) -> Observation:
        proposal = Proposal(
            tool=tool,
            arguments=arguments,
            principal=self._by,
            key=key,
            task=self._run.id,
            step=step,
            deadline_ms=None if deadline_s is None else max(1, round(deadline_s * 1000)),
            environment=self._environment,
            release="caller",
        )
        while True:
            if self._closing():
                raise Interrupted
            seen = await self._propose(proposal)
            if seen.code is Code.TOOL_UNAVAILABLE and self._closing():
                raise Interrupted
            if seen.code is not Code.KEY_IN_USE:
                return seen
            await self._ports.clock.sleep(BUSY_S)

    async def became(self, key: str, tool: str) -> Observation | None:
        operation = await self._ports.ledger.find(self._ref(key, tool))
        if operation is None or operation.state in (State.HELD, State.NO_EFFECT):
            return None
        return current(operation)

    async def stop(self, key: str, tool: str) -> None:
        await self._stop(self._by, self._ref(key, tool))

    def _ref(self, key: str, tool: str) -> OperationRef:
        return OperationRef(self._by.tenant, self._by.id, tool, key)
