"""What does an approver see? S4's packet, all fields, frozen when the question is asked; APR-1.

Approvers see pii, never a secret or a credential (CON-6). What people answer is not in here: it is beside
the packet, since it changes.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.model.call import Call, Principal
from holdfast.model.contract import Contract
from holdfast.model.quoted import Marks, quoted
from holdfast.model.vocabulary import Floor, Undo

SEEN_BY_APPROVERS = frozenset({"pii"})
EVIDENCE = ("before", "after")
"""What was read for the approver's eyes; whoever asked may not be allowed to read it."""

URGENT_S = 3600.0
"""Whoever wants an answer within the hour is in a hurry, as people count."""

_UNDO = {
    Undo.EXACT: "it can be taken back exactly",
    Undo.SEMANTIC: "its meaning can be taken back",
    Undo.PARTIAL: "only a part of it can be taken back",
    Undo.NONE: "it cannot be taken back",
}


def packet(
    call: Call, need: Mapping[str, int], floor: Floor, evidence: Mapping[str, Any], now: float, life_s: float
) -> dict[str, Any]:
    contract, marks = call.tool.contract, Marks()
    proposal, principal = call.proposal, call.principal
    arguments = call.tool.input.sensitivity.redact(call.arguments, SEEN_BY_APPROVERS)
    said = {
        "arguments": quoted(arguments, marks, ("arguments",)),
        "task": quoted(proposal.task, marks, ("task",)),
        "step": quoted(proposal.step, marks, ("step",)),
        "key": quoted(call.key, marks, ("key",)),
        "requested_by": {
            "user": principal.user,
            "agent": quoted(principal.agent, marks, ("requested_by", "agent")),
            "tenant": principal.tenant,
            "trust": principal.trust,
            **_handed(principal, marks),
        },
        **_escalation(call, marks, now),
    }
    return {
        "action": f"{contract.tool}@{contract.version}",
        "consequence": contract.affordance.side_effects or contract.affordance.description,
        **said,
        "agent_written": marks.written,
        "hidden_characters": marks.hidden,
        "shortened": marks.shortened,
        "effects": [entry.model_dump(mode="json") for entry in contract.transactional.manifest],
        **evidence,
        "fingerprint": call.fingerprint,
        "contract_digest": contract.digest,
        "risk_class": contract.effect.value,
        "risk": call.decision.risk,
        "why": _why(call, floor),
        "need": dict(need),
        "floor": floor.value,
        "undo": contract.transactional.undo.value,
        "rollback": rollback(contract),
        "cost": _cost(contract),
        "environment": proposal.environment.value,
        "asked_at": _iso(now),
        "expires_at": _iso(now + life_s),
        "if_rejected": "nothing runs: the call is refused with APPROVAL_DENIED and its key stays denied",
        "if_unanswered": "the same, when the approval expires",
        "policy_decision_id": call.decision.id,
        "policy_version": call.decision.version,
        "trace_id": call.trace_id,
        "call_id": call.id,
    }


def _why(call: Call, floor: Floor) -> list[str]:
    at, reasons = call.proposal.fallback, list(call.decision.reasons)
    if at is not None and at.escalated:
        return [*reasons, f"no tool of {at.capability!r} could answer; approved, it is tried again"]
    return reasons or [f"the contract asks for {floor.value!r}"]


def _escalation(call: Call, marks: Marks, now: float) -> dict[str, Any]:
    """What was tried before a person is asked, and how long whoever asks will wait; EXE-4."""
    at, patience = call.proposal.fallback, call.proposal.deadline_ms
    if at is None or not at.escalated:
        return {}
    tried = quoted([one.told() for one in at.tried], marks, ("escalation", "tried"))
    soon = patience is not None and patience / 1000 < URGENT_S
    told = {"capability": at.capability, "tried": tried, "urgency": "high" if soon else "normal"}
    if patience is not None:
        told["wanted_by"] = _iso(now + patience / 1000)
    return {"escalation": told}


def _handed(principal: Principal, marks: Marks) -> dict[str, Any]:
    """Who acts, where it was handed on from agent to agent; the one who calls first."""
    if not principal.handed_on:
        return {}
    return {"act": quoted(list(principal.act), marks, ("requested_by", "act"))}


def rollback(contract: Contract) -> dict[str, Any]:
    promise = contract.transactional
    return {
        "status": _UNDO[promise.undo],
        "plan": promise.rollback_plan or None,
        "compensation": None if promise.compensation is None else promise.compensation.tool,
    }


def _cost(contract: Contract) -> dict[str, Any]:
    cost = contract.runtime.cost
    return {
        "amount": cost.per_call,
        "currency": cost.currency,
        "unit": cost.unit,
        "categories": list(cost.categories),
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
