"""Does what a gate saw of a session still hold when the claim is made? On every store."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.sequel import SessionBegun, SessionMoved, SessionWorked
from holdfast.model.stage import WorkIn
from holdfast.model.upstream_session import COMES_FROM, SessionState, UpstreamSession
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Conflicting, Denied
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import Store, place, stored
from tests.stores.calls import ALICE, LOOK, PAY, make_call, observed

SES = "ses_1"
BODY = orjson.dumps({"handle": "transaction-1", "wanted_by": {"user": "alice"}})


class Kept:
    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store, self.clock = store, clock

    def call(self, key: str | None, role: Any = None, **said: Any) -> Call:
        tool = LOOK if key is None else PAY
        stage = [] if role is None else [("state", WorkIn(SES, role, tool.writes))]
        return make_call(self.clock, key, tool=tool, stage=stage, **said)

    async def claim(self, call: Call) -> Begun | Denied:
        answer = await self.store.ledger.begin(call)
        assert isinstance(answer, Begun | Denied), answer
        if isinstance(answer, Begun):
            call.operation = answer.operation
        return answer

    async def end(self, call: Call, state: State, *sequels: Any) -> None:
        call.sequels = sequels
        assert await self.store.ledger.finish(call, observed(call, data={}), state)

    async def begun(self) -> None:
        call = self.call("begin")
        await self.claim(call)
        said = SessionBegun(id=SES, namespace="bank", name="tx", body=BODY, idle_s=60.0, lives_here=False)
        await self.end(call, State.COMMITTED, said)

    async def step(self, key: str) -> Call:
        call = self.call(key, "step")
        assert isinstance(await self.claim(call), Begun)
        await self.end(call, State.COMMITTED, SessionWorked(id=SES, tool="bank.pay", body=b"{}"))
        return call

    async def session(self) -> UpstreamSession:
        found = await self.store.upstream_sessions.get("default", SES)
        assert found is not None
        return found

    async def move(self, state: SessionState) -> bool:
        return await self.store.upstream_sessions.move(await self.session(), state, "for a test", "olga")

    async def state_of(self, call: Call) -> State | None:
        assert call.ref is not None
        found = await self.store.ledger.find(call.ref)
        return None if found is None else found.state


@pytest.fixture
async def kept(kind: str, tmp_path: Path) -> AsyncIterator[Kept]:
    clock = ManualClock()
    async with place(kind, tmp_path), stored(kind, tmp_path, clock) as store:
        here = Kept(store, clock)
        await here.begun()
        yield here


@requirement("EXE-8", "DEC-1")
@pytest.mark.parametrize("role", ["step", "commit", "rollback"])
async def test_whoever_is_too_late_claims_nothing(kept: Kept, role: str) -> None:
    for state in (SessionState.ROLLING_BACK, SessionState.ROLLED_BACK):
        assert await kept.move(state)
    call = kept.call("late", role)
    denied = await kept.claim(call)
    assert isinstance(denied, Denied)
    assert (denied.gate, denied.code) == ("state", Code.STALE_STATE)
    assert await kept.state_of(call) is None


@requirement("EXE-8", "DEC-1")
async def test_of_a_step_and_a_commit_at_once_one_is_first(kept: Kept) -> None:
    calls = [kept.call("step", "step"), kept.call("commit", "commit")]
    answers = await asyncio.gather(*map(kept.claim, calls))
    won = [call for call, answer in zip(calls, answers, strict=True) if isinstance(answer, Begun)]
    [lost] = [answer for answer in answers if isinstance(answer, Denied)]
    assert len(won) == 1
    if isinstance(lost, Conflicting):
        assert (lost.code, lost.call_id) == (Code.CONFLICT, won[0].id)
    else:
        assert lost.code is Code.STALE_STATE  # the commit was first
    assert (await kept.session()).at_work == won[0].id


@requirement("EXE-8")
async def test_a_read_keeps_nobody_out_and_keeps_the_session_awake(kept: Kept) -> None:
    await kept.clock.advance(50.0)
    assert isinstance(await kept.claim(kept.call(None, "step")), Begun)
    await kept.clock.advance(50.0)
    await kept.step("one")
    await kept.clock.advance(61.0)
    denied = await kept.claim(kept.call("late", "step"))
    assert isinstance(denied, Denied)
    assert "was left alone for more than 60 s" in denied.message


@requirement("EXE-8")
async def test_a_step_that_nobody_knows_keeps_others_out_but_not_the_rollback(kept: Kept) -> None:
    lost = kept.call("lost", "step")
    await kept.claim(lost)
    assert isinstance(await kept.claim(kept.call("back", "rollback")), Conflicting)
    await kept.end(lost, State.UNKNOWN)
    for role in ("step", "commit"):
        denied = await kept.claim(kept.call(f"after {role}", role))
        assert isinstance(denied, Denied)
        assert denied.code is Code.STALE_STATE
    assert isinstance(await kept.claim(kept.call("back", "rollback")), Begun)
    assert (await kept.session()).state is SessionState.ROLLING_BACK


@requirement("EXE-8")
async def test_rolling_back_takes_back_every_step_in_the_same_transaction(kept: Kept) -> None:
    steps = [await kept.step("one"), await kept.step("two")]
    back = kept.call("back", "rollback")
    await kept.claim(back)
    assert [await kept.state_of(step) for step in steps] == [State.COMMITTED] * 2
    await kept.end(back, State.COMMITTED, SessionMoved(id=SES, state="ROLLED_BACK"))
    assert [await kept.state_of(step) for step in steps] == [State.COMPENSATED] * 2
    assert (await kept.session()).state is SessionState.ROLLED_BACK
    assert await kept.state_of(back) is State.COMMITTED


@requirement("EXE-8")
async def test_a_session_moves_only_along_its_states(kept: Kept) -> None:
    for state in SessionState:
        allowed = SessionState.OPEN in COMES_FROM[state]
        if not allowed:
            assert not await kept.move(state), state
    assert await kept.move(SessionState.ROLLING_BACK)
    seen = await kept.session()
    assert await kept.move(SessionState.ROLLED_BACK)
    moved = await kept.store.upstream_sessions.move(seen, SessionState.UNKNOWN, "", "olga")
    assert not moved  # it is not as it was seen any more
    for state in SessionState:
        assert not await kept.move(state), state


@requirement("EXE-8", "AUT-6")
async def test_a_session_is_its_tenants(kept: Kept) -> None:
    assert await kept.store.upstream_sessions.get("acme", SES) is None
    assert await kept.store.upstream_sessions.list("acme") == []
    [listed] = await kept.store.upstream_sessions.list("default", principal=ALICE.id)
    assert (listed.id, listed.handle) == (SES, "transaction-1")
    assert "transaction-1" not in repr(listed)


@requirement("EXE-8")
async def test_what_is_over_is_forgotten_after_its_time(kept: Kept) -> None:
    await kept.step("one")
    await kept.clock.advance(100.0)
    assert await kept.store.upstream_sessions.forget(kept.clock.now()) == 0  # it is open
    await kept.move(SessionState.ROLLING_BACK)
    await kept.move(SessionState.ROLLED_BACK)
    assert await kept.store.upstream_sessions.forget(kept.clock.now()) == 0
    await kept.clock.advance(1.0)
    assert await kept.store.upstream_sessions.forget(kept.clock.now()) == 1
    assert await kept.store.upstream_sessions.lines("default", SES) in ((), [])
