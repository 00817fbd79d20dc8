"""Does what happens show up on pages that are open, by itself?"""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visit
from tests.browser.world import World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")


@requirement("PPL-2")
async def test_a_call_shows_up_on_live_as_it_happens(world: World, visit: Visit) -> None:
    page = await visit("ana", "/live")
    loaded: list[str] = []
    page.on("load", lambda again: loaded.append(again.url))
    seen = await world.call("get_order", {"order_id": world.order()})
    await expect(page.locator(f'a[href="/calls/{seen["call_id"]}"]').first).to_be_visible()
    assert loaded == []  # nobody reloaded it


@requirement("PPL-2")
async def test_only_what_is_filtered_for_shows_up(world: World, visit: Visit) -> None:
    page = await visit("ana", "/live?tool=shop.add_note")
    read = await world.call("get_order", {"order_id": world.order()})
    order = world.order()
    noted = await world.call("add_note", {"order_id": order, "text": "hi"}, key=f"note-{order}")
    await expect(page.locator(f'a[href="/calls/{noted["call_id"]}"]').first).to_be_visible()
    await expect(page.locator(f'a[href="/calls/{read["call_id"]}"]')).to_have_count(0)


@requirement("PPL-2", "APR-7")
async def test_a_question_shows_up_in_the_inbox_and_leaves_it_when_answered(
    world: World, visit: Visit
) -> None:
    page = await visit("ana")
    id = (await world.hold_refund(1500))["approval"]["id"]
    link = page.locator(f'a[href="/approvals/{id}"]')
    await expect(link.first).to_be_visible()
    await world.gateway.decide(world.person("ben"), id, False)
    await expect(link).to_have_count(0)
