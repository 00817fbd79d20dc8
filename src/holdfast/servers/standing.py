"""How are rules that stand, and plans, proposed, accepted and ended over HTTP?

Who may do what is the gateway's decision: it raises Forbidden, and the guard answers 403.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from holdfast.approvals.history import Fatigue, Proposed
from holdfast.gateway import Gateway
from holdfast.gateway.plans import Judged, Planned
from holdfast.gateway.plans import Wish as Call
from holdfast.gateway.rules import Wish
from holdfast.model.call import Principal
from holdfast.model.constraint import told
from holdfast.model.fields import FieldError, pointer
from holdfast.model.moment import iso
from holdfast.model.standing import Plan, Rule, Step
from holdfast.servers.answers import answer
from holdfast.servers.members import WHOLE, Member, Members, faults, given, kind, text
from holdfast.servers.visit import Visit

OBJECT = Member("an object", lambda value: isinstance(value, dict))
NUMBER = Member("a number above 0", lambda n: type(n) in (int, float) and n > 0)
RULE: Members = {
    "tool": text(required=True),
    "principals": text(required=True),
    "arguments": OBJECT,
    "need": OBJECT,
    "life_s": NUMBER,
    "most": WHOLE,
    "note": text(),
}
ACCEPTANCE: Members = {"note": text()}
PLAN: Members = {
    "steps": Member("a list of steps", lambda value: isinstance(value, list), required=True),
    "task": text(),
    "cost": NUMBER,
}
STEP: Members = {
    "tool": text(required=True),
    "arguments": Member("an object", lambda value: isinstance(value, dict), required=True),
    "version": text(),
}
STATUS = {"asked": 202, "unneeded": 200, "refused": 422}
SINCE_S = 30 * 86_400.0


# --- rules --------------------------------------------------------------------------------


async def rules(visit: Visit) -> Response:
    """GET /v1/rules"""
    return answer({"rules": [_rule(rule) for rule in await visit.gateway.rules.list(visit.principal)]})


async def rule(visit: Visit) -> Response:
    """GET /v1/rules/{id}"""
    found = await visit.gateway.rules.get(visit.principal, visit.request.path_params["id"])
    return answer(_rule(found))


async def propose_rule(visit: Visit) -> Response:
    """POST /v1/rules"""
    found = await visit.gateway.rules.propose(visit.principal, Wish(**await visit.members(RULE)))
    return answer(_rule(found), 202)


async def accept_rule(visit: Visit) -> Response:
    """POST /v1/rules/{id}/acceptance"""
    said = await visit.members(ACCEPTANCE)
    wanted = visit.request.path_params["id"]
    found, _ = await visit.gateway.rules.accept(visit.principal, wanted, said.get("note", ""))
    return answer(_rule(found))


async def revoke_rule(visit: Visit) -> Response:
    """DELETE /v1/rules/{id}"""
    return answer(_rule(await visit.gateway.rules.revoke(visit.principal, visit.request.path_params["id"])))


async def proposals(visit: Visit) -> Response:
    """GET /v1/rules/proposals"""
    wanted: dict[str, Any] = dict(visit.request.query_params)
    visit.refuse(faults(wanted, {"since": text(), "tool": text()}))
    since = datetime.now(UTC).timestamp() - SINCE_S
    if "since" in wanted:
        try:
            since = datetime.fromisoformat(wanted["since"]).timestamp()
        except ValueError:
            visit.refuse([FieldError("/since", "a time in ISO 8601", "a text", "'since' is no time")])
    found, tired = await visit.gateway.rules.proposals(visit.principal, since, wanted.get("tool"))
    return answer(shown_proposals(found, tired))


# --- plans --------------------------------------------------------------------------------


async def plans(visit: Visit) -> Response:
    """GET /v1/plans"""
    return answer({"plans": [_plan(plan) for plan in await visit.gateway.plans.list(visit.principal)]})


async def plan(visit: Visit) -> Response:
    """GET /v1/plans/{id}"""
    return answer(_plan(await visit.gateway.plans.get(visit.principal, visit.request.path_params["id"])))


async def propose_plan(visit: Visit) -> Response:
    """POST /v1/plans"""
    said = await visit.members(PLAN)
    visit.refuse(step_faults(said["steps"]))
    found = await proposed(visit.gateway, visit.principal, said)
    return answer(shown_planned(found), STATUS[found.status])


async def revoke_plan(visit: Visit) -> Response:
    """DELETE /v1/plans/{id}"""
    return answer(_plan(await visit.gateway.plans.revoke(visit.principal, visit.request.path_params["id"])))


def step_faults(steps: list[Any]) -> list[FieldError]:
    """Everything wrong with the form of a plan's steps."""
    return [
        FieldError(f"/steps/{place}{fault.path}", fault.expected, fault.actual, fault.message)
        for place, step in enumerate(steps)
        for fault in (
            faults(step, STEP)
            if isinstance(step, dict)
            else [FieldError(pointer([]), "an object", kind(step), "a step is an object")]
        )
    ]


async def proposed(gateway: Gateway, by: Principal, said: Mapping[str, Any]) -> Planned:
    """A plan whose form is right."""
    steps = [Call(**given(step)) for step in said["steps"]]
    return await gateway.plans.propose(by, steps, said.get("task"), said.get("cost"))


# --- how they look ------------------------------------------------------------------------


def _rule(rule: Rule) -> dict[str, Any]:
    return shown_rule(rule, datetime.now(UTC).timestamp())


def _plan(plan: Plan) -> dict[str, Any]:
    return shown_plan(plan, datetime.now(UTC).timestamp())


def shown_rule(rule: Rule, now: float) -> dict[str, Any]:
    said: dict[str, Any] = {"ended_by": rule.ended_by} if rule.ended_by is not None else {}
    return said | {
        "id": rule.id,
        "state": rule.state(now),
        "tool": rule.tool,
        "principals": rule.principals,
        "arguments": dict(rule.arguments),
        "says": {name: told(constraint) for name, constraint in rule.arguments.items()},
        "need": dict(rule.need),
        "approval_id": rule.approval_id,
        "accepted_by": [vote.person for vote in rule.votes if vote.approve],
        "made_by": rule.made_by,
        "note": rule.note,
        "made_at": iso(rule.at),
        "expires_at": iso(rule.expires_at),
        "most": rule.most,
        "used": rule.used,
        "contract_digest": rule.contract_digest,
    }


def shown_proposals(found: Any, tired: Fatigue) -> dict[str, Any]:
    return {"proposals": [_proposal(one) for one in found], "fatigue": asdict(tired)}


def _proposal(one: Proposed) -> dict[str, Any]:
    return {
        "tool": one.tool,
        "principals": one.principals,
        "arguments": dict(one.arguments),
        "says": {name: told(constraint) for name, constraint in one.arguments.items()},
        "need": dict(one.need),
        "most": one.most,
        "proof": {name: list(ids) for name, ids in asdict(one.proof).items()},
    }


def shown_plan(plan: Plan, now: float) -> dict[str, Any]:
    said: dict[str, Any] = {"ended_by": plan.ended_by} if plan.ended_by is not None else {}
    return said | {
        "id": plan.id,
        "state": plan.state(now),
        "principal": plan.principal,
        "need": dict(plan.need),
        "approval_id": plan.approval_id,
        "accepted_by": [vote.person for vote in plan.votes if vote.approve],
        "made_at": iso(plan.at),
        "expires_at": iso(plan.expires_at),
        "steps": [_step(step) for step in plan.steps],
    }


def _step(step: Step) -> dict[str, Any]:
    said: dict[str, Any] = {"call_id": step.call_id} if step.call_id is not None else {}
    if step.arguments is not None:
        open_ = {name: one for name, one in step.arguments.items() if "equals" not in one}
        said["says"] = {name: told(constraint) for name, constraint in open_.items()}
    return said | {
        "number": step.number,
        "tool": step.tool,
        "contract_digest": step.contract_digest,
        "used": step.used_nonce is not None,
    }


def shown_planned(found: Planned) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if found.plan is not None:
        said |= {"plan": found.plan.id, "expires_at": iso(found.plan.expires_at)}
    if found.approval is not None:
        said["approval"] = asdict(found.approval)
    return said | {
        "status": found.status,
        "message": found.message,
        "steps": [_judged(step) for step in found.steps],
    }


def _judged(step: Judged) -> dict[str, Any]:
    said: dict[str, Any] = {"number": step.number, "tool": step.tool, "need": dict(step.need)}
    if step.rule is not None:
        said["rule"] = step.rule
    if step.code is not None:
        said |= {
            "code": step.code,
            "message": step.message,
            "field_errors": [asdict(fault) for fault in step.field_errors],
        }
    return said
