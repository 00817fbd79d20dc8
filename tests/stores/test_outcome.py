"""Does the ledger say what happened, and nothing else?"""

import asyncio
import math
from collections.abc import Sequence

import pytest

from holdfast.model.operation import Operation
from holdfast.model.vocabulary import State
from tests.requirements import requirement
from tests.stores.calls import make_call, observed
from tests.stores.world import World


@requirement("IDM-4", "AUD-1")
async def test_the_outcome_is_kept_byte_for_byte(world: World) -> None:
    call = make_call(world.clock)
    await world.claim(call)
    told = observed(call, data={"b": 1, "a": [1.5, "é"]})
    assert await world.ledger.finish(call, told, State.COMMITTED)
    found = await world.look(call)
    assert (found.state, found.observation) == (State.COMMITTED, told.to_json())
    assert world.kinds() == ["intent", "outcome"]


@requirement("IDM-4")
async def test_a_stale_attempt_cannot_write_over_a_newer_one(world: World) -> None:
    stale, newer = make_call(world.clock), make_call(world.clock)
    await world.claim(stale)
    assert await world.settle(await world.look(stale), State.NO_EFFECT)
    await world.claim(newer)
    assert not await world.end(stale, State.UNKNOWN)
    assert (await world.look(newer)).nonce == newer.nonce
    assert (await world.look(newer)).state is State.DISPATCHED
    assert await world.end(newer, State.COMMITTED)


@requirement("IDM-5")
async def test_a_late_but_truthful_end_settles_what_was_given_up_as_unknown(world: World) -> None:
    call = make_call(world.clock)
    await world.claim(call)
    assert await world.settle(await world.look(call), State.UNKNOWN, by="sweep")
    assert await world.end(call, State.COMMITTED)
    assert (await world.look(call)).state is State.COMMITTED
    assert world.kinds() == ["intent", "settle", "outcome"]


@requirement("IDM-5", "AUD-5")
async def test_an_effect_that_was_denied_comes_to_light(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    call = make_call(world.clock)
    await world.claim(call)
    assert await world.settle(await world.look(call), State.NO_EFFECT)
    assert await world.end(call, State.COMMITTED)
    assert (await world.look(call)).state is State.COMMITTED
    assert world.kinds()[-1] == "contradiction"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


@requirement("IDM-5", "AUD-5")
async def test_a_second_effect_under_a_key_is_recorded_loudly(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = make_call(world.clock), make_call(world.clock)
    await world.claim(first)
    assert await world.settle(await world.look(first), State.NO_EFFECT)
    await world.run(second, State.COMMITTED)
    assert not await world.end(first, State.COMMITTED)
    assert world.kinds()[-1] == "contradiction"
    assert "check its target" in caplog.text


@requirement("AUD-5")
async def test_an_end_that_agrees_with_a_settlement_is_only_late(world: World) -> None:
    call = make_call(world.clock)
    await world.claim(call)
    assert await world.settle(await world.look(call), State.COMMITTED)
    assert not await world.end(call, State.COMMITTED)
    assert not await world.end(call, State.UNKNOWN)
    assert world.kinds()[-2:] == ["late", "late"]


@requirement("IDM-4", "PPL-4")
async def test_of_two_who_settle_only_the_first_is_heard(world: World) -> None:
    call = make_call(world.clock)
    seen = await world.run(call, State.UNKNOWN)
    assert await world.settle(seen, State.COMMITTED)
    assert not await world.settle(seen, State.NO_EFFECT)
    found = await world.look(call)
    assert (found.state, found.note) == (State.COMMITTED, "looked it up")


@requirement("IDM-5")
async def test_a_running_operation_is_orphaned_by_death_silence_or_restart(world: World) -> None:
    call = make_call(world.clock, seconds=4.0)
    await world.claim(call)
    assert not (await world.look(call)).orphaned
    world.workers.dead.add("w_test")
    dead = await world.look(call)
    assert (dead.orphaned, dead.owner_alive, dead.lease_passed, dead.deadline_passed) == (
        True,
        False,
        False,
        False,
    )
    world.workers.dead.clear()
    await world.clock.advance(5.0)
    late = await world.look(call)
    assert (late.orphaned, late.deadline_passed) == (False, True)
    assert late.since_deadline_s == pytest.approx(1.0)
    await world.clock.advance(11.0)  # the lease is at least 15 s
    assert (await world.look(call)).orphaned


@requirement("IDM-5")
async def test_an_unknown_attempt_has_an_owner_only_while_something_of_it_still_runs(world: World) -> None:
    over, running = make_call(world.clock, "over"), make_call(world.clock, "running")
    running.work = asyncio.get_running_loop().create_future()
    assert not (await world.run(over, State.UNKNOWN)).owner_alive
    assert (await world.run(running, State.UNKNOWN)).owner_alive
    running.work.set_result(None)
    assert await world.end(running, State.UNKNOWN)
    assert not (await world.look(running)).owner_alive


@requirement("IDM-8")
async def test_whoever_ran_before_the_machine_restarted_is_dead(world: World) -> None:
    call = make_call(world.clock)
    await world.claim(call)
    world.boot.restart()
    found = await world.look(call)
    assert (found.owner_alive, found.lease_passed, found.since_deadline_s) == (False, True, math.inf)


@requirement("IDM-8")
@pytest.mark.parametrize("jump", [-1e7, 1e7])
async def test_a_jump_of_the_wall_clock_ends_no_lease(world: World, jump: float) -> None:
    call = make_call(world.clock)
    await world.claim(call)
    world.clock.jump(jump)
    found = await world.look(call)
    assert (found.orphaned, found.lease_passed, found.deadline_passed) == (False, False, False)


@requirement("IDM-5")
async def test_the_sweep_sees_orphans_and_the_unknown_and_nothing_else(world: World) -> None:
    running, unknown, done, held = (make_call(world.clock, key) for key in ("r", "u", "d", "h"))
    await world.run(unknown, State.UNKNOWN)
    await world.run(done, State.COMMITTED)
    await world.approvals.ask(held, {"operator": 1}, {})
    await world.claim(running)
    assert _keys(await world.ledger.overdue(10)) == ["u"]
    world.workers.dead.add("w_test")
    assert _keys(await world.ledger.overdue(10)) == ["r", "u"]


@requirement("IDM-5")
async def test_unknown_ones_that_nobody_can_settle_do_not_hide_the_others(world: World) -> None:
    for key in "abcde":
        await world.run(make_call(world.clock, key), State.UNKNOWN)
        await world.clock.advance(1.0)
    seen = [_keys(await world.ledger.overdue(2)) for _ in range(4)]
    assert seen == [["a", "b"], ["c", "d"], ["e"], ["a", "b"]]


@requirement("IDM-6")
async def test_an_outcome_is_forgotten_after_its_window_and_the_key_stays_taken(world: World) -> None:
    done, unknown, running, held = (make_call(world.clock, key) for key in ("d", "u", "r", "h"))
    await world.run(done, State.COMMITTED)
    await world.run(unknown, State.UNKNOWN)
    await world.claim(running)
    await world.approvals.ask(held, {"operator": 1}, {})
    await world.clock.advance(3599.0)
    assert await world.ledger.forget() == 0
    assert (await world.look(done)).observation is not None
    await world.clock.advance(1.0)
    assert await world.ledger.forget() == 1
    assert await world.ledger.forget() == 0
    kept = await world.look(done)
    assert (kept.state, kept.observation, kept.payload) == (State.COMMITTED, None, None)
    assert (await world.look(unknown)).observation is not None
    assert (await world.look(running)).payload is not None
    assert (await world.look(held)).payload is not None
    assert (await world.taken(make_call(world.clock, "d"))).state is State.COMMITTED


@requirement("IDM-6", "IDM-8")
@pytest.mark.parametrize("jump", [-1e7, 1e7])
async def test_a_jump_of_the_wall_clock_ends_no_window(world: World, jump: float) -> None:
    call = make_call(world.clock)
    await world.run(call, State.COMMITTED)
    world.clock.jump(jump)
    assert await world.ledger.forget() == 0
    await world.clock.advance(3600.0)
    assert await world.ledger.forget() == 1


@requirement("IDM-6", "IDM-8")
async def test_after_a_restart_the_wall_clock_measures_the_window(world: World) -> None:
    await world.run(make_call(world.clock), State.COMMITTED)
    world.boot.restart()
    await world.clock.advance(3599.0)
    assert await world.ledger.forget() == 0
    await world.clock.advance(1.0)
    assert await world.ledger.forget() == 1


@requirement("IDM-4")
async def test_waiting_duplicates_wake_with_the_outcome_and_not_with_the_clock(world: World) -> None:
    call = make_call(world.clock)
    running = await world.claim(call)
    waiting = [asyncio.create_task(world.ledger.wait(running, 2.0)) for _ in range(5)]
    await world.clock.quiet()
    assert world.clock.sleepers == 5
    assert await world.end(call, State.COMMITTED)
    seen = await asyncio.gather(*waiting)
    assert {operation.state for operation in seen} == {State.COMMITTED}
    assert world.clock.monotonic() == 0.0


@requirement("IDM-4")
async def test_waiting_ends_when_time_is_up_or_the_owner_dies(world: World) -> None:
    running = await world.claim(make_call(world.clock))
    patient = asyncio.create_task(world.ledger.wait(running, 2.0))
    while not patient.done():
        await world.clock.advance(0.1)
    assert (await patient).state is State.DISPATCHED
    assert world.clock.monotonic() == pytest.approx(2.0, abs=0.11)
    world.workers.dead.add("w_test")
    assert (await world.ledger.wait(running, 2.0)).orphaned
    assert world.clock.monotonic() == pytest.approx(2.0, abs=0.11)


def _keys(operations: Sequence[Operation]) -> list[str]:
    return [operation.ref.key for operation in operations]
