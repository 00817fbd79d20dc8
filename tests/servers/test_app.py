"""Which routes are there, and who stands before them?"""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette

from holdfast.gateway import Gateway
from holdfast.identity import mint
from holdfast.servers.app import GOVERNED, PUBLIC, build
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL
from tests.servers.desk import Desk

MINTED = mint("ann")
EVERY = [(method, path) for path, methods in GOVERNED.items() for method in methods]


def filled(path: str) -> str:
    return path.replace("{id}", "x").replace("{target:path}", "x").replace("{record}", "x")


@requirement("TEL-6", "NAM-3")
async def test_health_and_ready_answer_anybody(app: Starlette) -> None:
    nobody = Client(app, LOCAL)
    assert (await nobody.get("/health")).json() == {"status": "ok"}
    ready = await nobody.get("/ready")
    assert (ready.status, ready.json()["ready"]) == (200, True)


@requirement("TEL-6", "LIF-5")
async def test_a_gateway_that_closes_is_up_but_not_ready(config: dict[str, Any], desk: Desk) -> None:
    async with Gateway.open(config) as gateway:
        client = Client(build(gateway), LOCAL)
    ready = await client.get("/ready")
    assert (ready.status, ready.json()["ready"]) == (503, False)
    assert set(ready.json()) == {"ready", "store", "draining", "policy", "next"}
    assert (ready.json()["store"], ready.json()["draining"]) == ("closed", True)
    assert (await client.get("/health")).status == 200
    call = await client.post("/v1/calls", {"tool": "desk.count", "arguments": {}})
    assert (call.status, call.json()["code"]) == (503, "TOOL_UNAVAILABLE")
    lost = await client.get("/v1/calls/x")
    assert (lost.status, set(lost.json())) == (503, {"error", "next", "incident"})


@requirement("NAM-3")
async def test_without_a_console_the_front_page_says_what_this_is_and_runs_nothing(
    config: dict[str, Any], desk: Desk
) -> None:
    async with Gateway.open({**config, "console": {"enabled": False}}) as gateway:
        page = await Client(build(gateway), LOCAL).get("/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    assert b'href="/openapi.json"' in page.body
    assert b"<script" not in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/calls/", "/v1/tools/x", "/rpc/", "//"])
async def test_a_route_that_is_not_there_is_404_in_json(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 404
    assert set(answer.json()) == {"error", "next"}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/calls", {"POST"}),
        ("DELETE", "/v1/tools", {"GET", "HEAD"}),
        ("PUT", "/v1/halts", {"GET", "HEAD", "POST"}),
        ("GET", "/rpc", {"POST"}),
        ("PROPFIND", "/health", {"GET", "HEAD"}),
    ],
)
async def test_a_wrong_method_is_405_with_the_right_ones(
    client: Client, method: str, path: str, allowed: set[str]
) -> None:
    answer = await client.send(method, path)
    assert answer.status == 405
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert set(answer.json()) == {"error", "next"}


async def test_head_is_answered_as_get(client: Client) -> None:
    assert (await client.send("HEAD", "/v1/tools")).status == 200


async def test_no_answer_may_be_kept_by_a_cache(client: Client) -> None:
    for path in ("/v1/tools", "/health", "/nothing", "/"):
        assert (await client.get(path)).headers["cache-control"] == "no-store"


@requirement("AUT-1")
async def test_local_mode_refuses_a_foreign_host_before_anything_else(app: Starlette, desk: Desk) -> None:
    rebound = Client(app, {"host": "evil.example"})
    for path in ("/health", "/v1/tools", "/nothing"):
        assert (await rebound.get(path)).status == 403


@requirement("AUT-1")
async def test_a_person_nobody_knows_is_401(as_person: Callable[[str], Client]) -> None:
    answer = await as_person("mallory").get("/v1/tools")
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert set(answer.json()) == {"error", "next"}


class TestApiKeys:
    @pytest.fixture
    def config(self, config: dict[str, Any]) -> dict[str, Any]:
        config["auth"] = {"mode": "api_key", "people": config["auth"]["people"], "keys": [MINTED[1]]}
        return config

    @requirement("AUT-1")
    @pytest.mark.parametrize(("method", "path"), EVERY)
    async def test_nothing_governed_is_reached_without_a_key(
        self, app: Starlette, method: str, path: str
    ) -> None:
        for headers in ({}, {"authorization": "Bearer hf_aaaa_wrong"}, {"authorization": "Basic YTpi"}):
            answer = await Client(app, headers).send(method, filled(path), [b"{}"])
            assert answer.status == 401
            assert answer.headers["www-authenticate"].startswith('Bearer realm="holdfast"')
            assert ("invalid_token" in answer.headers["www-authenticate"]) == bool(headers)
            assert set(answer.json()) == {"error", "next"}

    @requirement("AUT-1")
    @pytest.mark.parametrize("path", [path for path in PUBLIC if path != "/" and "GET" in PUBLIC[path]])
    async def test_what_is_public_needs_no_key(self, app: Starlette, path: str) -> None:
        assert (await Client(app, {}).get(filled(path))).status == 200

    @requirement("AUT-1", "EXE-6")
    async def test_whoever_calls_back_is_known_by_the_address_alone(self, app: Starlette) -> None:
        assert (await Client(app, {}).send("POST", "/v1/jobs/nobody-was-told-this", [b""])).status == 404

    @requirement("AUT-1")
    async def test_the_console_needs_a_sign_in_whatever_key_comes_along(self, app: Starlette) -> None:
        answer = await Client(app, {}).get("/")
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in")

    @requirement("AUT-1", "VAL-4")
    async def test_a_large_body_of_nobody_is_not_read(self, app: Starlette) -> None:
        assert (await Client(app, {}).send("POST", "/v1/calls", [b"x" * 50_000])).status == 401

    @requirement("AUT-1")
    async def test_a_key_opens_the_door_from_anywhere(self, app: Starlette) -> None:
        headers = {"authorization": f"Bearer {MINTED[0]}", "host": "gateway.example"}
        assert (await Client(app, headers, ("10.0.0.9", 1)).get("/v1/tools")).status == 200
