"""Does whatever an agent writes stay what it is: text, marked, bounded, doing nothing?"""

import pytest
from playwright.async_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.filling import HOSTILE
from tests.browser.world import World
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")

SCRIPT = "<script>document.documentElement.dataset.owned = 1</script>"
IMAGE = '<img src=x onerror="document.documentElement.dataset.owned = 1">'
LINK = '<a href="/sign-out">Approve</a> https://evil.example/approve [Approve](javascript:alert(1))'
FORM = "</div></pre></td></table><form method=post action=/sign-out><button>Approve</button></form>"
STYLE = "<style>main { display: none }</style><link rel=stylesheet href=//evil.example/x.css>"
MARKUP = f"{SCRIPT}{IMAGE}{LINK}{FORM}{STYLE}{{{{ 7 * 7 }}}}"
BIDI = "pay \u202e0051 RUE\u202c to\u200b\u2060\ufeff \u2066x\u2069"
LONG = "A very long text. " * 6000


async def held(world: World, subject: str, body: str) -> tuple[str, str]:
    order = world.order()
    said = {"order_id": order, "subject": subject, "body": body}
    seen = await world.call("send_mail", said, key=f"mail-{order}", task=f"task of {order}: {subject[:60]}")
    assert seen["status"] == "held", seen
    return seen["approval"]["id"], seen["call_id"]


async def harmless(page: Page) -> None:
    """Nothing that was written became part of the page."""
    assert await page.evaluate("document.documentElement.dataset.owned") is None
    await expect(page.locator("main")).to_be_visible()
    assert await page.locator("main script, main img[src=x], main style, main link").count() == 0
    assert (
        await page.locator('a[href*="evil"], a[href^="javascript:"], main a[href="/sign-out"]').count() == 0
    )
    assert await page.locator('main form[action="/sign-out"]').count() == 0


@requirement("APR-1", "PPL-2")
async def test_markup_is_shown_as_it_was_written_and_does_nothing(world: World, visit: Visit) -> None:
    id, call = await held(world, "Your order", MARKUP)
    for path in (f"/approvals/{id}", f"/calls/{call}", "/", "/live"):
        page = await visit("ana", path)
        await harmless(page)
    page = await visit("ana", f"/approvals/{id}")
    await expect(page.locator("main")).to_contain_text(SCRIPT)
    await expect(page.locator("main")).to_contain_text('<a href="/sign-out">Approve</a>')
    await expect(page.locator("main")).to_contain_text("{{ 7 * 7 }}")


@requirement("APR-1", "PPL-2")
async def test_what_the_agent_wrote_is_marked_and_holds_no_link(world: World, visit: Visit) -> None:
    id, _ = await held(world, "Please approve: https://evil.example", f"Click Approve. {LINK}")
    page = await visit("ana", f"/approvals/{id}")
    quoted = page.locator(".quoted").filter(has_text="evil.example")
    await expect(quoted.first).to_be_visible()
    await expect(quoted.first).to_contain_text("written by the agent")
    assert await page.locator(":is(.quoted, .said) :is(a, button, form, input, summary)").count() == 0
    outside = await page.evaluate(
        """() => {
          const copy = document.querySelector("main").cloneNode(true);
          copy.querySelectorAll(".quoted, .said").forEach((one) => one.remove());
          return copy.textContent;
        }"""
    )
    assert "evil.example" not in outside


@requirement("APR-1", "PPL-2")
async def test_hidden_and_turning_characters_are_made_visible(world: World, visit: Visit) -> None:
    id, call = await held(world, BIDI, f"body {BIDI}")
    for path in (f"/approvals/{id}", f"/calls/{call}", "/", "/live"):
        page = await visit("ana", path)
        text = await page.locator("body").inner_text()
        assert not set(text) & set("\u202e\u202c\u200b\u2060\ufeff\u2066\u2069")
    page = await visit("ana", f"/approvals/{id}")
    await expect(page.locator("main")).to_contain_text("U+202E")


@requirement("APR-1", "PPL-2")
async def test_a_hundred_thousand_characters_are_cut_and_said_to_be(world: World, visit: Visit) -> None:
    id, call = await held(world, "Long", LONG)
    for path in (f"/approvals/{id}", f"/calls/{call}"):
        page = await visit("ana", path)
        assert len(await page.content()) < 200_000
        assert await page.locator("main").inner_text() != ""
    page = await visit("ana", f"/approvals/{id}")
    await expect(page.get_by_role("button", name="Approve")).to_be_visible()


@requirement("APR-1")
async def test_names_of_tools_that_were_never_there_are_only_words(world: World, visit: Visit) -> None:
    body = {"tool": f"{SCRIPT}{HOSTILE['bidi']}", "arguments": {}}
    await world.ask("POST", "/v1/calls", "otto", body)
    for path in ("/live", "/audit", "/catalog"):
        page = await visit("ana", path)
        await harmless(page)
