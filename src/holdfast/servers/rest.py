"""How do applications call tools over plain HTTP?"""

from typing import Any

from starlette.responses import Response

from holdfast.model.errors import NotFound
from holdfast.model.observation import Observation
from holdfast.servers.answers import answer, found, observed
from holdfast.servers.listing import page
from holdfast.servers.members import WHY, WHY_TOOL, faults
from holdfast.servers.visit import Visit


async def propose(visit: Visit) -> Response:
    """POST /v1/calls"""
    with visit.proposing():
        body = await visit.acceptable()
        visit.refuse(visit.check_call(body))
    return observed(await visit.call(body))


async def look_up(visit: Visit) -> Response:
    """GET /v1/calls/{id}"""
    return found(await known_call(visit, visit.request.path_params["id"]))


async def tools(visit: Visit) -> Response:
    """GET /v1/tools"""
    wanted: dict[str, Any] = dict(visit.request.query_params)
    if (limit := wanted.get("limit", "")).isdecimal() and len(limit) < 10:
        wanted["limit"] = int(limit)
    return answer(page(visit, wanted))


async def why(visit: Visit) -> Response:
    """GET /v1/why?tool=..."""
    wanted: dict[str, Any] = dict(visit.request.query_params)
    visit.refuse(faults(wanted, WHY_TOOL))
    return answer((await visit.gateway.why(visit.principal, wanted["tool"])).to_dict())


async def why_with_arguments(visit: Visit) -> Response:
    """POST /v1/why"""
    said = await visit.members(WHY)
    found = await visit.gateway.why(visit.principal, said["tool"], said.get("arguments"))
    return answer(found.to_dict())


async def known_call(visit: Visit, call_id: str) -> Observation:
    observation = await visit.gateway.find(visit.principal, call_id)
    if observation is None:
        raise NotFound(f"no call '{call_id[:64]}' is known here, or it is not yours")
    return observation
