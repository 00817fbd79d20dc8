"""What is known of a call whose stream is gone, and who is asked about a call that was given up?"""

import asyncio
import contextlib
import json
from typing import Any

import pytest

from holdfast.upstreams.mcp.channel import Channel
from holdfast.upstreams.mcp.exchange import Exchange
from tests.polling import until
from tests.requirements import requirement
from tests.upstreams.mcp.callers import SOON_S, Caller, attempt
from tests.upstreams.mcp.rogue_http import Visit
from tests.upstreams.mcp.test_rogue_http import facing


@pytest.mark.parametrize("status", [400, 404])
@requirement("IDM-5")
async def test_a_session_forgotten_after_the_request_was_taken_proves_nothing(status: int) -> None:
    async def act(visit: Visit) -> None:
        if visit.verb == "POST":
            visit.stream()
            visit.event("", id="e-1", retry="1")
            visit.writer.close()
            return
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}
        visit.reply(json.dumps(error).encode(), status)

    async with facing(act, legacy=True) as shop:
        with pytest.raises(ConnectionError, match="taken up again"):
            await shop.invoke(attempt("act", key="k-1"))


@requirement("PRO-1", "AUT-6")
async def test_a_question_of_a_call_that_was_given_up_does_not_reach_the_next_client() -> None:
    sent: list[dict[str, Any]] = []
    channel = Channel(lambda message, _: sent.append(message), lambda _: None)
    ann, bob = Caller("ann", answer={"action": "accept"}), Caller("bob", answer={"action": "accept"})
    given_up = asyncio.ensure_future(channel.request("tools/call", {}, Exchange(ann)))
    await until(lambda: len(sent) == 1)
    given_up.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await given_up
    under_way = asyncio.ensure_future(channel.request("tools/call", {}, Exchange(bob)))
    await until(lambda: len(channel.in_flight) == 1)
    question = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Ann?"}}
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "Ann"}}
    channel.receive(question)
    channel.receive(note)
    await until(lambda: sent[-1].get("id") == "q")
    assert sent[-1]["error"]["code"] == -32600
    channel.receive({"jsonrpc": "2.0", "id": sent[0]["id"], "result": {}})  # now it is over there too
    channel.receive({**question, "id": "r"})
    await until(lambda: sent[-1].get("id") == "r")
    channel.receive({"jsonrpc": "2.0", "id": 2, "result": {}})
    assert await under_way == {}
    assert (len(bob.asked), bob.told, ann.asked) == (1, [], [])


class Deaf(Caller):
    """A client that takes nothing in while it waits."""

    async def tell(self, method: str, params: Any) -> None:
        await super().tell(method, params)
        await asyncio.Event().wait()


@requirement("PRO-1", "IDM-5")
async def test_a_client_that_does_not_listen_gets_its_answer_all_the_same() -> None:
    sent: list[dict[str, Any]] = []
    channel = Channel(lambda message, _: sent.append(message), lambda _: None)
    deaf = Deaf("ann")
    under_way = asyncio.ensure_future(channel.request("tools/call", {}, Exchange(deaf)))
    await until(lambda: len(sent) == 1)
    for step in range(50):
        progress = {"progressToken": sent[0]["id"], "progress": step}
        channel.receive({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    channel.receive({"jsonrpc": "2.0", "id": sent[0]["id"], "result": {"done": True}})
    async with asyncio.timeout(SOON_S):
        assert await under_way == {"done": True}
    assert len(deaf.told) == 1
