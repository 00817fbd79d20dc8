"""A real MCP server behind bearer tokens, the authorization server it trusts, and a gateway's side of it."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import mcp_types
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from pydantic import AnyHttpUrl
from starlette.types import ASGIApp

from holdfast.model.egress.rules import Rules
from holdfast.stores.keyring import Keyring
from holdfast.stores.memory.tokens import MemoryTokens
from holdfast.testing import ManualClock
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from holdfast.upstreams.mcp.oauth import OAuthAuthorizer
from holdfast.upstreams.mcp.oauth_client import Client, Redirect
from holdfast.upstreams.mcp.oauth_grant import TokenStore
from tests.upstreams.oauth.office import Office, machine_office

ALICE = "acme/alice/desk-agent"
HERE = "http://127.0.0.1:7777/callback"
VERSION = "2026-07-28"
STUCK_S = 60.0
"""A test that waits for what never comes fails, and does not hang."""


@dataclass
class World:
    office: Office
    issuer: str
    url: str
    http: aiohttp.ClientSession
    required: list[str] = field(default_factory=lambda: ["tools"])
    clock: ManualClock = field(default_factory=ManualClock)
    store: TokenStore = field(default_factory=lambda: MemoryTokens(Keyring()))
    seen: list[str] = field(default_factory=list)
    """Who called, as the server understood their tokens; '' for a request that was not let in."""
    opened: list[str] = field(default_factory=list)
    """Addresses that a person was sent to."""

    def authorizer(self, store: TokenStore | None = None, **options: Any) -> OAuthAuthorizer:
        """The gateway as it runs: nobody is there to be asked."""
        options.setdefault("client", Client(redirect_uri=HERE))
        options.setdefault("outgoing", Outgoing(Guard(Rules(allow=("127.0.0.1",)))))
        return OAuthAuthorizer("crm", self.url, store or self.store, now=self.clock.now, **options)

    async def sign_in(self, principal: str = ALICE, store: TokenStore | None = None, **options: Any) -> None:
        authorizer = self.authorizer(store, open_url=self.browse, **options)
        await authorizer.sign_in(principal)

    async def browse(self, address: str) -> Redirect:
        """A person who agrees at once."""
        self.opened.append(address)
        async with self.http.get(address, allow_redirects=False) as answer:
            told = parse_qs(urlsplit(answer.headers["location"]).query)
        return told["code"][0], told["state"][0], None

    async def call(self, authorizer: OAuthAuthorizer, principal: str = ALICE) -> tuple[int, str]:
        """Call the tool `who`, with one more try where the authorizer says so: status, and who it was."""
        status, challenge, body = await self._post(authorizer, principal)
        if status in (401, 403) and await authorizer.challenged(principal, status, challenge):
            status, _, body = await self._post(authorizer, principal)
        return status, body["result"]["structuredContent"]["who"] if status == 200 else ""

    async def _post(self, authorizer: OAuthAuthorizer, principal: str) -> tuple[int, str, Any]:
        about = "io.modelcontextprotocol"
        meta = {
            f"{about}/protocolVersion": VERSION,
            f"{about}/clientInfo": {"name": "test", "version": "1"},
            f"{about}/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "_meta": meta}}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": VERSION,
            "mcp-method": "tools/call",
            "mcp-name": "who",
            **await authorizer.headers(principal),
        }
        async with self.http.post(self.url, json=body, headers=headers) as answer:
            return answer.status, answer.headers.get("www-authenticate", ""), await answer.json()


@asynccontextmanager
async def world(*, machines: list[str] | None = None) -> AsyncIterator[World]:
    """`machines`: the authorization server knows programs only, and takes their secrets in these ways."""
    office = Office()
    async with asyncio.timeout(STUCK_S):
        async with _made(office, machines) as made:
            yield made


@asynccontextmanager
async def _made(office: Office, machines: list[str] | None) -> AsyncIterator[World]:
    with _listener() as there, _listener() as here:
        issuer, url = f"http://127.0.0.1:{_port(there)}", f"http://127.0.0.1:{_port(here)}/mcp"
        server = machine_office(office, issuer, machines, url) if machines else office.app(issuer)
        async with aiohttp.ClientSession() as http:
            made = World(office, issuer, url, http)
            async with _serving(there, server), _serving(here, _guarded(made)):
                yield made


def _guarded(made: World) -> ASGIApp:
    async def who(ctx: Any, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        token = get_access_token()
        return mcp_types.CallToolResult(content=[], structured_content={"who": token and token.subject})

    async def tools(ctx: Any, params: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name="who", input_schema={"type": "object"})])

    server: Server[Any] = Server("crm", version="1", on_list_tools=tools, on_call_tool=who)
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(made.issuer),
        resource_server_url=AnyHttpUrl(made.url),
        required_scopes=made.required,
        validate_token_resource=True,
    )
    made.required = settings.required_scopes or []
    app = server.streamable_http_app(json_response=True, token_verifier=made.office, auth=settings)

    async def seen(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            sent = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            known = made.office.tokens.get(sent)
            made.seen.append((known.subject or "") if known else "")

        async def naming_scopes(message: Any) -> None:
            """The SDK's server leaves out which scopes it wants."""
            if message.get("status") == 403:
                wanted = f', scope="{" ".join(made.required)}"'.encode()
                message["headers"] = [
                    (name, value + wanted if name == b"www-authenticate" else value)
                    for name, value in message["headers"]
                ]
            await send(message)

        await app(scope, receive, naming_scopes)

    return seen


def _listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _port(listener: socket.socket) -> int:
    return int(listener.getsockname()[1])


@asynccontextmanager
async def _serving(listener: socket.socket, app: ASGIApp) -> AsyncIterator[None]:
    config = uvicorn.Config(app, log_config=None, ws="none", lifespan="auto", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await running


def told(records: list[logging.LogRecord]) -> str:
    """Everything a log handler could write."""
    plain = logging.Formatter("%(name)s %(levelname)s %(message)s")
    return "\n".join(plain.format(record) for record in records)


async def until(true: Callable[[], bool]) -> None:
    """Let others run until it is so."""
    while not true():  # noqa: ASYNC110  # what is waited for tells nobody
        await asyncio.sleep(0)


def decoded(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)
