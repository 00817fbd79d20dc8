"""Does the demo open on a held refund that can be played to its end by clicking, served as anybody does?"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Come
from tests.browser.signing_in import sign_in
from tests.cli.conftest import ROOT
from tests.cli.crew import Crew, crew
from tests.requirements import requirement

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """A copy of the demo that nobody has started before."""
    fresh = shutil.ignore_patterns("*.db*", "__pycache__", "out-*")
    shutil.copytree(ROOT / "examples" / "demo", tmp_path / "demo", ignore=fresh)
    monkeypatch.chdir(tmp_path / "demo")
    monkeypatch.delenv("HOLDFAST_CONFIG", raising=False)
    monkeypatch.delenv("SHOP_DB", raising=False)
    with crew(workers=None) as served:
        yield served


@requirement("PPL-2", "PPL-3")
async def test_the_first_refund_is_told_and_played_to_its_end(demo: Crew, visitors: Come) -> None:
    page = await (await visitors(f"http://{demo.address}")).page("/")
    await sign_in(page, "ana")
    story = page.locator("section.guide")
    await expect(story).to_be_visible()
    text = await story.locator("p").first.inner_text()
    assert text.count(". ") + text.endswith(".") == 3  # no more than somebody reads
    await story.get_by_role("link", name="Next: read it, then approve it").click()
    await page.get_by_label("I have read what cannot be undone").check()
    await page.get_by_role("button", name="Approve").click()
    await page.get_by_role("button", name="Next: sign in as ben").click()
    await page.get_by_label("I have read what cannot be undone").check()
    await page.get_by_role("button", name="Approve").click()
    await page.wait_for_url("**/calls/*")
    await expect(page.locator("main")).to_contain_text("done")
    await expect(page.locator("main")).to_contain_text("verified")
    await page.get_by_role("link", name="Inbox").first.click()
    await expect(page.locator("section.guide")).to_contain_text("What to try next")
