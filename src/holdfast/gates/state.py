"""Is the world still as the caller believes?

Where the contract says how to look, the target is read back through a governed
read: it must exist, be in a valid state and, when the caller planned on a version,
still have that version.
"""

from typing import Any

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.fields import FieldError
from holdfast.model.observation import Status
from holdfast.model.tool import State
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.ports import Ports


async def state(call: Call, ports: Ports) -> Verdict:
    look = call.tool.state
    if look is None or (look.version is None and call.proposal.if_match is not None):
        return PASS if call.proposal.if_match is None else _no_version(call)
    seen = await ports.reader.read(
        call.principal.tenant, look.read.tool, look.read.arguments.fill({"args": call.arguments})
    )
    if seen.status is not Status.DONE:
        if seen.code in (Code.SEMANTIC_INVALIDITY, Code.STALE_STATE):
            return Refusal(Code.STALE_STATE, f"the target is not there: {seen.message}")
        return Refusal(
            Code.DEPENDENCY_UNAVAILABLE,
            "the target could not be read to check its state",
            retry_after_ms=1_000,
        )
    try:
        return _judge(call, look, seen.data)
    except ExpressionError as error:
        return Refusal(Code.STALE_STATE, f"the target's state cannot be judged: {error}", data=seen.data)


def _judge(call: Call, look: State, seen: Any) -> Verdict:
    variables = {"args": call.arguments, "state": seen}
    faults = tuple(
        FieldError(rule.path, rule.holds.source, "", rule.message)
        for rule in look.rules
        if not rule.holds.holds(variables)
    )
    if faults:
        return Refusal(Code.STALE_STATE, "; ".join(f.message for f in faults), faults, data={"state": seen})
    wanted = call.proposal.if_match
    if wanted is not None and look.version is not None:
        version = str(look.version.evaluate(variables))
        if version != wanted:
            fault = FieldError(
                "/if_match", version, wanted, "the target has changed since this call was planned"
            )
            return Refusal(
                Code.STALE_STATE, fault.message, (fault,), data={"state": seen, "version": version}
            )
    return PASS


def _no_version(call: Call) -> Refusal:
    text = f"{call.tool.contract.tool!r} does not say how to read a version, so 'if_match' cannot be checked"
    return Refusal(Code.STRUCTURAL_VIOLATION, text, (FieldError("/if_match", "nothing", "", text),))
