"""Is work stopped at its deadline whether or not it has a task of its own?"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from holdfast import Code, Effect, Gateway, Status, tool
from holdfast.execution.effort import Effort
from holdfast.model.observation import Observation
from holdfast.ports import Attempt
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock, settle_loop
from holdfast.upstreams.function import FunctionUpstream
from tests.lifecycle.world import ANA, WRITE
from tests.requirements import requirement
from tests.stores.calls import make_call

Do = Callable[[], Coroutine[Any, Any, str]]


class Workshop(FunctionUpstream):
    """Does what the test says, in a task of its own or without."""

    def __init__(self, do: Do, *, taskless: bool) -> None:
        self.taskless, self.do = taskless, do
        super().__init__([look, touch])

    async def invoke(self, attempt: Attempt) -> Any:
        return await self.do()


@tool(effect=Effect.READ_ONLY, timeout_ms=400, max_retries=0)
async def look() -> str:
    """Look."""
    return ""


@tool(**WRITE, timeout_ms=400)
async def touch() -> str:
    """Touch."""
    return ""


@pytest.fixture(params=[True, False], ids=["taskless", "task"])
def taskless(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class Town:
    def __init__(self, gateway: Gateway, clock: ManualClock) -> None:
        self.gateway, self.clock = gateway, clock

    def call(self, name: str = "test.touch") -> "asyncio.Task[Observation]":
        key = "k" if name == "test.touch" else None
        return asyncio.ensure_future(self.gateway.call(name, {}, key=key, principal=ANA))

    async def answer(self, name: str = "test.touch") -> Observation:
        call = self.call(name)
        await self.clock.drive(call)
        return await call

    @property
    def free(self) -> int:
        slots = self.gateway._runtime.bulkhead("test")
        return slots.size - slots.in_use

    @property
    def size(self) -> int:
        return self.gateway._runtime.bulkhead("test").size


@asynccontextmanager
async def town(do: Do, *, taskless: bool) -> AsyncIterator[Town]:
    clock = ManualClock()
    upstreams = {"test": Workshop(do, taskless=taskless)}
    gateway = Gateway.assemble({}, MemoryStore(clock), upstreams, clock=clock, ids=CountingIds())
    try:
        yield Town(gateway, clock)
    finally:
        await gateway.close()


async def forever() -> str:
    await asyncio.Event().wait()
    return "never"


@requirement("EXE-1")
async def test_what_answers_in_time_is_done_and_gives_its_place_back(taskless: bool) -> None:
    async def quick() -> str:
        await asyncio.sleep(0)
        await asyncio.ensure_future(asyncio.sleep(0))
        event = asyncio.Event()
        asyncio.get_running_loop().call_soon(event.set)
        await event.wait()
        return "well"

    async with town(quick, taskless=taskless) as here:
        answer = await here.answer()
        assert (here.free, here.clock.sleepers) == (here.size, 0)
    assert (answer.status, answer.data, answer.attempts) == (Status.DONE, "well", 1)


@requirement("EXE-1")
@pytest.mark.parametrize(
    ("name", "code"), [("test.look", Code.TIMEOUT), ("test.touch", Code.OUTCOME_UNKNOWN)]
)
async def test_what_does_not_answer_is_stopped_at_its_deadline(taskless: bool, name: str, code: Code) -> None:
    stopped: list[float] = []

    async def slow() -> str:
        try:
            return await forever()
        except asyncio.CancelledError:
            stopped.append(here.clock.monotonic())
            raise

    async with town(slow, taskless=taskless) as here:
        answer = await here.answer(name)
        assert here.free == here.size
    assert answer.code is code
    assert stopped == [pytest.approx(0.4)]


@requirement("EXE-1")
async def test_work_that_only_lets_others_run_is_stopped_too(taskless: bool) -> None:
    began = asyncio.Event()

    async def busy() -> str:
        began.set()
        while True:  # noqa: ASYNC110  # nothing to wait for is the point
            await asyncio.sleep(0)

    async with town(busy, taskless=taskless) as here:
        call = here.call("test.look")
        await began.wait()
        await here.clock.advance(1)
        answer = await call
    assert answer.code is Code.TIMEOUT


@requirement("EXE-1")
async def test_an_answer_that_has_come_when_it_is_to_be_stopped_is_not_lost() -> None:
    clock, come = ManualClock(), asyncio.get_running_loop().create_future()

    async def waiting() -> str:
        return str(await come)

    async def trying() -> None:
        assert await effort is None

    effort = Effort(waiting(), make_call(clock), clock, 5.0)
    trial = asyncio.ensure_future(trying())
    await settle_loop()
    come.set_result("in the nick of time")
    assert effort.cancel()
    await trial
    assert (effort.done(), effort.cancelled(), effort.result()) == (True, False, "in the nick of time")


async def test_a_call_that_is_torn_down_itself_says_nothing_of_its_work(taskless: bool) -> None:
    began = asyncio.Event()

    async def slow() -> str:
        began.set()
        return await forever()

    async with town(slow, taskless=taskless) as here:
        call = here.call()
        await began.wait()
        (life,) = here.gateway._under_way.tasks
        life.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


@requirement("EXE-1", "IDM-5")
async def test_work_that_goes_on_although_it_was_stopped_keeps_its_place_and_settles_late(
    taskless: bool,
) -> None:
    release = asyncio.Event()

    async def stubborn() -> str:
        try:
            return await forever()
        except asyncio.CancelledError:
            await release.wait()
            return "after all"

    async with town(stubborn, taskless=taskless) as here:
        answer = await here.answer()
        assert here.free == here.size - 1
        assert here.clock.monotonic() == pytest.approx(0.5)  # the deadline and some grace
        release.set()
        await asyncio.wait(list(here.gateway._runtime.late))
        again = await here.answer()
        assert here.free == here.size
    assert answer.code is Code.OUTCOME_UNKNOWN
    assert (again.status, again.data, again.replayed) == (Status.DONE, "after all", True)


@requirement("EXE-1", "IDM-5")
async def test_work_that_waits_for_a_task_which_cannot_be_stopped_keeps_nobody_waiting(
    taskless: bool,
) -> None:
    release = asyncio.Event()

    async def deaf() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "after all"

    async def waiting() -> str:
        return await asyncio.ensure_future(deaf())

    async with town(waiting, taskless=taskless) as here:
        answer = await here.answer()
        assert here.free == here.size - 1
        release.set()
        await asyncio.wait(list(here.gateway._runtime.late))
        again = await here.answer()
        assert here.free == here.size
    assert answer.code is Code.OUTCOME_UNKNOWN
    assert (again.status, again.data, again.replayed) == (Status.DONE, "after all", True)


@requirement("EXE-1")
async def test_the_grace_of_stopped_work_is_enough_to_say_that_it_is_over(taskless: bool) -> None:
    async def tidy() -> str:
        try:
            return await forever()
        finally:
            await asyncio.sleep(0)
            await asyncio.ensure_future(asyncio.sleep(0))

    async with town(tidy, taskless=taskless) as here:
        answer = await here.answer()
        await settle_loop()
        assert (here.free, here.gateway._runtime.late) == (here.size, set())
    assert answer.code is Code.OUTCOME_UNKNOWN


@requirement("EXE-1")
async def test_a_timeout_of_the_works_own_ends_no_more_than_itself(taskless: bool) -> None:
    async def patient() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.ensure_future(forever())
        except TimeoutError:
            return "without it"
        return "with it"

    async with town(patient, taskless=taskless) as here:
        answer = await here.answer()
    assert (answer.status, answer.data) == (Status.DONE, "without it")


@requirement("EXE-1")
async def test_a_read_that_nobody_wants_any_more_is_stopped(taskless: bool) -> None:
    began, stopped = asyncio.Event(), list[str]()

    async def slow() -> str:
        began.set()
        try:
            return await forever()
        except asyncio.CancelledError:
            stopped.append("stopped")
            raise

    async with town(slow, taskless=taskless) as here:
        call = here.call("test.look")
        await began.wait()
        call.cancel()
        await settle_loop()
        assert (here.free, here.gateway.unfinished) == (here.size, 0)
    assert stopped == ["stopped"]


@requirement("EXE-1")
async def test_a_write_whose_client_left_is_not_stopped(taskless: bool) -> None:
    began, release = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        began.set()
        await release.wait()
        return "done all the same"

    async with town(slow, taskless=taskless) as here:
        call = here.call()
        await began.wait()
        call.cancel()
        await settle_loop()
        release.set()
        await settle_loop()
        again = await here.answer()
    assert (again.status, again.data, again.replayed) == (Status.DONE, "done all the same", True)


async def test_what_the_work_raises_is_judged_the_same(taskless: bool) -> None:
    async def broken() -> str:
        await asyncio.sleep(0)
        raise ConnectionError("no route")

    async with town(broken, taskless=taskless) as here:
        read, write = await here.answer("test.look"), await here.answer()
    assert (read.code, write.code) == (Code.DEPENDENCY_UNAVAILABLE, Code.OUTCOME_UNKNOWN)


async def test_work_that_cancels_itself_does_not_end_its_call(taskless: bool) -> None:
    async def given_up() -> str:
        raise asyncio.CancelledError

    async with town(given_up, taskless=taskless) as here:
        answer = await here.answer("test.look")
    assert answer.code is Code.TIMEOUT
