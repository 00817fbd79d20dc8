"""*Live*: does everybody see the calls that are theirs to see, by what they look for, as they happen?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from holdfast.model.people import Alert
from holdfast.servers.app import build
from tests.console.asking import Page
from tests.console.office import World, cells, harmless, world
from tests.console.visitor import Visitor, text
from tests.polling import FELT_S
from tests.requirements import requirement
from tests.servers.serving import serving


@requirement("PPL-2")
async def test_an_empty_list_says_what_will_be_there_and_how_to_begin(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        page = await (await there.browser("ana")).get("/live")
        assert page.status == 200
        assert harmless(page)
        assert "No calls yet" in text(page)
        assert "holdfast call" in text(page)


@requirement("PPL-2")
async def test_calls_are_listed_newest_first_with_how_they_ended(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        for name, more in (
            ("count", {}),
            ("decline", {}),
            ("send", {"to": "x"}),
            ("add_and_break", {"text": "x"}),
        ):
            await there.call(name, **more)
        page = await (await there.browser("ana")).get("/live")
        listed = list(zip(cells(page, "Tool"), cells(page, "Status"), strict=True))
        assert [tool for tool, _ in listed] == [
            "office.add_and_break", "office.send", "office.decline", "office.count"
        ]  # fmt: skip
        assert [status.split()[0] for _, status in listed] == ["unknown", "held", "failed", "done"]


FILTERS: list[tuple[str, set[str]]] = [
    ("tool=office.count", {"office.count"}),
    ("upstream=office&status=held", {"office.send"}),
    ("upstream=elsewhere", set()),
    ("status=unknown", {"office.add_and_break"}),
    ("code=outcome_unknown", {"office.add_and_break"}),
    ("effect=read_only", {"office.count", "office.odd"}),
    ("effect=write_irreversible", {"office.send"}),
    ("caller=eve", {"office.odd"}),
    ("task=tidy", {"office.count"}),
    ("since=2001-01-01T00:00", {"office.count", "office.send", "office.add_and_break", "office.odd"}),
    ("until=2001-01-01T00:00", set()),
]


@requirement("PPL-2")
async def test_filters_leave_what_was_asked_for(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        await there.call("count", task="tidy")
        await there.call("send", to="x")
        await there.call("add_and_break", text="x")
        await there.call("odd", by="eve")
        visitor = await there.browser("ana")
        for query, found in FILTERS:
            page = await visitor.get(f"/live?{query}")
            assert {one.split()[0] for one in cells(page, "Tool")} == found, query
            assert found or "No call matches" in text(page)


@requirement("PPL-2")
async def test_a_time_that_is_none_is_told_so(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        page = await (await there.browser("ana")).get("/live?since=yesterday")
        assert page.status == 400
        assert "is no time" in text(page)


@requirement("PPL-2")
async def test_deep_pages_lead_to_every_call_once(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        made = {(await there.call("count")).call_id for _ in range(120)}
        visitor, path, seen = await there.browser("ana"), "/live?tool=office.count", list[str]()
        while path:
            page = Page(await visitor.get(path))
            seen += [one["id"].removeprefix("c-") for one in page.all("tr") if "id" in one]
            path = next((one["href"] for one in page.all("a") if one.get("rel") == "next"), "")
        assert sorted(seen) == sorted(made)


@requirement("PPL-2")
async def test_who_is_no_operator_sees_their_own_calls_and_other_tenants_see_none(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        await there.call("count", by="otto")
        await there.call("odd", by="eve")
        seen = {
            name: cells(await (await there.browser(name)).get("/live"), "Tool") for name in ("eve", "xena")
        }
        assert seen == {"eve": ["office.odd"], "xena": []}
        asked = await (await there.browser("eve")).get("/live?caller=otto")
        assert cells(asked, "Tool") == []


@requirement("PPL-2")
async def test_the_plots_have_figures_that_say_the_same(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        for _ in range(3):
            await there.call("count")
        await there.call("decline")
        visitor = await there.browser("ana")
        page, told = await visitor.get("/live"), (await visitor.get("/live/traffic.json?span=6h")).json()
        assert told["span"] == "6h"
        assert told["total"]["calls"] == sum(told["calls"]) == 4
        assert told["total"]["failed"] == sum(told["failed"]) == 1
        assert "calls 4 failed 1" in text(page)


@requirement("PPL-2")
async def test_what_is_wrong_now_stands_on_top_for_operators(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        now, said = there.gateway.identity.now(), "half of <b>its calls</b> fail"
        about = {"tenant": "default", "id": "alert_1", "kind": "error_rate", "subject": "office.odd"}
        wrong = Alert(**about, text=said, facts={}, at=now, seen_at=now, ended_at=None)
        await there.gateway.alerts._kept.raise_(wrong)
        seen = {name: await (await there.browser(name)).get("/live") for name in ("ana", "otto")}
        assert harmless(seen["ana"])
        assert "half of &lt;b&gt;its calls&lt;/b&gt; fail" in seen["ana"].body.decode()
        assert 'class="alert"' not in seen["otto"].body.decode()


# --- as they happen ---------------------------------------------------------------------------------------


@asynccontextmanager
async def listening(there: World, name: str, query: str = "") -> AsyncIterator[asyncio.Queue[str]]:
    """What the stream of a live page says, over a socket."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    visitor: Visitor = await there.browser(name)
    cookie = "; ".join(f"{one}={value}" for one, value in visitor.cookies.items())
    async with serving(build(there.gateway)) as served, aiohttp.ClientSession() as http:
        headers = {"cookie": cookie, "host": "127.0.0.1:8080"}
        async with http.get(f"{served.url}/live/events{query}", headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            begun = asyncio.Event()

            async def read() -> None:
                async for line in answer.content:
                    begun.set()
                    if line.startswith(b"data: "):
                        heard.put_nowait(line[6:].decode())

            reading = asyncio.create_task(read())
            await asyncio.wait_for(begun.wait(), FELT_S)
            try:
                yield heard
            finally:
                reading.cancel()


async def until(heard: "asyncio.Queue[str]", *words: str) -> str:
    """Everything until all the words were in it."""
    said = ""
    async with asyncio.timeout(FELT_S):
        while not all(word in said for word in words):
            said += await heard.get()
    return said


@requirement("PPL-2")
async def test_a_call_appears_while_it_runs_and_changes_when_it_is_done(tmp_path: Path) -> None:
    async with world(tmp_path) as there, listening(there, "ana") as heard:
        running = asyncio.create_task(there.call("add_slowly", text="x"))
        await there.begun()
        first = await until(heard, "office.add_slowly", "</tr>")
        assert 'class="fresh"' in first
        assert "running" in first
        assert "oob" not in first
        there.office.go_on.set()
        done = await running
        then = await until(heard, f'id="c-{done.call_id}"', "</tr>")
        assert 'hx-swap-oob="true"' in then
        assert "badge done" in then


@requirement("PPL-2")
async def test_the_stream_tells_nobody_of_calls_that_are_not_asked_for_or_not_theirs(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        await there.call("count")
        async with listening(there, "eve", "?tool=office.odd") as heard:
            await there.call("odd", by="otto")
            await there.call("count", by="eve")
            mine = await there.call("odd", by="eve")
            said = await until(heard, mine.call_id, "</tr>")
            assert said.count("<tr") == 1


@requirement("PPL-2")
async def test_a_call_that_is_not_asked_for_any_more_leaves_the_page(tmp_path: Path) -> None:
    async with world(tmp_path) as there, listening(there, "ana", "?status=running") as heard:
        running = asyncio.create_task(there.call("add_slowly", text="x"))
        await until(heard, "office.add_slowly", "</tr>")
        there.office.go_on.set()
        done = await running
        said = await until(heard, "</tr>")
        assert said.strip() == f'<tr id="c-{done.call_id}" hx-swap-oob="delete"></tr>'


@requirement("PPL-2")
async def test_what_came_between_the_page_and_its_stream_is_not_missed(tmp_path: Path) -> None:
    async with world(tmp_path) as there:
        shown = await there.call("count")
        missed = await there.call("odd")
        await there.gateway.views.fresh()
        async with listening(there, "ana", f"?after={shown.call_id}") as heard:
            said = await until(heard, missed.call_id, shown.call_id, "</tr>")
        rows: dict[str, Any] = {one.split('"')[0]: one for one in said.split('id="c-')[1:]}
        assert "fresh" in rows[missed.call_id]
        assert "fresh" not in rows[shown.call_id]
