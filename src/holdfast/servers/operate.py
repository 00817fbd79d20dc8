"""How do people decide, settle, cancel and halt over HTTP?

Who may do what is the gateway's decision: it raises Forbidden, and the guard answers 403.
"""

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from holdfast.model.approval import Approval, Vote
from holdfast.model.errors import NotFound
from holdfast.servers.answers import ALWAYS, answer, found
from holdfast.servers.members import DECISION, HALT, SETTLEMENT
from holdfast.servers.visit import Visit
from holdfast.telemetry.exposition import CONTENT_TYPE

CANCEL_STATUS = {"cancelled": 200, "requested": 202, "too late": 409}


async def approvals(visit: Visit) -> Response:
    """GET /v1/approvals"""
    return answer({"approvals": [shown(item) for item in await visit.gateway.approvals(visit.principal)]})


async def approval(visit: Visit) -> Response:
    """GET /v1/approvals/{id}"""
    wanted = visit.request.path_params["id"]
    found = await visit.gateway.approval(visit.principal, wanted)
    if found is None:
        raise NotFound(f"no approval '{wanted[:64]}' is yours to see")
    return answer(shown(found))


async def decide(visit: Visit) -> Response:
    """POST /v1/approvals/{id}/decision"""
    said = await visit.members(DECISION)
    approval = await visit.gateway.decide(
        visit.principal, visit.request.path_params["id"], said["decision"] == "approve", said.get("note", "")
    )
    return answer(shown(approval))


async def cancel(visit: Visit) -> Response:
    """POST /v1/calls/{id}/cancel"""
    call_id = visit.request.path_params["id"]
    result = await visit.gateway.cancel(visit.principal, call_id)
    return answer({"call_id": call_id, "result": result}, CANCEL_STATUS[result])


async def settle(visit: Visit) -> Response:
    """POST /v1/calls/{id}/settle"""
    said = await visit.members(SETTLEMENT)
    call_id = visit.request.path_params["id"]
    return found(await visit.gateway.settle(visit.principal, call_id, said["outcome"], said["note"]))


async def halts(visit: Visit) -> Response:
    """GET /v1/halts"""
    halted = await visit.gateway.halts()
    return answer({"halts": {target: note for target, note in halted.items() if may_see(visit, target)}})


async def halt(visit: Visit) -> Response:
    """POST /v1/halts"""
    said = await visit.members(HALT)
    target, note = said["target"], said.get("note", "")
    await visit.gateway.halt(visit.principal, target, note)
    return answer({"target": target, "note": note, "halted": True})


async def resume(visit: Visit) -> Response:
    """DELETE /v1/halts/{target}"""
    target = visit.request.path_params["target"]
    if not await visit.gateway.resume(visit.principal, target):
        raise NotFound(f"nothing named '{target[:64]}' is halted")
    return answer({"target": target, "halted": False})


async def metrics(visit: Visit) -> Response:
    """GET /metrics"""
    return Response(await visit.gateway.metrics(visit.principal), headers=ALWAYS, media_type=CONTENT_TYPE)


def may_see(visit: Visit, target: str) -> bool:
    """A halt names a tool or a person; who may not know of them may not know of it."""
    if target in ("all", visit.principal.id):
        return True
    if "operator" in visit.principal.roles:
        return visit.gateway.may_name(visit.principal, target)
    visible = visit.gateway.tools(visit.principal)
    return any(target in (listing.upstream, listing.tool.contract.tool) for listing in visible)


def shown(approval: Approval) -> dict[str, Any]:
    """What an approver sees: the packet and the state of the question, not what it is bound to."""
    said: dict[str, Any] = {} if approval.token is None else {"token": approval.token}
    if approval.said:
        said["said"] = approval.said
    return said | {
        "id": approval.id,
        "call_id": approval.call_id,
        "tool": approval.ref.tool,
        "asked_by": approval.ref.principal,
        "need": dict(approval.need),
        "missing": approval.missing,
        "answer": approval.answer,
        "used": approval.used,
        "votes": [_vote(vote) for vote in approval.votes],
        "level": approval.level,
        "release": approval.release,
        "packet": dict(approval.packet),
        "created_at": _time(approval.created_at),
        "expires_at": _time(approval.expires_at),
    }


def _vote(vote: Vote) -> dict[str, Any]:
    said = {"person": vote.person, "role": vote.role, "approve": vote.approve, "note": vote.note}
    return said | {"at": _time(vote.at)} | ({"via": vote.via} if vote.via else {})


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
