"""What happens on `tools/call`?"""

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.model.call import Proposal
from holdfast.model.errors import TABLE, Code
from holdfast.model.fields import FieldError
from holdfast.model.observation import Observation, Status
from holdfast.servers.mcp import held, keys, lazy, planning, tasks
from holdfast.servers.mcp.errors import refused, wrong
from holdfast.servers.mcp.names import Entry
from holdfast.servers.mcp.results import brief, paragraph, rendered
from holdfast.servers.mcp.running import HELD, Propose, Question, Ran, answers, finished, key_of, mute, run
from holdfast.servers.mcp.shown import visible

if TYPE_CHECKING:
    from holdfast.servers.mcp.exchange import Exchange
    from holdfast.servers.mcp.hub import Hub
    from holdfast.servers.mcp.peer import Client


_KEY = frozenset({"key"})
"""Most calls say nothing of themselves, or name their operation."""


async def call_tool(hub: "Hub", exchange: "Exchange") -> dict[str, Any]:
    name, arguments = str(exchange.params["name"]), exchange.params.get("arguments") or {}
    entry = await hub.find(name)
    if entry is not None:
        return await call_entry(hub, exchange, entry, arguments)
    if name in lazy.TOOLS and lazy.applies(hub, visible(hub, exchange.principal)):
        return await lazy.answered(hub, exchange, name, arguments, call_entry)
    if name == planning.NAME and planning.applies(hub, entries := visible(hub, exchange.principal)):
        return await planning.answered(hub, exchange, entries, arguments)
    raise unknown(name)


def unknown(name: str) -> Exception:
    return wrong(f"there is no tool '{name[:128]}' here, or it is not yours; list the tools again")


async def call_entry(
    hub: "Hub", exchange: "Exchange", entry: Entry, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    if not hub.may(exchange.principal, entry.tool):  # before anything else could tell it from no tool at all
        await hub.gateway.call(entry.tool, arguments, principal=exchange.principal)  # refused, on record
        raise unknown(str(exchange.params["name"]))
    return await call_permitted(hub, exchange, entry, arguments)


async def call_permitted(
    hub: "Hub", exchange: "Exchange", entry: Entry, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The call of a tool that is there for this caller."""
    members: Mapping[str, Any] = {}
    if not keys.silent(arguments, exchange.meta, entry):
        arguments, members, faults = keys.read(arguments, exchange.meta, entry)
        if faults:
            return _unusable(hub, exchange, faults)
    client = mute(hub, exchange)
    if client is None:
        return await _call_of_a_talker(hub, exchange, entry, arguments, members)
    key = "" if "key" in members or not entry.writes else key_of(exchange, None)
    seen = await hub.gateway.propose(_proposal(hub, exchange, entry, arguments, members, client, key))
    if answers(exchange, seen):
        exchange.delivery.carries(seen, over=True)
        return _answer(hub, exchange, seen)
    ran = finished(hub, exchange, entry.tool, seen, key)
    return await _concluded(hub, exchange, entry, arguments, members, ran)


async def _call_of_a_talker(
    hub: "Hub", exchange: "Exchange", entry: Entry, arguments: Mapping[str, Any], members: Mapping[str, Any]
) -> dict[str, Any]:
    """The call of a client that may be asked something, or answers what it was asked."""
    tool, propose = entry.tool, _proposing(hub, exchange, entry, arguments, members)
    if "requestState" in exchange.params:
        await held.heard(hub, exchange, tool)
    ran = await run(hub, exchange, tool, arguments, propose, named=entry.writes)
    return await _concluded(hub, exchange, entry, arguments, members, ran)


async def _concluded(
    hub: "Hub",
    exchange: "Exchange",
    entry: Entry,
    arguments: Mapping[str, Any],
    members: Mapping[str, Any],
    ran: Ran | Question,
) -> dict[str, Any]:
    if type(ran) is Ran and ran.observation.status is HELD:
        propose = _proposing(hub, exchange, entry, arguments, members)
        ran = await held.asked(hub, exchange, entry.tool, arguments, ran, propose)
    if isinstance(ran, Question):
        return ran.result
    return _answer(hub, exchange, ran.observation)


def _proposing(
    hub: "Hub", exchange: "Exchange", entry: Entry, arguments: Mapping[str, Any], members: Mapping[str, Any]
) -> Propose:
    def propose(client: "Client", key: str) -> Awaitable[Observation]:
        return hub.gateway.propose(_proposal(hub, exchange, entry, arguments, members, client, key))

    return propose


def _proposal(
    hub: "Hub",
    exchange: "Exchange",
    entry: Entry,
    arguments: Mapping[str, Any],
    members: Mapping[str, Any],
    client: "Client",
    key: str,
) -> Proposal:
    proposal = Proposal(
        entry.tool,
        arguments,
        exchange.principal,
        key=members.get("key"),
        environment=hub.environment,
        peer=client,
        request_key=key or None,
        session=None if exchange.modern else exchange.session,
        release="gateway" if client.capabilities and tasks.wanted(exchange) else None,
    )
    return proposal if members.keys() <= _KEY else proposal._replace(**members)


def _answer(hub: "Hub", exchange: "Exchange", seen: Observation) -> dict[str, Any]:
    if (seen.status is HELD or seen.pending is not None) and tasks.wanted(exchange):
        return tasks.created(seen, hub.command)
    if seen.code is not None and TABLE[seen.code].mcp == "protocol" and seen.status is Status.REFUSED:
        if seen.code is Code.TOOL_NOT_FOUND:
            raise unknown(str(exchange.params["name"]))
        raise refused(seen, paragraph(seen, hub.command), brief(seen))
    return rendered(seen, command=hub.command, raw=exchange.raw)


def _unusable(hub: "Hub", exchange: "Exchange", faults: tuple[FieldError, ...]) -> dict[str, Any]:
    """It never became a call, and is answered like one that was refused."""
    text = f"the request cannot be used: {faults[0].message}"
    seen = hub.gateway.unparsed(text, faults, structural=True)
    hub.gateway.unproposed(exchange.principal, seen)
    return rendered(seen, command=hub.command)
