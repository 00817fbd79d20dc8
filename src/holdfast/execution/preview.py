"""What would happen, if this call ran?

A contract that names a reading gets real predictions; without one the preview can
only show the arguments and the declared effects, and says so. Either ends with a plan
token: a call that carries it runs only while the same look gives the same answer.
"""

from typing import Any

from holdfast.model import plan
from holdfast.model.call import Call
from holdfast.model.errors import NO_REMEDY, Code, remedy
from holdfast.model.observation import Observation, Status
from holdfast.ports import Ports


async def preview(call: Call, ports: Ports) -> Observation:
    look = call.tool.preview
    impact: Any = None
    if look is None:
        note = "this tool cannot predict its effect: only its arguments and declared effects are shown"
        call.warnings.append(note)
    else:
        arguments = look.arguments.fill({"args": call.arguments})
        seen = await ports.reader.read(call.principal.tenant, look.tool, arguments)
        if seen.status is not Status.DONE:
            text = f"the preview could not be read: {seen.message or seen.status.value}"
            return _say(call, ports, Status.FAILED, Code.DEPENDENCY_UNAVAILABLE, text, None)
        impact, call.shows = seen.data, ports.labels_of(look.tool)
    shown = plan.described(call, impact)
    life_s = plan.life_s(ports.approval_s)
    shown["plan_token"] = plan.issue(ports.secrets, call, impact, ports.clock.now(), life_s)
    return _say(call, ports, Status.PREVIEW, None, None, shown)


def _say(
    call: Call,
    ports: Ports,
    status: Status,
    code: Code | None,
    message: str | None,
    shown: dict[str, Any] | None,
) -> Observation:
    return Observation(
        call_id=call.id,
        tool=call.tool.contract.tool,
        version=call.tool.contract.version,
        status=status,
        code=code,
        message=message,
        warnings=tuple(call.warnings),
        policy_decision_id=call.decision.id,
        trace_id=call.trace_id,
        latency_ms=round((ports.clock.monotonic() - call.started) * 1000, 3),
        key=call.key,
        key_source=call.key_source,
        preview=shown,
        remedy=NO_REMEDY if code is None else remedy(code),
    )
