"""Can what was committed in a session be taken back, from the last step to the first? On every store."""

from pathlib import Path

import pytest

from holdfast import Code, HoldfastError, Status
from holdfast.model.errors import Forbidden, NoEffect
from holdfast.model.upstream_session import SessionState
from tests.requirements import requirement
from tests.upstream_sessions.world import ADA, BOB, OLGA, World, opened


async def committed(world: World, **entries: int) -> str:
    tx = await world.begun()
    for name, amount in entries.items():
        await world.done("add", name, tx=tx, name=name, amount=amount)
    await world.done("commit", "commit", tx=tx)
    return tx


@requirement("EXE-8")
async def test_what_was_committed_is_taken_back_from_the_last_to_the_first(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await committed(world, tea=3, milk=5)
        assert world.till.entries == {"tea": 3, "milk": 5}
        session, done = await world.gateway.upstream_sessions.undo(ADA, tx)
        assert session.state is SessionState.UNDONE
        assert [one.seen.status for one in done] == [Status.DONE, Status.DONE]
        assert world.till.heard[-2:] == [("remove", "milk"), ("remove", "tea")]
        assert world.till.entries == {}
        replayed = await world.call("add", "tea", tx=tx, name="tea", amount=3)
        assert (replayed.status, replayed.code) == (Status.FAILED, Code.CANCELLED)
        assert replayed.message == f"taken back by call '{done[1].seen.call_id}'"
        with pytest.raises(HoldfastError, match="only what was committed is undone"):
            await world.gateway.upstream_sessions.undo(ADA, tx)


@requirement("EXE-8")
async def test_nothing_can_be_taken_back_before_it_is_committed(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        with pytest.raises(HoldfastError, match="is OPEN; only what was committed is undone"):
            await world.gateway.upstream_sessions.undo(ADA, tx)
        await world.done("rollback", "back", tx=tx)
        with pytest.raises(HoldfastError, match="is ROLLED_BACK; only what was committed is undone"):
            await world.gateway.upstream_sessions.undo(ADA, tx)
        assert "remove" not in [tool for tool, _ in world.till.heard]


@requirement("EXE-8")
async def test_taking_back_stops_where_it_cannot_go_on_and_goes_on_from_there(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await committed(world, tea=3, milk=5, salt=1)
        removed = world.till.remove

        def jammed(name: str) -> dict[str, object]:
            if name == "milk":
                raise NoEffect("the drawer is jammed", Code.DEPENDENCY_UNAVAILABLE)
            return removed(name)

        world.till.remove = jammed  # type: ignore[method-assign]
        session, done = await world.gateway.upstream_sessions.undo(ADA, tx)
        assert session.state is SessionState.COMMITTED
        assert [one.seen.status for one in done] == [Status.DONE, Status.FAILED]
        assert world.till.entries == {"tea": 3, "milk": 5}
        world.till.remove = removed  # type: ignore[method-assign]
        session, done = await world.gateway.upstream_sessions.undo(ADA, tx)
        assert session.state is SessionState.UNDONE
        assert [one.seen.replayed for one in done] == [True, False, False]
        assert world.till.entries == {}


@requirement("EXE-8")
async def test_a_step_without_a_way_back_is_said_before_anything_is_taken_back(
    kind: str, tmp_path: Path
) -> None:
    async with opened(kind, tmp_path, lasting=True) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        await world.done("mark", "two", tx=tx, name="seen")
        await world.done("commit", "commit", tx=tx)
        with pytest.raises(HoldfastError, match=r"no compensation: till\.mark"):
            await world.gateway.upstream_sessions.undo(ADA, tx)
        assert world.till.entries == {"tea": 3, "seen": 0}
        session, done = await world.gateway.upstream_sessions.undo(ADA, tx, partial=True)
        assert session.state is SessionState.UNDONE
        assert [one.line.tool for one in done] == ["till.add"]
        assert world.till.entries == {"seen": 0}


@requirement("EXE-8")
async def test_an_operator_says_what_became_of_a_session_that_nobody_knows(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        world.till.breaks["rollback"] = ConnectionError("the line is dead")
        await world.call("rollback", "back", tx=tx)
        assert await world.state(tx) is SessionState.UNKNOWN
        desk = world.gateway.upstream_sessions
        with pytest.raises(Forbidden):
            await desk.settle(ADA, tx, SessionState.ROLLED_BACK, "")
        settled = await desk.settle(OLGA, tx, SessionState.ROLLED_BACK, "the till was empty")
        assert (settled.state, settled.why) == (
            SessionState.ROLLED_BACK,
            "settled by 'olga': the till was empty",
        )
        assert (await world.call("add", "one", tx=tx, name="tea", amount=3)).code is Code.CANCELLED
        with pytest.raises(HoldfastError, match="only an unknown end is settled"):
            await desk.settle(OLGA, tx, SessionState.COMMITTED, "")
        assert await desk.list(BOB) == []
