"""What does a server offer?

Every list is followed to its end, and no further than any honest list goes: a cursor that comes again or
never ends is cut, and the fault reported.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.upstreams.mcp import wire
from holdfast.upstreams.mcp.errors import METHOD_NOT_FOUND, Garbage, Refused, Rejected
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.link import Link
from holdfast.upstreams.mcp.marks import misused

PAGES = 200
ITEMS = 10_000
BYTES = 32 * 1024 * 1024
"""Of one list. The largest known servers offer some hundreds of tools of a few kilobytes each."""

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A server's offer at one moment, every descriptor as it came."""

    protocol_version: str
    server_info: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    instructions: str | None = None
    tools: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()
    faults: tuple[str, ...] = ()
    """What was left out, and why."""


def without(found: Snapshot, hidden: Hidden) -> Snapshot:
    """The offer without secrets the server was told: models read it."""
    clean = hidden.purged
    return replace(
        found,
        server_info=clean(dict(found.server_info)),
        instructions=clean(found.instructions),
        tools=tuple(map(clean, found.tools)),
        resources=tuple(map(clean, found.resources)),
        templates=tuple(map(clean, found.templates)),
        prompts=tuple(map(clean, found.prompts)),
    )


async def taken(link: Link) -> Snapshot:
    """Raises when the tools cannot be listed; what else cannot be is a fault."""
    faults: list[str] = []
    facts = link.facts
    tools, resources, templates, prompts = await asyncio.gather(
        _tools(link, faults),
        _optional(link, "resources", "resources/list", "resources", faults),
        _optional(link, "resources", "resources/templates/list", "resourceTemplates", faults),
        _optional(link, "prompts", "prompts/list", "prompts", faults),
    )
    return Snapshot(
        protocol_version=facts.protocol_version,
        server_info=facts.server_info,
        capabilities=facts.capabilities,
        instructions=facts.instructions,
        tools=tools,
        resources=resources,
        templates=templates,
        prompts=prompts,
        faults=tuple(faults),
    )


async def _tools(link: Link, faults: list[str]) -> tuple[Item, ...]:
    try:
        listed = await _followed(link, "tools/list", "tools", faults)
    except Refused as error:
        if error.code == METHOD_NOT_FOUND and "tools" not in link.facts.capabilities:
            return ()
        raise
    return tuple(tool for tool in listed if not link.facts.modern or _mirrorable(tool, faults))


def _mirrorable(tool: Item, faults: list[str]) -> bool:
    """2026-07-28 wants a tool left out whose schema misuses `x-mcp-header`."""
    reason = misused(tool.get("inputSchema"))
    if reason is not None:
        faults.append(f"tool {str(tool.get('name'))[:100]!r} was left out: {reason[:300]}")
    return reason is None


async def _optional(
    link: Link, capability: str, method: str, member: str, faults: list[str]
) -> tuple[Item, ...]:
    if capability not in link.facts.capabilities:
        return ()
    try:
        return tuple(await _followed(link, method, member, faults))
    except Refused as error:
        if error.code != METHOD_NOT_FOUND:  # templates and resources are one capability, but not one method
            faults.append(f"{method!r} failed: {error}")
    except (Rejected, Garbage) as error:
        faults.append(f"{method!r} failed: {error}")
    return ()


async def _followed(link: Link, method: str, member: str, faults: list[str]) -> Sequence[Item]:
    items: list[Item] = []
    size, cursor, seen = 0, None, set[str]()
    for _ in range(PAGES):
        page = await link.request(method, None if cursor is None else {"cursor": cursor})
        listed = page.get(member)
        if not isinstance(listed, list):
            raise Garbage(f"the answer to {method!r} has no list of {member}")
        for item in listed:
            size += len(wire.encoded(item))
            if len(items) >= ITEMS or size > BYTES:
                faults.append(f"{method!r} was cut: more than {ITEMS} items or {BYTES} bytes")
                return items
            if isinstance(item, dict):
                items.append(item)
            else:
                faults.append(f"{method!r} lists something that is no object")
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return items
        if cursor in seen:
            faults.append(f"{method!r} was cut: a cursor came twice")
            return items
        seen.add(cursor)
    faults.append(f"{method!r} was cut after {PAGES} pages")
    return items
