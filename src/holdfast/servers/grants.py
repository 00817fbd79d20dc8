"""How are scopes given for a while, taken back and asked for over HTTP? AUT-4, AUT-8."""

from typing import Any

from starlette.responses import Response

from holdfast.gateway.grants import Elevation
from holdfast.model import defaults
from holdfast.model.access import AccessGrant
from holdfast.model.moment import iso
from holdfast.servers.answers import answer
from holdfast.servers.members import ELEVATION, GRANT
from holdfast.servers.visit import Visit


async def grants(visit: Visit) -> Response:
    """GET /v1/grants"""
    found, now = await visit.gateway.grants.list(visit.principal), visit.gateway.identity.now()
    return answer({"grants": [{**shown(grant), "state": state_of(grant, now)} for grant in found]})


async def give(visit: Visit) -> Response:
    """POST /v1/grants"""
    said = await visit.members(GRANT)
    grant = await visit.gateway.grants.give(
        visit.principal,
        said["person"],
        said["scope"],
        agent=said.get("agent"),
        life_s=said.get("for_s", defaults.GRANT_S),
        note=said.get("note", ""),
        renew=said.get("renew", False),
    )
    return answer({**shown(grant), "state": state_of(grant, visit.gateway.identity.now())}, 201)


async def revoke(visit: Visit) -> Response:
    """DELETE /v1/grants/{id}"""
    grant = await visit.gateway.grants.revoke(visit.principal, visit.request.path_params["id"])
    return answer({**shown(grant), "state": state_of(grant, visit.gateway.identity.now())})


async def elevate(visit: Visit) -> Response:
    """POST /v1/elevations: an approval like any other, and a grant once it is given"""
    said = await visit.members(ELEVATION)
    found = await visit.gateway.grants.elevate(
        visit.principal, said["scope"], said["reason"], said.get("for_s", defaults.GRANT_S)
    )
    return answer(asked_for(found), 202)


def shown(grant: AccessGrant) -> dict[str, Any]:
    return {
        "id": grant.id,
        "person": grant.person,
        "agent": grant.agent,
        "scope": grant.scope,
        "granted_by": grant.granted_by or None,
        "note": grant.note,
        "expires_at": None if grant.waits else iso(grant.expires_at),
        "renewed": grant.renewed,
        "approval_id": grant.approval_id,
    }


def state_of(grant: AccessGrant, now: float) -> str:
    if grant.ended_at is not None:
        return "revoked"
    if grant.waits:
        return "waiting"
    return "held" if grant.holds(now) else "over"


def asked_for(found: Elevation) -> dict[str, Any]:
    told = found.approval
    approval = {"id": told.id, "url": told.url, "expires_at": told.expires_at}
    return {"status": "held", "grant": found.grant.id, "message": found.message, "approval": approval}
