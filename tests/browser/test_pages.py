"""Does every page open, with nothing to show and with a lot, and does it fit a phone?"""

import pytest
from playwright.async_api import Page

from tests.browser.conftest import Filled, Visit
from tests.browser.paths import EVERYBODYS, FULL
from tests.browser.visitor import NARROW
from tests.browser.world import World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDER = """() => [...document.querySelectorAll("main *")]
  .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map((one) => one.outerHTML.slice(0, 200)).slice(-5)"""


async def too_wide(page: Page) -> list[str]:
    """What makes the page scroll sideways; a table may do so within its own box."""
    sizes = "() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    whole, seen = await page.evaluate(sizes)
    return [] if whole <= seen else [f"{whole} > {seen}", *await page.evaluate(WIDER)]


@requirement("PPL-2")
@pytest.mark.parametrize("name", EVERYBODYS)
async def test_a_page_that_is_empty_says_what_will_be_there(empty: World, visit: Visit, name: str) -> None:
    page = await visit("ana", EVERYBODYS[name], at=empty, viewport=NARROW)
    assert await page.locator("main h1").count() == 1
    assert len(await page.locator("main").inner_text()) > 60
    assert await too_wide(page) == []


@requirement("PPL-2")
@pytest.mark.parametrize("name", FULL)
async def test_a_full_page_opens_and_fits_a_phone(filled: Filled, visit: Visit, name: str) -> None:
    page = await visit("ana", FULL[name].format(**filled.made), at=filled.world, viewport=NARROW)
    assert await page.locator("main h1").count() == 1
    assert await too_wide(page) == []


@requirement("PPL-2")
@pytest.mark.parametrize("name", EVERYBODYS)
async def test_whoever_has_no_role_sees_a_page_or_why_not(filled: Filled, visit: Visit, name: str) -> None:
    page = await visit("eve", EVERYBODYS[name], at=filled.world)
    assert await page.locator("main h1").count() == 1
