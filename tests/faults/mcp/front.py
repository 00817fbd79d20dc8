"""How does a test put a gateway between raw clients and MCP servers of its own?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

from holdfast.config import load
from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.faults.mcp.protocol import Json
from tests.servers.serving import serving

ROOT: Final = Path(__file__).parents[3]
"""Where servers of these tests are started."""
WRITE: Final[Json] = {
    "effect": "LOW_RISK_INTERNAL",
    "undo": "exact",
    "manifest": [["book", "CREATE", "line"]],
    "idempotency": "none",
}
READ: Final[Json] = {"effect": "READ_ONLY"}
PLENTY: Final = {"ingress": {"rate": 1_000_000, "burst": 1_000_000}}


@asynccontextmanager
async def fronted(
    folder: Path, servers: Json, overlay: Json, **config: Any
) -> AsyncIterator[tuple[str, aiohttp.ClientSession]]:
    """A gateway served over HTTP: where its `/mcp` is, and connections for as many clients as there are.

    `servers` says by namespace how each is reached; all have the same overlay.
    """
    (folder / "overlay.yaml").write_text(yaml.safe_dump({"version": 1, "tools": overlay}))
    upstreams = {
        name: {"mcp": server, "contracts": "overlay.yaml", "concurrency": 512}
        for name, server in servers.items()
    }
    whole = {"upstreams": upstreams, "mcp": {"lazy_above": 10_000}, "limits": PLENTY, **config}
    (folder / "holdfast.yaml").write_text(yaml.safe_dump(whole))
    async with (
        Gateway.open(load(folder / "holdfast.yaml")) as gateway,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        app = build(gateway)
        async with app.state.mcp.running() as door, serving(app) as served:
            await door.load()  # once for all: some calls have two seconds
            yield f"{served.url}/mcp", http
