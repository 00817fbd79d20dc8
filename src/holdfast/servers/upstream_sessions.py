"""How are sessions that upstreams keep open looked at and ended over HTTP?

Callers see their own, operators everybody's: that is the gateway's decision.
"""

from typing import Any

from starlette.responses import Response

from holdfast.model.upstream_session import SessionState
from holdfast.servers.answers import answer
from holdfast.servers.members import FLAG, Members, choice, text
from holdfast.servers.visit import Visit

UNDO: Members = {"partial": FLAG}
SETTLED: Members = {"outcome": choice("committed", "rolled-back"), "note": text()}
OUTCOMES = {"committed": SessionState.COMMITTED, "rolled-back": SessionState.ROLLED_BACK}


async def sessions(visit: Visit) -> Response:
    """GET /v1/sessions"""
    from holdfast.gateway.session_shown import told

    found = await visit.gateway.upstream_sessions.list(visit.principal)
    return answer({"sessions": [told(one) for one in found]})


async def session(visit: Visit) -> Response:
    """GET /v1/sessions/{id}"""
    return answer(await _shown(visit))


async def rollback(visit: Visit) -> Response:
    """POST /v1/sessions/{id}/rollback"""
    ended = await visit.gateway.upstream_sessions.end(visit.principal, visit.request.path_params["id"])
    return answer(await _shown(visit), 200 if ended.state is SessionState.ROLLED_BACK else 202)


async def undo(visit: Visit) -> Response:
    """POST /v1/sessions/{id}/undo"""
    from holdfast.gateway.session_shown import told_undone

    said, wanted = await visit.members(UNDO), visit.request.path_params["id"]
    partial = bool(said.get("partial", False))
    now, done = await visit.gateway.upstream_sessions.undo(visit.principal, wanted, partial=partial)
    return answer(told_undone(now, done), 200 if now.state is SessionState.UNDONE else 202)


async def settle(visit: Visit) -> Response:
    """POST /v1/sessions/{id}/settle"""
    said, wanted = await visit.members(SETTLED), visit.request.path_params["id"]
    to, note = OUTCOMES[said["outcome"]], said.get("note", "")
    await visit.gateway.upstream_sessions.settle(visit.principal, wanted, to, note)
    return answer(await _shown(visit))


async def _shown(visit: Visit) -> dict[str, Any]:
    from holdfast.gateway.session_shown import told_shown

    wanted = visit.request.path_params["id"]
    return told_shown(await visit.gateway.upstream_sessions.look(visit.principal, wanted))
