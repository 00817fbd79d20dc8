"""Why does a staged write fail? The refusal belongs to the gate that staged it; DEC-1."""

from holdfast.model.approval import Answer
from holdfast.model.errors import Code
from holdfast.model.stage import TakeRate, UseGrant
from holdfast.ports import Denied


def why_unusable(answer: Answer, used: bool, expired: bool) -> str:
    if answer is not Answer.APPROVED:
        return f"its answer is {answer}"
    if used:
        return "it was used before"
    return "it has expired" if expired else "it was given for another call"


def rate_denied(gate: str, stage: TakeRate, ms: int) -> Denied:
    limit = f"{stage.calls:g} calls in {stage.per_s:g} s"
    return Denied(gate, Code.RATE_LIMITED, f"the limit of {limit} is used up; call again in {ms} ms", ms)


def grant_denied(gate: str, stage: UseGrant, why: str) -> Denied:
    message = f"approval '{stage.approval_id}' cannot be used: {why}; ask for a new one with a new key"
    return Denied(gate, Code.APPROVAL_DENIED, message)
