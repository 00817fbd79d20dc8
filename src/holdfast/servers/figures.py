"""How are health, alerts and costs read over HTTP, and other costs of a task told? TEL-3, TEL-4, TEL-5."""

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from holdfast.gateway.alerts import shown
from holdfast.gateway.costs import GROUPS
from holdfast.model import defaults
from holdfast.model.costs import OF_TASKS
from holdfast.model.fields import FieldError
from holdfast.model.moment import iso
from holdfast.servers.answers import answer
from holdfast.servers.members import Member, Members, choice, faults, text
from holdfast.servers.visit import Visit

DAY_S = 86_400.0
COST_DAYS = 30.0

ALERTS: Members = {"since": text()}
COSTS: Members = {"by": choice(*GROUPS, required=False), "since": text()}
REPORT: Members = {
    "task": text(required=True),
    "part": choice(*OF_TASKS),
    "amount": Member("a number", lambda value: type(value) in (int, float), required=True),
    "currency": text(),
}


async def health(visit: Visit) -> Response:
    """GET /v1/health"""
    desk = visit.gateway.health
    tools, upstreams = await desk.tools(visit.principal), await desk.upstreams(visit.principal)
    return answer(
        {
            "window_s": defaults.HEALTH_WINDOW_S,
            "tools": [one.shown() for one in tools],
            "upstreams": [one.shown() for one in upstreams],
        }
    )


async def alerts(visit: Visit) -> Response:
    """GET /v1/alerts: those that are open, or all since a time"""
    wanted = _wanted(visit, ALERTS)
    desk = visit.gateway.alerts
    if "since" in wanted:
        found = await desk.list(visit.principal, _since(visit, wanted["since"]))
    else:
        found = await desk.open(visit.principal)
    return answer({"alerts": [shown(alert) for alert in found]})


async def costs(visit: Visit) -> Response:
    """GET /v1/costs"""
    wanted = _wanted(visit, COSTS)
    group = wanted.get("by", "tool")
    since = datetime.now(UTC).timestamp() - COST_DAYS * DAY_S
    if "since" in wanted:
        since = _since(visit, wanted["since"])
    found = await visit.gateway.costs.sums(visit.principal, group, since)
    return answer({"by": group, "since": iso(since), "costs": [one.shown() for one in found]})


async def report(visit: Visit) -> Response:
    """POST /v1/costs: what a task cost beside its calls"""
    said = await visit.members(REPORT)
    told = (said["task"], said["part"], said["amount"], said.get("currency", "USD"))
    await visit.gateway.costs.report(visit.principal, *told)
    return answer(dict(zip(REPORT, told, strict=True)), 201)


def _wanted(visit: Visit, members: Members) -> dict[str, Any]:
    wanted: dict[str, Any] = dict(visit.request.query_params)
    visit.refuse(faults(wanted, members))
    return wanted


def _since(visit: Visit, said: str) -> float:
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        message = "member 'since' must be a time such as 2026-01-31T08:00:00Z"
        visit.refuse([FieldError("/since", "a time", "something else", message)])
        raise
    return max((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), 0.0)
