"""Do the sums stay exact, whatever happens in whatever order?

The oracle is the effect ledger itself: an operation that had its effect has used its budget, one that runs or
is unknown has it reserved, every other one has nothing.
"""

import asyncio
import copy
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.limits import Account, Amount, Bucket, Kind, Limit, Per
from holdfast.model.observation import Status
from holdfast.model.stage import ReserveBudget
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied
from tests.requirements import requirement
from tests.stores.calls import LOOK, make_call, observed
from tests.stores.world import STORES, Surroundings, World, ref_of

KEYS = ("k-1", "k-2", "k-3", "k-4")
MOST = 3
WRITES = Bucket(per=Per.TENANT, kind=Kind.ALL, subject="default")
RESERVE = ("limits", ReserveBudget(WRITES, Amount(1, 500, 2000, 2), Limit(calls=MOST)))


class Accounts(RuleBasedStateMachine):
    kinds: ClassVar[tuple[str, ...]] = ("memory", "sqlite")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.around = Surroundings()
        self.stack = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.worlds: list[World] = [self.do(self._open(name)) for name in self.kinds]
        self.attempts: list[list[Call]] = []
        self.reads: list[list[Call]] = []
        self.reads_used = 0
        self.orphans: list[list[Call]] = []
        self.surprises = 0
        """Effects that showed up after somebody had sworn that there were none: they count all the same."""

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

    def _begin(self, call: Call) -> list[Call]:
        copies, kinds = [copy.copy(call) for _ in self.worlds], []
        for world, mine in zip(self.worlds, copies, strict=True):
            answer = self.do(world.ledger.begin(mine))
            kinds.append(type(answer))
            if isinstance(answer, Begun):
                mine.operation = answer.operation
                mine.id = mine.id if answer.operation is None else answer.operation.call_id
            if isinstance(answer, Denied):
                assert answer.code is Code.BUDGET_EXHAUSTED
        return copies if self.same(kinds) is Begun else []

    @rule(key=st.sampled_from(KEYS), again=st.booleans())
    def propose(self, key: str, again: bool) -> None:
        call = make_call(self.around.clock, key, stage=[RESERVE])
        call.rerun_unknown = again
        if begun := self._begin(call):
            self.attempts.append(begun)

    @rule(
        number=st.integers(0, 7),
        state=st.sampled_from([State.COMMITTED, State.NO_EFFECT, State.UNKNOWN, State.FAILED_FINAL]),
        tries=st.integers(0, 3),
    )
    @precondition(lambda self: self.attempts)
    def end(self, number: int, state: State, tries: int) -> None:
        """Any attempt may end at any time, also long after somebody settled it, also twice."""
        attempt = self.attempts[number % len(self.attempts)]
        for mine in attempt:
            mine.attempts = tries
        freed = self.do(self.worlds[0].look(attempt[0])).state is State.NO_EFFECT
        taken = self.same([self.do(w.end(mine, state)) for w, mine in zip(self.worlds, attempt, strict=True)])
        self.surprises += taken and freed

    @rule(
        key=st.sampled_from(KEYS),
        state=st.sampled_from([State.COMMITTED, State.NO_EFFECT, State.UNKNOWN, State.FAILED_FINAL]),
    )
    def settle(self, key: str, state: State) -> None:
        done = []
        for world in self.worlds:
            found = self.do(world.ledger.find(ref_of(make_call(self.around.clock, key))))
            if found is None or found.state.settled or found.state is State.NO_EFFECT:
                return
            done.append(self.do(world.settle(found, state)))
        self.same(done)

    @rule()
    def read(self) -> None:
        if begun := self._begin(make_call(self.around.clock, None, tool=LOOK, stage=[RESERVE])):
            self.reads.append(begun)

    @rule(sent=st.booleans())
    @precondition(lambda self: self.reads)
    def end_read(self, sent: bool) -> None:
        reading = self.reads.pop()
        for world, mine in zip(self.worlds, reading, strict=True):
            mine.attempts = int(sent)
            status = Status.DONE if sent else Status.FAILED
            assert self.do(world.ledger.finish(mine, observed(mine, status), None))
        self.reads_used += sent

    @rule(sent=st.booleans())
    @precondition(lambda self: self.orphans)
    def end_lost_read(self, sent: bool) -> None:
        """A worker that was only stopped wakes up: its read was counted, and is not counted again."""
        reading = self.orphans.pop()
        for world, mine in zip(self.worlds, reading, strict=True):
            mine.attempts = int(sent)
            self.do(world.ledger.finish(mine, observed(mine), None))

    @rule()
    def die(self) -> None:
        self.around.workers.dead.add(self.around.workers.id)
        self.around.workers.id += "'"

    @rule()
    def sweep(self) -> None:
        lost = self.same([self.do(world.ledger.count_lost_reads()) for world in self.worlds])
        if lost:  # the oldest: a new worker's reads come after
            self.orphans += self.reads[:lost]
            self.reads = self.reads[lost:]
            self.reads_used += lost

    @rule(seconds=st.sampled_from([0.5, 20.0, 90_000.0]))
    def wait(self, seconds: float) -> None:
        self.do(self.around.clock.advance(seconds))

    @rule()
    def forget(self) -> None:
        for world in self.worlds:
            self.do(world.ledger.forget())

    @invariant()
    def every_operation_is_counted_exactly_once(self) -> None:
        for world in self.worlds:
            states = [
                found.state
                for key in KEYS
                if (found := self.do(world.ledger.find(ref_of(make_call(self.around.clock, key)))))
            ]
            used = sum(state.settled for state in states) + self.reads_used
            reserved = sum(state.running or state is State.UNKNOWN for state in states) + len(self.reads)
            account = self._account(world)
            assert (account.used.calls, account.reserved.calls) == (used, reserved), (states, account)
            assert account.taken.calls <= MOST + self.surprises
            assert min(account.reserved) >= 0
            if not reserved:
                assert account.reserved == Amount()

    @invariant()
    def the_stores_agree(self) -> None:
        self.same([self._account(world) for world in self.worlds])

    def _account(self, world: World) -> Account:
        found = [a for a in self.do(world.ledger.budgets("default")) if a.bucket == WRITES]
        return found[0] if found else Account(bucket=WRITES)


class AccountsOnPostgres(Accounts):
    kinds = ("memory", "postgres")


TestAccounts = requirement("POL-4", "DEC-1", "IDM-4")(Accounts.TestCase)
TestAccounts.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestAccountsOnPostgres = requirement("POL-4", "DEC-1", "IDM-4")(AccountsOnPostgres.TestCase)
TestAccountsOnPostgres.settings = settings(max_examples=8, stateful_step_count=40, deadline=None)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
