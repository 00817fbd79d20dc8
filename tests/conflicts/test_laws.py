"""Whatever happens in whatever order: does nobody get what another one has, and everybody what nobody has?"""

import asyncio
import copy
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.model.call import Call
from holdfast.model.contract import Affordance, Contract, EffectEntry, Identity, Transactional
from holdfast.model.locks import Resource
from holdfast.model.stage import Lock, Locked
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import Effect, Operation, State, Undo
from holdfast.ports import Begun, Conflicting, Taken
from tests.requirements import requirement
from tests.stores.calls import ALICE, make_call
from tests.stores.world import STORES, Surroundings, World

KEYS = ("k-1", "k-2", "k-3", "k-4")
RESOURCES = [Resource(kind, id) for kind in ("rooms", "beds") for id in ("", "a", "b")]
_MANIFEST = EffectEntry(resource="rooms", operation=Operation.UPDATE, scope="*")
PAINT = Tool.compile(
    Contract(
        identity=Identity(namespace="house", name="paint", version="1.0.0"),
        affordance=Affordance(description="paints", input_schema={"type": "object"}),
        transactional=Transactional(effect=Effect.MEDIUM_RISK_WRITE, undo=Undo.EXACT, manifest=(_MANIFEST,)),
    )
)


def overlap(one: frozenset[Resource], other: frozenset[Resource]) -> bool:
    """What the law says, in the fewest words."""
    return any(a.kind == b.kind and (a.id == b.id or not a.id or not b.id) for a in one for b in other)


def lock(wanted: frozenset[Resource]) -> tuple[str, Lock]:
    named = [Locked(one.kind, f"commitment of {one.kind} {one.id}", whole=not one.id) for one in wanted]
    return "claim", Lock(tuple(sorted(named)))


class Locks(RuleBasedStateMachine):
    kinds: ClassVar[tuple[str, ...]] = ("memory", "sqlite")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.around = Surroundings()
        self.stack = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.worlds: list[World] = [self.do(self._open(name)) for name in self.kinds]
        self.attempts: list[list[Call]] = []
        self.held: dict[str, tuple[str, frozenset[Resource]]] = {}
        """What the law says: by the attempt's nonce, its key and what it has."""
        self.ended: list[frozenset[Resource]] = []
        """What each who let go had."""
        self.looks: list[tuple[frozenset[Resource], list[str], int]] = []
        """What was looked at, what each store said of it, and how many had let go of anything by then."""

    async def _open(self, name: str) -> World:
        return await self.stack.enter_async_context(STORES[name](Path(self.folder.name), self.around))

    def do(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        self.do(self.stack.aclose())
        self.do(self.loop.shutdown_default_executor())
        self.loop.close()
        self.folder.cleanup()

    @rule(
        key=st.sampled_from(KEYS),
        wanted=st.frozensets(st.sampled_from(RESOURCES), min_size=1, max_size=4),
        again=st.booleans(),
    )
    def propose(self, key: str, wanted: frozenset[Resource], again: bool) -> None:
        self._propose(key, wanted, again, [None] * len(self.worlds), stale=False)

    @rule(wanted=st.frozensets(st.sampled_from(RESOURCES), min_size=1, max_size=2))
    def look(self, wanted: frozenset[Resource]) -> None:
        said = [self.do(world.ledger.changed(ALICE.tenant, lock(wanted)[1])) for world in self.worlds]
        self.looks.append((wanted, said, len(self.ended)))

    @rule(key=st.sampled_from(KEYS), number=st.integers(0, 3), again=st.booleans())
    @precondition(lambda self: self.looks)
    def propose_after_a_look(self, key: str, number: int, again: bool) -> None:
        wanted, seen, ended = self.looks[-1 - number % len(self.looks)]
        stale = any(overlap(wanted, has) for has in self.ended[ended:])
        self._propose(key, wanted, again, seen, stale)

    def _propose(
        self, key: str, wanted: frozenset[Resource], again: bool, seen: Sequence[str | None], stale: bool
    ) -> None:
        call = make_call(self.around.clock, key, tool=PAINT)
        call.rerun_unknown = again
        in_the_way = {
            nonce for nonce, (other, has) in self.held.items() if other != key and overlap(wanted, has)
        }
        copies = [copy.copy(call) for _ in self.worlds]
        for world, mine, known in zip(self.worlds, copies, seen, strict=True):
            gate, wish = lock(wanted)
            mine.staged = [(gate, replace(wish, seen=known))]
            answer = self.do(world.ledger.begin(mine))
            if isinstance(answer, Conflicting):
                assert answer.nonce in in_the_way or (stale and not answer.nonce)
                continue
            if isinstance(answer, Begun):
                assert not in_the_way, "nobody gets what another one has"
                assert not stale, "nobody acts on what it saw before another one was at it"
                assert answer.operation is not None
                mine.operation = answer.operation
                mine.id = answer.operation.call_id
                continue
            assert isinstance(answer, Taken)
            assert answer.operation.ref.key == key
        began = [mine.operation is not None for mine in copies]
        assert len(set(began)) == 1, "the stores agree"
        if began[0]:
            self.held = {nonce: one for nonce, one in self.held.items() if one[0] != key}
            self.held[call.nonce] = (key, wanted)
            self.attempts.append(copies)

    @rule(
        number=st.integers(0, 7),
        state=st.sampled_from([State.COMMITTED, State.NO_EFFECT, State.UNKNOWN, State.FAILED_FINAL]),
        working=st.booleans(),
    )
    @precondition(lambda self: self.attempts)
    def end(self, number: int, state: State, working: bool) -> None:
        """Any attempt may end at any time, also after another one of its operation began, also twice."""
        attempt = self.attempts[number % len(self.attempts)]
        for world, mine in zip(self.worlds, attempt, strict=True):
            work = self.loop.create_future()
            if not working:
                work.set_result(None)
            mine.work = work
            self.do(world.end(mine, state))
        if not (working and state is State.UNKNOWN):
            self._let_go(attempt[0].nonce)

    @rule(number=st.integers(0, 7), state=st.sampled_from([State.COMMITTED, State.NO_EFFECT, State.UNKNOWN]))
    @precondition(lambda self: self.attempts)
    def settle(self, number: int, state: State) -> None:
        attempt = self.attempts[number % len(self.attempts)]
        for world, mine in zip(self.worlds, attempt, strict=True):
            found = self.do(world.look(mine))
            if not (found.state.running or found.state is State.UNKNOWN):
                return
            if self.do(world.settle(found, state)):
                self._let_go(found.nonce)

    @rule(number=st.integers(0, 7))
    @precondition(lambda self: self.attempts)
    def let_go(self, number: int) -> None:
        attempt = self.attempts[number % len(self.attempts)]
        for world, mine in zip(self.worlds, attempt, strict=True):
            self.do(world.ledger.unlock(ALICE.tenant, mine.id, mine.nonce))
        self._let_go(attempt[0].nonce)

    def _let_go(self, nonce: str) -> None:
        if nonce in self.held:
            self.ended.append(self.held.pop(nonce)[1])

    @invariant()
    def nobody_has_what_another_one_has(self) -> None:
        held = list(self.held.values())
        assert not any(overlap(a[1], b[1]) for n, a in enumerate(held) for b in held[:n])


class LocksOnPostgres(Locks):
    kinds = ("memory", "postgres")


TestLocks = requirement("EXE-7", "DEC-1")(Locks.TestCase)
TestLocks.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
TestLocksOnPostgres = requirement("EXE-7", "DEC-1")(LocksOnPostgres.TestCase)
TestLocksOnPostgres.settings = settings(max_examples=5, stateful_step_count=40, deadline=None)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")
