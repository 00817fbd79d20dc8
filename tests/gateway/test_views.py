"""What do people see of the calls that went through a gateway, and who sees what?"""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast import Effect, Floor, Gateway, NoEffect, Principal, Undo, testing, tool
from holdfast import config as configuration
from holdfast.gateway.auditing import DAY_S
from holdfast.gateway.views import MOST_SLOTS, SWEEP, Slot
from holdfast.model.bounds import Bounds
from holdfast.model.errors import Forbidden, HoldfastError, StoreError
from holdfast.model.observation import Status
from holdfast.model.view import CallRow, Wanted
from holdfast.records.checkpoint import CheckpointFile, Notary
from holdfast.records.note import kept_key
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock
from holdfast.upstreams.function import FunctionUpstream
from tests.requirements import requirement

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
BEN = Principal(user="ben", agent="bot", scopes=frozenset({"**"}), trust=60)
OLGA = Principal(user="olga", roles=frozenset({"operator"}), scopes=frozenset({"**"}))
ELSEWHERE = Principal(tenant="acme", user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
PEOPLE = {"auth": {"people": {"olga": {"roles": ["operator"]}, "ana": {}, "ben": {}}}}
WRITE: dict[str, Any] = {
    "effect": Effect.MEDIUM_RISK_WRITE,
    "undo": Undo.EXACT,
    "manifest": [("orders", "UPDATE", "order")],
    "idempotency": "none",
}


@tool(effect=Effect.READ_ONLY)
async def look(order: str) -> str:
    """Look at an order."""
    return order


@tool(**WRITE)
async def change(order: str) -> str:
    """Change an order."""
    if order == "none":
        raise NoEffect("there is no such order")
    if order == "torn":
        raise ConnectionError("the line is dead")
    return order


@tool(**WRITE, floor=Floor.OPERATOR)
async def refund(order: str) -> str:
    """Pay an order back."""
    return order


TOOLS = (look, change, refund)


async def rows(gateway: Gateway, by: Principal = OLGA, **wanted: Any) -> list[CallRow]:
    await gateway.views.fresh()
    return list((await gateway.views.calls(by, Wanted(**wanted))).rows)


async def shown(gateway: Gateway, call_id: str, by: Principal = OLGA) -> tuple[str, str]:
    await gateway.views.fresh()
    row = await gateway.views.call(by, call_id)
    assert row is not None
    return row.status, row.code


@requirement("PPL-2")
async def test_calls_are_shown_as_their_callers_were_answered() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        read = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        done = await gateway.call("test.change", {"order": "o-1"}, principal=ANA, key="k-1")
        again = await gateway.call("test.change", {"order": "o-1"}, principal=ANA, key="k-1")
        failed = await gateway.call("test.change", {"order": "none"}, principal=ANA, key="k-2")
        broken = await gateway.call("test.look", {"order": 7}, principal=ANA)
        absent = await gateway.call("test.nope", {}, principal=ANA)
        for answer in (read, done, failed, broken, absent):
            assert await shown(gateway, answer.call_id) == (answer.status, answer.code or "")
        assert again.call_id == done.call_id
        listed = await rows(gateway)
        assert [row.call_id for row in listed] == sorted((row.call_id for row in listed), reverse=True)
        assert [row.replayed for row in listed if row.call_id == done.call_id] == [True]
        assert {row.tool for row in listed} == {"test.look", "test.change", "test.nope"}


@requirement("PPL-2")
async def test_a_held_call_is_shown_through_to_its_end() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        held = await gateway.call("test.refund", {"order": "o-1"}, principal=ANA, key="k-1")
        assert held.approval is not None
        assert await shown(gateway, held.call_id) == ("held", "APPROVAL_REQUIRED")
        await gateway.decide(OLGA, held.approval.id, True)
        done = await gateway.call("test.refund", {"order": "o-1"}, principal=ANA, key="k-1")
        assert (done.status, done.call_id) == (Status.DONE, held.call_id)
        assert await shown(gateway, held.call_id) == ("done", "")
        denied = await gateway.call("test.refund", {"order": "o-2"}, principal=ANA, key="k-2")
        assert denied.approval is not None
        await gateway.decide(OLGA, denied.approval.id, False)
        assert await shown(gateway, denied.call_id) == ("refused", "APPROVAL_DENIED")
        dropped = await gateway.call("test.refund", {"order": "o-3"}, principal=ANA, key="k-3")
        assert await gateway.cancel(ANA, dropped.call_id) == "cancelled"
        assert await shown(gateway, dropped.call_id) == ("refused", "CANCELLED")


@requirement("PPL-2")
async def test_an_unknown_outcome_is_shown_as_that_until_somebody_settles_it() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        torn = await gateway.call("test.change", {"order": "torn"}, principal=ANA, key="k-1")
        assert await shown(gateway, torn.call_id) == ("unknown", "OUTCOME_UNKNOWN")
        assert [row.call_id for row in await rows(gateway, status="unknown")] == [torn.call_id]
        settled = await gateway.settle(OLGA, torn.call_id, "committed", "it is in the books")
        assert await shown(gateway, torn.call_id) == (settled.status, "")
        assert await rows(gateway, status="unknown") == []


@requirement("PPL-2", "AUT-6")
async def test_an_operator_sees_the_tenants_calls_and_others_their_own() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        mine = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        other = await gateway.call("test.look", {"order": "o-1"}, principal=BEN)
        foreign = await gateway.call("test.look", {"order": "o-1"}, principal=ELSEWHERE)
        views = gateway.views
        assert [row.call_id for row in await rows(gateway)] == [other.call_id, mine.call_id]
        assert [row.call_id for row in await rows(gateway, ANA)] == [mine.call_id]
        assert await rows(gateway, ANA, caller="ben") == []
        assert [row.call_id for row in await rows(gateway, ELSEWHERE)] == [foreign.call_id]
        assert await views.call(ANA, mine.call_id) is not None
        assert await views.call(ANA, other.call_id) is None
        assert await views.call(OLGA, foreign.call_id) is None
        assert [(use.tool, use.calls) for use in await views.by_tool(OLGA, 0)] == [("test.look", 2)]
        assert [(use.tool, use.calls) for use in await views.by_tool(ANA, 0)] == [("test.look", 1)]
        now = 1_800_000_000.0
        assert sum(slot.calls for slot in await views.traffic(OLGA, now, now + 60, 60)) == 2
        assert sum(slot.calls for slot in await views.traffic(BEN, now, now + 60, 60)) == 1


@requirement("PPL-2", "AUT-2")
async def test_what_was_delegated_sees_no_further_back_than_it_reaches_forward() -> None:
    narrow = replace(ANA, bounds=Bounds(tools=frozenset({"test.look"})))
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        look = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        change = await gateway.call("test.change", {"order": "o-1"}, principal=ANA, key="k-1")
        await gateway.call("test.look", {"order": "o-1"}, principal=replace(ANA, agent="other"))
        assert [row.call_id for row in await rows(gateway, narrow)] == [look.call_id]
        assert await rows(gateway, narrow, agent="other") == []
        assert await gateway.views.call(narrow, change.call_id) is None
        with pytest.raises(Forbidden):
            await gateway.views.by_tool(narrow, 0)


@requirement("PPL-2")
async def test_a_page_says_whether_there_is_another() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        for _ in range(5):
            await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        await gateway.views.fresh()
        first = await gateway.views.calls(OLGA, Wanted(limit=3))
        rest = await gateway.views.calls(OLGA, Wanted(limit=3, before=first.rows[-1].call_id))
        assert (len(first.rows), first.more) == (3, True)
        assert (len(rest.rows), rest.more) == (2, False)
        assert len((await gateway.views.calls(OLGA, Wanted(limit=0))).rows) == 1
        later = await gateway.views.calls(OLGA, Wanted(after=rest.rows[-1].call_id))
        assert [row.call_id for row in later.rows] == sorted(
            row.call_id for row in (*first.rows, *rest.rows)
        )[1:]


@requirement("PPL-2")
async def test_traffic_has_a_slot_for_every_step_with_what_ran_and_how_long_it_took() -> None:
    clock = ManualClock()
    async with testing.gateway(*TOOLS, config=PEOPLE, clock=clock) as gateway:
        start = clock.now()
        await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        await gateway.call("test.change", {"order": "none"}, principal=ANA, key="k-1")
        await clock.advance(120)
        await gateway.call("test.look", {"order": 7}, principal=ANA)
        await gateway.call("test.refund", {"order": "o-1"}, principal=ANA, key="k-2")
        await gateway.views.fresh()
        slots = await gateway.views.traffic(OLGA, start, clock.now() + 1, 60)
        counted = [(slot.at - start, slot.calls, slot.failed, slot.refused, slot.held) for slot in slots]
        assert counted == [(0, 2, 1, 0, 0), (60, 0, 0, 0, 0), (120, 2, 0, 1, 1)]
        assert slots[1] == Slot(start + 60, 0, 0, 0, 0, None, None)
        assert slots[0].p50_ms is not None
        assert slots[2].p95_ms is None
        with pytest.raises(HoldfastError, match=f"at most {MOST_SLOTS}"):
            await gateway.views.traffic(OLGA, 0, clock.now(), 60)


@requirement("PPL-2")
async def test_a_sweep_takes_in_a_bounded_number_of_records() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        for _ in range(SWEEP // 2 + 10):
            await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        await gateway._auditing.tidy()
        assert await gateway.views.tend() == SWEEP
        assert await gateway.views.tend() == 20
        assert await gateway.views.tend() == 0


@requirement("PPL-2")
async def test_housekeeping_keeps_the_view_up_without_anybody_looking() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        done = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
        await gateway.tidy()
        assert await gateway.views.call(OLGA, done.call_id) is not None


class Away:
    """A view whose store does not answer."""

    async def keep_up(self, most: int) -> int:
        raise StoreError("the disk is full")

    catch_up = keep_up


@requirement("PPL-2")
async def test_calls_and_sweeps_go_on_while_the_view_cannot_be_kept(caplog: pytest.LogCaptureFixture) -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        gateway.views._kept, kept = Away(), gateway.views._kept  # type: ignore[assignment]
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            done = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
            await gateway.tidy()
            await gateway.tidy()
            await gateway.views.fresh()
        assert caplog.messages == ["views: calls are not shown for now: the disk is full"]
        gateway.views._kept = kept
        assert await shown(gateway, done.call_id) == ("done", "")


@requirement("PPL-2", "AUD-4")
async def test_what_the_log_drops_the_view_drops(tmp_path: Path) -> None:
    clock = ManualClock()
    config = configuration.parse({**PEOPLE, "audit": {"retention_days": 30}}, folder=tmp_path)
    signs = Notary(kept_key(tmp_path / "key"), CheckpointFile(tmp_path / "checkpoints"))
    gateway = Gateway.assemble(
        config,
        MemoryStore(clock),
        {"test": FunctionUpstream(TOOLS)},
        clock=clock,
        ids=CountingIds(),
        notary=signs,
    )
    old = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
    await gateway.tidy()
    await clock.advance(31 * DAY_S)
    new = await gateway.call("test.look", {"order": "o-1"}, principal=ANA)
    assert [row.call_id for row in await rows(gateway)] == [new.call_id, old.call_id]
    await gateway.tidy(forget=True)
    assert [row.call_id for row in await rows(gateway)] == [new.call_id]
    await gateway.close()


@requirement("PPL-2")
async def test_many_may_look_at_once() -> None:
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        for number in range(20):
            await gateway.call("test.change", {"order": "o-1"}, principal=ANA, key=f"k-{number}")
        await asyncio.gather(*(gateway.views.fresh() for _ in range(10)))
        assert [(use.tool, use.calls) for use in await gateway.views.by_tool(OLGA, 0)] == [
            ("test.change", 20)
        ]


@requirement("PPL-2", "VAL-2")
async def test_a_hidden_tool_looks_in_the_list_like_one_that_is_not_there() -> None:
    @tool(effect=Effect.READ_ONLY, scopes=["vault:read"])
    async def peek(order: str) -> str:
        """Peek into the vault."""
        return order

    narrow = replace(ANA, scopes=frozenset({"orders:read"}))
    same: dict[str, Any] = {"call_id": "", "tool": "", "at": 0.0, "updated_at": 0.0}
    async with testing.gateway(*TOOLS, peek, config=PEOPLE) as gateway:
        hidden = await gateway.call("test.peek", {"order": "o-1"}, principal=narrow)
        missing = await gateway.call("test.nope", {"order": "o-1"}, principal=narrow)
        assert hidden.code == missing.code == "TOOL_NOT_FOUND"
        both = [missing.call_id, hidden.call_id]
        one, other = await rows(gateway, narrow)
        assert one._replace(**same) == other._replace(**same)
        assert await gateway.views.call(narrow, hidden.call_id) == other
        assert [row.call_id for row in await rows(gateway, narrow, code="TOOL_NOT_FOUND")] == both
        assert await rows(gateway, narrow, code="PERMISSION_DENIED") == []
        assert await rows(gateway, narrow, effect="read_only") == []
        assert await gateway.views.by_tool(narrow, 0) == []
        assert [row.call_id for row in await rows(gateway, code="PERMISSION_DENIED")] == [hidden.call_id]
        assert [use.tool for use in await gateway.views.by_tool(OLGA, 0)] == ["test.peek"]


@requirement("PPL-2", "APR-2")
async def test_an_alarm_is_shown_to_those_who_may_read_the_log_and_to_nobody_else() -> None:
    narrow = replace(ANA, scopes=frozenset({"orders:read"}))
    async with testing.gateway(*TOOLS, config=PEOPLE) as gateway:
        held = await gateway.call("test.refund", {"order": "o-1"}, principal=narrow, key="k-1")
        assert held.approval is not None
        with pytest.raises(Forbidden):
            await gateway.decide(replace(OLGA, user="ana"), held.approval.id, True)
        assert [row.alarms for row in await rows(gateway)] == [1]
        assert [row.alarms for row in await rows(gateway, narrow)] == [0]
        assert [len(await rows(gateway, by, alarmed=True)) for by in (OLGA, narrow)] == [1, 0]
