"""How are chains looked at, run, and their runs gone on with over HTTP?

Who may do what is the gateway's decision: it raises Forbidden, and the guard answers 403.
"""

from typing import Any

from starlette.responses import Response

from holdfast.model.errors import NotFound
from holdfast.servers.answers import answer
from holdfast.servers.members import Member, Members, text
from holdfast.servers.visit import Visit

OBJECT = Member("an object", lambda value: isinstance(value, dict), required=True)
RUN: Members = {"chain": text(required=True), "input": OBJECT, "key": text(required=True)}
PLAN: Members = {"input": OBJECT}
ABANDONED: Members = {"note": text(required=True)}


async def chains(visit: Visit) -> Response:
    """GET /v1/chains"""
    from holdfast.gateway.chains import told_report

    found = visit.gateway.chains.seen(visit.principal)
    return answer({"chains": [told_report(report) for report in found.values()]})


async def chain(visit: Visit) -> Response:
    """GET /v1/chains/{name}"""
    from holdfast.chains.writing import written
    from holdfast.gateway.chains import told_report

    name = visit.request.path_params["name"]
    report = visit.gateway.chains.seen(visit.principal).get(name)
    if report is None:
        raise _unknown(name)
    return answer({**told_report(report), "declared": written(report.chain)})


async def plan(visit: Visit) -> Response:
    """POST /v1/chains/{name}/plan"""
    from holdfast.servers.standing import STATUS, shown_planned

    said, name = await visit.members(PLAN), visit.request.path_params["name"]
    report = visit.gateway.chains.seen(visit.principal).get(name)
    if report is None:
        raise _unknown(name)
    found = await visit.gateway.chains.plan(visit.principal, report.chain, said["input"])
    return answer(shown_planned(found), STATUS[found.status])


async def runs(visit: Visit) -> Response:
    """GET /v1/runs"""
    from holdfast.gateway.chains import shown

    found = await visit.gateway.chains.list(visit.principal)
    return answer({"runs": [shown(run) for run in found]})


async def begin(visit: Visit) -> Response:
    """POST /v1/runs"""
    said = await visit.members(RUN)
    report = visit.gateway.chains.seen(visit.principal).get(said["chain"])
    if report is None:
        raise _unknown(said["chain"])
    begun = await visit.gateway.chains.start(visit.principal, report.chain, said["input"], said["key"])
    return answer(await _shown(visit, begun.id), 200 if begun.state.over else 202)


async def run(visit: Visit) -> Response:
    """GET /v1/runs/{id}"""
    return answer(await _shown(visit, visit.request.path_params["id"]))


async def resume(visit: Visit) -> Response:
    """POST /v1/runs/{id}/resume"""
    await visit.gateway.chains.resume(visit.principal, visit.request.path_params["id"])
    return answer(await _shown(visit, visit.request.path_params["id"]), 202)


async def abandon(visit: Visit) -> Response:
    """POST /v1/runs/{id}/abandon"""
    said, wanted = await visit.members(ABANDONED), visit.request.path_params["id"]
    await visit.gateway.chains.abandon(visit.principal, wanted, said["note"])
    return answer(await _shown(visit, wanted))


async def cancel(visit: Visit) -> Response:
    """POST /v1/runs/{id}/cancel"""
    wanted = visit.request.path_params["id"]
    asked = await visit.gateway.chains.cancel(visit.principal, wanted)
    return answer(await _shown(visit, wanted), 202 if asked else 409)


async def _shown(visit: Visit, run_id: str) -> dict[str, Any]:
    from holdfast.gateway.chains import told_run

    return told_run(await visit.gateway.chains.look(visit.principal, run_id))


def _unknown(name: str) -> NotFound:
    return NotFound(f"no chain '{name[:64]}' is here for you")
