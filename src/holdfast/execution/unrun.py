"""What is the caller told about a call that did not run?"""

from dataclasses import replace
from typing import Any

from holdfast.execution.observe import shown
from holdfast.model.call import Call
from holdfast.model.errors import Code, remedy
from holdfast.model.observation import Observation, Status
from holdfast.model.tool import Tool
from holdfast.model.verdict import Hold, Refusal
from holdfast.ports import Ports


def refused(call: Call, refusal: Refusal, ports: Ports) -> Observation:
    message = refusal.message
    if call.earlier is not None and call.earlier.call_id not in message:
        message += f" (this key has call {call.earlier.call_id!r}, {call.earlier.state.value})"
    return _unrun(
        call,
        ports,
        status=Status.REFUSED,
        code=refusal.code,
        message=message,
        field_errors=refusal.field_errors,
        remedy=remedy(refusal.code, refusal.retry_after_ms, refusal.next_action),
        data=refusal.data,
    )


def held(call: Call, hold: Hold, ports: Ports) -> Observation:
    code = Code.APPROVAL_REQUIRED
    return _unrun(
        call,
        ports,
        status=Status.HELD,
        code=code,
        message=hold.message,
        remedy=remedy(code),
        approval=hold.approval,
    )


def _unrun(call: Call, ports: Ports, **said: Any) -> Observation:
    tool: Tool | None = getattr(call, "tool", None)  # unset when resolve itself refused
    decision = getattr(call, "decision", None)
    key, key_source = call.key, call.key_source
    if said.get("code") is Code.TOOL_NOT_FOUND:  # nothing of it may be told, not even that it takes keys
        tool, key, key_source = None, call.proposal.key, None
    return Observation(
        call_id=call.id,
        tool=call.proposal.tool.partition("@")[0],
        version=None if tool is None else tool.contract.version,
        policy_decision_id=None if decision is None else decision.id,
        trace_id=call.trace_id,
        latency_ms=round((ports.clock.monotonic() - call.started) * 1000, 3),
        key=key,
        key_source=key_source,
        warnings=() if tool is None else tuple(call.warnings),
        fallback=None if call.proposal.fallback is None else call.proposal.fallback.told(),
        **(said if tool is None else _shown(call, said)),
    )


def _shown(call: Call, said: dict[str, Any]) -> dict[str, Any]:
    """What a refusal says, without what the arguments mark as not to be shown."""
    if call.tool.input.sensitivity.empty:
        return said
    faults = tuple(
        replace(fault, actual=shown(call, fault.actual), message=shown(call, fault.message))
        for fault in said.get("field_errors", ())
    )
    return {**said, "message": shown(call, said.get("message")), "field_errors": faults}
