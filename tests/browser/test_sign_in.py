"""Where people show who they are: does a browser get in by that alone, and out again?"""

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Come
from tests.browser.signing_in import sign_in_with
from tests.browser.world import SECRETS, World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")


@requirement("PPL-2", "APR-2")
async def test_a_key_and_a_secret_are_the_way_in_and_signing_out_ends_it(
    keyed: World, visitors: Come
) -> None:
    key, _ = await keyed.gateway.keys.create_first("root", "ana")
    came = await visitors(keyed.url)
    came.expected = {401}
    page = await came.page("/live")  # which is where they end
    await page.get_by_label("API key").fill("hf_wrong")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("That is not accepted")
    await sign_in_with(page, key, SECRETS["ana"])
    await expect(page).to_have_url(f"{keyed.url}/live")
    assert key not in str(await came.context.storage_state())
    cookies = await came.context.cookies()
    assert {(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies} == {(True, "Strict")}
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("API key")).to_be_visible()
    await page.goto(f"{keyed.url}/live")
    await expect(page.get_by_label("API key")).to_be_visible()
