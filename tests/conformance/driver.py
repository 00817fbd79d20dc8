"""What does Holdfast's upstream side do in a scenario of the suite's client leg?

What a gateway does with any server: connect, look at what it offers, admit what is fit, call it. Scenarios
differ only in which tool is called, with which arguments, and in how the server lets us in.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp

from holdfast.catalog.admission import Offer
from holdfast.catalog.imports.imported import import_tools
from holdfast.catalog.imports.lock import Lock
from holdfast.catalog.imports.native import companions
from holdfast.catalog.imports.overlay import Overlay
from holdfast.model.answer import Answer
from holdfast.model.egress.rules import Rules
from holdfast.model.tool import Tool
from holdfast.ports import Attempt
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.tokens import MemoryTokens
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from holdfast.upstreams.mcp.oauth import OAuthAuthorizer
from holdfast.upstreams.mcp.oauth_client import Client, Redirect
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream

NAME = "peer"
ANSWERING_S = 20.0
METADATA = "https://conformance-test.local/client-metadata.json"
"""Where the suite expects a client to describe itself."""
READ_ALL = Overlay({}, {"*": {"effect": "READ_ONLY"}})

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """What the suite wants of its client now."""

    url: str
    scenario: str
    version: str
    context: Json


@dataclass
class User:
    """The client behind the gateway: accepts what it is asked, with every default filled in."""

    modern: bool
    session: str = "one"
    progress: bool = False
    log_level: str | None = None
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {"elicitation": {}, "sampling": {}})
    input_responses: Mapping[str, Any] | None = None
    request_state: str | None = None

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        fields: Json = ((params or {}).get("requestedSchema") or {}).get("properties", {})
        filled = {name: schema["default"] for name, schema in fields.items() if "default" in schema}
        return {"action": "accept", "content": filled}

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Nothing is done with it."""


class Peer:
    """The suite's server as the gateway sees it."""

    def __init__(self, upstream: McpUpstream, offers: list[Offer], modern: bool) -> None:
        self._upstream = upstream
        self._offers = {
            offer.contract.identity.upstream_name or offer.contract.identity.name: offer for offer in offers
        }
        self._modern = modern

    @property
    def tools(self) -> dict[str, Json]:
        """The schemas of the admitted tools, as they came."""
        return {
            name: dict(offer.native["inputSchema"]) for name, offer in self._offers.items() if offer.native
        }

    async def call(self, name: str, arguments: Json | None = None) -> Answer:
        """To the end: what the tool asks in between is answered."""
        user = User(self._modern)
        while True:
            answer = await self._upstream.invoke(self._attempt(name, arguments or {}, user))
            if not answer.unfinished:
                return answer
            result = answer.native or {}
            asked = result.get("inputRequests", {}).items()
            user = User(
                self._modern,
                input_responses={key: await user.ask(one["method"], one.get("params")) for key, one in asked},
                request_state=result.get("requestState"),
            )

    def _attempt(self, name: str, arguments: Json, user: User) -> Attempt:
        return Attempt(
            tool=Tool.compile(self._offers[name].contract),
            arguments=arguments,
            key=None,
            tenant="default",
            call_id="call",
            trace_id="0" * 32,
            deadline_s=ANSWERING_S,
            number=1,
            peer=user,
        )


async def drive(asked: Asked) -> None:
    async with connected(asked) as peer:
        await _ACTS.get(asked.scenario, everything)(peer, asked)


@asynccontextmanager
async def connected(asked: Asked) -> AsyncIterator[Peer]:
    auth = authorizer(asked) if asked.scenario.startswith("auth/") else None
    upstream = McpUpstream(NAME, HttpTarget(url=asked.url, auth=auth))
    upstream.start()
    try:
        if not await upstream.ready(ANSWERING_S):
            raise ConnectionError(upstream.last_error)
        seen = await upstream.snapshot(ANSWERING_S)
        imported = import_tools(
            NAME,
            seen.tools,
            overlay=READ_ALL,
            lock=Lock(),
            trust_annotations=False,
            now="2026-01-01T00:00:00+00:00",
        )
        offers = [*imported.offers, *companions(NAME, seen.capabilities)]
        yield Peer(upstream, offers, modern=asked.version == "2026-07-28")
    finally:
        await upstream.close()
        if auth is not None:
            await auth.close()


def authorizer(asked: Asked) -> OAuthAuthorizer:
    context = asked.context
    client = Client(
        type="client_credentials" if "client-credentials" in asked.scenario else "oauth",
        client_id=context.get("client_id"),
        client_secret=context.get("client_secret"),
        issuer=context.get("issuer"),
        client_metadata_url=METADATA,
    )
    store = MemoryTokens(Keyring())
    outgoing = Outgoing(
        Guard(Rules(allow=("127.0.0.1", "[::1]", "localhost")))
    )  # the suite is on this machine
    return OAuthAuthorizer(
        NAME, asked.url, store, client=client, shared=True, open_url=agreeing, outgoing=outgoing
    )


async def agreeing(url: str) -> Redirect:
    """A person who signs in and agrees at once."""
    async with aiohttp.ClientSession() as browser, browser.get(url, allow_redirects=False) as answer:
        told = parse_qs(urlsplit(answer.headers["location"]).query)
    state, issuer = (told.get(name, [None])[0] for name in ("state", "iss"))
    return told["code"][0], state, issuer


# --- what is done once connected ------------------------------------------------------------


async def nothing(peer: Peer, asked: Asked) -> None:
    """Connecting and looking is the scenario."""


async def everything(peer: Peer, asked: Asked) -> None:
    for name, schema in peer.tools.items():
        await peer.call(
            name, {key: _sample(peer, part) for key, part in schema.get("properties", {}).items()}
        )


async def given(peer: Peer, asked: Asked) -> None:
    for call in asked.context["toolCalls"]:
        await peer.call(call["name"], call["arguments"])


async def kinds(peer: Peer, asked: Asked) -> None:
    """A tool, a resource and a prompt."""
    await everything(peer, asked)
    await peer.call("mcp-resources-read", {"uri": "file:///path/to/file%20name.txt"})
    await peer.call("mcp-prompts-get", {"name": "test_prompt"})


async def echo(peer: Peer, asked: Asked) -> None:
    await peer.call("json_schema_echo", {"schema": peer.tools["json_schema_2020_12_tool"]})


def _sample(peer: Peer, schema: Json) -> Any:
    kinds: dict[str, Any] = {
        "integer": 3,
        "number": 5,
        "boolean": True,
        "object": {},
        "array": [],
        "null": None,
    }
    return kinds.get(schema.get("type", ""), "one")


_ACTS: dict[str, Callable[[Peer, Asked], Any]] = {
    "initialize": nothing,
    "request-metadata": nothing,
    "json-schema-ref-no-deref": nothing,
    "json-schema-2020-12-preservation": echo,
    "http-custom-headers": given,
    "http-standard-headers": kinds,
}
