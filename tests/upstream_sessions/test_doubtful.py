"""What of a session that was begun and is not as it should be? And of one that nobody can end?"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Code, Effect, Status, tool
from holdfast.model.errors import NoEffect
from holdfast.model.upstream_session import SessionState
from tests.requirements import requirement
from tests.stored import ALL, DURABLE
from tests.upstream_sessions.till import ENTRY, Till, tools
from tests.upstream_sessions.world import ADA, OLGA, opened

stores = pytest.mark.parametrize("kind", ALL)
durable = pytest.mark.parametrize("kind", DURABLE)


def _checked(till: Till, holds: str) -> list[Any]:
    """The till's tools, with a `begin` whose effect is looked at afterwards."""

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        undo=holdfast.Undo.EXACT,
        manifest=ENTRY,
        idempotency="none",
        session={"name": "till", "role": "begin", "handle": "result.tx"},
        postconditions=[
            {
                "read": {"tool": "till.peek", "arguments": {}},
                "holds": holds,
                "message": "no transaction is open",
            }
        ],
    )
    async def begin() -> dict[str, Any]:
        """Begin to enter something."""
        return till.begin()

    @tool(effect=Effect.READ_ONLY)
    async def peek() -> dict[str, Any]:
        """How many transactions are open."""
        return {"open": len(till.open)}

    return [begin, peek, *[one for one in tools(till) if one.name != "begin"]]


@stores
@requirement("EXE-8")
async def test_a_session_whose_beginning_is_not_as_promised_is_rolled_back(kind: str, tmp_path: Path) -> None:
    till = Till()
    async with opened(kind, tmp_path, till, made=_checked(till, "state.open == 7")) as world:
        seen = await world.call("begin", "begin")
        assert (seen.status, seen.replayed) == (Status.FAILED, False)
        assert "no transaction is open" in (seen.message or "")
        assert "transaction-1" not in str(seen.to_dict())
        assert till.heard == [("rollback", "transaction-1")]
        assert till.open == {}
        again = await world.call("begin", "begin")
        assert "transaction-1" not in str(again.to_dict())


@durable
@requirement("EXE-8")
@requirement("PPL-5")
async def test_sessions_of_an_erased_tenant_keep_nobody_elses_open(kind: str, tmp_path: Path) -> None:
    hers = replace(ADA, tenant="acme")
    async with opened(kind, tmp_path, shared=True, idle_s=30.0) as world:
        await world.call("begin", "b-1", by=hers)
        done = await world.call("begin", "b-2", by=hers)
        await world.call("commit", "c-2", by=hers, tx=done.data["tx"])
        tx = await world.begun()
        await world.gateway.log.erase(OLGA, "acme")
        await world.clock.advance(60.0)
        for _ in range(3):
            await world.gateway.tidy()
            await world.clock.advance(6.0)
        assert await world.state(tx) is SessionState.ROLLED_BACK
        assert ("rollback", "transaction-3") in world.till.heard


@stores
@requirement("EXE-8")
async def test_what_cannot_be_rolled_back_is_tried_less_and_less_often(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path, shared=True, idle_s=30.0) as world:
        world.till.breaks["before rollback"] = NoEffect("not now", Code.DEPENDENCY_UNAVAILABLE)
        tx = await world.begun()
        for _ in range(400):
            await world.clock.advance(30.0)
            await world.gateway.tidy()
        tries = sum(what == "rollback" for what, _ in world.till.heard)
        assert 5 <= tries <= 100
        world.till.breaks.clear()
        await world.clock.advance(3600.0)
        await world.gateway.tidy()
        assert await world.state(tx) is SessionState.ROLLED_BACK


@stores
@requirement("EXE-8")
async def test_what_only_a_person_can_end_keeps_nobody_out(kind: str, tmp_path: Path) -> None:
    async with opened(kind, tmp_path, shared=True, idle_s=30.0) as world:
        lost = await world.begun("b-1")
        world.till.breaks["commit"] = ConnectionError("the line is dead")
        await world.call("commit", "c-1", tx=lost)
        assert await world.state(lost) is SessionState.UNKNOWN
        await world.clock.advance(1.0)
        idle = await world.begun("b-2")
        await world.clock.advance(31.0)
        fresh = await world.begun("b-3")
        kept = world.gateway.upstream_sessions._sessions
        assert [one.id for one in await kept.going_on(1)] == [idle]
        assert fresh not in [one.id for one in await kept.going_on(10)]
