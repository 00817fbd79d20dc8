"""Who gets through the MCP door over HTTP, and what happens to bad input?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from holdfast.gateway import Gateway
from holdfast.identity import mint
from holdfast.ports import Attempt
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.asgi import Client as Asgi
from tests.servers.conftest import LOCAL
from tests.servers.mcp.conftest import ERAS
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import LEGACY, MODERN, speaking
from tests.servers.serving import Served

BOTH_WAYS = True

MINTED = mint("ann")


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "http://evil.example"}])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@requirement("AUT-1")
async def test_a_page_of_another_site_is_kept_out(
    served: Served, method: str, headers: Mapping[str, str]
) -> None:
    async with speaking(served, MODERN) as line:
        body, right = line.request("tools/list")
        data = orjson.dumps(body) if method == "POST" else None
        async with line.http.request(method, line.url, data=data, headers={**right, **headers}) as response:
            assert response.status == 403
        own = {**right, "origin": served.url}
        if method == "POST":
            async with line.post(body, own) as response:
                assert response.status == 200


@ERAS
@requirement("VAL-4")
async def test_a_body_that_is_too_large_is_not_read(served: Served, era: str, office: Office) -> None:
    async with speaking(served, era) as line:
        long = {"name": "office__note", "arguments": {"text": "x" * 30_000}}
        body, headers = line.request("tools/call", long)
        async with line.post(body, headers) as response:
            assert response.status == 413
            assert "limits.body_bytes" in (await response.json())["next"]
    assert office.notes == []


@pytest.mark.parametrize(
    ("raw", "code", "why"),
    [
        (b"{", -32700, "not valid JSON"),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, "twice"),
        (b'{"a":NaN}', -32700, "cannot be read"),
        (b"[" * 200 + b"]" * 200, -32600, "cannot be read"),
        (b'"' + b"x" * 9_000 + b'"', -32600, "longer than"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a\xff"}', -32700, "cannot be read"),
    ],
)
@ERAS
@requirement("VAL-4")
async def test_what_two_readers_could_read_differently_is_refused(
    served: Served, era: str, raw: bytes, code: int, why: str
) -> None:
    async with speaking(served, era) as line:
        _, headers = line.request("tools/list")
        async with line.http.post(line.url, data=raw, headers=headers) as response:
            said = await response.json()
            assert response.status == 400
    assert (said["error"]["code"], said["id"]) == (code, None)
    assert why in said["error"]["message"]


BATCH = [{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]


@pytest.mark.parametrize("body", [[], BATCH, 7, "x", {}, None])
@ERAS
async def test_what_is_no_message_is_a_bad_request(served: Served, era: str, body: Any) -> None:
    async with speaking(served, era) as line:
        _, headers = line.request("tools/list")
        async with line.post(body, headers) as response:
            assert 400 <= response.status < 500


@ERAS
async def test_an_unknown_method_and_bad_params_are_errors_of_the_protocol(served: Served, era: str) -> None:
    async with speaking(served, era) as line:
        unknown = await line.ask("nothing/here")
        wrong = await line.ask("tools/call", {"name": "office__count", "arguments": []})
    assert (unknown["error"]["code"], wrong["error"]["code"]) == (-32601, -32602)


async def test_a_modern_request_whose_headers_and_body_differ_is_refused(served: Served) -> None:
    async with speaking(served, MODERN) as line:
        body, headers = line.request("tools/call", {"name": "office__count", "arguments": {}})
        async with line.post(body, {**headers, "mcp-name": "office__note"}) as response:
            assert (await response.json())["error"]["code"] == -32020


async def test_a_version_nobody_knows_is_told_which_ones_are(served: Served) -> None:
    async with speaking(served, MODERN) as line:
        body, headers = line.request("tools/list")
        async with line.post(body, {**headers, "mcp-protocol-version": "2031-01-01"}) as response:
            assert response.status == 400


@requirement("AUT-7", "AUT-1")
async def test_a_session_is_for_who_opened_it_and_its_name_says_nothing(served: Served) -> None:
    async with speaking(served, LEGACY) as line:
        session = line.headers["mcp-session-id"]
        assert not {"ann", "bot"} & set(session.split("-"))
        assert "result" in await line.ask("tools/list")
        line.headers["x-holdfast-user"] = "bob"
        body, headers = line.request("tools/list")
        async with line.post(body, headers) as response:
            assert response.status == 404
        line.headers |= {"x-holdfast-user": "ann", "x-holdfast-agent": "other"}
        body, headers = line.request("tools/list")
        async with line.post(body, headers) as response:
            assert response.status == 404


async def test_a_session_that_was_ended_is_gone(served: Served) -> None:
    async with speaking(served, LEGACY) as line:
        _, headers = line.request("tools/list")
        async with line.http.delete(line.url, headers=headers) as response:
            assert response.status == 200
        body, headers = line.request("tools/list")
        async with line.post(body, headers) as response:
            assert response.status == 404


async def test_the_door_is_shut_while_nobody_serves_it(gateway: Gateway) -> None:
    client = Asgi(build(gateway), {**LOCAL, "x-holdfast-user": "ann"})
    answer = await client.post("/mcp", {})
    assert (answer.status, set(answer.json())) == (503, {"error", "next"})
    assert (await client.send("PUT", "/mcp")).status == 405


class TestApiKeys:
    @pytest.fixture
    def config(self, config: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
        (tmp_path / "all.cedar").write_text('@id("all") permit (principal, action, resource);')
        auth = {"mode": "api_key", "people": config["auth"]["people"], "keys": [MINTED[1]]}
        return {**config, "auth": auth, "policies": str(tmp_path)}

    @ERAS
    @requirement("AUT-1")
    async def test_without_a_key_nothing_is_served_and_the_answer_says_where_to_look(
        self, served: Served, era: str
    ) -> None:
        async with aiohttp.ClientSession() as http:
            for method in ("GET", "POST", "DELETE"):
                for headers in ({}, {"authorization": "Bearer hf_aaaa_wrong"}):
                    headers |= {"mcp-protocol-version": era}
                    async with http.request(
                        method, f"{served.url}/mcp", data=b"{", headers=headers
                    ) as response:
                        assert response.status == 401
                        challenge = response.headers["www-authenticate"]
            where = challenge.partition('resource_metadata="')[2].rstrip('"')
            assert where == f"{served.url}/.well-known/oauth-protected-resource/mcp"
            for url in (where, where.removesuffix("/mcp")):
                async with http.get(url) as response:
                    assert response.status == 200
                    assert (await response.json())["resource"] == f"{served.url}/mcp"

    @ERAS
    @requirement("AUT-1")
    async def test_a_key_opens_it_and_goes_no_further(self, served: Served, era: str, office: Office) -> None:
        key = {"authorization": f"Bearer {MINTED[0]}"}
        accept = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        async with speaking(served, era, headers={**accept, **key}) as line:
            answer = await line.ask("tools/call", {"name": "office__note", "arguments": {"text": "a"}})
        assert answer["result"]["isError"] is False
        [attempt] = office.seen
        shown = repr({name: getattr(attempt, name) for name in Attempt.__annotations__ if name != "peer"})
        assert MINTED[0] not in shown
        assert MINTED[0].rpartition("_")[2] not in shown
