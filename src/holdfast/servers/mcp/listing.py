"""What does a client get on `tools/list`, and how is any list cut into pages?"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.servers.mcp import lazy, planning
from holdfast.servers.mcp.errors import wrong
from holdfast.servers.mcp.shown import descriptor, visible

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub

PAGE = 200
"""Items on a page. Many clients read the first page only, so it is a large one."""
TTL_MS = 30_000
"""How long a client may keep a list without asking again; changes are told at once to those who listen."""


async def list_tools(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    entries = visible(hub, exchange.principal)
    if lazy.applies(hub, entries):
        shown = [*lazy.descriptors(), *(descriptor(entry) for entry in lazy.pinned(hub, entries))]
    else:
        shown = [descriptor(entry) for entry in entries]
    if planning.applies(hub, entries):
        shown.append(dict(planning.DESCRIPTOR))
    return paged(exchange, "tools", shown, "name")


def paged(exchange: "Exchange", member: str, items: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """One page of a list; the cursor says after which item it goes on."""
    start = _after(exchange.params.get("cursor"), [str(item.get(name)) for item in items])
    page: dict[str, Any] = {member: list(items[start : start + PAGE])}
    if start + PAGE < len(items):
        page["nextCursor"] = _cursor(str(items[start + PAGE - 1].get(name)))
    if exchange.modern:
        page |= {"ttlMs": TTL_MS, "cacheScope": "private"}
    return page


def _cursor(name: str) -> str:
    return urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _after(cursor: Any, names: list[str]) -> int:
    if cursor is None:
        return 0
    try:
        name = urlsafe_b64decode(str(cursor) + "=" * (-len(str(cursor)) % 4)).decode()
        return names.index(name) + 1
    except ValueError:
        raise wrong(
            "this cursor does not go on from here: the list has changed; list from the start"
        ) from None
