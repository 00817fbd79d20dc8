"""What may be done with a question to people? The rules every store shares; APR-3, APR-4."""

import secrets
from collections.abc import Mapping
from typing import Any

from holdfast.model.approval import Answer, Approval, Need, Vote, escalation_shares
from holdfast.model.call import Call
from holdfast.model.errors import HoldfastError
from holdfast.model.operation import OperationRef
from holdfast.model.vocabulary import State
from holdfast.records.body import LONGEST_TASK

FLOOD = "'{principal}' has {count} open questions; answer or deny some first (holdfast approvals)"
TASK_FLOOD = "task '{task}' has {count} open questions; answer or deny some first (holdfast approvals)"
EARLY_S = 0.001
"""A question that is nearly due is told as one that is: who asks judges it to the moment."""


def task_of(call: Call) -> str:
    """The task whose open questions are counted; an agent may call it anything, also what no column holds."""
    return (call.proposal.task or "")[:LONGEST_TASK].replace("\0", "\ufffd")


def new_id() -> str:
    return f"apr_{secrets.token_hex(8)}"


def ref_of(call: Call) -> OperationRef:
    if call.ref is None:
        raise HoldfastError("a call that waits for approval needs a key; call again with one")
    return call.ref


def fresh(
    call: Call,
    need: Need,
    packet: Mapping[str, Any],
    call_id: str,
    now: float,
    life_s: float,
    release: str = "caller",
) -> Approval:
    return Approval(
        id=new_id(),
        ref=ref_of(call),
        call_id=call_id,
        fingerprint=call.fingerprint,
        contract_digest=call.tool.contract.digest,
        need=dict(need),
        answer=Answer.PENDING,
        votes=(),
        packet=packet,
        created_at=now,
        expires_at=now + life_s,
        release=release,
    )


def still_good(approval: Approval, call: Call, need: Need, now: float) -> bool:
    """Whether this call is what was asked about, and at least as much was asked for.

    A need that has risen voids the earlier question. A denial stands, whatever else changed: a denied key
    stays denied.
    """
    if approval.answer is Answer.DENIED:
        return True
    asked = approval.fingerprint == call.fingerprint and approval.contract_digest == call.tool.contract.digest
    enough = all(approval.need.get(role, 0) >= count for role, count in need.items())
    is_open = approval.answer in (Answer.PENDING, Answer.APPROVED) and approval.expires_at > now
    return asked and enough and is_open


def is_due(approval: Approval, groups: int, now: float) -> bool:
    """Whether it is past its time, or the next of so many groups should be asked by now."""
    if approval.answer is not Answer.PENDING:
        return False
    if approval.expires_at <= now or groups < 2 or approval.level >= groups - 1:
        return approval.expires_at <= now
    first, step = escalation_shares(groups)
    life = approval.expires_at - approval.created_at
    return approval.created_at + life * (first + approval.level * step) <= now + EARLY_S


def refuse_unless_holdable(call: Call, state: State, fingerprint: str, contract_digest: str) -> None:
    """Only an operation that waits or had no effect can (go on to) wait for approval."""
    same = fingerprint == call.fingerprint and contract_digest == call.tool.contract.digest
    if not same or state not in (State.HELD, State.NO_EFFECT):
        raise HoldfastError(f"key '{call.key}' is already {state}; call again to learn what came of it")


def refuse_unless_votable(approval: Approval | None, approval_id: str, person: str, now: float) -> Approval:
    if approval is None:
        raise HoldfastError(f"there is no approval '{approval_id}'; list the open ones")
    if approval.answer is Answer.PENDING and approval.expires_at <= now:
        raise HoldfastError(
            f"approval '{approval_id}' has expired; the call must be made again with a new key"
        )
    if approval.answer is not Answer.PENDING:
        raise HoldfastError(f"approval '{approval_id}' is already answered: {approval.answer}")
    if any(vote.person == person for vote in approval.votes):
        raise HoldfastError(f"'{person}' has already voted on approval '{approval_id}'; somebody else must")
    return approval


def answer_after(approval: Approval) -> Answer:
    """One no decides; else everybody needed must have said yes."""
    if not all(vote.approve for vote in approval.votes):
        return Answer.DENIED
    return Answer.PENDING if approval.missing else Answer.APPROVED


def told_of_vote(approval_id: str, vote: Vote, answer: Answer) -> dict[str, Any]:
    """What the record of a vote says."""
    said = {"approval_id": approval_id, "role": vote.role, "approve": vote.approve, "answer": answer}
    return said | ({"via": vote.via} if vote.via else {})


def told_of_alarm(text: str, approval: Approval | None) -> dict[str, Any]:
    return {"alarm": text, "approval_id": None if approval is None else approval.id}
