"""Does a caller that gives up stop the work at the server?"""

import asyncio

import pytest

from tests.requirements import requirement
from tests.upstreams.mcp.callers import SOON_S, Caller, attempt
from tests.upstreams.mcp.workshop import Workshop
from tests.upstreams.mcp.worlds import ALL, world


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("stdio")])
@requirement("EXE-1", "PRO-1")
async def test_a_cancelled_attempt_is_cancelled_at_the_server(name: str) -> None:
    workshop = Workshop()
    async with world(name, workshop) as shop, asyncio.timeout(SOON_S):
        work = asyncio.ensure_future(shop.invoke(attempt("wait")))
        await workshop.waiting.wait()
        work.cancel()
        await workshop.cancelled.wait()
        assert work.cancelled()
        assert (await shop.invoke(attempt("echo"))).data["arguments"] == {}


@pytest.mark.parametrize("name", ["stdio", "stdio-legacy"])
@requirement("EXE-1", "PRO-1")
async def test_a_cancelled_attempt_is_cancelled_in_the_process(name: str) -> None:
    async with world(name) as shop, asyncio.timeout(SOON_S):
        work = asyncio.ensure_future(shop.invoke(attempt("wait")))
        while (await shop.invoke(attempt("waits"))).data["begun"] < 2:
            pass
        work.cancel()
        while (await shop.invoke(attempt("waits"))).data["stopped"] < 1:
            pass
        assert work.cancelled()


async def test_a_question_is_withdrawn_when_the_call_is_over() -> None:
    class Forgetful(Caller):
        reached, gone = asyncio.Event(), asyncio.Event()

        async def ask(self, method: str, params: object) -> dict[str, object]:
            self.reached.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.gone.set()
            return {}

    caller = Forgetful()
    async with world("http-legacy") as shop, asyncio.timeout(SOON_S):
        work = asyncio.ensure_future(shop.invoke(attempt("ask", peer=caller)))
        await caller.reached.wait()
        work.cancel()
        await caller.gone.wait()
