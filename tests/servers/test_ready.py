"""Does `/ready` say honestly whether calls can be taken, whatever the store does?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.gateway.readiness import REFUSED_S
from holdfast.model.errors import StoreError
from holdfast.model.restored import RESTORED
from holdfast.ports import Clock
from holdfast.servers.app import build
from holdfast.stores.memory import MemoryStore
from holdfast.system import RandomIds, SystemClock
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL


class Shelf(MemoryStore):
    """A store that can be made to hang, or to fail."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.looks = 0
        self.works = asyncio.Event()
        self.works.set()
        self.fault: Exception | None = None
        find = self.ledger.find_call

        async def find_call(tenant: str, call_id: str) -> Any:
            self.looks += 1
            await self.works.wait()
            if self.fault is not None:
                raise self.fault
            return await find(tenant, call_id)

        self.ledger.find_call = find_call  # type: ignore[method-assign]
        refuse = self.ledger.refuse
        self.full = False

        async def note(call: Any, observation: Any, code: Any) -> None:
            if self.full:
                raise StoreError("no room")
            await refuse(call, observation, code)

        self.ledger.refuse = note  # type: ignore[method-assign]


@pytest.fixture
def store() -> Shelf:
    return Shelf(SystemClock())


@pytest.fixture
async def gateway(store: Shelf) -> AsyncIterator[Gateway]:
    one = Gateway.assemble({}, store, {}, clock=SystemClock(), ids=RandomIds())
    yield one
    await one.close()


@pytest.fixture
def nobody(gateway: Gateway) -> Client:
    return Client(build(gateway), LOCAL)


@requirement("TEL-6")
async def test_a_store_that_hangs_is_said_to_be_slow_and_is_not_asked_again_and_again(
    nobody: Client, store: Shelf
) -> None:
    store.works.clear()
    answers = await asyncio.gather(*(nobody.get("/ready") for _ in range(5)))
    assert {(one.status, one.json()["store"]) for one in answers} == {(503, "slow")}
    assert store.looks == 1
    assert (await nobody.get("/health")).status == 200
    store.works.set()
    while (answer := await nobody.get("/ready")).status == 503:
        pass
    assert answer.json()["store"] == "ok"


@requirement("TEL-6", "LIF-5")
@pytest.mark.parametrize("fault", [StoreError("no disk at 'db.example:5432'"), OSError("db.example")])
async def test_a_store_that_fails_is_unreachable_and_only_the_operator_learns_why(
    nobody: Client, store: Shelf, fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    store.fault = fault
    answer = await nobody.get("/ready")
    assert (answer.status, answer.json()["ready"], answer.json()["store"]) == (503, False, "unreachable")
    assert b"db.example" not in answer.body
    assert "db.example" in caplog.text


@requirement("TEL-6", "AUD-5")
async def test_a_store_that_took_the_trial_and_no_call_is_not_ready_for_a_while() -> None:
    clock = ManualClock()
    store = Shelf(clock)
    gateway = Gateway.assemble({}, store, {}, clock=clock, ids=RandomIds())
    nobody = Client(build(gateway), LOCAL)
    store.full = True
    await nobody.post("/v1/calls", {"tool": "no.such", "arguments": {}})
    answer = await nobody.get("/ready")
    assert (answer.status, answer.json()["store"]) == (503, "unwritable")
    store.full = False
    await clock.advance(REFUSED_S)
    assert (await nobody.get("/ready")).status == 200
    await gateway.close()


@requirement("TEL-6", "PPL-5")
async def test_a_restored_store_is_not_ready_until_it_is_recovered(nobody: Client, store: Shelf) -> None:
    await store.controls.halt(RESTORED, "holdfast", "")
    answer = await nobody.get("/ready")
    assert (answer.status, answer.json()["store"]) == (503, "restored")


@requirement("TEL-6")
async def test_who_drains_says_so_and_still_takes_calls(nobody: Client, gateway: Gateway) -> None:
    gateway.drain()
    answer = await nobody.get("/ready")
    assert answer.status == 503
    assert (answer.json()["store"], answer.json()["draining"]) == ("ok", True)
    assert "another" in answer.json()["next"]
    call = await nobody.post("/v1/calls", {"tool": "no.such", "arguments": {}})
    assert call.json()["code"] == "TOOL_NOT_FOUND"
