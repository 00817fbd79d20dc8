"""What is known of one call on its way down the levels of its capability?"""

from copy import copy
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from holdfast.gateway.ladder import Ladder, Level
from holdfast.model.attendance import Attendance
from holdfast.model.call import Call, Proposal
from holdfast.model.canonical import NotCanonical, digest, fingerprint
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.fallback import Standing, Tried
from holdfast.model.keys import well_formed
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import OperationRef
from holdfast.model.strict_json import Limits, ParseError, parse
from holdfast.model.tool import Tool
from holdfast.model.visible import visible
from holdfast.model.vocabulary import Effect, SafetyMode
from holdfast.ports import Place, Ports

_REFUSED = frozenset({Code.TOOL_UNAVAILABLE, Code.TOOL_QUARANTINED, Code.RATE_LIMITED})
_FAILED = frozenset(
    {
        Code.DEPENDENCY_UNAVAILABLE,
        Code.TOOL_UNAVAILABLE,
        Code.TIMEOUT,
        Code.RESOURCE_EXHAUSTED,
        Code.RATE_LIMITED,
    }
)
UNFIT = "its arguments cannot be made from these"


def falls(call: Call, seen: Observation) -> bool:
    """Whether another tool may answer: this one could not, and nothing is wrong with the call itself.

    What is not written down is no reason: the gateway may be about to stop.
    """
    if not call.recorded or seen.replayed:
        return False
    if seen.status is Status.REFUSED:
        return seen.code in _REFUSED
    read_broke = seen.code is Code.INTERNAL and not call.writes
    return seen.status is Status.FAILED and (seen.code in _FAILED or read_broke)


@dataclass(slots=True, kw_only=True)
class Descent:
    ladder: Ladder
    asked: Proposal
    """As it came in."""
    opening: Call
    call: Call
    """The last that was made for it."""
    tool: Tool
    """The first."""
    key: str | None
    requested: bool
    """The protocol made the key."""
    limits: Limits
    number: int = 0
    tried: dict[str, Tried] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    seen: Observation | None = None
    """What the last of them got."""
    _arguments: dict[str, Any] | None = None

    @property
    def writes(self) -> bool:
        return self.tool.writes

    @property
    def level(self) -> Level:
        return self.ladder.levels[self.number]

    @property
    def place(self) -> Place:
        who = self.asked.principal
        return Place(who.tenant, who.id, self.ladder.capability, self.key or "")

    @property
    def ref(self) -> OperationRef:
        """What the ledger calls it at this level."""
        who = self.asked.principal
        return OperationRef(who.tenant, who.id, self.level.tool, self.key or "")

    def left(self, now: float) -> float:
        """Seconds, of the caller's own patience; how long a tool may take is in its contract."""
        patience = self.asked.deadline_ms
        return inf if patience is None else self.opening.started + patience / 1000 - now

    def enter(self, call: Call) -> Call:
        self.call = call
        self.calls.append(call)
        return call

    def leave(self, attendance: Attendance, seen: Observation | None) -> None:
        """Nobody waits for what was passed: who waited has this answer, or has left the last call."""
        answered = self.call if seen is None else next((c for c in self.calls if c.id == seen.call_id), None)
        for call in self.calls:
            if call is not answered:
                attendance.leave(call)

    def failed(self, seen: Observation) -> None:
        told = Tried(self.level.tool, seen.code, seen.message or "", seen.call_id)
        self.tried[told.tool] = told

    def passed_over(self, number: int, why: str) -> None:
        tool = self.ladder.levels[number].tool
        if why:
            self.tried.setdefault(tool, Tried(tool, None, why))

    def standing(self, *, stale: bool = False, escalated: bool = False) -> Standing:
        last = stale or escalated
        mine = self.level.tool
        return Standing(
            capability=self.ladder.capability,
            level=len(self.ladder.levels) if last else self.number,
            decrement=self.ladder.last_decrement if last else self.level.decrement,
            tried=tuple(one for tool, one in self.tried.items() if last or tool != mine),
            stale=stale,
            escalated=escalated,
            asked=self._digest,
        )

    def told(self, seen: Observation) -> Observation:
        """An answer, with everything that was tried for it; one that is replayed says what it said then."""
        if seen.replayed and seen.fallback is not None:
            return seen
        said = self.standing().told()
        return seen if said == seen.fallback else replace(seen, fallback=said)

    def proposal(self, now: float, *, stale: bool = False, escalated: bool = False) -> Proposal:
        """What is proposed at this level."""
        asked, left = self.asked, self.left(now)
        here = asked._replace(
            deadline_ms=None if left == inf else max(int(left * 1000), 1),
            trace_id=self.opening.trace_id,
            fallback=self.standing(stale=stale, escalated=escalated),
        )
        if self.number == 0:
            return here._replace(request_key=self.key) if self.requested else here
        return here._replace(
            tool=self.level.tool,
            version=None,
            arguments=self._said(self.level),
            key=None if self.requested else self.key,
            request_key=self.key if self.requested else None,
            approval_token=None,
            plan=None,
        )

    def unfit(self, number: int) -> str | None:
        """Whether the arguments cannot be said to a tool."""
        if self.ladder.levels[number].arguments is None:
            return None
        try:
            self._given(self.ladder.levels[number])
        except (ExpressionError, ParseError, TypeError, ValueError):
            return UNFIT
        return None

    def is_sound(self) -> bool:
        """Whether the first tool would take the arguments."""
        try:
            return self.tool.input.is_valid(self._read())
        except (ParseError, TypeError, ValueError):
            return False

    def like(self, number: int, tool: Tool) -> Call | None:
        """The call of another tool that this one would become, to look for those that equal it."""
        try:
            given = self._given(self.ladder.levels[number])
            given = parse(given, self.limits) if isinstance(given, str | bytes) else given
            marked = fingerprint(tool.contract.digest, tool.defaults.apply(dict(given)))
        except (ExpressionError, NotCanonical, ParseError, TypeError, ValueError):
            return None
        call = copy(self.opening)
        call.tool, call.fingerprint = tool, marked
        return call

    def _said(self, level: Level) -> Any:
        """What cannot be said in its words is for the tool's own gate to refuse."""
        return self.asked.arguments if self.unfit(self.number) else self._given(level)

    def _given(self, level: Level) -> Any:
        if level.arguments is None:
            return self.asked.arguments
        return level.arguments.fill({"args": self._read()})

    @property
    def _digest(self) -> str:
        try:
            return digest(self._read()) if self.number else ""
        except (NotCanonical, ParseError, TypeError, ValueError):
            return ""

    def _read(self) -> dict[str, Any]:
        """The arguments as the first tool would be given them."""
        if self._arguments is None:
            said = self.asked.arguments
            value = parse(said, self.limits) if isinstance(said, str | bytes) else said
            self._arguments = self.tool.defaults.apply(dict(value))
        return self._arguments


def opened(ladder: Ladder, call: Call, ports: Ports) -> Descent | None:
    """None for a call that stays where it is: a preview, what one promised, and what is wrong anyway."""
    asked, listing = call.proposal, ports.catalog.find(ladder.first, None)
    if listing is None or not visible(asked.principal, listing.tool.contract):
        return None
    tool = listing.tool
    if asked.preview or asked.plan_token is not None or asked.safety_mode is not SafetyMode.NORMAL:
        return None
    key, requested = _named(call, tool, ports)
    if (tool.writes and key is None) or (key is not None and not well_formed(key)):
        return None
    return Descent(
        ladder=ladder,
        asked=asked,
        opening=call,
        call=call,
        tool=tool,
        key=key,
        requested=requested,
        limits=ports.limits,
    )


def _named(call: Call, tool: Tool, ports: Ports) -> tuple[str | None, bool]:
    """The key as `resolve` would find it, and whether the protocol made it; one for all levels."""
    asked, contract = call.proposal, tool.contract
    if asked.key is not None:
        return asked.key, False
    if asked.task is not None and asked.step is not None:
        parts = (asked.principal.id, asked.task, asked.step, contract.tool)
        return ports.secrets.derive_key(asked.principal.tenant, parts), False
    if asked.request_key is not None:
        return asked.request_key, True
    return (call.nonce if contract.effect is Effect.EPHEMERAL_WRITE else None), False
