"""How are resources listed and read?

Their URIs are the upstreams' own. Reading one is a governed call; what the upstream answers is passed on as
it came.
"""

from typing import TYPE_CHECKING, Any

from holdfast.model.errors import Code
from holdfast.model.mcp import READ
from holdfast.model.observation import Observation, Status
from holdfast.servers.mcp.errors import no_resource, refused
from holdfast.servers.mcp.listing import paged
from holdfast.servers.mcp.results import OBSERVATION, brief, paragraph, with_meta
from holdfast.servers.mcp.running import Question, run

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub
    from holdfast.servers.mcp.peer import Client


async def list_resources(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    return paged(exchange, "resources", _first(hub.native.resources(exchange.principal), "uri"), "uri")


async def list_templates(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    found = _first(hub.native.templates(exchange.principal), "uriTemplate")
    return paged(exchange, "resourceTemplates", found, "uriTemplate")


async def read_resource(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    uri = str(exchange.params["uri"])
    namespace = hub.native.owner_of(uri)
    if namespace is None:
        raise no_resource(uri, modern=exchange.modern)
    seen = await governed(hub, exchange, f"{namespace}.{READ}", {"uri": uri}, uri)
    if isinstance(seen, Question):
        return seen.result
    if seen.code in (Code.TOOL_NOT_FOUND, Code.SEMANTIC_INVALIDITY):  # not theirs, or the upstream has none
        raise no_resource(uri, modern=exchange.modern)
    return passed_on(hub, seen)


async def governed(
    hub: "Hub", exchange: "Exchange", tool: str, arguments: dict[str, Any], what: str
) -> Observation | Question:
    """A read that is no tool to the client and a call like any other to the gateway."""

    async def propose(client: "Client", key: str) -> Observation:
        return await hub.gateway.call(
            tool,
            arguments,
            principal=exchange.principal,
            peer=client,
            session=None if exchange.modern else exchange.session,
            **exchange.said(),
        )

    ran = await run(hub, exchange, what, arguments, propose)
    return ran if isinstance(ran, Question) else ran.observation


def passed_on(hub: "Hub", seen: Observation) -> dict[str, Any]:
    """The upstream's result as it came; raises what the protocol has for a refusal."""
    if seen.status is not Status.DONE or seen.native is None:
        raise refused(seen, paragraph(seen, hub.command), brief(seen))
    return with_meta(dict(seen.native), {OBSERVATION: brief(seen)})


def _first(items: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Each URI once: the first upstream that lists it is the one that is read."""
    return list({item.get(name): item for item in reversed(items)}.values())[::-1]
