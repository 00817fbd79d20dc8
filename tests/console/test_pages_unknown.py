"""*Unknown*: do outcomes that nobody knows wait where somebody finds and settles them?"""

from pathlib import Path

import pytest

from holdfast.servers.console.pages import unknown
from tests.console.asking import Page
from tests.console.office import harmless, world
from tests.console.visitor import text
from tests.requirements import requirement


@requirement("PPL-2")
async def test_the_oldest_waits_first_and_is_gone_once_it_is_settled(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        visitor = await there.browser("ana")
        assert "Everything is known" in text(await visitor.get("/unknown"))
        lost = [(await there.call("add_and_break", text=f"note {n}")).call_id for n in range(3)]
        page = await visitor.get("/unknown")
        assert harmless(page)
        assert "only a person can tell" in text(page)
        assert _listed(Page(page)) == lost
        said = {"outcome": "no-effect", "note": "the desk is empty", "back": "unknown"}
        settled = await visitor.post(f"/calls/{lost[0]}/settle", said)
        assert settled.headers["location"] == "/unknown?done=settled"
        assert _listed(Page(await visitor.get("/unknown"))) == lost[1:]


@requirement("PPL-2")
async def test_there_are_pages_and_who_is_no_operator_sees_their_own_without_a_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown, "PAGE", 3)
    async with world(tmp_path) as there:
        lost = [(await there.call("add_and_break", text=str(n))).call_id for n in range(5)]
        visitor = await there.browser("ana")
        first = Page(await visitor.get("/unknown"))
        [more] = [one["href"] for one in first.all("a") if one.get("rel") == "next"]
        assert _listed(first) + _listed(Page(await visitor.get(more))) == lost
        own = Page(await (await there.browser("otto")).get("/unknown"))
        assert _listed(own) == lost[:3]
        assert not [one for one in own.all("input") if one.get("name") == "outcome"]
        for name in ("eve", "xena"):
            assert _listed(Page(await (await there.browser(name)).get("/unknown"))) == []


def _listed(page: Page) -> list[str]:
    return [one["aria-labelledby"].removeprefix("u-") for one in page.all("article")]
