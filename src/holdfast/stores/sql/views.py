"""Calls as people look at them, in tables beside the records.

One process at a time takes records in: they are read, parsed and added up before anybody has to wait for it,
and what was found holds as long as the mark has not moved. So no record is counted twice, and none is left
out by a process that dies in between.
"""

import asyncio
import logging
from collections.abc import Sequence
from itertools import groupby

from holdfast.model.view import Answered, CallRow, Spent, Traffic, Wanted
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.projected import COLUMNS, Line
from holdfast.stores.projection import DAY_S, HOUR_S, MINUTE_S, Name, Projection, Seen, numbers, seen
from holdfast.stores.sql import view_reads
from holdfast.stores.sql.engine import Reader, Row, Transaction, Writer
from holdfast.stores.worker import Workers

log = logging.getLogger(__name__)

BATCH = 512
"""Records taken in by one transaction, about 10 ms: calls want the writer too; fewer write more."""
PAGE = 64
"""Records read and parsed at a time, under 1 ms: calls want the event loop too."""
FORGET_BATCH = 500
"""Rows dropped in one transaction."""

MARK = "SELECT leaf FROM view_mark WHERE tenant = '*' AND name = 'calls'"
LAST = "SELECT coalesce(max(leaf), -1) FROM tree_leaf"
# Leaf by leaf, also where their records were pruned: however many of those there are, this stays short.
RECORDS = """
SELECT l.leaf, r.tenant, r.call_id, r.kind, r.at, r.body
FROM tree_leaf l JOIN record r USING (tenant, writer, seq) WHERE l.leaf > ? AND l.leaf <= ? ORDER BY l.leaf
"""
_LINES = f"SELECT {', '.join(COLUMNS)} FROM call_view WHERE tenant = ? AND call_id IN ({{}})"  # noqa: S608
_BEGIN = "INSERT INTO view_mark VALUES ('*', 'calls', -1) ON CONFLICT DO NOTHING"
_MOVE = "UPDATE view_mark SET leaf = ? WHERE tenant = '*' AND name = 'calls' AND leaf = ?"
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name not in ("tenant", "call_id"))
_PUT = f"""
INSERT INTO call_view VALUES ({", ".join("?" * len(COLUMNS))})
ON CONFLICT (tenant, call_id) DO UPDATE SET {_CHANGED}
"""  # noqa: S608
_COUNT = """
INSERT INTO traffic VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, minute, tool, status, code, bucket, caller)
DO UPDATE SET calls = traffic.calls + excluded.calls
"""
_COUNT_HOURS = """
INSERT INTO traffic_hour VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, hour, status, bucket) DO UPDATE SET calls = traffic_hour.calls + excluded.calls
"""
_COUNT_DAYS = """
INSERT INTO traffic_day VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, day, tool, status, bucket) DO UPDATE SET calls = traffic_day.calls + excluded.calls
"""
_MOST_SPENT = 2**60
"""A sum that does not fit any more would stop the view for good."""
_PAY = f"""
INSERT INTO spending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, day, task, tool, caller, part, currency)
DO UPDATE SET calls = spending.calls + excluded.calls,
  cost = spending.cost + CASE WHEN spending.cost < {_MOST_SPENT} THEN excluded.cost ELSE 0 END
"""  # noqa: S608
_PAY_DAYS = f"""
INSERT INTO spending_day VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, day, tool, caller, part, currency)
DO UPDATE SET calls = spending_day.calls + excluded.calls,
  cost = spending_day.cost + CASE WHEN spending_day.cost < {_MOST_SPENT} THEN excluded.cost ELSE 0 END
"""  # noqa: S608
_FORGET = """
DELETE FROM call_view WHERE tenant = ?1 AND call_id IN (
  SELECT call_id FROM call_view WHERE tenant = ?1 AND at < ?2 AND updated_at < ?2
  ORDER BY at, call_id LIMIT ?3)
"""
_FORGET_FIGURES = {
    "DELETE FROM traffic WHERE tenant = ? AND minute < ?": MINUTE_S,
    "DELETE FROM traffic_hour WHERE tenant = ? AND hour < ?": HOUR_S,
    "DELETE FROM traffic_day WHERE tenant = ? AND day < ?": DAY_S,
    "DELETE FROM spending WHERE tenant = ? AND day < ?": DAY_S,
    "DELETE FROM spending_day WHERE tenant = ? AND day < ?": DAY_S,
}
_TABLES = ("call_view", "traffic", "traffic_hour", "traffic_day", "spending", "spending_day", "view_mark")


class SqlViews:
    def __init__(self, writer: Writer, reader: Reader, workers: Workers) -> None:
        self._writer = writer
        self._reader = reader
        self._workers = workers

    # --- taking records in ------------------------------------------------------------------------

    async def keep_up(self, most: int) -> int:
        return await self.catch_up(most) if self._workers.leads() else 0

    async def catch_up(self, most: int) -> int:
        total = 0
        while total < most:
            taken = await self._take_in(min(BATCH, most - total))
            if taken == 0:
                break
            total += max(taken, 0)
        return total

    async def _take_in(self, most: int) -> int:
        """How many leaves were taken in; -1 where another process was faster."""
        mark, last = await self._mark()
        if mark > last:  # the tree is another one than this view was made from
            log.warning("views: the log ends before what was taken in from it; the view is made again")
            await self._writer.submit_long(EVERYWHERE, _start_over, mark)
            return -1
        to = min(mark + most, last)
        if to == mark:
            return 0
        records = await self._read(mark, to)
        projection = Projection(await self._lines(records))
        for start in range(0, len(records), PAGE):
            projection.take(records[start : start + PAGE])
            await asyncio.sleep(0)
        done = await self._writer.submit_long(EVERYWHERE, _write, mark, to, _rows(projection))
        return to - mark if done else -1

    async def _mark(self) -> tuple[int, int]:
        found = await self._reader.all(EVERYWHERE, MARK)
        [(last,)] = await self._reader.all(EVERYWHERE, LAST)
        return (int(found[0][0]) if found else -1), int(last)

    async def _read(self, mark: int, to: int) -> list[Seen]:
        records: list[Seen] = []
        for start in range(mark, to, PAGE):
            rows = await self._reader.all(EVERYWHERE, RECORDS, (start, min(start + PAGE, to)))
            records += [one for row in rows if (one := seen(*row)) is not None]
            await asyncio.sleep(0)
        return records

    async def _lines(self, records: Sequence[Seen]) -> list[Line]:
        """What is known of these calls already."""
        names: list[Name] = sorted({one.name for one in records})
        found: list[Row] = []
        for tenant, some in groupby(names, key=lambda name: name[0]):
            calls = [call_id for _, call_id in some]
            for start in range(0, len(calls), PAGE):
                wanted = calls[start : start + PAGE]
                wanted += [wanted[0]] * (PAGE - len(wanted))  # one statement for any number
                text = _LINES.format(", ".join("?" * PAGE))
                found += await self._reader.all(EVERYWHERE, text, (tenant, *wanted))
        return [Line(*row) for row in found]

    # --- looking ----------------------------------------------------------------------------------

    async def calls(self, tenant: str, wanted: Wanted) -> Sequence[CallRow]:
        cursor, place = wanted.before or wanted.after, None
        if cursor is not None:
            found = await self._reader.all(tenant, view_reads.PLACE, (tenant, cursor))
            place = view_reads.Place(*found[0]) if found else None
        if wanted.before is not None and place is None:
            return []  # what is gone was older than all that is there
        question = view_reads.calls(tenant, wanted, place)
        read = self._reader.slow if question.slow else self._reader.all
        return [call_row(row) for row in await read(tenant, question.text, question.values)]

    async def call(self, tenant: str, call_id: str) -> CallRow | None:
        rows = await self._reader.all(tenant, view_reads.ONE, (tenant, call_id))
        return call_row(rows[0]) if rows else None

    async def traffic(self, tenant: str, since: float, until: float) -> Sequence[Traffic]:
        values = numbers(since, until, MINUTE_S)
        if tenant == EVERYWHERE:
            rows = await self._reader.slow(tenant, view_reads.ALL_TRAFFIC, values)
        else:
            rows = await self._reader.slow(tenant, view_reads.TRAFFIC, (tenant, *values))
        return [Traffic(*row) for row in rows]

    async def by_step(
        self, tenant: str, since: float, until: float, step_s: int, caller: str | None = None
    ) -> Sequence[Answered]:
        question = view_reads.steps(tenant, since, until, step_s, caller)
        return [Answered(*row) for row in await self._reader.slow(tenant, question.text, question.values)]

    async def by_tool(self, tenant: str, since: float, caller: str | None = None) -> Sequence[Answered]:
        question = view_reads.tools(tenant, since, caller)
        return [Answered(*row) for row in await self._reader.slow(tenant, question.text, question.values)]

    async def spending(self, tenant: str, since: float, until: float) -> Sequence[Spent]:
        values = numbers(since, until, DAY_S)
        if tenant == EVERYWHERE:
            rows = await self._reader.slow(tenant, view_reads.ALL_SPENDING, values)
        else:
            rows = await self._reader.slow(tenant, view_reads.SPENDING, (tenant, *values))
        return [Spent(*row) for row in rows]

    async def forget(self, tenant: str, before: float) -> int:
        total = 0
        while gone := await self._writer.submit_long(tenant, _forget, tenant, before):
            total += gone
        return total


def _rows(projection: Projection) -> list[tuple[str, list[Row]]]:
    """What is to be written, by statement; whoever has the writer only writes."""
    sums = (
        (_COUNT, projection.traffic),
        (_COUNT_HOURS, projection.hours()),
        (_COUNT_DAYS, projection.days()),
    )
    rows: list[tuple[str, list[Row]]] = [(_PUT, [line.values() for line in projection.lines.values()])]
    rows += [(statement, [(*key, calls) for key, calls in sorted(some.items())]) for statement, some in sums]
    spent = (_PAY, projection.spending), (_PAY_DAYS, projection.spending_days())
    return rows + [(put, [(*key, *both) for key, both in sorted(some.items())]) for put, some in spent]


async def _write(transaction: Transaction, mark: int, to: int, rows: list[tuple[str, list[Row]]]) -> bool:
    """Only if nobody has taken these records in meanwhile."""
    await transaction.alone("views")
    if mark < 0:
        await transaction.run(_BEGIN)
    if await transaction.run(_MOVE, (to, mark)) != 1:
        return False
    for statement, some in rows:
        await transaction.many(statement, some)
    return True


async def _start_over(transaction: Transaction, mark: int) -> None:
    await transaction.alone("views")
    if await transaction.run(_MOVE, (-1, mark)) == 1:
        for table in _TABLES:
            await transaction.run(f"DELETE FROM {table}")  # noqa: S608


async def _forget(transaction: Transaction, tenant: str, before: float) -> int:
    """At most one batch; 0 when nothing is left to forget."""
    await transaction.alone("views")
    gone = await transaction.run(_FORGET, (tenant, before, FORGET_BATCH))
    if gone < FORGET_BATCH:  # the last round
        for statement, unit in _FORGET_FIGURES.items():
            await transaction.run(statement, (tenant, int(before // unit)))
    return gone


def call_row(row: Row) -> CallRow:
    made = CallRow(*row)
    return made._replace(replayed=bool(made.replayed))
