"""How are chains looked at, run, and their runs gone on with over HTTP?

Who may do what is the gateway's decision: it raises Forbidden, and the guard answers 403.
"""

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from holdfast.model.errors import ConfigError, HoldfastError, NotFound
from holdfast.model.trail import Origin
from holdfast.servers.answers import answer
from holdfast.servers.headers import trace
from holdfast.servers.members import Member, Members, text
from holdfast.servers.visit import Visit

if TYPE_CHECKING:
    from holdfast.chains.declared import Chain

OBJECT = Member("an object", lambda value: isinstance(value, dict), required=True)
RUN: Members = {"chain": text(required=True), "input": OBJECT, "key": text(required=True)}
PLAN: Members = {"input": OBJECT}
CHOSEN: Members = {"step": text(required=True), "case": text(required=True)}
NOTED: Members = {"note": text(required=True)}


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

    said, wanted = await visit.members(PLAN), _named(visit)
    found = await visit.gateway.chains.plan(visit.principal, wanted, said["input"])
    return answer(shown_planned(found), STATUS[found.status])


async def prove(visit: Visit) -> Response:
    """POST /v1/chains/{name}/prove"""
    from holdfast.gateway.proving_chains import told_proof

    said, wanted = await visit.members(PLAN), _named(visit)
    try:
        found = await visit.gateway.chains.inversions.prove(visit.principal, wanted, said["input"])
    except ConfigError as error:  # such as a twin that is not there, which says nothing of this server
        raise HoldfastError(str(error)) from None
    return answer(told_proof(found))


async def accept(visit: Visit) -> Response:
    """POST /v1/chains/{name}/accept"""
    from holdfast.gateway.proving_chains import told_undoable

    said, wanted = await visit.members(NOTED), _named(visit)
    taken = await visit.gateway.chains.inversions.accept(visit.principal, wanted, said["note"])
    return answer({"chain": wanted.name, "accepted": [told_undoable(one) for one in taken]})


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
    told = trace(visit.request.headers)
    origin = None if told is None else Origin(*told)
    begun = await visit.gateway.chains.start(
        visit.principal, report.chain, said["input"], said["key"], origin
    )
    return answer(await _shown(visit, begun.id), 200 if begun.state.over else 202)


async def run(visit: Visit) -> Response:
    """GET /v1/runs/{id}"""
    return answer(await _shown(visit, visit.request.path_params["id"]))


async def resume(visit: Visit) -> Response:
    """POST /v1/runs/{id}/resume"""
    await visit.gateway.chains.resume(visit.principal, visit.request.path_params["id"])
    return answer(await _shown(visit, visit.request.path_params["id"]), 202)


async def choose(visit: Visit) -> Response:
    """POST /v1/runs/{id}/choose"""
    said, wanted = await visit.members(CHOSEN), visit.request.path_params["id"]
    await visit.gateway.chains.choices.choose(visit.principal, wanted, said["step"], said["case"])
    return answer(await _shown(visit, wanted), 202)


async def abandon(visit: Visit) -> Response:
    """POST /v1/runs/{id}/abandon"""
    said, wanted = await visit.members(NOTED), visit.request.path_params["id"]
    await visit.gateway.chains.abandon(visit.principal, wanted, said["note"])
    return answer(await _shown(visit, wanted))


async def cancel(visit: Visit) -> Response:
    """POST /v1/runs/{id}/cancel"""
    wanted = visit.request.path_params["id"]
    asked = await visit.gateway.chains.cancel(visit.principal, wanted)
    return answer(await _shown(visit, wanted), 202 if asked else 409)


def _named(visit: Visit) -> "Chain":
    """The chain of the address, for whoever may know of it."""
    name = visit.request.path_params["name"]
    report = visit.gateway.chains.seen(visit.principal).get(name)
    if report is None:
        raise _unknown(name)
    return report.chain


async def _shown(visit: Visit, run_id: str) -> dict[str, Any]:
    from holdfast.gateway.chains import told_run

    return told_run(await visit.gateway.chains.look(visit.principal, run_id))


def _unknown(name: str) -> NotFound:
    return NotFound(f"no chain '{name[:64]}' is here for you")
