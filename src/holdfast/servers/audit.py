"""How is the log read over HTTP? Each tenant sees its own records and can prove them to anybody."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any

import orjson
from starlette.responses import Response

from holdfast.model.fields import FieldError
from holdfast.model.record import Entry, Proof
from holdfast.servers.answers import answer
from holdfast.servers.members import AUDIT, faults
from holdfast.servers.visit import Visit

PAGE = 100
LARGEST_PAGE = 1000


async def records(visit: Visit) -> Response:
    """GET /v1/audit"""
    wanted: dict[str, Any] = dict(visit.request.query_params)
    if (limit := wanted.get("limit", "")).isdecimal() and len(limit) < 10:
        wanted["limit"] = int(limit)
    visit.refuse(faults(wanted, AUDIT))
    size = min(wanted.get("limit") or PAGE, LARGEST_PAGE)
    at, leaf = _after(visit, wanted.get("cursor"), _since(visit, wanted.get("since")))
    call = wanted.get("call")
    if call is None:
        found = await visit.gateway.log.since(visit.principal, at, leaf, size + 1)
    else:
        found = await visit.gateway.log.of_call(visit.principal, call, leaf, size + 1)
    page, more = found[:size], len(found) > size
    return answer(
        {"records": [shown(entry) for entry in page], "next_cursor": _cursor(page[-1]) if more else None}
    )


async def proof(visit: Visit) -> Response:
    """GET /v1/audit/proof/{record}"""
    return answer(
        shown_proof(await visit.gateway.log.prove(visit.principal, visit.request.path_params["record"]))
    )


def shown(entry: Entry) -> dict[str, Any]:
    """A record to read; its exact bytes are in its proof."""
    record = entry.record
    return {
        "record": record.id,
        "leaf": entry.leaf,
        "call_id": record.call_id,
        "kind": record.kind,
        "at": _time(record.at),
        "hash": record.hash.hex(),
        "body": orjson.loads(record.body),
    }


def shown_proof(proof: Proof) -> dict[str, Any]:
    """Everything that is needed to check it without us: hash the record, follow the path, check the note."""
    record = proof.entry.record
    members = record._asdict() | {"prev": record.prev.hex(), "hash": record.hash.hex()}
    return {
        "record": members,
        "leaf": proof.entry.leaf,
        "size": proof.size,
        "root": proof.root.hex(),
        "path": [step.hex() for step in proof.path],
        "checkpoint": proof.checkpoint,
        "anchored": proof.checkpoint is not None,
    }


def _since(visit: Visit, said: str | None) -> float:
    if said is None:
        return 0.0
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        message = "member 'since' must be a time such as 2026-01-31T08:00:00Z"
        visit.refuse([FieldError("/since", "a time", "something else", message)])
        raise
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _cursor(last: Entry) -> str:
    return urlsafe_b64encode(f"{last.record.at!r} {last.leaf}".encode()).decode().rstrip("=")


def _after(visit: Visit, cursor: str | None, since: float) -> tuple[float, int]:
    if cursor is None:
        return since, -1
    try:
        at, leaf = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        return float(at), int(leaf)
    except ValueError:
        message = "member 'cursor' must be a 'next_cursor' of an earlier page"
        visit.refuse([FieldError("/cursor", "a 'next_cursor'", "something else", message)])
        raise


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
