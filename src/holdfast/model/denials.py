"""When is a denial more than a no? AUT-4+.

One is a mistake; several in a short time are somebody trying, and so is one of a tool that does great harm.
Counted in this process: what matters is that somebody is told, not the exact number.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from math import inf

from holdfast.model import defaults
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.vocabulary import Effect

COUNTED = frozenset({Code.PERMISSION_DENIED, Code.POLICY_VIOLATION, Code.APPROVAL_DENIED})
RISKY = frozenset({Effect.HIGH_RISK_EXTERNAL, Effect.CRITICAL_MUTATION})
MOST_KNOWN = 4096
"""Callers that are remembered; those who were denied last stay."""


@dataclass(slots=True)
class _Caller:
    times: deque[float] = field(default_factory=deque)
    quiet_until: float = -inf
    """Told already: who goes on is not told of again at once."""


class Denials:
    def __init__(self, most: int = defaults.DENIALS, within_s: float = defaults.DENIALS_S) -> None:
        self._most = most
        self._within_s = within_s
        self._of: OrderedDict[tuple[str, str], _Caller] = OrderedDict()

    def raised(self, call: Call, code: Code | None, now: float) -> list[str]:
        """The security events that this denial is; none for any other refusal."""
        if code not in COUNTED or call.principal.system:
            return []
        found = []
        tool = getattr(call, "tool", None)
        if tool is not None and tool.contract.effect in RISKY and code is not Code.APPROVAL_DENIED:
            found.append(f"a high-risk tool was denied: {tool.contract.tool} ({code})")
        if self._are_many(call, now):
            found.append(f"{self._most} denials of {call.principal.id} within {self._within_s:g} s")
        return found

    def _are_many(self, call: Call, now: float) -> bool:
        """Once in the time in which they are counted, however many there are."""
        name = (call.principal.tenant, call.principal.id)
        caller = self._of.setdefault(name, _Caller())
        self._of.move_to_end(name)
        if len(self._of) > MOST_KNOWN:
            self._of.popitem(last=False)
        times = caller.times
        times.append(now)
        while times[0] <= now - self._within_s or len(times) > self._most:
            times.popleft()
        if len(times) < self._most or now < caller.quiet_until:
            return False
        caller.quiet_until = now + self._within_s
        return True
