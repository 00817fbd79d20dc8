"""Why does a staged write fail? The refusal belongs to the gate that staged it; DEC-1."""

from collections.abc import Sequence

from holdfast.model.approval import Answer
from holdfast.model.errors import Code
from holdfast.model.limits import Amount, exhausted
from holdfast.model.stage import PolicyVersion, ReserveBudget, Stage, TakeRate, UseGrant
from holdfast.ports import Denied, Outdated


def why_unusable(answer: Answer, used: bool, expired: bool) -> str:
    if answer is not Answer.APPROVED:
        return f"its answer is {answer}"
    if used:
        return "it was used before"
    return "it has expired" if expired else "it was given for another call"


def rate_denied(gate: str, stage: TakeRate, ms: int) -> Denied:
    limit = f"{stage.calls:g} calls in {stage.per_s:g} s"
    return Denied(gate, Code.RATE_LIMITED, f"the limit of {limit} is used up; call again in {ms} ms", ms)


def budget_denied(gate: str, stage: ReserveBudget, taken: Amount) -> Denied:
    return Denied(gate, Code.BUDGET_EXHAUSTED, exhausted(stage.bucket, stage.limit, stage.ask, taken))


def grant_denied(gate: str, stage: UseGrant, why: str) -> Denied:
    message = f"approval '{stage.approval_id}' cannot be used: {why}; ask for a new one with a new key"
    return Denied(gate, Code.APPROVAL_DENIED, message)


def outdated(staged: Sequence[tuple[str, Stage]], promoted: str | None) -> Outdated | None:
    """Whether a call was judged under policies that are no longer in force."""
    for gate, stage in staged:
        if isinstance(stage, PolicyVersion) and stage.promoted != promoted:
            text = "other policies were put in force while this call was on its way; propose it again"
            return Outdated(gate, Code.POLICY_VIOLATION, text)
    return None
