"""Which operation may a call without a key take over? Every store gives the same answer; IDM-1."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.model.attendance import Attendance
from holdfast.model.call import Call, Principal
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import State
from holdfast.stores.attendance import HANDOVER_S
from holdfast.stores.sql.attendance import ALIKE
from holdfast.stores.sqlite.migrate import migrate, shipped
from tests.requirements import requirement
from tests.stores.calls import ALICE, BOB, OTHER_TENANT, PAY, PAY_2, make_call, make_tool, unnamed
from tests.stores.world import STORES, Surroundings, World

HERE = "w_test"


async def found(world: World, here: Attendance | None = None) -> str | None:
    """The id of what an equal call would take over."""
    operation = await world.ledger.alike(unnamed(make_call(world.clock, "r-new")), here or Attendance())
    return None if operation is None else operation.call_id


async def ended(world: World, state: State, key: str = "r-1") -> Call:
    call = unnamed(make_call(world.clock, key))
    await world.run(call, state)
    return call


@requirement("IDM-1")
async def test_who_waits_for_an_operation_is_on_it_from_its_first_hold_or_claim_on(world: World) -> None:
    claimed, held, named = (make_call(world.clock, key) for key in ("r-1", "r-2", "k"))
    await world.claim(unnamed(claimed))
    await world.approvals.ask(unnamed(held), {"operator": 1}, {})
    await world.claim(named)
    assert (await world.look(claimed)).attendant == HERE
    assert (await world.look(held)).attendant == HERE
    assert (await world.look(named)).attendant is None


@requirement("IDM-1")
async def test_a_claim_for_a_client_that_left_meanwhile_is_nobodys(world: World) -> None:
    call = unnamed(make_call(world.clock, "r-1"))
    call.waited_for = False
    await world.claim(call)
    assert (await world.look(call)).attendant == ""
    assert await found(world) == call.id


@requirement("IDM-1")
@pytest.mark.parametrize("state", [State.COMMITTED, State.FAILED_FINAL, State.NO_EFFECT])
async def test_what_ended_is_free_once_nobody_waits_for_it_here(world: World, state: State) -> None:
    call, here = await ended(world, state), Attendance()
    here.enter(call)
    assert await found(world, here) is None
    here.leave(call)
    assert await found(world, here) == call.id


@requirement("IDM-1")
@pytest.mark.parametrize(
    ("state", "free"), [(State.COMMITTED, False), (State.FAILED_FINAL, False), (State.NO_EFFECT, True)]
)
async def test_what_the_client_was_told_is_free_only_where_nothing_happened(
    world: World, state: State, free: bool
) -> None:
    call = await ended(world, state)
    await world.ledger.leave(call, told=True)
    assert await found(world) == (call.id if free else None)


@requirement("IDM-1")
async def test_what_was_told_of_an_earlier_attempt_is_not_the_last_word_on_a_later_one(world: World) -> None:
    first, second = await ended(world, State.NO_EFFECT), make_call(world.clock, "r-1")
    await world.run(second, State.COMMITTED)
    await world.ledger.leave(first, told=True)
    assert await found(world) == first.id


@requirement("IDM-1")
async def test_held_and_unknown_ones_are_free_whoever_waits(world: World) -> None:
    here, unknown = Attendance(), await ended(world, State.UNKNOWN)
    here.enter(unknown)
    assert await found(world, here) == unknown.id
    held = unnamed(make_call(world.clock, "r-2"))
    await world.clock.advance(1)
    await world.approvals.ask(held, {"operator": 1}, {})
    here.enter(held)
    assert await found(world, here) == held.id, "the newest of them"


@requirement("IDM-1")
async def test_a_running_one_is_free_once_its_client_or_its_worker_is_gone(world: World) -> None:
    left, here = unnamed(make_call(world.clock, "r-1")), Attendance()
    await world.claim(left)
    here.enter(left)
    assert await found(world, here) is None
    here.leave(left)
    await world.ledger.leave(left, told=False)
    assert (await world.look(left)).attendant == ""
    assert await found(world, here) == left.id
    assert await world.ledger.attend(await world.look(left))
    world.workers.dead.add(HERE)
    world.workers.id = "w_other"
    assert await found(world) == left.id


@requirement("IDM-1")
async def test_what_another_worker_serves_is_free_when_that_worker_is_dead_silent_or_stuck(
    tmp_path: Path,
) -> None:
    for name, open_store in STORES.items():
        around, folder = Surroundings(), tmp_path / name
        folder.mkdir()
        async with open_store(folder, around) as world:
            running = unnamed(make_call(world.clock, "r-1", seconds=5.0))
            await world.claim(running)
            around.workers.id = "w_other"
            assert await found(world) is None
            await world.clock.advance(60)  # beyond its lease
            assert await found(world) == running.id
            await world.end(running, State.COMMITTED)
            assert await found(world) is None
            await world.clock.advance(HANDOVER_S)
            assert await found(world) == running.id


@requirement("IDM-1", "AUT-6")
@pytest.mark.parametrize(
    ("principal", "tool", "amount"),
    [
        (BOB, PAY, 7),
        (OTHER_TENANT, PAY, 7),
        (ALICE, PAY_2, 7),
        (ALICE, make_tool("refund", PAY.contract.effect), 7),
        (ALICE, PAY, 8),
    ],
)
async def test_only_an_equal_operation_of_the_same_caller_is_found(
    world: World, principal: Principal, tool: Tool, amount: int
) -> None:
    call = make_call(world.clock, "r-1", principal=principal, tool=tool, arguments={"amount": amount})
    await world.run(unnamed(call), State.COMMITTED)
    assert await found(world) is None
    equal = await ended(world, State.COMMITTED, "r-2")
    assert await found(world) == equal.id


@requirement("IDM-1")
async def test_an_operation_with_a_name_is_never_found(world: World) -> None:
    for key, state in (("k-1", State.COMMITTED), ("k-2", State.UNKNOWN), ("k-3", State.NO_EFFECT)):
        await world.run(make_call(world.clock, key), state)
    await world.approvals.ask(make_call(world.clock, "k-4"), {"operator": 1}, {})
    assert await found(world) is None


@requirement("IDM-1", "IDM-6", "IDM-8")
async def test_it_is_found_within_its_window_and_a_jump_of_the_clock_is_no_time(world: World) -> None:
    call = await ended(world, State.COMMITTED)
    world.clock.jump(9000)
    assert await found(world) == call.id
    await world.clock.advance(3601)
    assert await found(world) is None
    await world.ledger.forget()
    assert (await world.look(call)).attendant is None


@requirement("IDM-1", "IDM-6")
async def test_after_a_restart_of_the_machine_its_window_goes_by_the_wall_clock(world: World) -> None:
    call = await ended(world, State.COMMITTED)
    world.boot.restart()
    world.workers.id = "w_other"
    assert await found(world) == call.id
    world.clock.jump(3601)
    assert await found(world) is None


@requirement("IDM-1", "IDM-4")
async def test_of_those_who_want_to_take_one_over_one_does(world: World) -> None:
    call = await ended(world, State.COMMITTED)
    await world.ledger.leave(call, told=False)
    seen = await world.look(call)
    world.workers.id = "w_other"
    assert await world.ledger.attend(seen)
    world.workers.id = HERE
    assert not await world.ledger.attend(seen)
    assert (await world.look(call)).attendant == "w_other"


@requirement("IDM-1")
async def test_who_leaves_does_not_take_it_from_the_next_worker(world: World) -> None:
    call = await ended(world, State.UNKNOWN)
    world.workers.id = "w_other"
    assert await world.ledger.attend(await world.look(call))
    world.workers.id = HERE
    await world.ledger.leave(call, told=False)
    assert (await world.look(call)).attendant == "w_other"


@requirement("IDM-1")
async def test_a_claim_in_nobodys_name_leaves_it_to_whom_it_was_left(world: World) -> None:
    held = unnamed(make_call(world.clock, "r-1"))
    await world.approvals.ask(held, {"operator": 1}, {})
    await world.ledger.leave(held, told=False)
    released = unnamed(make_call(world.clock, "r-1"))
    released.waited_for = False
    await world.run(released, State.COMMITTED)
    assert (await world.look(held)).attendant == ""
    assert await found(world) == held.id


@requirement("IDM-1")
def test_looking_for_an_equal_operation_reads_only_those_that_somebody_may_come_for(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {ALIKE}", ("t", "p", "x", "f", "b", 1.0, 1.0)
        ).fetchall()
    assert any(
        "operation_awaited (tenant=? AND principal=? AND tool=? AND fingerprint=?)" in row[3] for row in plan
    )


@requirement("IDM-1", "DEC-4")
def test_operations_from_before_are_nobodys_to_take_over(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    migrate(path, {number: step for number, step in shipped().items() if number < 5})
    columns = (
        "tenant principal tool key call_id version contract_digest fingerprint state nonce owner key_source"
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"INSERT INTO operation ({', '.join(columns.split())}, epoch, trace_id, created_at, updated_at,"
            f" boot_id, window_s) VALUES ({', '.join('?' * 12)}, 1, '', 0, 0, '', 1)",
            columns.split(),
        )
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT attendant FROM operation").fetchall() == [(None,)]
