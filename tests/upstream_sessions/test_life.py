"""Does what is done in a session count once it is committed, and not before? On every store."""

from pathlib import Path

import pytest

from holdfast import Code, Principal, Status
from holdfast.model.errors import NotFound
from holdfast.model.upstream_session import SessionState
from tests.requirements import requirement
from tests.upstream_sessions.world import ADA, BOB, opened


@requirement("EXE-8")
async def test_what_is_done_in_a_session_counts_once_it_is_committed(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        added = await world.done("add", "one", tx=tx, name="tea", amount=3)
        assert added.upstream_session == {"id": tx, "name": "till", "state": "OPEN"}
        assert world.till.entries == {}
        committed = await world.done("commit", "commit", tx=tx)
        assert world.till.entries == {"tea": 3}
        assert committed.upstream_session == {"id": tx, "name": "till", "state": "COMMITTED"}
        assert await world.state(tx) is SessionState.COMMITTED


@requirement("EXE-8")
async def test_nobody_sees_what_the_upstream_calls_a_session(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        begun = await world.done("begin", "begin")
        tx = begun.data["tx"]
        assert tx.startswith("ses_")
        assert begun.data["note"] == f"opened {tx}"
        added = await world.done("add", "one", tx=tx, name="tea", amount=3)
        assert added.data == {"tx": tx, "entry": "tea", "amount": 3}
        assert world.till.heard[-1] == ("add", "transaction-1")
        for seen in (begun, added):
            assert b"transaction-1" not in seen.to_json()


@requirement("EXE-8")
async def test_what_is_rolled_back_was_never_done(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        await world.done("rollback", "back", tx=tx)
        assert (world.till.entries, world.till.open) == ({}, {})
        replayed = await world.call("add", "one", tx=tx, name="tea", amount=3)
        assert (replayed.status, replayed.code, replayed.replayed) == (Status.FAILED, Code.CANCELLED, True)
        assert replayed.message == f"rolled back with session '{tx}'; nothing of it is left"
        assert replayed.data is None
        again = await world.call("begin", "begin")
        assert again.code is Code.CANCELLED
        late = await world.call("add", "two", tx=tx, name="milk", amount=1)
        assert late.code is Code.STALE_STATE
        assert "begin a new one with a new key" in (late.message or "")


@requirement("EXE-8")
async def test_a_session_is_nobody_elses(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        heard = len(world.till.heard)
        elsewhere = Principal(tenant="other", user="ada", agent="bot")
        for by in (BOB, elsewhere):
            seen = await world.call("add", "one", by=by, tx=tx, name="tea", amount=3)
            assert (seen.status, seen.code) == (Status.REFUSED, Code.STALE_STATE)
            assert seen.message == f"there is no session '{tx}' of yours; begin one with 'till.begin'"
            assert seen.field_errors[0].path == "/tx"
        assert len(world.till.heard) == heard
        with pytest.raises(NotFound):
            await world.gateway.upstream_sessions.look(BOB, tx)


@requirement("EXE-8")
async def test_a_read_sees_what_is_not_committed_yet(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        assert (await world.done("total", tx=tx)).data == {"total": 3}
        lines = (await world.gateway.upstream_sessions.look(ADA, tx)).lines
        assert [line.tool for line in lines] == ["till.add"]  # a read leaves nothing to take back


@requirement("EXE-8")
async def test_the_same_key_is_one_step_one_commit_and_one_session(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path) as world:
        assert await world.begun() == await world.begun()
        tx = await world.begun()
        for _ in range(2):
            await world.done("add", "one", tx=tx, name="tea", amount=3)
        assert world.till.open["transaction-1"] == [("tea", 3)]
        assert (await world.done("commit", "commit", tx=tx)).replayed is False
        assert (await world.done("commit", "commit", tx=tx)).replayed is True
        assert [tool for tool, _ in world.till.heard] == ["add", "commit"]


@requirement("EXE-8")
async def test_a_session_that_is_left_alone_is_rolled_back(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path, idle_s=60.0) as world:
        tx = await world.begun()
        await world.done("add", "one", tx=tx, name="tea", amount=3)
        await world.clock.advance(50.0)
        await world.done("total", tx=tx)  # reading is working in it
        await world.clock.advance(50.0)
        await world.gateway.tidy()
        assert await world.state(tx) is SessionState.OPEN
        await world.clock.advance(11.0)
        late = await world.call("commit", "commit", tx=tx)
        assert late.code is Code.STALE_STATE
        assert "was left alone for more than 60 s" in (late.message or "")
        await world.gateway.tidy()
        assert await world.state(tx) is SessionState.ROLLED_BACK
        assert (world.till.entries, world.till.open) == ({}, {})
        assert (await world.call("add", "one", tx=tx, name="tea", amount=3)).code is Code.CANCELLED


@requirement("EXE-8")
async def test_nobody_begins_what_could_not_be_ended(tmp_path: Path) -> None:
    for missing in ("commit", "rollback"):
        async with opened("memory", tmp_path, without=[missing]) as world:
            seen = await world.call("begin", "begin")
            assert seen.code is Code.TOOL_UNAVAILABLE
            assert f"has the role '{missing}'" in (seen.message or "")
            assert world.till.open == {}
            assert [one for one in world.gateway.findings() if f"no tool has the role '{missing}'" in one]
