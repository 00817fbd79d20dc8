"""Do the arguments make sense together?

Declared rules over the arguments, then the tool's own checks in Python. All that is
wrong is told at once. Rules that need looked-up state belong to `state`: a call that
ran has changed what they look at, and its retry must find its answer all the same.
"""

import inspect

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.fields import FieldError
from holdfast.model.tool import broken
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.ports import Ports


async def semantics(call: Call, ports: Ports) -> Verdict:
    tool = call.tool
    if not tool.semantics and not tool.checks:
        return PASS
    faults = broken(tool.semantics, {"args": call.arguments})
    for check in tool.checks:
        found = check(call.arguments)
        said = await found if inspect.isawaitable(found) else found
        if said is not None:
            faults.append(FieldError("", getattr(check, "__name__", "check"), "", said))
    if not faults:
        return PASS
    return Refusal(Code.SEMANTIC_INVALIDITY, "; ".join(fault.message for fault in faults), tuple(faults))
