"""What is counted in the view of the calls, for health and alerts."""

from collections.abc import Mapping, Sequence

from holdfast.model.costs import OF_TASKS, PARTS
from holdfast.model.signs import Costed, Exhausted, Latency, Repeat
from holdfast.model.sums import DAY_S, Group, Sum, day_name
from holdfast.stores.sql.engine import Reader, Row

_LATENCIES = """
SELECT tool, bucket, CAST(SUM(calls) AS BIGINT) FROM traffic
WHERE tenant = ? AND minute >= ? AND minute < ? AND status IN ('done', 'partial') GROUP BY tool, bucket
"""
_REPEATS = """
SELECT caller, tool, status, code, calls, together FROM (
  SELECT caller, tool, status, code, CAST(SUM(calls) AS BIGINT) AS calls,
    CAST(SUM(SUM(calls)) OVER (PARTITION BY minute, caller, tool) AS BIGINT) AS together
  FROM traffic WHERE tenant = ? AND minute >= ? AND tool <> '' GROUP BY minute, caller, tool, status, code
) AS counted
WHERE calls >= ? AND status NOT IN ('done', 'partial', 'preview', 'held')
ORDER BY caller, tool, calls DESC, status, code
"""
_REPEATS_DONE = """
SELECT caller, task, tool, status, code, calls, together FROM (
  SELECT caller, task, tool, status, code, COUNT(*) AS calls,
    CAST(SUM(COUNT(*)) OVER (PARTITION BY caller, task, tool) AS BIGINT) AS together
  FROM call_view WHERE tenant = ? AND at >= ? AND task <> '' AND tool <> '' AND status <> 'running'
  GROUP BY caller, task, tool, status, code
) AS counted WHERE calls >= ? AND status = 'done' ORDER BY caller, task, tool, code
"""
# Said so that the index is used that leaves out what was done, which is most.
_EXHAUSTED = """
SELECT tool, version, attempts, COUNT(*) FROM (
  SELECT tool, version, attempts FROM call_view
  WHERE tenant = ?1 AND status <> 'done' AND status = 'failed' AND at >= ?2 AND attempts > 1
  UNION ALL
  SELECT tool, version, attempts FROM call_view
  WHERE tenant = ?1 AND status <> 'done' AND status = 'unknown' AND at >= ?2 AND attempts > 1
) AS failed GROUP BY tool, version, attempts ORDER BY tool, version, attempts
"""
_COSTS = """
SELECT tool, '', currency, day, CAST(SUM(cost) AS BIGINT) FROM spending
WHERE tenant = ?1 AND day >= ?2 AND tool <> '' GROUP BY tool, currency, day
UNION ALL
SELECT '', task, currency, MAX(day), CAST(SUM(cost) AS BIGINT) FROM spending
WHERE tenant = ?1 AND day >= ?2 AND task <> '' GROUP BY task, currency
"""
_PARTS = (*PARTS, *OF_TASKS)
_OF_PARTS = ", ".join(f"CAST(SUM({part}) AS BIGINT)" for part in _PARTS)
_EACH = ", ".join(f"SUM(CASE WHEN part = '{part}' THEN cost ELSE 0 END) AS {part}" for part in _PARTS)
# One call has a row for each of its parts: the largest says how many calls there were.
_SUMS = f"""
SELECT named, currency, CAST(SUM(calls) AS BIGINT), CAST(SUM(cost) AS BIGINT) AS cost, {_OF_PARTS} FROM (
  SELECT {{}} AS named, currency, MAX(calls) AS calls, SUM(cost) AS cost, {_EACH} FROM {{}}
  WHERE tenant = ? AND day >= ? AND day < ? {{}} GROUP BY {{}}
) AS each_ GROUP BY named, currency ORDER BY 4 DESC, named, currency LIMIT ?
"""  # noqa: S608
_CALLS = "day, tool, caller, currency"
_SUMS_OF: Mapping[Group, tuple[str, str]] = {
    "task": ("task", "day, task, tool, caller, currency"),
    "tool": ("tool", _CALLS),
    "caller": ("caller", _CALLS),
    "day": ("day", _CALLS),
    "part": ("part", f"{_CALLS}, part"),
    "tenant": ("tenant", f"tenant, {_CALLS}"),
}
"""The column they are named after, and what keeps calls apart, in the order of the key: nothing is sorted."""


class SqlSigns:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def latencies(self, tenant: str, since: float, until: float) -> Sequence[Latency]:
        values = (tenant, int(since // 60), int(until // 60))
        return [Latency(*row) for row in await self._reader.slow(tenant, _LATENCIES, values)]

    async def repeats(self, tenant: str, since: float, least: int) -> Sequence[Repeat]:
        values = (tenant, int(since // 60), least)
        rows = await self._reader.slow(tenant, _REPEATS, values)
        done = await self._reader.slow(tenant, _REPEATS_DONE, (tenant, since, least))
        return [Repeat(row[0], "", *row[1:]) for row in rows] + [Repeat(*row) for row in done]

    async def exhausted(self, tenant: str, since: float) -> Sequence[Exhausted]:
        return [Exhausted(*row) for row in await self._reader.slow(tenant, _EXHAUSTED, (tenant, since))]

    async def sums(
        self, tenant: str, group: Group, since: float, until: float, caller: str | None, most: int
    ) -> Sequence[Sum]:
        name, apart = _SUMS_OF[group]
        table = "spending" if group == "task" else "spending_day"
        text = _SUMS.format(name, table, "" if caller is None else "AND caller = ?", apart)
        days = (int(since // DAY_S), -int(-until // DAY_S))
        values = (tenant, *days, *(() if caller is None else (caller,)), most)
        return [_sum(group, row) for row in await self._reader.slow(tenant, text, values)]

    async def costs(self, tenant: str, since: float) -> Sequence[Costed]:
        values = (tenant, int(since // DAY_S))
        return [Costed(*row) for row in await self._reader.slow(tenant, _COSTS, values)]


def _sum(group: Group, row: Row) -> Sum:
    named, currency, calls, cost, *parts = row
    return Sum(
        name=day_name(named) if group == "day" else named,
        currency=currency,
        calls=calls,
        cost=cost,
        parts={part: amount for part, amount in zip(_PARTS, parts, strict=True) if amount},
    )
