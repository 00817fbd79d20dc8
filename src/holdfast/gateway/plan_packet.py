"""What do people see of a plan before they say yes to it? Every step, as in the packet of a call; APR-8."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from holdfast.model import placeholder
from holdfast.model.approval import Need
from holdfast.model.call import Call
from holdfast.model.derive import join
from holdfast.model.moment import iso
from holdfast.model.packet import SEEN_BY_APPROVERS, packet
from holdfast.model.quoted import Marks, quoted
from holdfast.model.vocabulary import Effect
from holdfast.ports import Ports

if TYPE_CHECKING:
    from holdfast.gateway.plans import Wish

OF_A_STEP = (
    "action",
    "consequence",
    "effects",
    "risk_class",
    "risk",
    "why",
    "undo",
    "rollback",
    "cost",
    "contract_digest",
    "policy_decision_id",
)


def packet_of(
    question: Call,
    steps: "Sequence[tuple[Call, Wish]]",
    seen: Sequence[Mapping[str, Any]],
    needs: Sequence[Need],
    need: Need,
    now: float,
    life_s: float,
    ports: Ports,
) -> dict[str, Any]:
    marks, shown, principal = Marks(), [], question.principal
    for number, (call, wish) in enumerate(steps, 1):
        shown.append(_step(number, call, wish, seen[number - 1], needs[number - 1], marks, now, life_s))
    floors = [join(c.tool.contract.security.approval_floor, c.decision.floor) for c, _ in steps]
    return {
        "action": f"a plan of {len(steps)} calls",
        "consequence": f"each step may be called once, as shown, until {iso(now + life_s)}",
        "arguments": {f"{one['number']}. {one['action']}": one["arguments"] for one in shown},
        "task": quoted(question.proposal.task, marks, ("task",)),
        "step": None,
        "key": question.key,
        "requested_by": {
            "user": principal.user,
            "agent": quoted(principal.agent, marks, ("requested_by", "agent")),
            "tenant": principal.tenant,
            "trust": principal.trust,
        },
        "agent_written": marks.written,
        "hidden_characters": marks.hidden,
        "shortened": marks.shortened,
        "effects": [effect for one in shown for effect in one["effects"]],
        "before": None,
        "after": _after(shown, seen),
        "evidence": "; ".join(f"step {one['number']}: {one['evidence']}" for one in shown),
        "steps": shown,
        "fingerprint": question.fingerprint,
        "contract_digest": question.tool.contract.digest,
        "risk_class": reduce(_riskier, (call.tool.contract.effect for call, _ in steps)).value,
        "risk": "; ".join(dict.fromkeys(str(one["risk"]) for one in shown)),
        "why": list(dict.fromkeys(reason for one in shown for reason in one["why"])),
        "need": dict(need),
        "floor": reduce(join, floors).value,
        "undo": "; ".join(dict.fromkeys(str(one["undo"]) for one in shown)),
        "rollback": {"status": "see each step", "plan": None, "compensation": None},
        "cost": _cost(shown),
        "environment": steps[0][0].proposal.environment.value,
        "asked_at": iso(now),
        "expires_at": iso(now + ports.approval_s),
        "if_rejected": "nothing runs: each call is asked about on its own, or not made",
        "if_unanswered": "the same, when the approval expires",
        "policy_decision_id": "",
        "policy_version": question.decision.version,
        "trace_id": question.trace_id,
        "call_id": question.id,
    }


def _riskier(one: Effect, other: Effect) -> Effect:
    return one if one.at_least(other) else other


def _step(
    number: int,
    call: Call,
    wish: "Wish",
    seen: Mapping[str, Any],
    need: Need,
    marks: Marks,
    now: float,
    life_s: float,
) -> dict[str, Any]:
    """The packet of the call, as far as it is not the same for every step."""
    floor = join(call.tool.contract.security.approval_floor, call.decision.floor)
    whole = packet(call, need, floor, {}, now, life_s)
    told = {**call.arguments, **placeholder.shown(wish.arguments)}
    hidden = call.tool.input.sensitivity.redact(told, SEEN_BY_APPROVERS)
    return {
        "number": number,
        **{name: whole[name] for name in OF_A_STEP},
        "arguments": quoted(hidden, marks, ("steps", number - 1, "arguments")),
        "need": dict(need),
        "fingerprint": None if placeholder.read(wish.arguments).open else call.fingerprint,
        "evidence": seen["evidence"],
    }


def _after(shown: Sequence[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Beside the steps: whoever asked may not be allowed to read it."""
    states = {
        f"{step['number']}. {one['after']['source']}": one["after"]["state"]
        for step, one in zip(shown, seen, strict=True)
        if one["after"] is not None
    }
    return {"source": "each step's preview", "state": states} if states else None


def _cost(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    costs = [one["cost"] for one in shown if one["cost"]["amount"]]
    currencies = list(dict.fromkeys(cost["currency"] for cost in costs)) or ["USD"]
    total = sum(cost["amount"] for cost in costs)
    return {"amount": total, "currency": " + ".join(currencies), "unit": "plan", "categories": []}
