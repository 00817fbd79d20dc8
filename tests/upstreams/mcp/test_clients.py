"""Does what a server asks and tells reach the client behind the call, and nobody else?"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from holdfast.model.answer import Answer
from holdfast.model.errors import NoEffect
from holdfast.upstreams.mcp import rounds
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.polling import until
from tests.requirements import requirement
from tests.upstreams.mcp.callers import SOON_S, Caller, attempt, upstream
from tests.upstreams.mcp.places import rogue_program, workshop_http
from tests.upstreams.mcp.workshop import FORM, Workshop
from tests.upstreams.mcp.worlds import ALL, LEGACY, MODERN, world

pytestmark = pytest.mark.asyncio(loop_scope="module")

Opener = Callable[[str], Awaitable[McpUpstream]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop_of() -> AsyncIterator[Opener]:
    """Each world once, for the tests that leave it as it was: starting a program is slow."""
    async with AsyncExitStack() as stack:
        open_ones: dict[str, McpUpstream] = {}

        async def get(name: str) -> McpUpstream:
            if name not in open_ones:
                open_ones[name] = await stack.enter_async_context(world(name))
            return open_ones[name]

        yield get


BLUE = {"action": "accept", "content": {"color": "blue"}}
COLOR = FORM["properties"]


@pytest.mark.parametrize("name", ALL)
@requirement("PRO-1")
async def test_progress_reaches_the_client_in_order_and_before_the_answer(shop_of: Opener, name: str) -> None:
    caller = Caller(modern=name in MODERN)
    shop = await shop_of(name)
    await shop.invoke(attempt("progress", peer=caller))
    steps = [params for method, params in caller.told if method == "notifications/progress"]
    assert [step["progress"] for step in steps] == [1, 2, 3]
    assert steps[0]["message"] == "step 1"
    assert all("progressToken" not in step for step in steps)


@pytest.mark.parametrize("name", ["stdio-legacy", "http"])
async def test_a_client_that_did_not_ask_is_not_told_how_far_it_is(shop_of: Opener, name: str) -> None:
    caller = Caller(modern=name in MODERN, progress=False)
    shop = await shop_of(name)
    await shop.invoke(attempt("progress", peer=caller))
    assert caller.told == []


@pytest.mark.parametrize("name", ALL)
@requirement("PRO-1")
async def test_log_messages_reach_the_client_whose_call_it_is(shop_of: Opener, name: str) -> None:
    caller = Caller(modern=name in MODERN, log_level="debug")
    shop = await shop_of(name)
    await shop.invoke(attempt("log", peer=caller))
    ((method, params),) = caller.told
    assert method == "notifications/message"
    assert params["data"] == "cutting"


@pytest.mark.parametrize("name", ["stdio-legacy", "http-legacy"])
async def test_log_messages_below_the_clients_level_are_left_out(shop_of: Opener, name: str) -> None:
    caller = Caller(log_level="error")
    shop = await shop_of(name)
    await shop.invoke(attempt("log", peer=caller))
    assert caller.told == []


@pytest.mark.parametrize("name", [*LEGACY, "http", "http-modern", "stdio"])
@requirement("PRO-1")
async def test_a_client_that_can_be_asked_is_asked(shop_of: Opener, name: str) -> None:
    """Whichever era the server is of."""
    caller = Caller(answer=BLUE)
    shop = await shop_of(name)
    answer = await shop.invoke(attempt("ask", peer=caller))
    assert answer.data == BLUE
    ((method, params),) = caller.asked
    assert method == "elicitation/create"
    assert params["message"] == "Which color?"
    assert params["requestedSchema"]["properties"] == COLOR


@requirement("AUT-3", "PRO-1")
async def test_a_question_that_quotes_a_secret_is_asked_without_it() -> None:
    caller, hidden = Caller(answer=BLUE), Hidden()
    hidden.learn(["tok-0123456789"])
    asks = {"method": "elicitation/create", "params": {"message": "which color for tok-0123456789?"}}
    first = {
        "resultType": "input_required",
        "inputRequests": {"color": asks},
        "requestState": "tok-0123456789",
    }
    sent: list[dict[str, Any]] = []

    async def again(params: dict[str, Any]) -> dict[str, Any]:
        sent.append(params)
        return {"content": []}

    await rounds.finished(again, {"name": "ask"}, first, caller, hidden)
    assert caller.asked == [("elicitation/create", {"message": "which color for [hidden]?"})]
    assert [params["requestState"] for params in sent] == ["tok-0123456789"]  # the server's own, as it was


@pytest.mark.parametrize("name", MODERN)
@requirement("PRO-1")
async def test_a_modern_client_gets_the_question_back_and_answers_with_the_next_call(
    shop_of: Opener, name: str
) -> None:
    caller = Caller(modern=True)
    shop = await shop_of(name)
    first = await shop.invoke(attempt("ask", peer=caller))
    assert first.unfinished
    assert first.native is not None
    assert first.native["inputRequests"]["color"]["params"]["requestedSchema"]["properties"] == COLOR
    caller.input_responses = {"color": BLUE}
    caller.request_state = first.native["requestState"]
    second = await shop.invoke(attempt("ask", peer=caller))
    assert second.data == BLUE
    assert not second.unfinished
    assert caller.asked == []


async def test_a_caller_without_a_client_gets_the_question_back_too() -> None:
    async with world("http-modern") as shop:
        assert (await shop.invoke(attempt("ask"))).unfinished


async def test_a_client_that_cannot_be_asked_leaves_no_effect() -> None:
    async with world("http-modern") as shop:
        with pytest.raises(NoEffect, match="cannot answer"):
            await shop.invoke(attempt("ask", peer=Caller(answer=None)))


@pytest.mark.parametrize("name", LEGACY)
async def test_a_server_learns_that_its_question_was_not_answered(shop_of: Opener, name: str) -> None:
    caller = Caller(answer=None)
    shop = await shop_of(name)
    with pytest.raises(Exception, match="cannot be asked"):
        await shop.invoke(attempt("ask", peer=caller))
    assert len(caller.asked) == 1
    assert (await shop.invoke(attempt("echo"))).data["arguments"] == {}


class Slow(Caller):
    """Answers when it is let go."""

    def __init__(self, session: str) -> None:
        super().__init__(session, answer=BLUE)
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def ask(self, method: str, params: Any) -> Any:
        self.reached.set()
        await self.go.wait()
        return await super().ask(method, params)


async def both_ask(shop: McpUpstream) -> tuple[Answer | BaseException, Answer | BaseException, Slow, Slow]:
    """Two clients whose calls are in flight at once."""
    one, other = Slow("s-1"), Slow("s-2")
    first = asyncio.ensure_future(shop.invoke(attempt("ask", peer=one)))
    async with asyncio.timeout(SOON_S):
        await one.reached.wait()
        second = asyncio.ensure_future(shop.invoke(attempt("ask", peer=other)))
        asked = asyncio.ensure_future(other.reached.wait())
        await asyncio.wait({second, asked}, return_when="FIRST_COMPLETED")
        asked.cancel()
        one.go.set()
        other.go.set()
        got = await asyncio.gather(first, second, return_exceptions=True)
    return got[0], got[1], one, other


@pytest.mark.parametrize("name", ["http", "http-legacy"])
@requirement("PRO-1")
async def test_over_http_each_client_is_asked_its_own_question(name: str) -> None:
    async with world(name) as shop:
        first, second, one, other = await both_ask(shop)
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert len(one.asked) == len(other.asked) == 1


@pytest.mark.parametrize("name", ["stdio-legacy", "sse"])
async def test_on_a_shared_stream_nobody_is_asked_what_another_may_be_meant_for(name: str) -> None:
    async with world(name) as shop:
        first, second, one, other = await both_ask(shop)
    assert isinstance(first, Answer)
    assert isinstance(second, Exception)
    assert "no single client" in str(second)
    assert len(one.asked) == 1
    assert other.asked == []


async def test_clients_of_the_handshake_era_get_sessions_of_their_own_up_to_a_limit() -> None:
    workshop = Workshop()
    async with workshop_http(workshop, "legacy") as (target, seen), upstream(target) as shop:
        waiting = [
            asyncio.ensure_future(shop.invoke(attempt("wait", peer=Caller(f"s-{n}")))) for n in range(12)
        ]
        await until(lambda: workshop.begun == 12)
        sessions = {h["mcp-session-id"] for m, _, h in seen.requests if m == "POST" and "mcp-session-id" in h}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (await shop.invoke(attempt("echo", peer=Caller("s-0")))).data["arguments"] == {}
    assert len(sessions) == 8


async def test_a_server_that_asks_without_end_gets_no_more_than_refusals() -> None:
    caller = Caller(answer=BLUE)
    async with upstream(rogue_program("questions")) as rogue:
        answer = await rogue.invoke(attempt("tool_0", peer=caller))
    assert answer.data == {"text": "done"}
    assert len(caller.asked) <= 500
