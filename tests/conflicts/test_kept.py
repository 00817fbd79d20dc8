"""Whose locks are kept beyond a call, and who is not kept out by them? EXE-7."""

import asyncio

import pytest

from holdfast.model.sequel import NewJob
from holdfast.model.stage import Lock, Locked, Stage
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Conflicting
from tests.conflicts.test_laws import PAINT
from tests.requirements import requirement
from tests.stores.calls import OTHER_TENANT, make_call
from tests.stores.conftest import world
from tests.stores.world import World

__all__ = ["world"]

HALL, ATTIC, ALL = Locked("rooms", "hall"), Locked("rooms", "attic"), Locked("rooms", "all", whole=True)


def staged(*resources: Locked, within: str = "") -> list[tuple[str, Stage]]:
    return [("claim", Lock(resources, within))]


@requirement("EXE-7", "EXE-6")
async def test_a_job_that_goes_on_keeps_what_its_call_locked_until_it_is_settled(world: World) -> None:
    call = make_call(world.clock, "job", tool=PAINT, stage=staged(HALL))
    await world.claim(call)
    call.sequels = (NewJob(body=b'{"id": "j-1"}', token="t", next_at=0.0, give_up_at=60.0),)
    assert await world.end(call, State.UNKNOWN)
    other = make_call(world.clock, "other", tool=PAINT, stage=staged(HALL))
    assert isinstance(met := await world.refused(other), Conflicting)
    assert (met.call_id, met.nonce) == (call.id, call.nonce)
    assert await world.settle(await world.look(call), State.COMMITTED)
    await world.claim(other)


@requirement("EXE-7", "EXE-6")
@pytest.mark.parametrize("wanted", [HALL, ATTIC, ALL], ids=["the same", "another", "all"])
async def test_a_part_of_a_call_is_not_in_its_way_and_frees_nothing_of_it(
    world: World, wanted: Locked
) -> None:
    call = make_call(world.clock, "job", tool=PAINT, stage=staged(HALL))
    await world.claim(call)
    part = make_call(world.clock, "cancel", tool=PAINT, stage=staged(wanted, within=call.id))
    await world.run(part, State.COMMITTED)
    other = make_call(world.clock, "other", tool=PAINT, stage=staged(HALL))
    assert isinstance(await world.refused(other), Conflicting)


@requirement("EXE-7", "DEC-1")
async def test_who_meets_another_has_taken_nothing(world: World) -> None:
    await world.claim(make_call(world.clock, "first", tool=PAINT, stage=staged(HALL)))
    second = make_call(world.clock, "second", tool=PAINT, stage=staged(ATTIC, HALL))
    assert isinstance(await world.refused(second), Conflicting)
    assert second.ref is not None
    assert await world.ledger.find(second.ref) is None
    await world.claim(make_call(world.clock, "third", tool=PAINT, stage=staged(ATTIC)))
    assert world.kinds().count("intent") == 2


@requirement("EXE-7")
async def test_tenants_do_not_meet(world: World) -> None:
    await world.claim(make_call(world.clock, "first", tool=PAINT, stage=staged(ALL)))
    theirs = make_call(world.clock, "first", tool=PAINT, stage=staged(ALL), principal=OTHER_TENANT)
    await world.claim(theirs)


@requirement("EXE-7", "DEC-1")
async def test_of_those_who_come_at_once_none_overlap(world: World) -> None:
    kinds = [(ALL,), (HALL,), (ATTIC,), (ATTIC, HALL)]
    for number in range(8):
        calls = [
            make_call(world.clock, f"{number}.{n}", tool=PAINT, stage=staged(*kinds[n % len(kinds)]))
            for n in range(number, number + 12)
        ]
        answers = await asyncio.gather(*map(world.ledger.begin, calls))
        won: list[Locked] = []
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, Begun):
                [(_, stage)] = call.staged
                assert isinstance(stage, Lock)
                won += stage.resources
                call.operation = answer.operation
                continue
            assert isinstance(answer, Conflicting)
        assert won in ([ALL], [HALL], [ATTIC], [ATTIC, HALL], [HALL, ATTIC])
        for call in calls:
            if call.operation is not None:
                assert await world.end(call, State.COMMITTED)
