"""Do the arguments make sense together?

Declared rules over the arguments and over state looked up by governed reads, then
the tool's own checks in Python. All that is wrong is told at once; a rule that
cannot be evaluated has not been met.
"""

import inspect
from typing import Any

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.fields import FieldError
from holdfast.model.observation import Status
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.ports import Ports


async def semantics(call: Call, ports: Ports) -> Verdict:
    tool = call.tool
    if not tool.semantics and not tool.checks:
        return PASS
    variables: dict[str, Any] = {"args": call.arguments}
    for name, read in tool.lookups.items():
        seen = await ports.reader.read(call.principal.tenant, read.tool, read.arguments.fill(variables))
        if seen.code is Code.SEMANTIC_INVALIDITY:  # what the arguments name is not there
            return Refusal(Code.SEMANTIC_INVALIDITY, seen.message or f"{name!r} cannot be found")
        if seen.status is not Status.DONE:
            return Refusal(
                Code.DEPENDENCY_UNAVAILABLE,
                f"{name!r} could not be looked up to check the arguments",
                retry_after_ms=1_000,
            )
        variables[name] = seen.data
    faults: list[FieldError] = []
    for rule in tool.semantics:
        try:
            met = rule.holds.holds(variables)
        except ExpressionError as error:
            faults.append(FieldError(rule.path, rule.holds.source, "", f"{rule.message} ({error})"))
            continue
        if not met:
            faults.append(FieldError(rule.path, rule.holds.source, "", rule.message))
    for check in tool.checks:
        found = check(call.arguments)
        said = await found if inspect.isawaitable(found) else found
        if said is not None:
            faults.append(FieldError("", getattr(check, "__name__", "check"), "", said))
    if not faults:
        return PASS
    return Refusal(Code.SEMANTIC_INVALIDITY, "; ".join(fault.message for fault in faults), tuple(faults))
