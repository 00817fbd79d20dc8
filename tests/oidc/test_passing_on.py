"""Does a caller's token, or anything it says of them, ever go further than this gateway?"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import yaml

from holdfast.gateway import Gateway
from tests.oidc.conftest import served_by
from tests.oidc.provider import Provider
from tests.oidc.recording import HEARD, Everything
from tests.requirements import requirement
from tests.servers.mcp.raw import ACCEPT, LEGACY, MODERN, Line
from tests.servers.serving import Served
from tests.telemetry.collector import Collector, collecting
from tests.upstreams.mcp.places import serving
from tests.upstreams.mcp.workshop import Workshop

ROUNDS = 125
"""Of eight calls each: two tools, through four doors."""
PIECE = 16


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    HEARD.clear()
    yield
    HEARD.clear()


@pytest.fixture
async def server() -> AsyncIterator[tuple[str, Everything]]:
    """A real MCP server over HTTP that keeps all it is sent."""
    app = Everything(Workshop().server().streamable_http_app())
    async with serving(app) as origin:
        yield f"{origin}/mcp", app


@pytest.fixture
async def spans() -> AsyncIterator[Collector]:
    async with collecting() as kept:
        yield kept


@pytest.fixture
def config(
    config: dict[str, Any], server: tuple[str, Everything], spans: Collector, tmp_path: Path
) -> dict[str, Any]:
    (tmp_path / "overlay.yaml").write_text(
        yaml.safe_dump({"version": 1, "tools": {"echo": {"effect": "READ_ONLY"}}})
    )
    config["auth"] |= {
        "claims": {"scopes": []},
        "people": {"alice": {"scopes": ["**"], "trust": 80}},
    }
    return config | {
        "upstreams": {
            "ear": {"functions": "tests.oidc.recording:ear"},
            "shop": {"mcp": {"url": server[0]}, "contracts": str(tmp_path / "overlay.yaml")},
        },
        "lock": str(tmp_path / "holdfast.lock"),
        "limits": {"ingress": {"rate": 100_000, "burst": 100_000}},
        "telemetry": {"traces": "otlp", "metrics": "otlp", "endpoint": spans.url, "level": "debug"},
    }


@asynccontextmanager
async def lines(served: Served, token: str) -> AsyncIterator[list[Line]]:
    """One client of each era."""
    headers = {**ACCEPT, "authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as http:
        modern, legacy = [
            Line(http, f"{served.url}/mcp", era, headers=dict(headers)) for era in (MODERN, LEGACY)
        ]
        client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": dict(legacy.client)}
        await legacy.ask("initialize", client)
        await legacy.tell("notifications/initialized")
        yield [modern, legacy]


async def over_http(http: aiohttp.ClientSession, served: Served, name: str, text: str) -> str:
    call = {"tool": name, "arguments": {"text": text}}
    async with http.post(f"{served.url}/v1/calls", data=orjson.dumps(call)) as answer:
        return str((await answer.json())["status"])


async def over_rpc(http: aiohttp.ClientSession, served: Served, name: str, text: str) -> str:
    call = {"tool": name, "arguments": {"text": text}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools.call", "params": call}
    async with http.post(f"{served.url}/rpc", data=orjson.dumps(request)) as answer:
        return str((await answer.json())["result"]["status"])


async def over_mcp(line: Line, name: str, text: str) -> str:
    wanted = {"name": name.replace(".", "__"), "arguments": {"text": text}}
    result = (await line.ask("tools/call", wanted))["result"]
    return str(result["_meta"]["holdfast/observation"]["status"])


def pieces(token: str) -> list[str]:
    """Every part of a token that gives it away: any of its signature, and its claims as they were sent."""
    _, body, seal = token.split(".")
    return [seal[start : start + PIECE] for start in range(len(seal) - PIECE + 1)] + [body[:40], body[-40:]]


@requirement("AUT-1", "AUT-7")
async def test_in_a_thousand_calls_no_upstream_sees_the_token_or_who_holds_it(
    config: dict[str, Any],
    issuer: Provider,
    server: tuple[str, Everything],
    spans: Collector,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = await issuer.of_person("alice", client="notebook")
    ended: list[str] = []
    with caplog.at_level(logging.DEBUG, "holdfast"):
        async with (
            Gateway.open(config) as gateway,
            served_by(gateway) as served,
            lines(served, token) as clients,
            aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as http,
        ):
            for number in range(ROUNDS):
                rounds = [
                    said
                    for name in ("ear.hear", "shop.echo")
                    for said in (
                        over_http(http, served, name, f"say {number}"),
                        over_rpc(http, served, name, f"say {number}"),
                        *(over_mcp(line, name, f"say {number}") for line in clients),
                    )
                ]
                ended += await asyncio.gather(*rounds)
    assert ended == ["done"] * 1000
    sent = server[1].bytes.decode()
    assert (sent.count('"say '), len(HEARD)) == (500, 500)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file()).decode("latin-1")
    assert len(spans.spans) >= 1000
    exported = "".join(map(str, (*spans.spans, *spans.metrics.values(), *spans.resources)))
    places = {
        "the server": sent,
        "the function": "".join(HEARD),
        "the files": kept,
        "the log": caplog.text,
        "the spans": exported,
    }
    assert all(piece in f"Bearer {token}" for piece in pieces(token))
    for where, text in places.items():
        assert not any(piece in text for piece in pieces(token)), where
    for name in ("alice", "notebook"):
        assert name not in sent
        assert not any(name in heard.partition("environ")[0] for heard in HEARD)
    assert issuer.url not in sent
