"""*Live*: which calls happen now, and which happened?"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

import orjson
from starlette.responses import Response

from holdfast.model.derive import MutationClass
from holdfast.model.people import Alert
from holdfast.model.timeout import timeout
from holdfast.model.view import CallRow, Wanted
from holdfast.servers.console.asking import FILTERS, PAGE, STATUSES, address, wanted
from holdfast.servers.console.feed import WINDOW, Heard, feed_of
from holdfast.servers.console.look import Look
from holdfast.servers.console.security import HEADERS
from holdfast.servers.console.streams import still_there, streamed
from holdfast.servers.console.writing import rendered

SPANS = {"1h": (3600, 60), "6h": (21_600, 300), "24h": (86_400, 900), "7d": (604_800, 7200)}
"""What a plot looks back, in seconds, and what one point of it stands for."""
STREAM_S = 60.0
"""How long one stream lasts; then the page asks again, and is asked again who it is."""
MOMENT_S = 1.0
QUIET_S = 15.0
"""A line is sent at least that often, so that nobody between takes the connection for dead."""
There = dict[str, CallRow | None]
"""What is on a page, as it was last told; None: as the page was made."""
MOST_NAMES = 500
"""Tools offered where one is typed."""


async def page(look: Look) -> Response:
    """GET /live"""
    gateway, by, said = look.gateway, look.principal, look.query
    await gateway.views.fresh()
    asked = wanted(said)
    found = await gateway.views.calls(by, asked)
    deep = "before" in said
    names = sorted({listing.tool.contract.tool for listing in gateway.catalog(by)})
    last = found.rows[-1].call_id if found.more else None
    newest = max((row.call_id for row in found.rows), default="")  # the list is by when they were decided
    return await look.page(
        "live.html",
        rows=found.rows,
        older=address("/live", said, before=last) if last else None,
        newer=address("/live", said, before=None) if deep else None,
        stream=None if deep or asked.until else address("/live/events", _kept(said), after=newest),
        said=said,
        filtered=any(name in said for name in FILTERS),
        statuses=STATUSES,
        effects=[effect.value for effect in MutationClass],
        names=names[:MOST_NAMES],
        upstreams=sorted({name.partition(".")[0] for name in names}),
        alerts=await alerts(look),
        traffic=await _traffic(look, "1h"),
        spans=list(SPANS),
        everybody=gateway.operates(by),
    )


async def traffic(look: Look) -> Response:
    """GET /live/traffic.json?span=1h: throughput and latency, for the plots"""
    span = look.query.get("span", "1h")
    told = await _traffic(look, span if span in SPANS else "1h")
    return Response(orjson.dumps(told), headers=HEADERS, media_type="application/json")


async def events(look: Look) -> Response:
    """GET /live/events: rows of the list as they come, for as long as a page is open"""
    return streamed(look, _rows(look))


async def alerts(look: Look) -> Sequence[Alert]:
    """What is wrong now, for those who may know."""
    if not look.gateway.operates(look.principal):
        return ()
    return await look.gateway.alerts.open(look.principal)


async def _traffic(look: Look, span: str) -> dict[str, object]:
    back, step = SPANS[span]
    now = look.gateway.identity.now()
    slots = await look.gateway.views.traffic(look.principal, now - back, now, step)
    calls = sum(slot.calls for slot in slots)
    failed, refused = sum(slot.failed for slot in slots), sum(slot.refused for slot in slots)
    slowest = max((slot.p95_ms for slot in slots if slot.p95_ms is not None), default=None)
    return {
        "span": span,
        "at": [slot.at for slot in slots],
        "calls": [slot.calls for slot in slots],
        "failed": [slot.failed for slot in slots],
        "refused": [slot.refused for slot in slots],
        "held": [slot.held for slot in slots],
        "p50": [slot.p50_ms for slot in slots],
        "p95": [slot.p95_ms for slot in slots],
        "total": {"calls": calls, "failed": failed, "refused": refused, "slowest": slowest},
    }


def _kept(said: Mapping[str, str]) -> dict[str, str]:
    """The filters of a page, without where in the list it is."""
    return {name: value for name, value in said.items() if name in FILTERS}


async def _rows(look: Look) -> AsyncIterator[bytes]:
    asked = wanted(look.query)
    after = look.request.headers.get("last-event-id") or look.query.get("after", "")
    clock = asyncio.get_running_loop().time
    ends, spoke = clock() + STREAM_S, clock()
    async with feed_of(look.gateway).heard(look.principal) as heard:
        yield b"retry: 500\n\n"
        since = await look.gateway.views.calls(look.principal, Wanted(limit=WINDOW))
        there: There = {
            row.call_id: None for row in since.rows if row.call_id <= after and matches(row, asked)
        }
        if first := _message(look, since.rows[:PAGE], asked, there):
            yield first
        while clock() < ends and not look.gateway.draining:
            rows = await _next(heard)
            if rows and not await still_there(look):
                return
            message = _message(look, rows, asked, there)
            if not message and clock() - spoke >= QUIET_S:
                message = b": still here\n\n"
            if message:
                spoke = clock()
                yield message


async def _next(heard: Heard) -> list[CallRow]:
    """What came within a moment; nothing, for the stream may have to end."""
    try:
        async with timeout(MOMENT_S):
            return await heard.get()
    except TimeoutError:
        return []


def _message(look: Look, rows: Sequence[CallRow], asked: Wanted, there: There) -> bytes:
    """Rows that are not on the page go on top of it, others take the place of what is there of them.

    What is not asked for any more leaves it: a call that is done, where those that run are asked for.
    """
    kept = [row for row in rows if matches(row, asked) and there.get(row.call_id) != row]
    gone = [row.call_id for row in rows if row.call_id in there and not matches(row, asked)]
    if not kept and not gone:
        return b""
    fresh = {row.call_id for row in kept} - there.keys()
    there.update({row.call_id: row for row in kept})
    for call_id in gone:
        del there[call_id]
    told = {"rows": kept, "fresh": fresh, "gone": gone, "now": look.gateway.identity.now()}
    text = rendered("live_rows.html", told)
    lines = b"".join(b"data: %b\n" % line.encode() for line in text.splitlines() if line.strip())
    return b"id: %b\n%b\n" % (max(there, default="").encode(), lines)


def matches(row: CallRow, asked: Wanted) -> bool:
    """Whether a call is one of those asked for; the store says the same of those it keeps."""
    if asked.tool is not None and not _names(asked.tool, row):
        return False
    exact = ("caller", "agent", "status", "code", "effect", "task")
    if any(getattr(asked, name) not in (None, getattr(row, name)) for name in exact):
        return False
    return (asked.since is None or row.at >= asked.since) and (not asked.alarmed or row.alarms > 0)


def _names(tool: str, row: CallRow) -> bool:
    return row.upstream == tool[:-2] if tool.endswith(".*") else row.tool == tool
