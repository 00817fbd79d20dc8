"""Are those who need to know told of what changes?"""

import pytest
from mcp.server.subscriptions import ResourceUpdated

from holdfast.upstreams.mcp.change import Change
from tests.polling import until
from tests.requirements import requirement
from tests.upstreams.mcp.callers import SOON_S, Heard, attempt, upstream
from tests.upstreams.mcp.places import workshop_http
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit
from tests.upstreams.mcp.workshop import Workshop
from tests.upstreams.mcp.worlds import ALL, MODERN, world


@pytest.mark.parametrize("name", [name for name in ALL if name not in MODERN])
@requirement("REG-2", "PRO-1")
async def test_a_changed_list_is_told_of(name: str) -> None:
    heard = Heard()
    async with world(name, on_change=heard) as shop:
        before = len((await shop.snapshot(SOON_S)).tools)
        await shop.invoke(attempt("grow"))
        await heard.until("tools")
        assert len((await shop.snapshot(SOON_S)).tools) == before + 1


@pytest.mark.parametrize("name", MODERN)
@requirement("REG-2", "PRO-1")
async def test_a_changed_list_of_a_server_that_must_be_listened_to_is_told_of(name: str) -> None:
    workshop, heard = Workshop(), Heard()
    async with world(name, workshop, on_change=heard) as shop:
        before = len((await shop.snapshot(SOON_S)).tools)
        while Change("tools") not in heard.changes:  # until the server has begun to let us listen
            await shop.invoke(attempt("grow"))
        assert len((await shop.snapshot(SOON_S)).tools) > before


@requirement("PRO-1")
async def test_a_changed_resource_is_told_of_in_the_handshake_era() -> None:
    workshop, heard = Workshop(), Heard()
    async with world("http-legacy", workshop, on_change=heard) as shop:
        await shop.subscribe("shop://plan")
        await heard.until("resource")
    assert Change("resource", "shop://plan") in heard.changes
    assert workshop.subscribed == ["shop://plan"]


@requirement("PRO-1")
async def test_a_changed_resource_is_told_of_in_the_modern_era() -> None:
    workshop, heard = Workshop(), Heard()
    async with world("http-modern", workshop, on_change=heard) as shop:
        await shop.subscribe("shop://plan")
        while Change("resource", "shop://plan") not in heard.changes:
            await workshop.bus.publish(ResourceUpdated(uri="shop://plan"))
            await workshop.bus.publish(ResourceUpdated(uri="shop://other"))
            await shop.ping(SOON_S)
        await shop.unsubscribe("shop://plan")
    assert Change("resource", "shop://other") not in heard.changes


@requirement("REG-3")
async def test_a_subscription_outlives_a_restart() -> None:
    workshop, heard = Workshop(), Heard()
    async with workshop_http(workshop, "legacy") as (target, _), upstream(target, on_change=heard) as shop:
        await shop.subscribe("shop://plan")
        (await shop._owner.usable()).over.tell("a test wants it")
        await heard.until("up", 2)
        await until(lambda: workshop.subscribed == ["shop://plan", "shop://plan"])


async def test_listening_is_taken_up_again_and_everything_may_have_changed() -> None:
    heard, listens = Heard(), 0

    class Listened(RogueHttp):
        async def _serve(self, visit: Visit) -> None:
            nonlocal listens
            if visit.method == "server/discover":
                capabilities = {"tools": {"listChanged": True}}
                return visit.answer(supportedVersions=["2026-07-28"], capabilities=capabilities)
            assert visit.method == "subscriptions/listen"
            assert visit.message["params"]["notifications"] == {"toolsListChanged": True}
            listens += 1
            visit.stream()
            raise ConnectionError

    async def never(visit: Visit) -> None:
        raise AssertionError

    async with Listened(never).open() as target, upstream(target, on_change=heard):
        await heard.until("tools", 3)
    assert listens >= 3


@pytest.mark.parametrize("name", ["stdio-legacy", "http-legacy", "http-modern"])
async def test_a_level_can_be_set_whether_or_not_the_server_logs(name: str) -> None:
    async with world(name) as shop:
        await shop.set_level("error")
        assert (await shop.invoke(attempt("echo"))).data["arguments"] == {}
