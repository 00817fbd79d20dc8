"""What can be said of a call that is not over when the gateway must stop?

Nobody who waits is left without an answer. A write that was dispatched may or may not happen: its key is
claimed, so it never happens twice, and another process finds out what became of it.
"""

from holdfast.model.call import Call
from holdfast.model.errors import Code, remedy
from holdfast.model.observation import Observation, Status

LAST_S = 1.0
"""How long closing still waits for what was not over when everybody had been answered."""
AGAIN_MS = 1_000
"""By then another process has taken this one's place, or its work."""


def acted(call: Call) -> bool:
    """Whether it may have had an effect, now or under the same key before."""
    return call.rerun_unknown or (call.work is not None and call.writes)


def cut_short(call: Call) -> Observation:
    if call.so_far is not None:
        return call.so_far
    if acted(call):
        status, code = Status.UNKNOWN, Code.OUTCOME_UNKNOWN
        text = f"the gateway is shutting down and call {call.id!r} is not over; ask again with the same key"
    else:
        status, code = Status.REFUSED, Code.TOOL_UNAVAILABLE
        text = "the gateway is shutting down; nothing was changed"
    return Observation(
        call_id=call.id,
        tool=call.proposal.tool.partition("@")[0],
        status=status,
        code=code,
        message=text,
        remedy=remedy(code, None if acted(call) else AGAIN_MS),
        trace_id=call.trace_id,
        key=call.key or call.proposal.key,
        key_source=call.key_source,
    )
