"""Can two people read what a refund will do, say yes one after the other, and see what came of it?"""

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.world import World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def approve(page: Page) -> None:
    await page.get_by_label("I have read what cannot be undone").check()
    await page.get_by_role("button", name="Approve").click()


async def status(world: World, call: str) -> str:
    return str((await world.ask("GET", f"/v1/calls/{call}", "otto"))["status"])


@requirement("PPL-2", "APR-1", "APR-2", "APR-7")
async def test_a_held_refund_is_read_approved_by_two_and_runs(world: World, visit: Visit) -> None:
    seen = await world.hold_refund(1500)
    id, call = seen["approval"]["id"], seen["call_id"]
    ana = await visit("ana")
    await ana.locator(f'a[href="/approvals/{id}"]').first.click()
    main = ana.locator("main")
    for words in ("oney leaves the shop's account", "shop.refund", "otto", "support-bot", "1500", "47500"):
        await expect(main).to_contain_text(words)
    await expect(main).to_contain_text(re.compile("cannot be (taken back|undone)", re.IGNORECASE))
    await approve(ana)
    await expect(main).to_contain_text("Others still have to say yes")
    assert await status(world, call) == "held"

    ben = await visit("ben", f"/approvals/{id}")
    await expect(ben.locator("main")).to_contain_text("ana")
    await approve(ben)
    await ben.wait_for_url(f"**/calls/{call}*")
    timeline = ben.locator("main")
    await expect(timeline).to_contain_text("done")
    for gate in ("authorize", "policy", "approval"):
        await expect(timeline).to_contain_text(gate)
    await expect(timeline).to_contain_text("ben")
    assert await status(world, call) == "done"


@requirement("APR-2")
async def test_nobody_says_yes_twice_or_to_their_own_call(world: World, visit: Visit) -> None:
    id = (await world.hold_refund(1500))["approval"]["id"]
    ana = await visit("ana", f"/approvals/{id}")
    await approve(ana)
    await expect(ana.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)
    otto = await visit("otto", f"/approvals/{id}")
    await expect(otto.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)


@requirement("APR-2", "APR-4")
async def test_a_no_ends_it(world: World, visit: Visit) -> None:
    seen = await world.hold_refund(1500)
    ana = await visit("ana", f"/approvals/{seen['approval']['id']}")
    await ana.get_by_label(re.compile("note|why", re.IGNORECASE)).first.fill("no receipt")
    await ana.get_by_role("button", name=re.compile("^Deny")).click()
    await expect(ana.locator("main")).to_contain_text("this key stays denied")
    await expect(ana.locator("main")).to_contain_text("no receipt")
    again = await world.call(
        "refund", {"order_id": "o-1", "amount_cents": 1, "reason": "late"}, key=seen["key"]
    )
    assert again["status"] == "refused"
