"""What does a tool that asks its client something cost others, and itself?"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast import Effect, Gateway, tool
from holdfast.model.observation import Status
from holdfast.ports import Attempt
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.lifecycle.world import ANA
from tests.requirements import requirement


@tool(effect=Effect.READ_ONLY)
async def look() -> dict[str, str]:
    """Look, and perhaps ask."""
    return {"seen": "something"}


class Curious(FunctionUpstream):
    """Asks its client, where there is one, before it looks."""

    async def invoke(self, attempt: Attempt) -> Any:
        if attempt.peer is not None:
            await attempt.peer.ask("elicitation/create", {})
        return await super().invoke(attempt)


class Thinking:
    """A client that takes its time."""

    session, modern, progress, log_level = "one", False, False, None
    capabilities: Mapping[str, Any] = {"elicitation": {}}
    input_responses = request_state = None

    def __init__(self) -> None:
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        self.asked.set()
        await self.answers.wait()
        return {"action": "accept"}

    async def tell(self, method: str, params: Mapping[str, Any] | None) -> None: ...


@asynccontextmanager
async def opened(clock: ManualClock, concurrency: int) -> AsyncIterator[Gateway]:
    upstreams = {"test": Curious([look], concurrency)}
    gateway = Gateway.assemble({}, MemoryStore(clock), upstreams, clock=clock, ids=CountingIds())
    try:
        yield gateway
    finally:
        await gateway.close()


@requirement("EXE-1", "PRO-1")
async def test_time_a_client_takes_to_answer_is_not_execution_time() -> None:
    clock, client = ManualClock(), Thinking()
    async with opened(clock, 4) as gateway:
        call = asyncio.ensure_future(gateway.call("test.look", principal=ANA, peer=client))
        await client.asked.wait()
        await clock.advance(120)  # its class is given 5 s
        client.answers.set()
        assert (await call).status is Status.DONE


@requirement("EXE-1")
async def test_a_client_that_never_answers_is_not_waited_for_without_end() -> None:
    clock, client = ManualClock(), Thinking()
    async with opened(clock, 4) as gateway:
        call = asyncio.ensure_future(gateway.call("test.look", principal=ANA, peer=client))
        await client.asked.wait()
        await clock.drive(call)
        assert (await call).status is Status.FAILED
        assert clock.monotonic() <= 310


@requirement("EXE-9")
async def test_calls_that_wait_for_their_clients_leave_their_places_to_others() -> None:
    clock, clients = ManualClock(), [Thinking() for _ in range(2)]
    async with opened(clock, 2) as gateway:
        waiting = [asyncio.ensure_future(gateway.call("test.look", principal=ANA, peer=c)) for c in clients]
        for client in clients:
            await client.asked.wait()
        others = [await gateway.call("test.look", principal=ANA) for _ in range(5)]
        for client in clients:
            client.answers.set()
        ended = await asyncio.gather(*waiting)
        after = await asyncio.gather(*(gateway.call("test.look", principal=ANA) for _ in range(5)))
    assert {one.status for one in (*others, *ended, *after)} == {Status.DONE}
    assert gateway._runtime.bulkhead("test").in_use == 0
