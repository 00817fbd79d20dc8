"""Can anything be committed that cannot be trusted? On every store."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Status
from holdfast.model.errors import NoEffect, NotFound
from holdfast.model.upstream_session import SessionState
from holdfast.model.vocabulary import State
from tests.polling import FELT_S, pause
from tests.requirements import requirement
from tests.upstream_sessions.world import ADA, BOB, OLGA, World, opened

LIE = {"tx": "transaction-1", "entry": "tea", "amount": 1}


async def ledger_state(world: World, call_id: str) -> State:
    found = await world.gateway._ports.ledger.find_call("default", call_id)
    assert found is not None
    return found.state


@requirement("EXE-8")
async def test_an_answer_that_does_not_fit_rolls_back_before_anybody_can_commit(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        first = await world.done("add", "one", tx=tx, name="tea", amount=3)
        world.till.says["add"] = LIE
        seen = await world.call("add", "two", tx=tx, name="milk", amount=5)
        assert (seen.status, seen.code) == (Status.FAILED, Code.OUTPUT_INVALID)
        assert seen.message == (
            f"another amount; session '{tx}' was rolled back: nothing of it is left; "
            "begin a new one with a new key"
        )
        assert seen.upstream_session == {"id": tx, "name": "till", "state": "ROLLED_BACK"}
        assert await world.state(tx) is SessionState.ROLLED_BACK
        assert (world.till.entries, world.till.open) == ({}, {})
        assert await ledger_state(world, seen.call_id) is State.NO_EFFECT
        assert await ledger_state(world, first.call_id) is State.COMPENSATED
        assert (await world.call("commit", "commit", tx=tx)).code is Code.STALE_STATE
        assert "commit" not in [tool for tool, _ in world.till.heard]


@requirement("EXE-8")
async def test_an_answer_that_got_lost_rolls_back_too(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        world.till.breaks["add"] = ConnectionError("the line is dead")
        seen = await world.call("add", "one", tx=tx, name="tea", amount=3)
        assert (seen.status, seen.code) == (Status.FAILED, Code.CANCELLED)
        assert seen.message == (
            f"'till.add' broke off in the middle; session '{tx}' was rolled back: nothing of it is left; "
            "begin a new one with a new key"
        )
        assert await ledger_state(world, seen.call_id) is State.NO_EFFECT
        assert await world.state(tx) is SessionState.ROLLED_BACK


@requirement("EXE-8")
async def test_what_could_not_be_rolled_back_yet_can_not_be_committed_either(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        world.till.says["add"] = LIE
        world.till.breaks["before rollback"] = NoEffect("away", Code.DEPENDENCY_UNAVAILABLE)
        seen = await world.call("add", "one", tx=tx, name="tea", amount=3)
        assert seen.status is Status.UNKNOWN
        assert await world.state(tx) is SessionState.ROLLING_BACK
        milk: dict[str, Any] = {"name": "milk", "amount": 1}
        for tool, arguments in (("commit", {}), ("add", milk), ("total", {})):
            refused = await world.call(tool, f"late {tool}", tx=tx, **arguments)
            assert refused.code is Code.STALE_STATE
        world.till.breaks.clear()
        await world.clock.advance(60.0)
        await world.gateway.tidy()
        assert await world.state(tx) is SessionState.ROLLED_BACK
        await world.gateway.tidy()  # what the session says of its step is told to the ledger
        assert await ledger_state(world, seen.call_id) is State.NO_EFFECT


@requirement("EXE-8")
async def test_a_step_that_only_says_no_leaves_the_session_open(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        world.till.breaks["before add"] = NoEffect("no such article", Code.SEMANTIC_INVALIDITY)
        assert (await world.call("add", "one", tx=tx, name="tea", amount=3)).status is Status.FAILED
        world.till.breaks.clear()
        await world.done("add", "one", tx=tx, name="tea", amount=3)  # the same key: it had no effect
        await world.done("commit", "commit", tx=tx)
        assert world.till.entries == {"tea": 3}


@requirement("EXE-8")
async def test_a_read_that_cannot_be_trusted_rolls_back(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        world.till.says["total"] = lambda handle: ["no object"]
        seen = await world.call("total", tx=tx)
        assert (seen.status, seen.code) == (Status.FAILED, Code.OUTPUT_INVALID)
        assert await world.state(tx) is SessionState.ROLLED_BACK


@requirement("EXE-8")
@pytest.mark.parametrize("answer", [{"tx": 7}, {"note": "no handle"}, {"tx": ""}, ["no object"]])
async def test_a_session_without_a_name_is_not_begun(kind: str, tmp_path: Path, answer: object) -> None:
    async with opened(kind, tmp_path) as world:
        world.till.says["begin"] = lambda handle: answer
        seen = await world.call("begin", "begin")
        assert (seen.status, seen.code) == (Status.UNKNOWN, Code.OUTCOME_UNKNOWN)
        assert await world.gateway.upstream_sessions.list(OLGA) == []


@requirement("EXE-8")
async def test_a_commit_that_was_never_sent_leaves_the_session_open(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        world.till.breaks["before commit"] = NoEffect("away", Code.DEPENDENCY_UNAVAILABLE)
        assert (await world.call("commit", "commit", tx=tx)).code is Code.DEPENDENCY_UNAVAILABLE
        assert await world.state(tx) is SessionState.OPEN
        world.till.breaks.clear()
        await world.done("commit", "commit", tx=tx)


@requirement("EXE-8")
@pytest.mark.parametrize(
    ("said", "state", "entries"),
    [("committed", SessionState.COMMITTED, {"tea": 3}), ("no-effect", SessionState.OPEN, {"tea": 3})],
)
async def test_a_commit_that_got_lost_is_unknown_until_somebody_settles_it(
    kind: str, tmp_path: Path, said: str, state: SessionState, entries: dict[str, int]
) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        world.till.breaks["commit"] = ConnectionError("the line is dead")
        seen = await world.call("commit", "commit", tx=tx)
        assert seen.status is Status.UNKNOWN
        assert await world.state(tx) is SessionState.UNKNOWN
        for tool in ("commit", "rollback", "total"):
            assert (await world.call(tool, f"other {tool}", tx=tx)).code is Code.STALE_STATE
        await world.gateway.tidy()
        assert await world.state(tx) is SessionState.UNKNOWN
        await world.gateway.settle(OLGA, seen.call_id, said, "looked")  # type: ignore[arg-type]
        await world.gateway.tidy()
        assert await world.state(tx) is state
        assert world.till.entries == entries


@requirement("EXE-8")
async def test_a_commit_that_answers_late_still_commits_the_session(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        world.till.gate = threading.Event()
        commit = asyncio.ensure_future(world.call("commit", "commit", tx=tx))
        try:
            await world.clock.drive(commit)
            assert (await commit).status is Status.UNKNOWN
            assert await world.state(tx) is SessionState.UNKNOWN
        finally:
            world.till.gate.set()
        async with asyncio.timeout(FELT_S):
            while await world.state(tx) is not SessionState.COMMITTED:
                await pause()
        assert (await world.call("commit", "commit", tx=tx)).status is Status.DONE


@requirement("EXE-8")
async def test_a_commit_waits_for_the_step_that_is_under_way(kind: str, tmp_path: Path) -> None:
    """Its answer may be one that must not be committed."""
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        gate, inside = asyncio.Event(), asyncio.Event()

        async def slowly() -> None:
            inside.set()
            await gate.wait()

        world.till.slowly, world.till.says["add"] = slowly, LIE
        step = asyncio.ensure_future(world.call("add", "one", tx=tx, name="tea", amount=3))
        await inside.wait()
        commit = asyncio.ensure_future(world.call("commit", "commit", tx=tx))
        await world.clock.quiet()
        assert not commit.done()
        gate.set()
        assert (await step).code is Code.OUTPUT_INVALID
        await world.clock.drive(commit)
        assert (await commit).code in (Code.STALE_STATE, Code.CONFLICT)
        assert world.till.entries == {}
        assert "commit" not in [tool for tool, _ in world.till.heard]


@requirement("EXE-8")
async def test_an_operator_ends_a_session_for_whoever_left_it(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        ended = await world.gateway.upstream_sessions.end(OLGA, tx)
        assert ended.state is SessionState.ROLLED_BACK
        operation = await world.gateway._ports.ledger.find_call("default", ended.at_work)
        assert operation is not None
        assert operation.ref.principal == ADA.id  # a call of whoever began it
        with pytest.raises(NotFound):
            await world.gateway.upstream_sessions.end(BOB, tx)
