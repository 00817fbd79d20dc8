"""Does the console of the demo open on a story, and can it be played to its end by clicking?"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import config as configuration
from holdfast.gateway import Gateway
from holdfast.model.errors import ConfigError
from holdfast.model.view import Wanted
from holdfast.servers.app import build
from tests.console.visitor import Visitor, fields, text
from tests.polling import FELT_S, pause
from tests.requirements import requirement

DEMO = Path(__file__).parents[2] / "examples" / "demo"


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, whose shop nobody else uses; without the MCP server, which the story does not need."""
    for name in ("holdfast.yaml", "story.yaml", "shop.py", "shop_db.py"):
        shutil.copy(DEMO / name, tmp_path)
    written = (tmp_path / "holdfast.yaml").read_text()
    without = written.replace(written[written.index("  desk:") : written.index("# How much")], "\n")
    (tmp_path / "holdfast.yaml").write_text(without)
    monkeypatch.setenv("SHOP_DB", str(tmp_path / "shop.db"))
    return tmp_path / "holdfast.yaml"


@pytest.fixture
async def gateway(demo: Path) -> AsyncIterator[Gateway]:
    async with Gateway.open(demo) as opened:
        await opened.guide.begin()
        yield opened


async def refunds(gateway: Gateway) -> int:
    """Refunds that the story has led to."""
    who = gateway.identity.authenticate({"x-holdfast-user": "ana"})
    seen = await gateway.call("shop.order_refunds", {"order_id": "o-1002"}, principal=who)
    assert seen.data is not None
    return len(seen.data["refunds"])


async def proposed(gateway: Gateway) -> int:
    await gateway.views.fresh()
    operator = gateway.identity.authenticate({"x-holdfast-user": "ana"})
    return len((await gateway.views.calls(operator, Wanted(tool="shop.refund"))).rows)


async def approve(visitor: Visitor, approval: str) -> None:
    page = await visitor.get(approval)
    said = await visitor.post(
        f"{approval}/decision", {**fields(page, "seen"), "aware": "yes", "decision": "approve"}
    )
    assert said.status == 303, text(said)


@requirement("PPL-2")
async def test_the_story_is_played_to_its_end_by_clicking(gateway: Gateway) -> None:
    visitor = Visitor(build(gateway))
    await visitor.sign_in("ana")
    page = await visitor.get("/")
    assert "An agent wants to give money back" in text(page)
    assert text(page).count("support agent proposed") == 1
    approval = page.body.decode().partition('href="/approvals/')[2].partition('"')[0]
    approval = f"/approvals/{approval}"
    await approve(visitor, approval)
    page = await visitor.get(approval)
    assert "Next: sign in as ben" in text(page)
    switched = await visitor.post("/switch", {"person": "ben", "next": approval})
    assert (switched.status, switched.headers["location"]) == (303, approval)
    await approve(visitor, approval)
    async with asyncio.timeout(FELT_S):
        while "It happened, once" not in text(await visitor.get("/")):
            await pause()
    assert "What to try next" in text(await visitor.get("/"))
    call = (await visitor.get("/")).body.decode().partition('href="/calls/')[2].partition('"')[0]
    ended = await visitor.get(f"/calls/{call}")
    assert "It happened, once, and was read back. Below is every gate it passed" in text(ended)
    assert "What to try next" in text(ended)
    assert await refunds(gateway) == 1


@requirement("PPL-2")
async def test_a_live_page_asks_for_what_is_not_on_it(gateway: Gateway) -> None:
    """The refund was proposed before what was read for it, and decided after."""
    visitor = Visitor(build(gateway))
    await visitor.sign_in("ana")
    page = (await visitor.get("/live")).body.decode()
    shown = re.findall(r'id="c-(call_\w+)"', page)
    assert shown[0] != max(shown)
    assert f"after={max(shown)}" in page


@requirement("PPL-2")
async def test_it_is_proposed_once_however_many_processes_start(gateway: Gateway, demo: Path) -> None:
    await gateway.guide.begin()
    async with Gateway.open(demo) as second:
        await second.guide.begin()
        assert await proposed(second) == 1


async def test_one_that_nobody_answered_is_begun_again_by_a_button(gateway: Gateway) -> None:
    visitor = Visitor(build(gateway))
    await visitor.sign_in("ana")
    refused = await visitor.post("/story")
    assert refused.status == 409
    asked = (await gateway.approvals(gateway.identity.authenticate({"x-holdfast-user": "ana"})))[0]
    await gateway.decide(gateway.identity.authenticate({"x-holdfast-user": "ana"}), asked.id, False)
    page = await visitor.get("/")
    assert "Begin again" in text(page)
    assert (await visitor.post("/story")).status == 303
    assert "Next: read it" in text(await visitor.get("/"))
    assert (await visitor.post("/story")).status == 409
    assert await proposed(gateway) == 2


async def test_whoever_asked_is_told_to_be_somebody_else(gateway: Gateway) -> None:
    visitor = Visitor(build(gateway))
    await visitor.sign_in(gateway.identity.os_user)
    page = text(await visitor.get("/"))
    assert "Next: sign in as ana" in page
    assert "Next: sign in as ben" in page


async def test_without_a_story_there_is_no_card(demo: Path) -> None:
    plain = configuration.parse({"store": f"sqlite:///{demo.parent}/other.db"})
    async with Gateway.open(plain) as gateway:
        await gateway.guide.begin()
        visitor = Visitor(build(gateway))
        await visitor.sign_in(gateway.identity.os_user)
        assert 'class="guide"' not in (await visitor.get("/")).body.decode()


@pytest.mark.parametrize("written", ["title: x", "- 1", "title: [", ""])
async def test_a_story_that_cannot_be_read_says_so_at_the_start(written: str, tmp_path: Path) -> None:
    (tmp_path / "story.yaml").write_text(written)
    said: dict[str, Any] = {
        "store": f"sqlite:///{tmp_path}/x.db",
        "console": {"story": f"{tmp_path}/story.yaml"},
    }
    async with Gateway.open(said) as gateway:
        with pytest.raises(ConfigError, match=r"console\.story"):
            await gateway.guide.begin()
