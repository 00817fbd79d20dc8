"""Which gateway do the tests of the MCP door speak to, and who speaks?"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from holdfast.gateway import Gateway
from holdfast.model.function import FunctionTool
from holdfast.servers.app import build
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.servers.mcp.office import Office, OfficeUpstream
from tests.servers.serving import Served, serving

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ERAS = pytest.mark.parametrize("era", [LEGACY, MODERN])
PEOPLE = {
    "ann": {"scopes": ["notes:*", "money:*"], "trust": 80},
    "bob": {"scopes": ["notes:read"], "trust": 80},
    "olga": {"roles": ["operator"], "scopes": ["notes:*"], "trust": 80},
}

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def office() -> Office:
    return Office()


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "auth": {"mode": "local", "people": PEOPLE},
        "limits": {"body_bytes": 20_000, "depth": 8, "string": 4_000, "keys": 200},
    }


@asynccontextmanager
async def opened(
    config: dict[str, Any], office: Office, more: Iterable[FunctionTool[..., Any]] = (), **ports: Any
) -> AsyncIterator[Gateway]:
    """`more` tools are in a namespace `more`."""
    clock = SystemClock()
    async with SqliteStore(Path(config["store"].removeprefix("sqlite:///")), clock) as store:
        gateway = Gateway.assemble(
            config,
            store,
            {"office": OfficeUpstream(office), "more": FunctionUpstream(more)},
            clock=clock,
            ids=RandomIds(),
            **ports,
        )
        try:
            await gateway.prepare()
            yield gateway.start()
        finally:
            await gateway.close()


@pytest.fixture
async def gateway(config: dict[str, Any], office: Office) -> AsyncIterator[Gateway]:
    async with opened(config, office) as one:
        yield one


@pytest.fixture
async def served(gateway: Gateway, short: bool) -> AsyncIterator[Served]:
    app = build(gateway, short=short)
    async with app.state.mcp.running(), serving(app) as one:
        yield one


@pytest.fixture
def connect(served: Served) -> Connect:
    """A real client of either era, as a person's agent."""

    @asynccontextmanager
    async def connected(era: str = MODERN, user: str = "ann", **options: Any) -> AsyncIterator[Client]:
        headers = {"x-holdfast-user": user, "x-holdfast-agent": "bot"}
        async with create_mcp_http_client(headers=headers) as http:
            transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
            mode = "legacy" if era == LEGACY else "auto"
            async with Client(transport, mode=mode, cache=None, **options) as client:
                assert client.protocol_version == era
                yield client

    return connected


def seen(result: Any) -> dict[str, Any]:
    """The observation that rides beside a result."""
    found: dict[str, Any] = (result.meta or {})["holdfast/observation"]
    return found


def text(result: Any) -> str:
    return str(result.content[0].text)
