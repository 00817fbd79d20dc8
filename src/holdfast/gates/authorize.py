"""May this principal use this tool at all?

If not, the tool does not exist as far as they can tell: the answer is word for word
the one for an unknown name; so it is for a tool that a delegation does not reach. Only those
who may use it learn that it is quarantined, unavailable or not to be had in that version.
"""

from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.messages import ENDED, no_such_tool
from holdfast.model.scopes import covers_all
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import Effect, SafetyMode, ToolStatus
from holdfast.ports import Ports

_ACTIVE, _HALTED = ToolStatus.ACTIVE, SafetyMode.HALTED


async def authorize(call: Call, ports: Ports) -> Verdict:
    contract, principal = call.tool.contract, call.principal
    if principal.system:
        # the gateway's own readings: they change nothing and read no further (DEC-3)
        allowed = contract.effect is Effect.READ_ONLY and not contract.lookups and contract.state is None
    else:
        allowed = covers_all(principal.scopes, contract.security.required_scopes)
        if principal.bounds is not UNBOUND:
            allowed = allowed and principal.bounds.reaches(contract.tool, ())
    if not allowed:
        name = call.proposal.tool.partition("@")[0]
        return Refusal(Code.TOOL_NOT_FOUND, no_such_tool(name), private=Code.PERMISSION_DENIED)
    if principal.bounds is not UNBOUND and not _in_time(call, ports):
        return Refusal(Code.PERMISSION_DENIED, ENDED)
    if call.version_problem is not None:
        return Refusal(Code.VERSION_INCOMPATIBLE, call.version_problem)
    refusal = None if call.status is _ACTIVE else _standing(call)
    if refusal is not None:
        return refusal
    if call.proposal.safety_mode is _HALTED:
        return Refusal(Code.TOOL_UNAVAILABLE, "this caller is halted; ask an operator to resume it")
    return PASS


def _in_time(call: Call, ports: Ports) -> bool:
    """What was delegated ends: nothing runs on after that."""
    left = call.principal.bounds.until - ports.clock.now()
    call.deadline = min(call.deadline, ports.clock.monotonic() + left)
    return left > 0


def _standing(call: Call) -> Refusal | None:
    """What those who may use the tool are told about it."""
    identity = call.tool.contract.identity
    name = f"{call.tool.contract.tool}@{identity.version}"
    match call.status:
        case ToolStatus.QUARANTINED:
            return Refusal(Code.TOOL_QUARANTINED, f"{name} changed and waits for an operator to accept it")
        case ToolStatus.UNAVAILABLE:
            return Refusal(
                Code.TOOL_UNAVAILABLE, f"the upstream of {name} does not answer", retry_after_ms=5_000
            )
        case ToolStatus.SUNSET | ToolStatus.REVOKED:
            successor = f"; use {identity.successor!r}" if identity.successor else ""
            return Refusal(Code.VERSION_INCOMPATIBLE, f"{name} is {call.status.value}{successor}")
        case ToolStatus.DEPRECATED:
            until = f" until {identity.sunset_on}" if identity.sunset_on else ""
            call.warnings.append(f"{name} is deprecated and works{until}")
    return None
