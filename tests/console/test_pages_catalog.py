"""*Catalog*: is a tool shown as models see it, as it promises, and why one may not call it?"""

from pathlib import Path

import orjson

from holdfast.model.vocabulary import ToolStatus
from holdfast.servers.mcp.hub import Hub
from holdfast.servers.mcp.shown import descriptor
from tests.console.asking import Page, signed_in
from tests.console.office import cells, harmless, world
from tests.console.visitor import fields, text
from tests.gateway.depot import Depot, News, described, fronted
from tests.requirements import requirement


@requirement("PPL-2")
async def test_an_operator_sees_every_tool_and_others_what_they_may_use(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        ana, eve = await there.browser("ana"), await there.browser("eve")
        page = await ana.get("/catalog")
        assert harmless(page)
        assert len(cells(page, "Tool")) == 7
        assert [one.split()[0] for one in cells(await eve.get("/catalog"), "Tool")] == [
            "office.count",
            "office.decline",
            "office.odd",
        ]
        found = cells(await ana.get("/catalog?q=mail+high_risk"), "Tool")
        assert [one.split()[0] for one in found] == ["office.send"]
        assert "No tool matches" in text(await ana.get("/catalog?q=elephant"))
        assert (await eve.get("/catalog/office.send")).status == 404
        assert "No tools yet" in text(await (await there.browser("ada")).get("/catalog"))


@requirement("PPL-2")
async def test_the_page_of_a_tool_shows_exactly_what_tools_list_says(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        page = await (await there.browser("ana")).get("/catalog/office.send")
        shown = descriptor(Hub(there.gateway).names.by_tool["office.send"])
        assert orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode() in _texts(page)
        said = text(page)
        assert "an operator" in said
        assert "cannot be undone" in said
        assert "mail:send" in said
        assert "high risk external" in said


@requirement("PPL-2")
async def test_what_a_tool_says_of_itself_is_text(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        visitor = await there.browser("ana")
        for path in ("/catalog", "/catalog/office.odd"):
            page = await visitor.get(path)
            assert harmless(page)
            assert "&lt;script&gt;alert(1)" in page.body.decode()


@requirement("POL-7", "PPL-2")
async def test_why_one_may_or_may_not_call_it_is_told_with_the_change_that_would_help(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        ana, otto = await there.browser("ana"), await there.browser("otto")
        yes = await otto.post("/catalog/office.count/why", {"arguments": '{"word": "x"}'})
        assert yes.status == 200
        assert "Yes." in text(yes)
        held = await ana.post("/catalog/office.send/why", {"arguments": '{"to": "x"}'})
        assert "Yes, once it is approved." in text(held)
        assert "Approval of 1 operator" in text(held)
        no = await ana.post("/catalog/office.count/why", {"arguments": '{"word": 5}'})
        assert "No." in text(no)
        assert "Decided at gate arguments" in text(no)
        for wrong in ("{", "[1]", '{"a": 1, "a": 2}'):
            answer = await ana.post("/catalog/office.count/why", {"arguments": wrong})
            assert answer.status == 400
            assert 'class="wrong"' in answer.body.decode()
            assert harmless(answer)
        assert (await (await there.browser("eve")).post("/catalog/office.send/why")).status == 404
        assert there.office.sent == []


@requirement("REG-8", "PPL-2")
async def test_a_changed_tool_is_accepted_as_it_was_shown_and_by_operators_only(tmp_path: Path) -> None:
    depot = Depot()
    async with fronted(depot, tmp_path) as gateway:
        news = News(gateway)
        await depot.change(depot.tools[0], described("take", "Take one of an item, <b>and its box</b>."))
        await news.of("tools")
        ben, ana = await signed_in(gateway, "ben", "ana")
        page = await ben.get("/catalog")
        assert "Changed, and waiting for you" in text(page)
        assert harmless(page)
        shown = {"tool": "depot.take", **fields(page, "digest")}
        assert "Changed, and waiting" not in text(await ana.get("/catalog"))
        assert (await ana.post("/catalog/accept", shown)).status == 403
        other = await ben.post("/catalog/accept", {**shown, "digest": "0" * 64})
        assert other.status == 404
        assert "changed again" in text(other)
        assert gateway.changes(gateway.identity.authenticate({"x-holdfast-user": "ben"}))
        done = await ben.post("/catalog/accept", shown)
        assert done.headers["location"] == "/catalog?done=accepted"
        found = gateway._ports.catalog.find("depot.take", None)
        assert found is not None
        assert found.status is ToolStatus.ACTIVE


def _texts(page: object) -> str:
    """The blocks of a page that are written as they are."""

    class Blocks(Page):
        found = ""

        def handle_data(self, data: str) -> None:
            self.found += data

    return Blocks(page).found  # type: ignore[arg-type]
