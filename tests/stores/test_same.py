"""Do the stores behave the same, whatever happens in whatever order?"""

import asyncio
import copy
import json
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.model.attendance import Attendance
from holdfast.model.call import Call, Principal
from holdfast.model.errors import HoldfastError
from holdfast.model.stage import TakeRate, UseGrant
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied, Taken
from tests.requirements import requirement
from tests.stores.calls import make_call, unnamed
from tests.stores.world import STORES, Surroundings, World, ref_of

KEYS = st.sampled_from(["k-1", "k-2"])
ENDS = st.sampled_from([State.COMMITTED, State.NO_EFFECT, State.UNKNOWN, State.FAILED_FINAL])
RATE = TakeRate("bucket", 3, 10.0)


class Stores(RuleBasedStateMachine):
    """Every store gets the same orders and must give the same answers; no key has two effects."""

    kinds: ClassVar[tuple[str, ...]] = ("memory", "sqlite")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.around = Surroundings()
        self.stack = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.worlds: list[World] = [self.do(self._open(name)) for name in self.kinds]
        self.attempts: list[list[Call]] = []
        self.grants: dict[str, list[str]] = {}
        self.committed: dict[str, int] = {}

    async def _open(self, name: str) -> World:
        return await self.stack.enter_async_context(STORES[name](Path(self.folder.name), self.around))

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def same(self, answers: list[Any]) -> Any:
        assert all(answer == answers[0] for answer in answers), answers
        return answers[0]

    def teardown(self) -> None:
        self.do(self.stack.aclose())
        self.do(self.loop.shutdown_default_executor())
        self.loop.close()
        self.folder.cleanup()

    # -- what callers do -----------------------------------------------------

    @rule(
        key=KEYS,
        amount=st.integers(1, 2),
        rated=st.booleans(),
        granted=st.booleans(),
        again=st.booleans(),
        named=st.booleans(),
    )
    def propose(self, key: str, amount: int, rated: bool, granted: bool, again: bool, named: bool) -> None:
        call = make_call(self.around.clock, key, arguments={"amount": amount})
        if not named:
            unnamed(call)
        call.rerun_unknown = again
        if rated:
            call.stage("limits", RATE)
        copies = [copy.copy(call) for _ in self.worlds]
        answers = []
        for number, (world, mine) in enumerate(zip(self.worlds, copies, strict=True)):
            ids = self.grants.get(key, ["apr_none"] * len(self.worlds))
            mine.staged = [*call.staged, ("approval", UseGrant(ids[number]))] if granted else call.staged
            answer = self.do(world.ledger.begin(mine))
            answers.append(_told(answer))
            if isinstance(answer, Begun):
                mine.operation = answer.operation
        if self.same(answers)[0] is Begun:
            self.attempts.append(copies)

    @rule(number=st.integers(0, 5), state=ENDS)
    @precondition(lambda self: self.attempts)
    def end(self, number: int, state: State) -> None:
        attempt = self.attempts[number % len(self.attempts)]
        taken = self.same(
            [self.do(world.end(mine, state)) for world, mine in zip(self.worlds, attempt, strict=True)]
        )
        if taken and state is State.COMMITTED:
            key = str(attempt[0].key)
            self.committed[key] = self.committed.get(key, 0) + 1

    @rule(amount=st.integers(1, 2), number=st.integers(0, 5), served=st.booleans(), attend=st.booleans())
    def come_back(self, amount: int, number: int, served: bool, attend: bool) -> None:
        call, here = unnamed(make_call(self.around.clock, "k-3", arguments={"amount": amount})), Attendance()
        if served and self.attempts:
            here.enter(self.attempts[number % len(self.attempts)][0])
        found = self.same([self.do(world.ledger.alike(call, here)) for world in self.worlds])
        if found is not None and attend:
            self.same([self.do(world.ledger.attend(found)) for world in self.worlds])

    @rule(number=st.integers(0, 5), told=st.booleans())
    @precondition(lambda self: self.attempts)
    def leave(self, number: int, told: bool) -> None:
        attempt = self.attempts[number % len(self.attempts)]
        for world, mine in zip(self.worlds, attempt, strict=True):
            self.do(world.ledger.leave(mine, told=told))

    # -- what people and the gateway do ----------------------------------------

    @rule(key=KEYS, state=ENDS)
    def settle(self, key: str, state: State) -> None:
        done = []
        for world in self.worlds:
            found = self.do(world.ledger.find(ref_of(make_call(self.around.clock, key))))
            if found is None or found.state.settled:
                return
            done.append(self.do(world.settle(found, state)))
        self.same(done)

    @rule(key=KEYS, amount=st.integers(1, 2))
    def approve(self, key: str, amount: int) -> None:
        call = make_call(self.around.clock, key, arguments={"amount": amount})
        answers: list[Any] = []
        ids: list[str] = []
        for world in self.worlds:
            try:
                asked = self.do(world.approvals.ask(call, {"operator": 1}, {"a": 1}))
                ids.append(asked.id)
                given = self.do(world.approvals.decide(asked, Principal(user="olga"), "operator", True, ""))
                answers.append((asked.call_id, given.answer, given.used))
            except HoldfastError as error:
                answers.append((str(error).replace(ids[-1] if ids else "-", "ID"),))
        self.same(answers)
        if len(ids) == len(self.worlds):
            self.grants[key] = ids

    @rule(name=st.sampled_from(["all", "bank", "bank.pay"]), on=st.booleans())
    def brake(self, name: str, on: bool) -> None:
        for world in self.worlds:
            self.do(world.controls.halt(name, "olga", "") if on else world.controls.resume(name, "olga"))

    @rule()
    def forget(self) -> None:
        self.same([self.do(world.ledger.forget()) for world in self.worlds])

    @rule(limit=st.integers(1, 3))
    def sweep(self, limit: int) -> None:
        self.same([list(self.do(world.ledger.overdue(limit))) for world in self.worlds])

    # -- what the world does -------------------------------------------------

    @rule(seconds=st.sampled_from([0.5, 6.0, 20.0, 3700.0]))
    def wait(self, seconds: float) -> None:
        self.do(self.around.clock.advance(seconds))

    @rule(seconds=st.sampled_from([-9000.0, 9000.0]))
    def jump(self, seconds: float) -> None:
        self.around.clock.jump(seconds)

    @rule()
    def restart(self) -> None:
        self.around.boot.restart()

    @rule()
    def die(self) -> None:
        self.around.workers.dead.add(self.around.workers.id)
        self.around.workers.id += "'"

    # -- what must hold ----------------------------------------------------------

    @invariant()
    def all_tell_the_same(self) -> None:
        for key in ("k-1", "k-2"):
            ref = ref_of(make_call(self.around.clock, key))
            self.same([self.do(world.ledger.find(ref)) for world in self.worlds])
        self.same([_told_of_calls(world) for world in self.worlds])

    @invariant()
    def no_key_is_committed_twice(self) -> None:
        assert all(count <= 1 for count in self.committed.values()), self.committed


def _told(answer: Begun | Taken | Denied) -> tuple[Any, ...]:
    if isinstance(answer, Denied):
        return Denied, answer.gate, answer.code, answer.retry_after_ms
    return type(answer), answer.operation


def _told_of_calls(world: World) -> list[Any]:
    """Records about calls, but for what each store makes up itself: approval ids, commitments, seals."""
    own = {"output_commitment": None, "approval_id": None, "claim": None}
    return [
        (r.call_id, r.kind, json.loads(r.body) | own)
        for r in world.records()
        if r.kind not in ("ask", "vote")
    ]


class StoresOnPostgres(Stores):
    kinds = ("memory", "postgres")


TestStores = requirement("IDM-4", "IDM-5", "DEC-1")(Stores.TestCase)
TestStores.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestStoresOnPostgres = requirement("IDM-4", "IDM-5", "DEC-1")(StoresOnPostgres.TestCase)
TestStoresOnPostgres.settings = settings(max_examples=8, stateful_step_count=30, deadline=None)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
