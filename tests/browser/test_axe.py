"""Can everybody use every page, light and dark? As far as axe-core can tell."""

import pytest

from tests.browser.conftest import Come, Filled, Visit
from tests.browser.paths import EVERYBODYS, FULL
from tests.browser.visitor import PHONE, violations
from tests.browser.world import World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")


@requirement("PPL-2")
@pytest.mark.parametrize("name", FULL)
async def test_a_full_page_has_no_serious_violation(filled: Filled, visit: Visit, name: str) -> None:
    page = await visit("ana", FULL[name].format(**filled.made), at=filled.world)
    assert await violations(page) == []
    await page.emulate_media(color_scheme="dark")
    assert await violations(page) == []


@requirement("PPL-2")
@pytest.mark.parametrize("name", EVERYBODYS)
async def test_an_empty_page_has_none_on_a_phone(empty: World, visit: Visit, name: str) -> None:
    page = await visit("ana", EVERYBODYS[name], at=empty, viewport=PHONE)
    assert await violations(page) == []


@requirement("PPL-2")
async def test_the_ways_in_have_none(world: World, keyed: World, visitors: Come) -> None:
    for one in (world, keyed):
        page = await (await visitors(one.url)).page("/sign-in")
        assert await violations(page) == []
        await page.emulate_media(color_scheme="dark")
        assert await violations(page) == []


async def test_a_violation_would_be_found(world: World, visitors: Come) -> None:
    page = await (await visitors(world.url)).page("/sign-in")
    await page.evaluate("document.querySelector('button').replaceChildren()")
    await page.evaluate("document.querySelector('button').setAttribute('aria-label', '')")
    assert [found for found in await violations(page) if "button-name" in found]
