"""Is a call shown as it stands, counted once, and to nobody else's tenant? On every store."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.call import Principal
from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.stage import UseGrant
from holdfast.model.view import RUNNING, Wanted
from holdfast.model.vocabulary import State
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, durable, place, rows
from tests.stores.calls import ALICE, BOB, OTHER_TENANT, make_call, observed
from tests.stores.viewed import ALWAYS, Viewed, one_of_each, viewed


@pytest.fixture(params=ALL)
async def view(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Viewed]:
    async with viewed(request.param, tmp_path) as opened:
        yield opened


# --- one call's life --------------------------------------------------------------------------------------


@requirement("PPL-2")
async def test_a_call_is_running_until_its_outcome_is_recorded(view: Viewed) -> None:
    call = await view.claim(view.call("k", task="t-1"))
    row = await view.row(call)
    assert (row.status, row.code, row.latency_ms, row.attempts) == (RUNNING, "", None, 0)
    assert (row.tool, row.version, row.caller, row.agent) == ("bank.pay", "1.0.0", "alice", "bot")
    assert (row.effect, row.task, row.upstream) == ("write_reversible", "t-1", "bank")
    assert await view.counted() == {}
    await view.clock.advance(3)
    await view.end(call, Status.DONE, State.COMMITTED)
    row = await view.row(call)
    assert (row.status, row.code, row.latency_ms, row.attempts) == ("done", "", 8.0, 1)
    assert row.updated_at == row.at + 3
    assert await view.counted() == {"done": 1}


@requirement("PPL-2")
async def test_a_failure_that_is_tried_again_is_one_call_and_two_answers(view: Viewed) -> None:
    call = await view.claim(view.call("k"))
    await view.end(call, Status.FAILED, State.NO_EFFECT, Code.TIMEOUT)
    assert await view.stands(call) == ("failed", "TIMEOUT")
    again = await view.claim(view.call("k"))
    assert await view.stands(again) == (RUNNING, "")
    await view.end(again, Status.DONE, State.COMMITTED)
    assert again.id == call.id
    assert await view.stands(call) == ("done", "")
    assert await view.counted() == {"failed": 1, "done": 1}


@requirement("PPL-2")
async def test_a_refusal_is_a_line_of_its_own_and_changes_nothing_under_a_key_that_is_taken(
    view: Viewed,
) -> None:
    done = await view.done("k")
    other = view.call("k")
    other.id = done.id  # as `resolve` names a call whose key has an operation
    await view.refuse(other, Code.KEY_MISMATCH)
    alone = await view.refuse(view.call("k-2"))
    assert await view.stands(done) == ("done", "")
    assert await view.stands(alone) == ("refused", "POLICY_VIOLATION")
    assert await view.counted() == {"done": 1, "refused": 2}


@requirement("PPL-2")
async def test_a_replay_marks_the_call_it_repeats_and_is_counted_as_what_it_is(view: Viewed) -> None:
    done = await view.done("k")
    again = view.call("k")
    again.id = done.id
    told = replace(observed(again, latency_ms=8.0), replayed=True)
    await view.store.ledger.refuse(again, told, None)
    row = await view.row(done)
    assert (row.status, row.replayed) == ("done", True)
    assert await view.counted() == {"done": 1, "replayed": 1}


@requirement("PPL-2")
async def test_a_held_call_stays_held_until_it_runs(view: Viewed) -> None:
    call = view.call("k")
    asked = await view.hold(call)
    assert await view.stands(call) == ("held", "APPROVAL_REQUIRED")
    await view.answer(asked, True)
    early = view.call("k")
    early.id = call.id
    await view.refuse(early, Code.RATE_LIMITED)  # approved, and still turned away at another gate
    assert await view.stands(call) == ("held", "APPROVAL_REQUIRED")
    released = make_call(view.clock, "k", stage=[("approval", UseGrant(asked))])
    await view.claim(released)
    assert await view.stands(call) == (RUNNING, "")
    await view.end(released, Status.DONE, State.COMMITTED)
    row = await view.row(call)
    assert (row.status, row.approval_id) == ("done", asked)
    assert await view.counted() == {"held": 1, "refused": 1, "done": 1}


@requirement("PPL-2")
async def test_a_denied_call_is_refused_and_a_cancelled_one_too(view: Viewed) -> None:
    denied, cancelled = view.call("k-1"), view.call("k-2")
    await view.answer(await view.hold(denied), False)
    await view.hold(cancelled)
    await view.settle(cancelled, State.FAILED_FINAL, by="alice")
    assert await view.stands(denied) == ("refused", "APPROVAL_DENIED")
    assert await view.stands(cancelled) == ("refused", "CANCELLED")
    assert await view.counted() == {"held": 2}


@requirement("PPL-2")
@pytest.mark.parametrize(
    ("settled", "stands"),
    [(State.COMMITTED, ("done", "")), (State.NO_EFFECT, ("failed", "TIMEOUT"))],
)
async def test_a_settlement_says_how_an_unknown_outcome_ended_and_counts_nothing_again(
    view: Viewed, settled: State, stands: tuple[str, str]
) -> None:
    call = await view.claim(view.call("k"))
    await view.end(call, Status.UNKNOWN, State.UNKNOWN, Code.OUTCOME_UNKNOWN)
    assert await view.stands(call) == ("unknown", "OUTCOME_UNKNOWN")
    await view.settle(call, settled)
    assert await view.stands(call) == stands
    assert await view.counted() == {"unknown": 1}


@requirement("PPL-2")
async def test_what_a_dead_worker_left_is_counted_when_it_is_given_up(view: Viewed) -> None:
    call = await view.claim(view.call("k"))
    await view.settle(call, State.UNKNOWN, by="sweep")
    assert await view.stands(call) == ("unknown", "OUTCOME_UNKNOWN")
    assert await view.counted() == {"unknown": 1}
    await view.end(call, Status.DONE, State.COMMITTED)  # it was merely slow
    assert await view.stands(call) == ("done", "")
    assert await view.counted() == {"unknown": 1}


@requirement("PPL-2")
async def test_an_effect_that_a_person_denied_is_shown_as_the_effect_it_was(view: Viewed) -> None:
    call = await view.claim(view.call("k"))
    await view.settle(call, State.UNKNOWN, by="sweep")
    await view.settle(call, State.NO_EFFECT)
    assert await view.stands(call) == ("failed", "TIMEOUT")
    await view.end(call, Status.DONE, State.COMMITTED)
    assert await view.stands(call) == ("done", "")


@requirement("PPL-2")
async def test_a_call_of_no_tool_is_shown_by_the_name_it_used_and_counted_by_none(view: Viewed) -> None:
    call = view.call(None)
    call.proposal = call.proposal._replace(tool="bank.\0" + "nope" * 200)
    unknown = observed(call, Status.REFUSED, Code.TOOL_NOT_FOUND)
    del call.tool
    await view.store.ledger.refuse(call, unknown, Code.TOOL_NOT_FOUND)
    row = await view.row(call)
    assert (row.status, row.code, row.effect) == ("refused", "TOOL_NOT_FOUND", "")
    assert row.tool.startswith("bank.\N{REPLACEMENT CHARACTER}nope")
    assert len(row.tool.encode()) <= 260
    [counted] = await view.store.views.traffic("default", 0, inf)
    assert (counted.tool, counted.calls) == ("", 1)


@requirement("PPL-2")
async def test_alarms_are_on_the_line_of_the_call_that_raised_them(view: Viewed) -> None:
    call = view.call("k")
    call.alarms += ["one thing", "and another"]
    await view.refuse(call)
    await view.done("k-2")
    assert (await view.row(call)).alarms == 2
    [found] = await view.store.views.calls("default", Wanted(alarmed=True))
    assert found.call_id == call.id


@requirement("PPL-2")
async def test_what_the_gateway_reads_for_itself_is_shown_and_not_counted(view: Viewed) -> None:
    reader = Principal(user="holdfast", agent="reader", system=True)
    await view.read(by=reader)
    await view.read()
    await view.catch_up()
    assert [row.caller for row in await view.store.views.calls("default", ALWAYS)] == ["alice", "holdfast"]
    assert await view.counted() == {"done": 1}


# --- what it costs ----------------------------------------------------------------------------------------


def outcome(call_id: str, **said: Any) -> str:
    told: dict[str, Any] = {
        "tool": "bank.pay@1.0.0",
        "caller": "alice",
        "agent": "bot",
        "mutation_class": "read_only",
    }
    told |= {"contract_digest": "d", "status": "done", "error_code": None, "latency_ms": 3.0, "attempts": 1}
    return json.dumps(told | {"nonce": f"n-{call_id}"} | said)


@requirement("PPL-2")
async def test_costs_are_added_up_by_the_day_and_by_what_for(view: Viewed) -> None:
    cost = {"currency": "USD", "parts": {"external_api": 250, "token": 50}}
    for number in range(3):
        await view.record(f"call_{number}", "outcome", outcome(f"{number}", cost=cost, task="t-1"))
    await view.record(
        "call_2", "outcome", outcome("2", cost=cost, task="t-1")
    )  # a late word on the same attempt
    await view.record("call_3", "outcome", outcome("3"))
    await view.catch_up()
    day = int(view.clock.now() // 86_400)
    spent = await view.store.views.spending("default", view.clock.now() - 1, view.clock.now() + 1)
    who = (day, "t-1", "bank.pay", "alice")
    assert [tuple(one) for one in spent] == [
        (*who, "external_api", "USD", 3, 750),
        (*who, "token", "USD", 3, 150),
    ]
    assert [row.cost for row in await view.store.views.calls("default", ALWAYS)] == [0, 300, 300, 300]
    assert await view.counted() == {"done": 4}


@requirement("PPL-2")
@pytest.mark.parametrize(
    "cost",
    [7, {}, {"parts": []}, {"parts": {"token": -1}}, {"parts": {"token": True}}, {"parts": {"x": 2**70}}],
)
async def test_a_cost_that_is_none_is_left_out(view: Viewed, cost: object) -> None:
    await view.record("call_1", "outcome", outcome("1", cost=cost))
    await view.catch_up()
    assert await view.store.views.spending("default", 0, inf) == []
    assert await view.counted() == {"done": 1}


@requirement("PPL-2")
async def test_a_record_that_cannot_be_read_is_skipped_and_said(
    view: Viewed, caplog: pytest.LogCaptureFixture
) -> None:
    await view.record("call_1", "outcome", "not JSON")
    await view.record("call_2", "outcome", "[1]")
    await view.record("call_3", "outcome", json.dumps({"tool": 7, "latency_ms": "soon", "attempts": -1}))
    done = await view.done("k")
    with caplog.at_level(logging.ERROR):
        assert await view.stands(done) == ("done", "")
    assert sum("cannot be read" in message for message in caplog.messages) == 2
    assert await view.store.views.call("default", "call_1") is None


# --- finding calls ----------------------------------------------------------------------------------------


async def found(view: Viewed, **wanted: Any) -> list[str]:
    return [row.call_id for row in await view.store.views.calls("default", Wanted(**wanted))]


@requirement("PPL-2")
async def test_each_thing_that_can_be_asked_for_narrows_the_list(view: Viewed) -> None:
    pay = await view.done("k-1", task="t-1")
    await view.clock.advance(60)
    since = view.clock.now()
    look = await view.read(by=BOB)
    refused = await view.refuse(view.call("k-2"))
    await view.catch_up()
    assert await found(view) == [refused.id, look.id, pay.id]
    assert await found(view, tool="bank.look") == [look.id]
    assert await found(view, tool="bank.*") == [refused.id, look.id, pay.id]
    assert await found(view, tool="ban.*") == []
    assert await found(view, caller="bob") == [look.id]
    assert await found(view, agent="bot", caller="alice") == [refused.id, pay.id]
    assert await found(view, status="done") == [look.id, pay.id]
    assert await found(view, status="refused", tool="bank.pay") == [refused.id]
    assert await found(view, code="POLICY_VIOLATION") == [refused.id]
    assert await found(view, code="POLICY_VIOLATION", status="done") == []
    assert await found(view, effect="read_only") == [look.id]
    assert await found(view, effect="write_reversible", status="done") == [pay.id]
    assert await found(view, task="t-1") == [pay.id]
    assert await found(view, alarmed=True) == []
    assert await found(view, since=since) == [refused.id, look.id]
    assert await found(view, until=since) == [pay.id]
    assert await found(view, since=since, until=since) == []


@requirement("PPL-2")
async def test_pages_follow_each_other_without_a_gap(view: Viewed) -> None:
    made = []
    for number in range(23):
        made.append((await view.done(f"k-{number}", by=(ALICE, BOB)[number % 2])).id)
        if number % 5 == 0:
            await view.clock.advance(1)
    await view.catch_up()
    for wanted in (Wanted(limit=4), Wanted(limit=4, caller="bob"), Wanted(limit=3, until=view.clock.now())):
        seen: list[str] = []
        page = await view.store.views.calls("default", wanted)
        while page:
            seen += [row.call_id for row in page]
            page = await view.store.views.calls("default", replace(wanted, before=seen[-1]))
        of = made if wanted.caller is None else made[1::2]
        assert seen == (list(reversed(of)) if wanted.until is None else list(reversed(made[:21])))
    assert await found(view, before="nobody knows it") == []


@requirement("PPL-2")
async def test_what_came_later_is_told_oldest_first_and_each_call_once(view: Viewed) -> None:
    first = await view.done("k-1")
    await view.catch_up()
    later = [(await view.done(f"k-{number}")).id for number in range(2, 7)]
    await view.catch_up()
    assert await found(view, after=first.id) == later
    assert await found(view, after=first.id, limit=2) == later[:2]
    assert await found(view, after=later[1], status="done") == later[2:]
    assert await found(view, after=later[-1]) == []
    assert await found(view, after="nobody knows it") == [first.id, *later]


@requirement("PPL-2", "AUT-6")
async def test_another_tenants_calls_are_never_seen(view: Viewed) -> None:
    ours, theirs = await view.done("k"), await view.done("k", by=OTHER_TENANT)
    await view.catch_up()
    views = view.store.views
    for tenant, own, other in (("default", ours, theirs), ("acme", theirs, ours)):
        assert [row.call_id for row in await views.calls(tenant, ALWAYS)] == [own.id]
        assert await views.call(tenant, other.id) is None
        assert [row.call_id for row in await views.calls(tenant, Wanted(before=other.id))] == []
        assert sum(one.calls for one in await views.traffic(tenant, 0, inf)) == 1
        assert sum(one.calls for one in await views.by_tool(tenant, 0)) == 1
    assert sum(one.calls for one in await views.traffic("*", 0, inf)) == 2


@requirement("PPL-2")
async def test_figures_of_any_stretch_are_those_of_its_minutes(view: Viewed) -> None:
    for number in range(40):
        await view.done(f"k-{number}", by=(ALICE, BOB)[number % 2])
        await view.read()
        await view.clock.advance(977)
    await view.catch_up()
    views, start = view.store.views, view.clock.now() // 86_400 * 86_400 - 86_400
    for step_s in (60, 600, 3_600, 7_200, 86_400):
        slots = await views.by_step("default", start, inf, step_s)
        assert sum(one.calls for one in slots) == 80
        assert all(int(one.of) % step_s == 0 for one in slots)
        assert all(int(one.of) <= int(two.of) for one, two in pairwise(slots))
        mine = await views.by_step("default", start, inf, step_s, "bob")
        assert sum(one.calls for one in mine) == 20
    for since in (0.0, start + 86_400 + 5_000, view.clock.now() - 5_000):
        kept = await views.traffic("default", since, inf)
        for tool in ("bank.pay", "bank.look"):
            whole = sum(one.calls for one in kept if one.tool == tool)
            assert sum(one.calls for one in await views.by_tool("default", since) if one.of == tool) == whole
    assert sum(one.calls for one in await views.by_tool("default", 0, "bob")) == 20


# --- made again, made together, dropped -------------------------------------------------------------------


@requirement("PPL-2")
@pytest.mark.parametrize("kind", DURABLE)
async def test_made_again_from_nothing_it_is_the_same(kind: str, tmp_path: Path) -> None:
    async with viewed(kind, tmp_path) as view:
        await one_of_each(view)
        while await view.catch_up(3):
            pass
        before = [await view.everything(tenant) for tenant in ("default", "acme")]
        assert len(before[0][0]) == 9
        for table in (
            "call_view",
            "traffic",
            "traffic_hour",
            "traffic_day",
            "spending",
            "spending_day",
            "view_mark",
        ):
            rows(kind, tmp_path, f"DELETE FROM {{}}{table} WHERE tenant = tenant")
        assert await view.everything() == ([], [], [])
        await view.catch_up()
        assert [await view.everything(tenant) for tenant in ("default", "acme")] == before


@requirement("PPL-2", "PPL-5")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_view_of_a_longer_log_than_there_is_is_made_again(kind: str, tmp_path: Path) -> None:
    async with viewed(kind, tmp_path) as view:
        await one_of_each(view)
        await view.catch_up()
        before = await view.everything()
        rows(kind, tmp_path, "UPDATE {}view_mark SET leaf = leaf + 1000 WHERE tenant = '*'")
        await view.catch_up()
        assert await view.everything() == before


@requirement("PPL-2", "PPL-6")
@pytest.mark.parametrize("kind", DURABLE)
async def test_processes_that_catch_up_at_the_same_time_count_nothing_twice(
    kind: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with (
        viewed(kind, tmp_path, clock) as view,
        durable(kind, tmp_path, clock) as second,
        durable(kind, tmp_path, clock) as third,
    ):
        for number in range(60):
            await view.done(f"k-{number}")
        await view.store.audit.sequence()
        stores = (view.store, second, third)
        await asyncio.gather(*(store.views.catch_up(7) for _ in range(9) for store in stores))
        await view.catch_up()
        assert await view.counted() == {"done": 60}
        assert sum(one.calls for one in await view.store.views.by_tool("default", 0)) == 60
        assert len(await view.store.views.calls("default", ALWAYS)) == 60


@requirement("PPL-2", "PPL-6")
@pytest.mark.parametrize("kind", DURABLE)
async def test_a_process_that_dies_between_two_batches_is_taken_over_where_it_was(
    kind: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with place(kind, tmp_path):
        async with durable(kind, tmp_path, clock) as first:
            view = Viewed(first, clock)
            for number in range(20):
                await view.done(f"k-{number}")
            assert await view.catch_up(11) == 11
        async with durable(kind, tmp_path, clock) as second:
            assert await Viewed(second, clock).catch_up() == 29
            assert await Viewed(second, clock).counted() == {"done": 20}


@requirement("PPL-2", "AUD-4")
async def test_what_is_pruned_is_forgotten_and_what_is_not_is_kept(view: Viewed) -> None:
    old, held = await view.done("k-1"), view.call("k-2")
    theirs = await view.done("k-3", by=OTHER_TENANT)
    await view.hold(held)
    await view.clock.advance(10 * 86_400)
    await view.settle(held, State.FAILED_FINAL)
    new = await view.done("k-4")
    await view.catch_up()
    before = view.clock.now() - 86_400
    assert await view.store.views.forget("default", before) == 1
    assert await view.store.views.call("default", old.id) is None
    assert [row.call_id for row in await view.store.views.calls("default", ALWAYS)] == [new.id, held.id]
    assert await view.counted() == {"done": 1}
    assert (await view.store.views.call("acme", theirs.id)) is not None


@requirement("PPL-2", "AUD-4")
async def test_records_that_are_pruned_before_they_were_seen_are_passed_over(view: Viewed) -> None:
    for number in range(100):
        await view.done(f"k-{number}")
    await view.clock.advance(10 * 86_400)
    new = await view.done("new")
    await view.store.audit.sequence()
    size, _ = await view.store.audit.head()
    assert await view.store.audit.prune("default", view.clock.now() - 86_400, size) == 200
    while await view.store.views.catch_up(30):
        pass
    assert [row.call_id for row in await view.store.views.calls("default", ALWAYS)] == [new.id]


@requirement("PPL-2")
async def test_only_one_of_several_processes_keeps_up(tmp_path: Path) -> None:
    class Follower:
        id = "w_follower"

        def alive(self, worker: str) -> bool:
            return True

        def leads(self) -> bool:
            return False

    clock = ManualClock()
    async with (
        viewed("sqlite", tmp_path, clock) as view,
        durable("sqlite", tmp_path, clock, workers=Follower()) as second,
    ):
        await view.done("k")
        await view.store.audit.sequence()
        assert await second.views.keep_up(100) == 0
        assert await view.store.views.keep_up(100) == 2
        assert await second.views.keep_up(100) == 0
