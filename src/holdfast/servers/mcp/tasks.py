"""How does a client that knows tasks follow a call that waits for a person?

Extension `io.modelcontextprotocol/tasks` (SEP-2663). The task is the call: its id is the call's, its state is
the ledger's, so it is there after a restart and in every other process. Once it is approved the gateway
itself makes the call, and the client finds the result here.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from pydantic import Field

from holdfast.model.errors import Code, HoldfastError
from holdfast.model.observation import Observation, Status
from holdfast.servers.mcp.errors import METHOD_NOT_FOUND, MISSING_CAPABILITY, wrong
from holdfast.servers.mcp.results import OBSERVATION, brief, paragraph, rendered

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2000
"""People take minutes; asking more often finds nothing sooner."""
_MADE = re.compile(r"call_([0-9a-f]{12})[0-9a-f]{16}$")


class TaskParams(RequestParams):
    task_id: str = Field(alias="taskId")


def wanted(exchange: "Exchange") -> bool:
    extensions = exchange.capabilities.get("extensions") if exchange.modern else None
    return extensions is not None and isinstance(extensions, Mapping) and EXTENSION in extensions


def created(seen: Observation, command: str) -> dict[str, Any]:
    """What `tools/call` answers instead of a result."""
    return {
        **_task(seen, "working", paragraph(seen, command)),
        "resultType": "task",
        "_meta": {OBSERVATION: brief(seen)},
    }


async def get(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    seen = await _found(hub, exchange)
    exchange.delivery.fetches(seen)  # once the outcome was fetched here, the next equal call is a new one
    return _shown(seen, hub.command)


async def update(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    """Nothing is asked of the client through a task, so there is nothing to take."""
    await _found(hub, exchange)
    return {}


async def cancel(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    """A wish: what has acted already goes on, and the task says so."""
    seen = await _found(hub, exchange)
    try:
        await hub.gateway.cancel(exchange.principal, seen.call_id)
    except HoldfastError as error:
        raise wrong(str(error)) from None
    return {}


async def _found(hub: "Hub", exchange: "Exchange") -> Observation:
    if not exchange.modern:
        raise MCPError(METHOD_NOT_FOUND, "tasks are served to clients of 2026-07-28 and later")
    if not wanted(exchange):
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_CAPABILITY, f"declare the extension '{EXTENSION}' to follow tasks", needed)
    task_id = str(exchange.params["taskId"])
    seen = await hub.gateway.find(exchange.principal, task_id)
    if seen is None:
        raise wrong(f"there is no task '{task_id[:64]}' here, or it is not yours")
    return seen


def _shown(seen: Observation, command: str) -> dict[str, Any]:
    if seen.status is Status.HELD or seen.unsettled:  # running looks unknown until it is over
        return _task(seen, "working", paragraph(seen, command))
    if seen.code is Code.CANCELLED:
        return _task(seen, "cancelled", seen.message or "cancelled")
    result = {"resultType": "complete", **rendered(seen, command=command)}
    return {**_task(seen, "completed"), "result": result}


def _task(seen: Observation, status: str, message: str | None = None) -> dict[str, Any]:
    created = _made(seen.call_id)
    task: dict[str, Any] = {
        "taskId": seen.call_id,
        "status": status,
        "createdAt": created,
        "lastUpdatedAt": created if seen.timing is None else seen.timing.completed_at,
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
    return task if message is None else {**task, "statusMessage": message}


def _made(call_id: str) -> str:
    """A call's id begins with the millisecond it was made in."""
    found = _MADE.match(call_id)
    at = datetime.now(UTC) if found is None else datetime.fromtimestamp(int(found[1], 16) / 1000, UTC)
    return at.isoformat(timespec="milliseconds")
