"""Whatever answers lie, get lost or never come: is nothing kept that cannot be trusted, and all that is told?

Sessions are worked in, ended and left alone in any order, before a till that answers as it likes.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Code, Status
from holdfast.model.errors import NoEffect
from holdfast.model.upstream_session import SessionState
from holdfast.model.vocabulary import State
from tests.requirements import requirement
from tests.upstream_sessions.world import OLGA, World, opened

HOW = st.sampled_from(["well", "well", "well", "lies", "lost", "away"])
STEP = st.tuples(st.sampled_from(["add", "add", "total"]), HOW)
END = st.tuples(st.sampled_from(["commit", "commit", "rollback"]), HOW)
OTHER = st.tuples(st.sampled_from(["begin", "tidy", "wait", "operator"]), HOW)
DEEDS = st.lists(st.one_of(STEP, STEP, END, OTHER), min_size=3, max_size=14)


class Book:
    """What the test itself remembers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sessions: list[str] = []
        self.entered: dict[str, dict[str, str]] = {}
        """Of each session, the entries whose step was told to be done, and their calls."""
        self.tainted: set[str] = set()
        """Sessions with an answer that cannot be trusted."""
        self.number = 0

    async def do(self, what: str, how: str) -> None:
        self.number += 1
        till = self.world.till
        till.says, till.breaks = {}, {}
        if how == "lies":
            till.says[what] = lambda handle: ["no object"]
        elif how == "lost":
            till.breaks[what] = ConnectionError("the line is dead")
        elif how == "away":
            till.breaks[f"before {what}"] = NoEffect("away", Code.DEPENDENCY_UNAVAILABLE)
        await getattr(self, f"_{what}", self._in_session)(what, how)

    async def _begin(self, what: str, how: str) -> None:
        seen = await self.world.call("begin", f"k-{self.number}")
        if seen.status is Status.DONE:
            self.sessions.append(seen.data["tx"])
            self.entered[seen.data["tx"]] = {}

    async def _tidy(self, what: str, how: str) -> None:
        await self.world.gateway.tidy()

    async def _wait(self, what: str, how: str) -> None:
        await self.world.clock.advance(200.0)

    async def _operator(self, what: str, how: str) -> None:
        for session in self.sessions:
            if await self.world.state(session) is SessionState.OPEN:
                await self.world.gateway.upstream_sessions.end(OLGA, session)
                return

    async def _in_session(self, what: str, how: str) -> None:
        if not self.sessions:
            return
        tx, entry = self.sessions[-1], f"entry-{self.number}"
        more: dict[str, Any] = {"name": entry, "amount": self.number} if what == "add" else {}
        heard = len(self.world.till.heard)
        key = None if what == "total" else f"k-{self.number}"
        calling = asyncio.ensure_future(self.world.call(what, key, tx=tx, **more))
        await self.world.clock.drive(calling)  # a read that fails is tried again after a while
        seen = await calling
        reached = len(self.world.till.heard) > heard
        if what == "add" and seen.status is Status.DONE:
            self.entered[tx][entry] = seen.call_id
        elif what in ("add", "total") and reached and how in ("lies", "lost") and what + how != "totallost":
            self.tainted.add(tx)

    async def check(self) -> None:
        kept = self.world.till.entries
        for tx in self.sessions:
            state, told = await self.world.state(tx), self.entered[tx]
            if tx in self.tainted:
                assert not set(told) & set(kept), "what cannot be trusted was committed"
                assert state in (SessionState.ROLLING_BACK, SessionState.ROLLED_BACK, SessionState.UNKNOWN)
            if state is SessionState.COMMITTED:
                assert set(told) <= set(kept), "what was told to be committed is not there"
            if state is SessionState.ROLLED_BACK:
                assert not set(told) & set(kept), "what was told to be rolled back is there"
                for call_id in told.values():
                    assert await self._ledger(call_id) is State.COMPENSATED

    async def _ledger(self, call_id: str) -> State:
        found = await self.world.gateway._ports.ledger.find_call("default", call_id)
        assert found is not None
        return found.state


@requirement("EXE-8")
@settings(max_examples=40, deadline=None)
@given(DEEDS)
def test_nothing_untrusted_is_committed_and_nothing_else_is_told(deeds: list[tuple[str, str]]) -> None:
    async def lived() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with opened("memory", Path(folder), shared=True) as world:
                book = Book(world)
                await book.do("begin", "well")
                for what, how in deeds:
                    await book.do(what, how)
                    await book.check()
                world.till.says, world.till.breaks = {}, {}
                for _ in range(3):  # in the end everything that can be known is
                    await world.clock.advance(400.0)
                    await world.gateway.tidy()
                await book.check()
                for tx in book.sessions:
                    left = await world.state(tx)
                    assert left.over or left is SessionState.UNKNOWN

    asyncio.run(lived())
