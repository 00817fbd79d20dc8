"""What does somebody get who sends what no page of the console would send?"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from holdfast.identity.keys import mint
from holdfast.servers.app import build
from holdfast.servers.console.streams import MOST
from holdfast.testing import ManualClock
from tests.console.conftest import PEOPLE, console, opened
from tests.console.office import World, world
from tests.console.visitor import HOST, Visitor
from tests.requirements import requirement
from tests.servers.serving import serving
from tests.stored import Store

FELT_S = 20.0
NOWHERE = [base64.urlsafe_b64encode(said).decode().rstrip("=") for said in (b"1.0 " + b"9" * 60, b"1 -9e9")]
ADDRESSES = (
    *("/calls/%00", "/approvals/%00", "/plans/%00", "/audit/%00", "/catalog/%00", "/unknown?after=%00"),
    *("/live?tool=%00", "/live?before=%00", "/live?task=a%00b", "/audit?call=%00", "/audit?tool=%00"),
    *(f"/audit?cursor={cursor}" for cursor in NOWHERE),
    "/v1/costs?since=0001-01-01T00:00%2B23:59",
)


@requirement("PPL-2")
async def test_no_address_breaks_a_page_or_is_taken_to_the_store(store: Store, clock: ManualClock) -> None:
    gateway = opened(store, clock, {"auth": {"people": PEOPLE}})
    await gateway.prepare(connect=False)
    try:
        visitor = Visitor(build(gateway))
        await visitor.sign_in("ana")
        came = {path: (await visitor.get(path)).status for path in ADDRESSES}
        form = await visitor.post("/upstreams/halt", {"target": "all", "note": "a\0b"})
    finally:
        await gateway.close()
    assert {path: status for path, status in came.items() if status >= 500} == {}
    assert form.status == 400


@asynccontextmanager
async def stream(there: World, visitor: Visitor, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
    cookie = "; ".join(f"{one}={value}" for one, value in visitor.cookies.items())
    headers = {"cookie": cookie, "host": HOST}
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
        yield answer


@requirement("PPL-2")
@pytest.mark.parametrize("path", ["/live/events", "/inbox/events"])
async def test_one_person_has_so_many_streams_and_no_more(tmp_path: Path, path: str) -> None:
    async with world(tmp_path) as there, serving(there.app) as served:
        otto, again, eve = [await there.browser(name) for name in ("otto", "otto", "eve")]
        async with AsyncExitStack() as streams:
            for _ in range(MOST):
                one = await streams.enter_async_context(stream(there, otto, served.url + path))
                async with asyncio.timeout(FELT_S):
                    assert await one.content.readline()
            refused = await streams.enter_async_context(stream(there, again, served.url + path))
            other = await streams.enter_async_context(stream(there, eve, served.url + path))
            assert (refused.status, other.status) == (429, 200)


@requirement("PPL-2", "AUT-6")
async def test_who_is_no_operator_any_more_does_not_go_on_watching(tmp_path: Path) -> None:
    async with world(tmp_path) as there, serving(there.app) as served:
        ana = await there.browser("ana")
        async with stream(there, ana, f"{served.url}/live/events") as answer:
            async with asyncio.timeout(FELT_S):
                assert await answer.content.readline()
            people = there.gateway.identity.people
            people["ana"] = replace(people["ana"], roles=frozenset())
            people["zoe"] = replace(people["ana"], name="zoe", roles=frozenset({"operator"}))
            there.gateway.identity.forget()
            ottos = await there.call("count", by="otto")
            async with asyncio.timeout(FELT_S):
                rest = await answer.content.read()
        assert ottos.call_id.encode() not in rest


@requirement("AUT-1")
async def test_nobody_is_locked_out_by_who_guesses_from_the_same_address(clock: ManualClock) -> None:
    key, entry = mint("ana")
    people = {"auth": {"mode": "api_key", "people": PEOPLE, "keys": [entry]}}
    async with console(clock, people) as gateway:
        app, proxy = build(gateway), ("203.0.113.9", 1)
        guessing, ana = (Visitor(app, host="gateway.example.com", address=proxy) for _ in range(2))
        for _ in range(20):
            await guessing.post("/sign-in", {"credential": "x"})
        assert (await guessing.post("/sign-in", {"credential": "x"})).status == 429
        await ana.shows(credential=key)
        assert (await ana.get("/")).status == 200


@requirement("APR-2")
async def test_what_was_only_asked_for_by_head_was_not_read(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        held = await there.call("send", to="you")
        assert held.approval is not None
        ana, path = await there.browser("ana"), f"/approvals/{held.approval.id}"
        assert (await ana.send("HEAD", path)).status == 200
        assert "holdfast-read" not in ana.cookies
        await ana.get(path)
        assert "holdfast-read" in ana.cookies
