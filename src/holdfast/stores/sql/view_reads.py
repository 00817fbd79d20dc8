"""Which statement finds what somebody looks for in the view, without looking at all of it?

One of what is wanted leads: its index gives the calls in their order, and the rest is held against each. The
others are written so that no planner takes their index for the better one: without knowing how many calls are
alike in something it would. Figures of long stretches come from tables that were added up before.
"""

from typing import NamedTuple

from holdfast.model.view import CallRow, Wanted
from holdfast.stores.projection import DAY_S, HOUR_S, MINUTE_S, numbers

_ROW = ", ".join(CallRow._fields)
ONE = f"SELECT {_ROW} FROM call_view WHERE tenant = ? AND call_id = ? AND tool <> ''"  # noqa: S608
PLACE = "SELECT at, call_id, leaf FROM call_view WHERE tenant = ? AND call_id = ?"

_CALLS = "CAST(sum(calls) AS bigint)"
_TRAFFIC = f"SELECT minute, tool, status, code, bucket, {_CALLS} FROM traffic"  # noqa: S608
_BY_ALL = "GROUP BY minute, tool, status, code, bucket ORDER BY minute, tool, status, code, bucket"
TRAFFIC = f"{_TRAFFIC} WHERE tenant = ? AND minute >= ? AND minute < ? {_BY_ALL}"
ALL_TRAFFIC = f"{_TRAFFIC} WHERE minute >= ? AND minute < ? {_BY_ALL}"

_SPENT = "day, task, tool, caller, part, currency"
SPENDING = f"""
SELECT {_SPENT}, calls, cost FROM spending WHERE tenant = ? AND day >= ? AND day < ? ORDER BY {_SPENT}
"""  # noqa: S608
ALL_SPENDING = f"""
SELECT {_SPENT}, {_CALLS}, CAST(sum(cost) AS bigint) FROM spending WHERE day >= ? AND day < ?
GROUP BY {_SPENT} ORDER BY {_SPENT}
"""  # noqa: S608

_STEPS = """
SELECT minute / ?4 * ?4 * 60, status, bucket, CAST(sum(calls) AS bigint) FROM traffic
WHERE tenant = ?1 AND minute >= ?2 AND minute < ?3 {}GROUP BY 1, status, bucket ORDER BY 1, status, bucket
"""
_HOURS = """
SELECT hour / ?4 * ?4 * 3600, status, bucket, CAST(sum(calls) AS bigint) FROM traffic_hour
WHERE tenant = ?1 AND hour >= ?2 AND hour < ?3 GROUP BY 1, status, bucket ORDER BY 1, status, bucket
"""
_EACH_HOUR = """
SELECT hour * 3600, status, bucket, calls FROM traffic_hour
WHERE tenant = ? AND hour >= ? AND hour < ? ORDER BY hour, status, bucket
"""
STEPS, STEPS_OF = _STEPS.format(""), _STEPS.format("AND caller = ?5 ")
TOOLS_OF = """
SELECT tool, status, bucket, CAST(sum(calls) AS bigint) FROM traffic
WHERE tenant = ?1 AND minute >= ?2 AND caller = ?3 GROUP BY tool, status, bucket ORDER BY tool, status, bucket
"""
# The rest of the first day by the minute, whole days after it.
TOOLS = """
SELECT tool, status, bucket, CAST(sum(calls) AS bigint) FROM (
  SELECT tool, status, bucket, calls FROM traffic WHERE tenant = ?1 AND minute >= ?2 AND minute < ?3 * 1440
  UNION ALL SELECT tool, status, bucket, calls FROM traffic_day WHERE tenant = ?1 AND day >= ?3
) AS counted GROUP BY tool, status, bucket ORDER BY tool, status, bucket
"""

_LEADS = ("task", "code", "status", "tool", "upstream", "caller", "agent", "effect")
"""The fewer calls have the same, the further in front."""
_MOST_ARE = {"status": "done", "effect": "read_only", "code": "", "task": ""}
"""What leads nowhere: no index has it."""


class Place(NamedTuple):
    """Where a call is in the list."""

    at: float
    call_id: str
    leaf: int


class Question(NamedTuple):
    text: str
    values: tuple[object, ...]
    slow: bool = True
    """It may look at many rows."""


def calls(tenant: str, wanted: Wanted, place: Place | None) -> Question:
    """`place` is that of the call they came to last."""
    asked = _asked(wanted)
    tail = wanted.after is not None
    lead = None if tail or wanted.alarmed else _lead(asked)
    conditions = [_equal(name, said, lead) for name, said in asked.items()]
    values: list[object] = list(asked.values())
    if lead in _MOST_ARE:
        conditions.append(f"{lead} <> '{_MOST_ARE[lead]}'")
    if wanted.alarmed:
        conditions.append("alarms > 0")  # few are: theirs is the shortest index
    for condition, some in _bounds(wanted, place):
        conditions.append(condition)
        values += some
    order = "leaf" if tail else "at DESC, call_id DESC"
    where = " AND ".join(["tenant = ?", *conditions, "tool <> ''"])
    text = f"SELECT {_ROW} FROM call_view WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
    plain = len(asked) <= (lead is not None)
    return Question(text, (tenant, *values, wanted.limit), slow=not plain)


def _asked(wanted: Wanted) -> dict[str, str]:
    """What must be equal to what, the most telling first."""
    said = {name: getattr(wanted, name) for name in ("task", "code", "status", "caller", "agent", "effect")}
    if wanted.tool is not None and wanted.tool.endswith(".*"):
        said["upstream"] = wanted.tool.removesuffix(".*")
    elif wanted.tool is not None:
        said["tool"] = wanted.tool
    return {name: said[name] for name in _LEADS if said.get(name) is not None}


def _lead(asked: dict[str, str]) -> str | None:
    return next((name for name in asked if asked[name] != _MOST_ARE.get(name)), None)


def _equal(name: str, said: str, lead: str | None) -> str:
    indexed = name != lead and said != _MOST_ARE.get(name)
    return f"coalesce({name}, '') = ?" if indexed else f"{name} = ?"


def _bounds(wanted: Wanted, place: Place | None) -> list[tuple[str, tuple[object, ...]]]:
    """Conditions with their values: of two that bound the same end, the closer one."""
    found: list[tuple[str, tuple[object, ...]]] = []
    if wanted.since is not None:
        found.append(("at >= ?", (wanted.since,)))
    if wanted.before is not None and place is not None and place.at < (wanted.until or place.at + 1):
        found.append(("(at, call_id) < (?, ?)", (place.at, place.call_id)))
    elif wanted.until is not None:
        found.append(("at < ?", (wanted.until,)))
    if wanted.after is not None:  # what is gone is older than all that is there
        found.append(("leaf > ?", (-1 if place is None else place.leaf,)))
    return found


def steps(tenant: str, since: float, until: float, step_s: int, caller: str | None) -> Question:
    if caller is None and step_s % HOUR_S == 0 and since % HOUR_S == 0:
        hours = (tenant, *numbers(since, until, HOUR_S))
        return (
            Question(_EACH_HOUR, hours) if step_s == HOUR_S else Question(_HOURS, (*hours, step_s // HOUR_S))
        )
    values = (tenant, *numbers(since, until, MINUTE_S), max(step_s // MINUTE_S, 1))
    return Question(STEPS, values) if caller is None else Question(STEPS_OF, (*values, caller))


def tools(tenant: str, since: float, caller: str | None) -> Question:
    values = (tenant, int(since // MINUTE_S))
    if caller is not None:
        return Question(TOOLS_OF, (*values, caller))
    return Question(TOOLS, (*values, -int(-since // DAY_S)))
