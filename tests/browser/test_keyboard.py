"""Can everything be done without a mouse?"""

import re

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Visit
from tests.browser.world import World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")


@requirement("PPL-2")
async def test_a_refund_is_found_opened_and_approved_with_keys_only(world: World, visit: Visit) -> None:
    seen = await world.hold_refund(1500)
    id = seen["approval"]["id"]
    page = await visit("ana")
    await page.keyboard.press("/")
    await page.keyboard.type(id)
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(f"q={id}"))
    await expect(page.locator("[data-row]")).to_have_count(1)
    await page.keyboard.press("j")
    await expect(page.locator("[data-row].current")).to_have_count(1)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/approvals/{id}*")
    await page.keyboard.press("a")  # which shows what has to be read first
    await expect(page.get_by_label("I have read what cannot be undone")).to_be_focused()
    await page.keyboard.press("Space")
    await page.keyboard.press("a")
    await expect(page.locator("main")).to_contain_text("Others still have to say yes")
    approval = await world.gateway.approval(world.person("ana"), id)
    assert approval is not None
    assert [vote.person for vote in approval.votes] == ["ana"]


@requirement("PPL-2")
async def test_every_page_is_two_keys_away_and_help_is_one(world: World, visit: Visit) -> None:
    page = await visit("ana")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()
    for key, path in (("l", "/live"), ("c", "/catalog"), ("i", "/")):
        await page.keyboard.press("g")
        await page.keyboard.press(key)
        await page.wait_for_url(world.url + path)


@requirement("PPL-2")
async def test_tab_reaches_the_content_first_and_shows_where_it_is(world: World, visit: Visit) -> None:
    page = await visit("ana")
    await page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    await expect(skip).to_be_focused()
    await expect(skip).to_be_in_viewport()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("#main$"))
    await expect(page.locator("#main")).to_be_focused()


@requirement("PPL-2")
async def test_a_key_that_is_typed_into_a_field_is_text(world: World, visit: Visit) -> None:
    id = (await world.hold_refund(1500))["approval"]["id"]
    page = await visit("ana", f"/approvals/{id}")
    await page.get_by_label(re.compile("note|why", re.IGNORECASE)).first.focus()
    await page.keyboard.type("bad idea? jkadx/")
    await expect(page).to_have_url(re.compile(f"/approvals/{id}$"))
    approval = await world.gateway.approval(world.person("ana"), id)
    assert approval is not None
    assert approval.votes == ()
