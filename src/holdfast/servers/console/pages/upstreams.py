"""*Upstreams*: where do tools live, how are they, and how is one stopped or started anew?"""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from holdfast.gateway.upstreams import UpstreamSeen
from holdfast.model.errors import HoldfastError
from holdfast.servers.console.look import Look
from holdfast.servers.console.pages.catalog import healths
from holdfast.servers.operate import may_see
from holdfast.servers.visit import Visit

STATES = {"here": "in this process", "ready": "connected", "connecting": "connecting", "down": "down"}
KINDS = {"here": "active", "ready": "connected", "connecting": "waiting", "down": "bad"}
LONGEST_NOTE = 1000


async def page(look: Look) -> Response:
    """GET /upstreams"""
    gateway, by = look.gateway, look.principal
    seen, halts = gateway.upstreams.list(by), await _halts(look)
    tools = sorted({listing.tool.contract.tool for one in seen for listing in one.tools})
    operates = gateway.operates(by)
    return await look.page(
        "upstreams.html",
        upstreams=[_told(one, halts) for one in seen],
        halts=halts,
        targets=["all", *(one.name for one in seen), *tools],
        waiting_changes={name: len(found) for name, found in gateway.changes(by).items()} if operates else {},
        health=await healths(look),
        channels=await gateway.notices.channels(by) if operates else (),
        operates=operates,
        states=STATES,
        kinds=KINDS,
    )


async def halt(look: Look) -> Response:
    """POST /upstreams/halt"""
    form = await look.form()
    target = form.get("target").strip()
    await look.gateway.halt(look.principal, target, form.get("note").strip()[:LONGEST_NOTE])
    return look.see_other("/upstreams", "halted")


async def resume(look: Look) -> Response:
    """POST /upstreams/resume"""
    form = await look.form()
    target = form.get("target").strip()
    if not await look.gateway.resume(look.principal, target):
        raise HoldfastError(f"nothing named '{target[:64]}' is halted any more")
    return look.see_other("/upstreams", "resumed")


async def restart(look: Look) -> Response:
    """POST /upstreams/{name}/restart"""
    await look.form()
    await look.gateway.upstreams.restart(look.principal, look.request.path_params["name"])
    return look.see_other("/upstreams", "restarted")


async def _halts(look: Look) -> Mapping[str, str]:
    """Those the reader may know of."""
    visit = Visit(look.gateway, look.request, look.principal)
    return {target: note for target, note in (await look.gateway.halts()).items() if may_see(visit, target)}


def _told(one: UpstreamSeen, halts: Mapping[str, str]) -> dict[str, Any]:
    tools = {listing.tool.contract.tool: listing for listing in one.tools}
    unwell = {tool: state for tool, state in one.breakers.items() if state != "closed"}
    return {
        "seen": one,
        "tools": sorted(tools.items()),
        "halted": halts.get(one.name) if one.name in halts else None,
        "is_halted": one.name in halts,
        "unwell": sorted(unwell.items()),
    }
