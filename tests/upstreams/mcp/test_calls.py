"""Does a call reach a real server, and come back as it was?"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from holdfast.model.errors import Code, NoEffect
from holdfast.upstreams.mcp.errors import Refused
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.requirements import requirement
from tests.upstreams.mcp.callers import SOON_S, Caller, attempt, upstream
from tests.upstreams.mcp.places import rogue_program, workshop_http
from tests.upstreams.mcp.workshop import Workshop
from tests.upstreams.mcp.worlds import ALL, LEGACY, MODERN, world

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(params=ALL, scope="module", loop_scope="module")
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[McpUpstream]:
    async with world(request.param) as made:
        yield made


@requirement("PRO-1")
async def test_a_tool_answers_over_every_transport_and_era(shop: McpUpstream) -> None:
    answer = await shop.invoke(attempt("echo", {"text": "hallo"}))
    assert answer.data["arguments"] == {"text": "hallo"}
    assert answer.native is not None
    assert answer.native["structuredContent"] == answer.data
    assert answer.error is None
    assert not answer.unfinished


@requirement("IDM-7")
async def test_the_key_and_the_trace_go_along(shop: McpUpstream) -> None:
    answer = await shop.invoke(attempt("echo", key="k-1", traceparent="00-a-b-01", tracestate="x=1"))
    assert answer.data["meta"] == {"holdfast/key": "k-1", "traceparent": "00-a-b-01", "tracestate": "x=1"}


@requirement("IDM-7")
async def test_the_key_is_put_into_the_argument_the_upstream_knows(shop: McpUpstream) -> None:
    promise = {"upstream": "argument", "name": "note"}
    answer = await shop.invoke(attempt("echo", {"text": "a"}, key="k-1", idempotency=promise))
    assert answer.data["arguments"] == {"text": "a", "note": "k-1"}


@requirement("IDM-7")
async def test_a_key_that_cannot_travel_as_the_contract_says_is_not_sent_without() -> None:
    async with upstream(rogue_program()) as rogue:
        with pytest.raises(NoEffect, match="has no headers"):
            await rogue.invoke(
                attempt("tool_0", key="k-1", idempotency={"upstream": "header", "name": "X-Key"})
            )


@pytest.mark.parametrize("name", ["http-modern", "http-legacy", "sse"])
@requirement("IDM-7")
async def test_the_key_is_put_into_the_header_the_upstream_knows(name: str) -> None:
    async with world(name) as shop:
        promise = {"upstream": "header", "name": "Idempotency-Key"}
        answer = await shop.invoke(attempt("headers", key="k-1", idempotency=promise))
    assert answer.data["idempotency-key"] == "k-1"


async def test_a_tool_is_called_by_the_upstreams_own_name(shop: McpUpstream) -> None:
    answer = await shop.invoke(attempt("renamed", identity={"upstream_name": "echo"}))
    assert answer.data["arguments"] == {}


async def test_a_tool_that_says_it_failed_is_an_answer_with_an_error(shop: McpUpstream) -> None:
    answer = await shop.invoke(attempt("fail"))
    assert answer.error == "the drill is blunt"
    assert answer.native is not None
    assert answer.native["isError"] is True
    assert answer.data == {"content": answer.native["content"]}


@requirement("IDM-5")
async def test_refused_parameters_prove_that_nothing_happened(shop: McpUpstream) -> None:
    with pytest.raises(NoEffect, match="no tool called unknown") as refused:
        await shop.invoke(attempt("unknown"))
    assert refused.value.code is Code.SEMANTIC_INVALIDITY


@requirement("IDM-5")
async def test_an_internal_error_proves_nothing(shop: McpUpstream) -> None:
    with pytest.raises(Refused):
        await shop.invoke(attempt("broken"))


@requirement("PRO-1")
async def test_resources_prompts_and_completion_are_calls_too(shop: McpUpstream) -> None:
    read = await shop.invoke(attempt("mcp-resources-read", {"uri": "shop://plan"}))
    assert read.data == read.native
    assert read.data["contents"][0]["text"] == "a plan"
    prompt = await shop.invoke(attempt("mcp-prompts-get", {"name": "greet", "arguments": {"who": "Ada"}}))
    assert prompt.data["messages"][0]["content"]["text"] == "hello Ada"
    asked = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "ro"}}
    completion = await shop.invoke(attempt("mcp-completion-complete", asked))
    assert completion.data["completion"]["values"] == ["rose"]


@requirement("REG-2")
async def test_everything_it_offers_is_listed_to_the_last_page(shop: McpUpstream) -> None:
    found = await shop.snapshot(SOON_S)
    assert len(found.tools) == 13
    assert found.tools[0]["inputSchema"]["properties"]["region"]["x-mcp-header"] == "Region"
    assert [item["uri"] for item in found.resources] == ["shop://plan"]
    assert [item["uriTemplate"] for item in found.templates] == ["shop://part/{id}"]
    assert [item["name"] for item in found.prompts] == ["greet"]
    assert found.server_info["name"] == "workshop"
    assert found.instructions == "Mind your fingers."
    assert found.faults == ()


@pytest.mark.parametrize(
    ("name", "version"), [*((n, "2026-07-28") for n in MODERN), *((n, "2025-11-25") for n in LEGACY)]
)
@requirement("REG-2")
async def test_the_newest_version_both_sides_speak_is_taken(name: str, version: str) -> None:
    async with world(name) as shop:
        assert (await shop.snapshot(SOON_S)).protocol_version == version
        assert (await shop.invoke(attempt("echo"))).data["version"] == version


async def test_a_live_server_answers_a_probe(shop: McpUpstream) -> None:
    await shop.ping(SOON_S)
    assert shop.state == "ready"


async def test_any_other_request_can_be_made(shop: McpUpstream) -> None:
    got = await shop.request("resources/read", {"uri": "shop://plan"}, timeout_s=SOON_S)
    assert got["contents"][0]["uri"] == "shop://plan"


@requirement("PRO-1")
async def test_headers_let_others_route_without_reading_the_body() -> None:
    async with workshop_http(Workshop()) as (target, _), upstream(target) as shop:
        await shop.snapshot(SOON_S)
        answer = await shop.invoke(attempt("headers", {"region": "Zürich", "text": "x"}))
    assert answer.data["mcp-method"] == "tools/call"
    assert answer.data["mcp-name"] == "headers"
    assert answer.data["mcp-protocol-version"] == "2026-07-28"
    assert answer.data["mcp-param-region"] == "=?base64?WsO8cmljaA==?="


async def test_arguments_are_mirrored_by_the_contracts_schema_before_the_first_listing() -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}
    async with workshop_http(Workshop()) as (target, _), upstream(target) as shop:
        answer = await shop.invoke(attempt("headers", {"region": "eu"}, schema=schema))
    assert answer.data["mcp-param-region"] == "eu"


@requirement("EXE-9")
async def test_calls_share_connections_and_need_one_request_each() -> None:
    async with workshop_http(Workshop()) as (target, seen), upstream(target) as shop:
        before = len(seen.requests)
        for _ in range(20):
            await shop.invoke(attempt("echo"))
        assert seen.methods()[-20:] == ["tools/call"] * 20
        assert len([r for r in seen.requests[before:] if r[2].get("mcp-method") == "tools/call"]) == 20
        assert len(seen.connections) <= 3  # one for the calls, one that listens, one more while it was opened


@requirement("EXE-9")
async def test_a_session_of_the_handshake_era_is_reused() -> None:
    async with workshop_http(Workshop(), "legacy") as (target, seen), upstream(target) as shop:
        for _ in range(10):
            await shop.invoke(attempt("echo", peer=Caller()))
        sessions = {h["mcp-session-id"] for _, _, h in seen.requests if "mcp-session-id" in h}
    assert len(sessions) == 1


@requirement("PRO-1")
async def test_a_client_of_the_older_era_is_served_in_its_own() -> None:
    async with workshop_http(Workshop()) as (target, _), upstream(target) as shop:
        old = await shop.invoke(attempt("echo", peer=Caller()))
        new = await shop.invoke(attempt("echo", peer=Caller(modern=True)))
        nobody = await shop.invoke(attempt("echo"))
    versions = [answer.data["version"] for answer in (old, new, nobody)]
    assert versions == ["2025-11-25", "2026-07-28", "2026-07-28"]


async def test_what_the_protocol_does_not_know_is_kept() -> None:
    async with upstream(rogue_program()) as rogue:
        answer = await rogue.invoke(attempt("tool_0", {"how": "precise"}))
        listed = await rogue.snapshot(SOON_S)
    assert answer.data == {"n": 123456789012345678901234567890}
    assert answer.native is not None
    assert answer.native["x-more"] == {"y": [None]}
    assert listed.tools[0]["x-own"] == {"kept": [1, None]}
