"""*Audit*: what is on record, and is it still as it was written?"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from math import inf
from typing import Any, BinaryIO, NamedTuple

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from holdfast.model.record import Entry
from holdfast.servers.answers import TransportError
from holdfast.servers.console.asking import address, moment, wanted
from holdfast.servers.console.look import Look
from holdfast.servers.console.security import HEADERS

PAGE = 50
CALLS = 25
"""Calls whose records make a page, where a caller or a tool is looked for."""
SCANNED = 2000
"""Records looked at for one page where most are of another kind; then the page says how far it came."""
MOST_READ = 500
CHUNK = 65_536
OWN = "gateway"
"""Records of no tenant: halts, policies, what the gateway itself did."""
LAST = 2**62
KINDS = (
    *("intent", "outcome", "refusal", "hold", "replay", "late", "contradiction", "settle"),
    *("ask", "vote", "escalate", "security", "access", "policy", "control", "alarm"),
)


class Found(NamedTuple):
    entries: list[Entry]
    cursor: str | None
    looked_back_to: float | None = None
    """Where the look stopped, when it did so before the page was full."""


async def page(look: Look) -> Response:
    """GET /audit"""
    if not look.gateway.log.open_to(look.principal):
        return await look.page("audit.html", allowed=False)
    said = look.query
    found = await _found(look, said)
    return await look.page(
        "audit.html",
        allowed=True,
        records=[told(entry) for entry in found.entries],
        older=address("/audit", said, cursor=found.cursor) if found.cursor else None,
        looked_back_to=found.looked_back_to,
        state=await look.gateway.log.state(look.principal),
        said=said,
        kinds=KINDS,
        operates=look.gateway.operates(look.principal),
    )


async def record(look: Look) -> Response:
    """GET /audit/{record}: one record, and whether it is in the log, worked out now"""
    wanted_record = look.request.path_params["record"]
    proof = await look.gateway.log.prove(look.principal, wanted_record, own=True)
    verified = await look.gateway.timeline.proven(look.principal, wanted_record)
    if look.partly:
        return look.partial("proof.html", proven=verified)
    return await look.page("record.html", record=told(proof.entry), proven=verified)


async def export(look: Look) -> Response:
    """POST /audit/export: the tenant's log, to be verified by anybody with the public key"""
    form = await look.form()
    file = await look.gateway.log.export(look.principal, moment({"since": form.get("since")}, "since"))
    name = f"holdfast-audit-{look.principal.tenant}.jsonl"
    safe = "".join(one if one.isalnum() or one in ".-" else "_" for one in name if one.isascii())
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{safe}"'}
    return StreamingResponse(_pieces(file), headers=headers, media_type="application/jsonl")


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := await run_in_threadpool(file.read, CHUNK):
            yield piece


def told(entry: Entry) -> dict[str, Any]:
    """A record to read."""
    record, body = entry.record, orjson.loads(entry.record.body)
    by = body.get("caller") or body.get("by") or body.get("person") or ""
    return {
        "id": record.id,
        "leaf": entry.leaf,
        "call_id": record.call_id,
        "kind": record.kind,
        "at": record.at,
        "hash": record.hash.hex(),
        "body": body,
        "by": str(by),
        "about": str(
            body.get("tool") or body.get("target") or body.get("upstream") or body.get("version") or ""
        ),
        "what": str(body.get("status") or body.get("operation") or body.get("state") or ""),
        "note": str(body.get("note") or ""),
        "code": str(body.get("error_code") or ""),
    }


async def _found(look: Look, said: Mapping[str, str]) -> Found:
    kind = said.get("kind") if said.get("kind") in KINDS else None
    if said.get("of") == OWN:
        return await _by_time(look, said, kind)
    if call := said.get("call", "").strip():
        entries = await look.gateway.log.of_call(look.principal, call, -1, 1000)
        return Found([one for one in entries if kind in (None, one.record.kind)], None)
    if (said.get("tool") or said.get("caller")) and look.gateway.operates(look.principal):
        return await _of_calls(look, said, kind)
    return await _by_time(look, said, kind)


async def _of_calls(look: Look, said: Mapping[str, str], kind: str | None) -> Found:
    """By the list of calls, which is kept by tool and by caller; the log is not.

    Only an operator's list has every call: others who may read the log have it looked through.
    """
    await look.gateway.views.fresh()
    found = await look.gateway.views.calls(
        look.principal, wanted({**said, "before": said.get("cursor", "")}, CALLS)
    )
    entries: list[Entry] = []
    for row in found.rows:
        records = await look.gateway.log.of_call(look.principal, row.call_id, -1, PAGE)
        entries += [one for one in reversed(records) if kind in (None, one.record.kind)]
    return Found(entries, found.rows[-1].call_id if found.more else None)


async def _by_time(look: Look, said: Mapping[str, str], kind: str | None) -> Found:
    since = moment(said, "since") or 0.0
    at, leaf = _place(said.get("cursor"), moment(said, "until"))
    kept: list[Entry] = []
    looked = 0
    while looked < SCANNED:
        size = PAGE if kind is None and not (said.get("tool") or said.get("caller")) else MOST_READ
        page = await look.gateway.log.before(look.principal, at, leaf, size, own=said.get("of") == OWN)
        for entry in page:
            looked, at, leaf = looked + 1, entry.record.at, entry.leaf
            if at < since:
                return Found(kept, None)
            if kind in (None, entry.record.kind) and _tells(entry, said):
                kept.append(entry)
            if len(kept) == PAGE:
                return Found(kept, _cursor(at, leaf))
        if not page:
            return Found(kept, None)
    return Found(kept, _cursor(at, leaf), at)


def _tells(entry: Entry, said: Mapping[str, str]) -> bool:
    tool, caller = said.get("tool", "").strip(), said.get("caller", "").strip()
    if not (tool or caller):
        return True
    body = orjson.loads(entry.record.body)
    named = str(body.get("tool") or "").partition("@")[0]
    covered = named.startswith(tool[:-1]) if tool.endswith(".*") else tool in ("", named)
    return covered and caller in ("", body.get("caller"))


def _cursor(at: float, leaf: int) -> str:
    return urlsafe_b64encode(f"{at!r} {leaf}".encode()).decode().rstrip("=")


def _place(cursor: str | None, until: float | None) -> tuple[float, int]:
    if not cursor:
        return (inf if until is None else until), LAST
    try:
        at, leaf = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        return float(at), min(max(int(leaf), -1), LAST)
    except ValueError:
        raise TransportError(
            400, "this address goes on from nowhere", "begin at the newest records"
        ) from None
