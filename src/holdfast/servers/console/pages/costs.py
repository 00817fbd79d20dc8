"""*Budgets and costs*: what is left, and what was spent on what?"""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from holdfast.gateway.costs import Group, Sum
from holdfast.gateway.limits import Standing
from holdfast.servers.console.look import Look

DAY_S = 86_400.0
SPANS = {"1": "today", "7": "7 days", "30": "30 days", "90": "90 days"}
GROUPS: dict[str, Group] = {"tool": "tool", "task": "task", "part": "part", "caller": "caller"}
MOST = 50
"""Lines of one table."""


async def page(look: Look) -> Response:
    """GET /costs"""
    gateway, by = look.gateway, look.principal
    days = look.query.get("days", "30")
    days = days if days in SPANS else "30"
    since = (gateway.identity.now() // DAY_S - int(days) + 1) * DAY_S
    await gateway.views.fresh()
    daily = await gateway.costs.sums(by, "day", since, fresh=False)
    by_group = {
        name: await gateway.costs.sums(by, group, since, most=MOST + 1, fresh=False)
        for name, group in GROUPS.items()
    }
    budgets = sorted((_budget(one) for one in await gateway.budgets(by)), key=_fullest)
    return await look.page(
        "costs.html",
        budgets=budgets[:MOST],
        more_budgets=max(len(budgets) - MOST, 0),
        totals=_totals(daily),
        daily=daily,
        groups={name: (sums[:MOST], len(sums) > MOST) for name, sums in by_group.items()},
        days=days,
        spans=SPANS,
        everybody=gateway.operates(by),
    )


def _fullest(budget: dict[str, Any]) -> float:
    """What is nearly used up comes first: with one for each task there are many."""
    shares = [bound["taken"] / bound["limit"] if bound["limit"] else 0.0 for bound in budget["bounds"]]
    return -max(shares, default=0.0)


def _totals(daily: Sequence[Sum]) -> dict[str, tuple[int, int]]:
    """Cost and calls by currency: nobody adds up different ones."""
    told: dict[str, tuple[int, int]] = {}
    for one in daily:
        cost, calls = told.get(one.currency, (0, 0))
        told[one.currency] = (cost + one.cost, calls + one.calls)
    return told


def _budget(standing: Standing) -> dict[str, Any]:
    said = standing.shown()
    bounds = [
        {
            "unit": name,
            "limit": limit,
            "used": said["used"][name] or 0,
            "reserved": said["reserved"][name] or 0,
            "taken": (said["used"][name] or 0) + (said["reserved"][name] or 0),
            "left": said["left"][name],
        }
        for name, limit in said["limit"].items()
        if limit is not None
    ]
    return {**said, "bounds": bounds, "currency": standing.budget.currency}
