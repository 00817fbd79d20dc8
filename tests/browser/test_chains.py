"""A run that waits for a person, in a real browser: readable by everybody, and resumed by a click."""

from pathlib import Path

import pytest

from holdfast.model.run import RunState
from holdfast.servers.app import build
from tests.browser.conftest import Come
from tests.browser.signing_in import sign_in
from tests.browser.visitor import violations
from tests.chains.counter import ANNOUNCE, counter
from tests.chains.desk import office
from tests.chains.world import do
from tests.requirements import requirement
from tests.servers.serving import serving

ENDED = """document.addEventListener("htmx:sse:before:connection", (event) => {
  window.asksAgain = !event.detail.connection.cancelled;
})"""
"""Tells whether the page, when its stream has ended, asks for another one."""

pytestmark = pytest.mark.asyncio(loop_scope="session")


@requirement("PPL-2", "SAG-3")
async def test_the_page_of_a_run_has_no_serious_violation_and_resumes_it(visitors: Come) -> None:
    async with office() as here:
        here.world.failing["bill"] = here.world.failing["unreserve"] = 100
        side_by_side = {"parallel": [do("pack"), do("ship")], "join": "all"}
        run = await here.run(do("reserve"), do("charge"), side_by_side, do("bill"))
        assert run.state is RunState.COMPENSATION_FAILED
        async with serving(build(here.gateway)) as served:
            page = await (await visitors(served.url)).page("/sign-in")
            await sign_in(page, "ola")
            await page.goto(f"{served.url}/chains/{run.id}")
            assert await violations(page) == []
            await page.emulate_media(color_scheme="dark")
            assert await violations(page) == []
            assert await page.locator("svg.chain rect.undo.undone").count() == 3
            assert await page.locator("svg.chain rect.undo.failed").count() == 1
            here.world.failing.clear()
            await page.get_by_role("button", name="Resume").click()
            assert (await here.waited(here.ola, run.id)).state is RunState.COMPENSATED
            await page.get_by_text("It could not be done, and was taken back").wait_for()
            assert await page.locator("svg.chain rect.undo.undone").count() == 4
            await page.context.close()  # what it still loads must not find the server gone


@requirement("PPL-2")
async def test_the_page_of_a_run_follows_it_and_keeps_what_is_being_written(
    visitors: Come, tmp_path: Path
) -> None:
    chain = {**ANNOUNCE, "steps": [*ANNOUNCE["steps"], do("lose")]}
    async with counter("sqlite", tmp_path, chain) as here:
        olga = here.caller("olga")
        await here.call("chains.announce", key="k-1")
        [run] = await here.gateway.chains.list(olga)
        async with serving(here.app) as served:
            page = await (await visitors(served.url)).page("/sign-in")
            await sign_in(page, "olga")
            await page.goto(f"{served.url}/chains/{run.id}")
            await page.locator("summary", has_text="Abandon").click()
            await page.get_by_label("Why").fill("half a sen")
            await page.get_by_text("It waits for approval").wait_for()
            await here.decided()
            await page.get_by_text("It waits for the outcome of call").wait_for()
            assert await page.locator("svg.chain rect.box.done").count() == 2
            assert await page.get_by_label("Why").input_value() == "half a sen"
            await page.evaluate(ENDED)
            await here.gateway.chains.abandon(olga, run.id, "looked into by hand")
            await page.locator("#story[data-over]").wait_for()
            await page.wait_for_function("() => window.asksAgain === false")
            assert await violations(page) == []
            await page.context.close()
