"""Does the page of a run follow it without asking again and again, and only for whoever may see it?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.chains.counter import ANNOUNCE, INPUT, Counter, counter
from tests.chains.world import do
from tests.console.asking import Page
from tests.console.visitor import HOST, Visitor
from tests.polling import FELT_S
from tests.requirements import requirement
from tests.servers.serving import serving

SLOW = {"chain": "slow", "input": INPUT, "steps": [do("reserve"), do("linger"), do("charge")]}


async def visitor(here: Counter, name: str) -> Visitor:
    one = Visitor(here.app)
    await one.sign_in(name)
    return one


async def stream_of(browser: Visitor, run_id: str) -> str:
    """The address that the page of the run follows."""
    page = Page(await browser.get(f"/chains/{run_id}"))
    [place] = [one for one in page.all("div") if one.get("id") == "follow"]
    return str(place["hx-sse:connect"])


@asynccontextmanager
async def following(here: Counter, browser: Visitor, path: str) -> AsyncIterator["asyncio.Queue[str]"]:
    """The messages of a stream, whole, over a socket; an empty one where it has ended."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    cookie = "; ".join(f"{one}={value}" for one, value in browser.cookies.items())
    headers = {"cookie": cookie, "host": HOST}
    async with (
        serving(here.app) as served,
        aiohttp.ClientSession(served.url) as http,
        http.get(path, headers=headers) as answer,
    ):
        assert answer.content_type == "text/event-stream"

        async def read() -> None:
            said = ""
            async for line in answer.content:
                said += line.decode()
                if not line.strip():
                    heard.put_nowait(said)
                    said = ""
            heard.put_nowait("")

        reading = asyncio.create_task(read())
        try:
            yield heard
        finally:
            reading.cancel()


async def until(heard: "asyncio.Queue[str]", word: str) -> str:
    async with asyncio.timeout(FELT_S):
        while word not in (said := await heard.get()):
            assert said, f"it ended without {word!r}"
    return said


async def begun(here: Counter, name: str) -> str:
    ada = here.caller("ada")
    run = await here.gateway.chains.start(ada, here.gateway.chains.named(name), {"item": "tea"}, "k-1")
    return run.id


@requirement("PPL-2")
async def test_the_story_comes_again_as_steps_begin_and_end_and_then_nothing_more(tmp_path: Path) -> None:
    async with counter("sqlite", tmp_path, SLOW) as here:
        run, ada = await begun(here, "slow"), await visitor(here, "ada")
        async with following(here, ada, await stream_of(ada, run)) as heard:
            first = await until(heard, "box running")
            assert (first.count("box done"), "data-over" in first) == (1, False)
            here.world.go_on.set()
            last = await until(heard, "It was done, all of it")
            assert last.count("box done") == 3
            assert '<article id="story" class="story" data-over>' in last
            async with asyncio.timeout(FELT_S):
                assert await heard.get() == ""  # it is over
        seen = last.partition("id: ")[2].partition("\n")[0]
        again = await ada.get(f"/chains/{run}/events", **{"last-event-id": seen})
        assert again.status == 204
        page = await ada.get(f"/chains/{run}")
        assert "hx-sse:connect" not in page.body.decode()


@requirement("PPL-2")
async def test_an_answer_of_somebody_else_is_followed_too(tmp_path: Path) -> None:
    async with counter("memory", tmp_path, ANNOUNCE) as here:
        run, ada = await begun(here, "announce"), await visitor(here, "ada")
        await here.gateway.chains.wait(here.caller("ada"), run, FELT_S)
        async with following(here, ada, await stream_of(ada, run)) as heard:
            await here.decided()
            assert "See what is asked" not in await until(heard, "It was done, all of it")


@requirement("PPL-2", "PPL-4")
async def test_nobody_follows_the_run_of_another_and_who_signed_out_follows_none(tmp_path: Path) -> None:
    async with counter("memory", tmp_path, SLOW) as here:
        run, ada = await begun(here, "slow"), await visitor(here, "ada")
        path, bob = await stream_of(ada, run), await visitor(here, "bob")
        assert (await bob.get(path)).status == 404
        async with following(here, ada, path) as heard:
            await until(heard, "retry")
            assert (await ada.post("/sign-out")).status == 303
            async with asyncio.timeout(FELT_S):
                while await heard.get():
                    pass
        here.world.go_on.set()
        await here.settled("slow")
