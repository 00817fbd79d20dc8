"""How are prompts listed and filled in, and arguments completed?

A prompt's name gets its upstream's prefix like a tool's; getting one is a governed call.
"""

from typing import TYPE_CHECKING, Any

from holdfast.model.mcp import COMPLETE, GET
from holdfast.servers.mcp.errors import wrong
from holdfast.servers.mcp.listing import paged
from holdfast.servers.mcp.names import named
from holdfast.servers.mcp.resources import governed, passed_on
from holdfast.servers.mcp.running import Question

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub


async def list_prompts(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    shown = [{**prompt, "name": name} for name, (_, prompt) in _named(hub, exchange).items()]
    return paged(exchange, "prompts", shown, "name")


async def get_prompt(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    name = str(exchange.params["name"])
    namespace, own = _own(hub, exchange, name)
    wanted: dict[str, Any] = {"name": own}
    if exchange.params.get("arguments") is not None:
        wanted["arguments"] = exchange.params["arguments"]
    seen = await governed(hub, exchange, f"{namespace}.{GET}", wanted, f"prompt {name}")
    return seen.result if isinstance(seen, Question) else passed_on(hub, seen)


async def complete(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    params, ref = exchange.params, dict(exchange.params["ref"])
    if ref.get("type") == "ref/prompt":
        namespace, ref["name"] = _own(hub, exchange, str(ref.get("name")))
    else:
        uri = str(ref.get("uri"))
        owner = hub.native.owner_of(uri)
        if owner is None or not hub.may(exchange.principal, f"{owner}.{COMPLETE}"):
            raise wrong(f"there is no resource template '{uri[:200]}' here, or it is not yours")
        namespace = owner
    wanted = {"ref": ref, "argument": params["argument"]}
    if params.get("context") is not None:
        wanted["context"] = params["context"]
    seen = await governed(hub, exchange, f"{namespace}.{COMPLETE}", wanted, f"completion {namespace}")
    return seen.result if isinstance(seen, Question) else passed_on(hub, seen)


def _named(hub: "Hub", exchange: "Exchange") -> dict[str, tuple[str, dict[str, Any]]]:
    """What this caller may get, by its MCP name; the first of two alike."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for namespace, prompt in hub.native.prompts(exchange.principal):
        own = str(prompt.get("name"))
        found.setdefault(named(hub.prefixes.get(namespace), namespace, own), (namespace, prompt))
    return found


def _own(hub: "Hub", exchange: "Exchange", name: str) -> tuple[str, str]:
    """The upstream a prompt belongs to, and what it is called there."""
    found = _named(hub, exchange).get(name)
    if found is None:
        raise wrong(f"there is no prompt '{name[:128]}' here, or it is not yours; list the prompts again")
    return found[0], str(found[1].get("name"))
