"""On which ways could an address that a stranger wrote become a connection of the gateway's?

Each way takes a URL and ends, however it ends; whether anybody was reached is the canary's to say.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import jsonschema_rs
from aiohappyeyeballs import AddrInfoType

from holdfast.catalog.imports.imported import import_tools
from holdfast.catalog.imports.lock import Lock
from holdfast.catalog.imports.overlay import Overlay
from holdfast.identity.jwks import Jwks
from holdfast.model.egress.rules import Rules
from holdfast.model.errors import HoldfastError
from holdfast.model.schema import examine
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.tokens import MemoryTokens
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from holdfast.upstreams.mcp.errors import Garbage, Lost, Refused, Rejected, Unsent
from holdfast.upstreams.mcp.oauth import OAuthAuthorizer
from holdfast.upstreams.mcp.oauth_client import Client
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.egress.trap import Lure, Serve, Trap, document
from tests.upstreams.mcp.callers import AT_ONCE, SOON_S

ROBOT = Client(type="client_credentials", client_id="robot", client_secret="sesame")
ENDINGS = (HoldfastError, Unsent, Lost, Garbage, Refused, Rejected, TimeoutError, OSError)


class Unguarded(Guard):
    """Believes everybody: what a client without a guard does."""

    async def found(self, host: str, port: int, purpose: str = "") -> list[AddrInfoType]:
        loop = asyncio.get_running_loop()
        return [*await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


Way = Callable[[Trap, Guard, str], Awaitable[None]]


async def keys(trap: Trap, guard: Guard, url: str) -> None:
    """A document that somebody names."""
    with contextlib.suppress(*ENDINGS):
        await Outgoing(guard).fetch(url, purpose="keys", limit_bytes=1000, deadline_s=SOON_S)


async def jwks(trap: Trap, guard: Guard, url: str) -> None:
    """The keys of an issuer, by its discovery document."""
    there = url.replace("http://", "https://", 1)
    trap.serve = lambda verb, path: document(issuer=trap.origin, jwks_uri=there)
    fetch = partial(Outgoing(guard).fetch, purpose="keys", limit_bytes=100_000, deadline_s=SOON_S)
    held = Jwks(trap.origin, None, ("RS256",), fetch, now=lambda: 0.0)
    await held.look()
    await held.close()


async def challenge(trap: Trap, guard: Guard, url: str) -> None:
    """The resource metadata that a 401 points to."""
    await _signed_in(trap, guard, f'Bearer resource_metadata="{url}"', lambda verb, path: Lure(404))


async def issuer(trap: Trap, guard: Guard, url: str) -> None:
    """The authorization server that resource metadata names."""

    def serve(verb: str, path: str) -> Lure:
        if "protected-resource" in path:
            return document(resource=f"{trap.origin}/mcp", authorization_servers=[url])
        return Lure(404)

    await _signed_in(trap, guard, "Bearer", serve)


async def token_endpoint(trap: Trap, guard: Guard, url: str) -> None:
    """Where an authorization server wants secrets sent."""
    await _signed_in(trap, guard, "Bearer", partial(_metadata, trap, token_endpoint=url), ROBOT)


async def registration(trap: Trap, guard: Guard, url: str) -> None:
    """Where an authorization server wants clients registered."""
    await _signed_in(trap, guard, "Bearer", partial(_metadata, trap, registration_endpoint=url))


def _metadata(trap: Trap, verb: str, path: str, **endpoints: str) -> Lure:
    if "protected-resource" in path:
        return document(resource=f"{trap.origin}/mcp", authorization_servers=[trap.origin])
    if "authorization-server" not in path and "openid-configuration" not in path:
        return Lure(404)
    own = {name: f"{trap.origin}/{name}" for name in ("authorization_endpoint", "token_endpoint")}
    more: dict[str, Any] = {"response_types_supported": ["code"], "issuer": f"{trap.origin}/"}
    return document(**{**own, **more, "issuer": trap.origin, **endpoints})


async def _signed_in(trap: Trap, guard: Guard, said: str, serve: Serve, client: Client | None = None) -> None:
    async def never(address: str) -> tuple[str, str | None]:
        raise HoldfastError("nobody is there")

    trap.serve = serve
    authorizer = OAuthAuthorizer(
        *("crm", f"{trap.origin}/mcp", MemoryTokens(Keyring())),
        client=client,
        open_url=never,
        outgoing=Outgoing(guard),
    )
    with contextlib.suppress(*ENDINGS):
        await authorizer.challenged("acme/alice/agent", 401, said)
    await authorizer.close()


async def redirect(trap: Trap, guard: Guard, url: str, *, status: int = 307, **target: Any) -> None:
    """Where an upstream says it has moved to."""
    trap.serve = lambda verb, path: Lure(status, location=url)
    await _listed(trap, guard, **target)


async def fetched_redirect(trap: Trap, guard: Guard, url: str, *, status: int = 302) -> None:
    """Where a document is said to have moved to."""
    trap.serve = lambda verb, path: Lure(status, location=url)
    await keys(trap, guard, f"{trap.origin}/keys")


async def endpoint(trap: Trap, guard: Guard, url: str) -> None:
    """Where an upstream of the oldest kind wants messages sent."""
    trap.serve = lambda verb, path: Lure(
        body=f"event: endpoint\ndata: {url}\n\n".encode(), kind="text/event-stream"
    )
    await _listed(trap, guard, transport="sse")


async def _listed(trap: Trap, guard: Guard, **target: Any) -> None:
    """Connect and ask what there is, as discovery does."""
    there = HttpTarget(
        f"{trap.origin}/mcp", {"authorization": "Bearer of-the-operator"}, guard=guard, **target
    )
    upstream = McpUpstream("crm", there, backoff=AT_ONCE)
    upstream.start()
    try:
        if await upstream.ready(SOON_S):
            with contextlib.suppress(*ENDINGS):
                await upstream.snapshot(SOON_S)
    finally:
        await upstream.close()


async def reference(trap: Trap, guard: Guard, url: str) -> None:
    """A schema that says the rest of it is elsewhere."""
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": url}},
        "$defs": {"y": {"$dynamicRef": f"{url}#y"}},
    }
    examine(schema)
    tool = {"name": "look", "inputSchema": schema, "outputSchema": schema}
    import_tools("crm", [tool], overlay=Overlay(), lock=Lock(), trust_annotations=False, now="2030-01-01")


async def naive_reference(trap: Trap, guard: Guard, url: str) -> None:
    """The same engine as it comes."""
    with contextlib.suppress(ValueError, jsonschema_rs.ReferencingError):
        await asyncio.to_thread(jsonschema_rs.Draft202012Validator, {"$ref": url})


async def naive_redirect(trap: Trap, guard: Guard, url: str) -> None:
    """Any client that goes where it is sent."""
    import aiohttp

    trap.serve = lambda verb, path: Lure(302, location=url)
    with contextlib.suppress(aiohttp.ClientError, OSError, ValueError):
        async with aiohttp.ClientSession() as http, http.get(trap.origin) as answer:
            await answer.read()


WAYS: dict[str, Way] = {
    "a document": keys,
    "the keys of an issuer": jwks,
    "resource metadata": challenge,
    "an authorization server": issuer,
    "a token endpoint": token_endpoint,
    "a registration": registration,
    "a stream's endpoint": endpoint,
    "a stream that moved": partial(redirect, transport="sse"),
    "a schema": reference,
    **{
        f"an upstream that moved, {status}": partial(redirect, status=status)
        for status in (301, 302, 303, 307, 308)
    },
    **{
        f"a document that moved, {status}": partial(fetched_redirect, status=status)
        for status in (301, 302, 307)
    },
}
CONTROLS: dict[str, Way] = {
    **{name: WAYS[name] for name in ("a document", "the keys of an issuer", "resource metadata")},
    **{name: WAYS[name] for name in ("an authorization server", "a token endpoint", "a registration")},
    "a schema": naive_reference,
    "a redirect": naive_redirect,
}


def guarded(trap: Trap) -> Guard:
    """As the gateway has it for an upstream whose url is in the configuration."""
    return Guard(Rules(written=(trap.origin,)))
