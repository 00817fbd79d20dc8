"""Which gateway believes the provider, and how is it spoken to?"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.oidc.provider import GATEWAY, Provider, provider
from tests.servers.desk import DESKS, Desk
from tests.servers.serving import Served, serving

PEOPLE: dict[str, Any] = {
    "alice": {"scopes": ["notes:*"], "roles": ["operator"], "tenant": "acme", "trust": 80},
    "notebook": {"scopes": ["notes:read"], "trust": 80},
}


@pytest.fixture(scope="session")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with provider(tmp_path_factory.mktemp("oidc") / "provider.log") as one:
        yield one


@pytest.fixture
def desk() -> Iterator[Desk]:
    DESKS.append(Desk())
    yield DESKS[-1]
    DESKS.pop()


@pytest.fixture
def config(issuer: Provider, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "all.cedar").write_text('@id("all") permit (principal, action, resource);')
    return {
        "store": f"sqlite:///{tmp_path}/holdfast.db",
        "upstreams": {"desk": {"functions": "tests.servers.desk:desk"}},
        "policies": str(tmp_path / "policies"),
        "auth": {"mode": "jwt", "issuer": issuer.url, "audience": GATEWAY, "people": PEOPLE},
    }


@pytest.fixture
async def gateway(config: dict[str, Any], desk: Desk) -> AsyncIterator[Gateway]:
    async with Gateway.open(config) as opened:
        yield opened


@asynccontextmanager
async def served_by(gateway: Gateway, *, short: bool = True) -> AsyncIterator[Served]:
    app = build(gateway, short=short)
    async with app.state.mcp.running(), serving(app) as one:
        yield one


@pytest.fixture(params=[True, False], ids=["short", "general"])
async def served(gateway: Gateway, request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    async with served_by(gateway, short=request.param) as one:
        yield one
