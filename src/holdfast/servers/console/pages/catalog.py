"""*Catalog*: which tools are there, what do they promise, and what do models see of them?"""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from holdfast.gateway.why import Explanation
from holdfast.model.errors import NotFound
from holdfast.model.strict_json import ParseError, parse
from holdfast.ports import Listing
from holdfast.servers.console.asking import address
from holdfast.servers.console.look import Look
from holdfast.servers.listing import shown as affordance
from holdfast.servers.mcp.names import Names
from holdfast.servers.mcp.shown import descriptor
from holdfast.telemetry.health import Health

PAGE = 100


async def page(look: Look) -> Response:
    """GET /catalog"""
    said = look.query
    words, after = said.get("q", "").lower().split(), said.get("after", "")
    tools = _newest(look.gateway.catalog(look.principal))
    if (status := said.get("status", "")) in _statuses(tools):
        tools = {name: one for name, one in tools.items() if one[0].status.value == status}
    found = [one for name, one in sorted(tools.items()) if name > after and _mentions(one[0], words)]
    more = len(found) > PAGE
    shown = found[:PAGE]
    return await look.page(
        "catalog.html",
        tools=shown,
        total=len(tools),
        further=address("/catalog", said, after=shown[-1][0].tool.contract.tool) if more else None,
        said=said,
        statuses=_statuses(_newest(look.gateway.catalog(look.principal))),
        changes=_changes(look),
        health=await healths(look),
        usable={listing.tool.contract.tool for listing in look.gateway.tools(look.principal)},
    )


async def tool(look: Look) -> Response:
    """GET /catalog/{tool}"""
    return await look.page("tool.html", **await _told(look))


async def why(look: Look) -> Response:
    """POST /catalog/{tool}/why: may I do this, and if not, why? It is on record like any question."""
    form = await look.form()
    text, name = form.get("arguments").strip(), look.request.path_params["tool"]
    _versions(look, name)
    try:
        arguments = parse(text.encode()) if text else None
    except ParseError as error:
        return await look.page("tool.html", 400, **await _told(look, wrong=error.message, tried=text))
    if arguments is not None and not isinstance(arguments, dict):
        told = await _told(look, wrong="arguments are a JSON object, such as {}", tried=text)
        return await look.page("tool.html", 400, **told)
    found = await look.gateway.why(look.principal, name, arguments)
    return await look.page("tool.html", **await _told(look, found, tried=text))


async def accept(look: Look) -> Response:
    """POST /catalog/accept: take a changed tool as it was shown"""
    form = await look.form()
    namespace, _, name = form.get("tool").partition(".")
    await look.gateway.accept(look.principal, namespace, name, form.get("digest"))
    return look.see_other("/catalog", "accepted")


async def _told(
    look: Look, found: Explanation | None = None, *, wrong: str = "", tried: str = ""
) -> dict[str, Any]:
    name = look.request.path_params["tool"]
    versions = _versions(look, name)
    config = look.gateway.config
    prefixes = {upstream: one.prefix for upstream, one in config.upstreams.items()}
    entry = Names(versions, prefixes, config.pins).by_tool.get(name)
    listing = versions[0] if entry is None else entry.listing
    return {
        "name": name,
        "listing": listing,
        "contract": listing.tool.contract,
        "versions": versions,
        "model_sees": descriptor(entry) if entry is not None else affordance(listing),
        "listed": entry is not None and entry.shown,
        "usable": look.gateway.may_use(look.principal, name),
        "promise": listing.tool.contract.model_dump(
            mode="json", exclude={"affordance"}, exclude_defaults=True
        ),
        "health": await look.gateway.health.tool(look.principal, name),
        "change": next((one for one in _changes(look) if one["tool"] == name), None),
        "why": found,
        "wrong": wrong,
        "tried": tried,
        "operates": look.gateway.operates(look.principal),
    }


def _versions(look: Look, name: str) -> list[Listing]:
    found = [one for one in look.gateway.catalog(look.principal) if one.tool.contract.tool == name]
    if not found:
        raise NotFound(f"there is no tool '{name[:80]}' here that you may see")
    return sorted(found, key=lambda one: _number(one.tool.contract.version), reverse=True)


def _newest(listings: Sequence[Listing]) -> dict[str, list[Listing]]:
    """All versions by tool, the newest first."""
    tools: dict[str, list[Listing]] = {}
    for listing in sorted(listings, key=lambda one: _number(one.tool.contract.version), reverse=True):
        tools.setdefault(listing.tool.contract.tool, []).append(listing)
    return tools


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("-")[0].split("."))


def _statuses(tools: dict[str, list[Listing]]) -> list[str]:
    return sorted({one[0].status.value for one in tools.values()})


def _mentions(listing: Listing, words: list[str]) -> bool:
    contract = listing.tool.contract
    tags = " ".join(contract.identity.tags)
    text = f"{contract.tool} {contract.affordance.description} {contract.effect.value} {tags}".lower()
    return all(word in text for word in words)


def _changes(look: Look) -> list[dict[str, Any]]:
    """What waits to be accepted, for those who may."""
    if not look.gateway.operates(look.principal):
        return []
    return [
        {"tool": f"{namespace}.{name}", "pending": pending}
        for namespace, tools in look.gateway.changes(look.principal).items()
        for name, pending in tools.items()
    ]


async def healths(look: Look) -> dict[str, Health]:
    """By tool, of what the reader may see."""
    return {one.subject: one for one in await look.gateway.health.tools(look.principal)}
