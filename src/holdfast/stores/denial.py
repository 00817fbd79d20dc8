"""Why does a staged write fail? The refusal belongs to the gate that staged it; DEC-1."""

from collections.abc import Sequence

from holdfast.model.approval import Answer
from holdfast.model.errors import Code
from holdfast.model.limits import Amount, exhausted
from holdfast.model.messages import CHANGING
from holdfast.model.stage import AnswerFor, PolicyVersion, ReserveBudget, Stage, TakeRate, UseGrant
from holdfast.model.upstream_session import Why
from holdfast.ports import Conflicting, Denied, Outdated, Relabelled


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


def why_rule_ended(ended_by: str | None, expired: bool) -> str:
    if ended_by is not None:
        return f"'{ended_by}' revoked it"
    return "it has expired" if expired else "it is used up"


def why_step_gone(ended_by: str | None, expired: bool) -> str:
    if ended_by is not None:
        return f"'{ended_by}' revoked it"
    return "it has expired" if expired else "another call has used this step"


def standing_denied(gate: str, what: str, why: str) -> Denied:
    """Nobody did wrong: it was there a moment ago, and the next proposal asks people again."""
    return Denied(gate, Code.CONFLICT, f"{what} no longer covers this call: {why}; propose it again")


def outdated(staged: Sequence[tuple[str, Stage]], promoted: str | None) -> Outdated | None:
    """Whether a call was judged under policies that are no longer in force."""
    for gate, stage in staged:
        if isinstance(stage, PolicyVersion) and stage.promoted != promoted:
            text = "other policies were put in force while this call was on its way; propose it again"
            return Outdated(gate, Code.POLICY_VIOLATION, text)
    return None


def conflicting(gate: str, call_id: str, nonce: str) -> Conflicting:
    return Conflicting(gate, Code.CONFLICT, CHANGING, 1_000, call_id, nonce)


def relabelled(gate: str) -> Relabelled:
    """The caller has seen something else than when the call was judged."""
    text = "something was read in this session while this call was on its way; propose it again"
    return Relabelled(gate, Code.POLICY_VIOLATION, text)


def elsewhere(gate: str, stage: AnswerFor) -> Denied:
    """Two tools of a capability never act under one key."""
    who = f"another tool of capability '{stage.capability}' answers for this key"
    text = f"{who}; ask that one, or use a new key"
    return Denied(gate, Code.KEY_MISMATCH, text)


def session_denied(gate: str, session: str, why: Why | None, at_work: str, nonce: str) -> Denied:
    """Why nothing can be done in a session at an upstream now; `at_work`: who else is."""
    if why is None:
        return Denied(gate, Code.STALE_STATE, f"there is no session '{session}' any more; begin a new one")
    if why.code is Code.CONFLICT:
        return Conflicting(gate, why.code, why.message, 1_000, at_work, nonce)
    return Denied(gate, why.code, why.message)
