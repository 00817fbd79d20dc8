"""Does a call to a remote MCP server go out in the name of whoever made it, over the real upstream?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.catalog.imports.imported import import_tools
from holdfast.catalog.imports.lock import Lock
from holdfast.catalog.imports.overlay import Overlay
from holdfast.model.errors import Code, NoEffect
from holdfast.model.tool import Tool
from holdfast.ports import Attempt
from holdfast.upstreams.mcp.target import HttpTarget
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.requirements import requirement
from tests.upstreams.oauth.world import World, world

IN_TIME_S = 20.0


@asynccontextmanager
async def fronted(w: World) -> AsyncIterator[McpUpstream]:
    upstream = McpUpstream("crm", HttpTarget(url=w.url, auth=w.authorizer()))
    upstream.start()
    try:
        assert await upstream.ready(IN_TIME_S), upstream.last_error
        yield upstream
    finally:
        await upstream.close()


async def who(upstream: McpUpstream, user: str, tenant: str = "acme") -> str:
    """Who the server takes the caller for."""
    seen = await upstream.snapshot(IN_TIME_S)
    overlay = Overlay({}, {"*": {"effect": "READ_ONLY"}})
    now = "2026-01-01T00:00:00+00:00"
    [offer] = import_tools(
        "crm", seen.tools, overlay=overlay, lock=Lock(), trust_annotations=False, now=now
    ).offers
    answer = await upstream.invoke(
        Attempt(
            tool=Tool.compile(offer.contract),
            arguments={},
            key=None,
            tenant=tenant,
            call_id="c-1",
            trace_id="0" * 32,
            deadline_s=IN_TIME_S,
            number=1,
            principal=f"{user}/agent",
        )
    )
    return str(answer.data["who"])


async def signed_in(w: World, principal: str, person: str) -> None:
    w.office.person = person
    await w.sign_in(principal)


@requirement("AUT-1", "AUT-6")
async def test_the_server_knows_each_caller_and_the_gateway_by_their_own_token() -> None:
    async with world() as w:
        await signed_in(w, "", "the-gateway")
        await signed_in(w, "acme/alice/any", "alice")
        await signed_in(w, "acme/bob/any", "bob")
        await signed_in(w, "other/alice/any", "the-other-alice")
        async with fronted(w) as upstream:
            assert [await who(upstream, name) for name in ("alice", "bob")] == ["alice", "bob"]
            assert await who(upstream, "alice", tenant="other") == "the-other-alice"
        assert {"the-gateway"} <= set(w.seen) <= {"the-gateway", "alice", "bob", "the-other-alice"}


@requirement("AUT-8")
async def test_a_caller_who_has_not_signed_in_is_told_how_and_the_upstream_stays_up() -> None:
    async with world() as w:
        await signed_in(w, "", "the-gateway")
        await signed_in(w, "acme/alice/any", "alice")
        async with fronted(w) as upstream:
            with pytest.raises(NoEffect, match="run 'holdfast login crm --as eve'") as refused:
                await who(upstream, "eve")
            assert refused.value.code is Code.PERMISSION_DENIED
            assert (upstream.state, await who(upstream, "alice")) == ("ready", "alice")
            await signed_in(w, "acme/eve/any", "eve")
            assert await who(upstream, "eve") == "eve"


async def test_an_upstream_that_nobody_opened_says_how_it_is_opened() -> None:
    async with world() as w:
        upstream = McpUpstream("crm", HttpTarget(url=w.url, auth=w.authorizer()))
        upstream.start()
        try:
            assert not await upstream.ready(IN_TIME_S)
            assert "run 'holdfast login crm --gateway'" in (upstream.last_error or "")
        finally:
            await upstream.close()
