"""What does a call look like that waits for an approval?"""

from holdfast.model.approval import Answer, Approval
from holdfast.model.errors import Code, remedy
from holdfast.model.observation import Observation, Status
from holdfast.model.operation import Operation
from holdfast.ports import Ports


async def held(found: Operation, ports: Ports) -> Observation:
    asked = await ports.approvals.find(found.ref)
    code = Code.APPROVAL_REQUIRED
    status, text = Status.HELD, "waiting for approval"
    if asked is not None and asked.answer is Answer.APPROVED:
        text = _approved(asked)
    elif asked is not None and asked.answer is not Answer.PENDING:
        status, code, text = Status.REFUSED, Code.APPROVAL_DENIED, "denied; this key stays denied"
    return Observation(
        call_id=found.call_id,
        tool=found.ref.tool,
        version=found.version,
        status=status,
        code=code,
        message=text,
        remedy=remedy(code),
        approval=None if asked is None else asked.shown(ports.asked_at),
        trace_id=found.trace_id,
        key=found.ref.key,
        key_source=found.key_source,
    )


def _approved(asked: Approval) -> str:
    if asked.said:
        return f"approved, and refused when it was proposed again: {asked.said}"
    if asked.release == "gateway":
        return "approved; the gateway is about to run it"
    return "approved; call again with the same key"
