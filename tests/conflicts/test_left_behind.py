"""Does a lock end with the attempt that has it, however that ends? EXE-7."""

import asyncio
import threading
from pathlib import Path

import pytest

from holdfast import Code, Invocation, NoEffect, Status, tool
from holdfast.model import defaults
from holdfast.testing import ManualClock
from tests.conflicts.house import ANA, BEN, WRITE, House, Room, started
from tests.lifecycle.conftest import Open
from tests.lifecycle.test_rare import Dying
from tests.polling import FELT_S
from tests.requirements import requirement
from tests.stored import DURABLE, rows

ONE_ROOM = [("rooms", "UPDATE", "one")]


class Moods:
    """Paints, and ends in every way there is."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    @tool(**WRITE, manifest=ONE_ROOM)
    async def refuse(self, room: Room) -> str:
        """Paint nothing, and say so."""
        raise NoEffect("there is no paint")

    @tool(**WRITE, manifest=ONE_ROOM)
    async def fall(self, room: Room) -> str:
        """Fall off the ladder, nobody knows whether after painting."""
        raise RuntimeError("fell")

    @tool(**WRITE, manifest=ONE_ROOM)
    async def sleep(self, room: Room) -> str:
        """Never end."""
        await asyncio.Event().wait()
        return room

    @tool(**WRITE, manifest=ONE_ROOM)
    def doze(self, room: Room) -> str:
        """Go on for longer than anybody waits; nobody can stop it."""
        self.begun.set()
        assert self.go_on.wait(20)
        return room


@requirement("EXE-7")
@pytest.mark.parametrize("end", ["refuse", "fall", "sleep"])
async def test_whoever_comes_after_an_attempt_that_is_over_goes_on_at_once(
    open_gateway: Open, end: str
) -> None:
    house, clock = House(), ManualClock()
    house.open.set()
    async with open_gateway(house, Moods(), clock=clock) as gateway:
        first = started(gateway, end, "1", room="hall")
        await clock.drive(first)
        assert first.result().status is not Status.DONE
        second = started(gateway, "paint", "2", room="hall", deadline_ms=50)
        await clock.drive(second)
        assert second.result().status is Status.DONE


@requirement("EXE-7", "EXE-1")
async def test_what_goes_on_after_its_deadline_keeps_its_lock_until_it_ends(open_gateway: Open) -> None:
    house, moods, clock = House(), Moods(), ManualClock()
    house.open.set()
    async with open_gateway(house, moods, clock=clock) as gateway:
        first = started(gateway, "doze", "1", room="hall")
        assert await asyncio.to_thread(moods.begun.wait, 20)
        await clock.advance(defaults.STANDARD_S)
        await clock.drive(first)
        assert first.result().code is Code.OUTCOME_UNKNOWN
        second = started(gateway, "paint", "2", room="hall", deadline_ms=1000)
        await clock.drive(second)
        assert second.result().code is Code.CONFLICT, "it is still painting"
        moods.go_on.set()
        third = started(gateway, "paint", "3", room="hall")
        await clock.drive(third)
        assert third.result().status is Status.DONE
        late = await gateway.call("test.doze", {"room": "hall"}, key="1", principal=ANA)
        assert late.status is Status.DONE


@requirement("EXE-7", "PPL-6")
async def test_the_target_is_read_again_when_the_wait_is_over_and_not_all_the_while(
    open_gateway: Open,
) -> None:
    house, moods, clock = House(), Moods(), ManualClock()
    house.open.set()
    async with open_gateway(house, moods, clock=clock) as gateway:
        first = started(gateway, "doze", "1", room="hall")
        assert await asyncio.to_thread(moods.begun.wait, 20)
        await clock.advance(defaults.STANDARD_S)
        await clock.drive(first)
        second = started(gateway, "repaint", "2", room="hall", if_match="0")
        await clock.drive(second)
        assert second.result().code is Code.CONFLICT, "it is still painting"
        assert house.looks <= 2
        moods.go_on.set()


@requirement("EXE-7", "IDM-4")
async def test_what_a_dead_worker_locked_is_free_and_its_operation_unknown(open_gateway: Open) -> None:
    house, clock, dead = House(), ManualClock(), set[str]()
    async with open_gateway(house, clock=clock, workers=Dying("w1", dead)) as gateway:
        first = started(gateway, "gut", "1")
        await house.begun.get()
        dead.add("w1")
        second = started(gateway, "paint", "2", room="hall")
        assert await house.begun.get() == "hall"
        twin = await gateway.call("test.gut", {}, key="1", principal=ANA)
        assert twin.code is Code.OUTCOME_UNKNOWN
        house.open.set()
        for task in (first, second):
            await clock.drive(task)


@requirement("EXE-7", "IDM-4")
async def test_what_went_on_in_a_worker_that_died_keeps_nobody_out(open_gateway: Open) -> None:
    house, moods, clock, dead = House(), Moods(), ManualClock(), set[str]()
    house.open.set()
    async with open_gateway(house, moods, clock=clock, workers=Dying("w1", dead)) as gateway:
        first = started(gateway, "doze", "1", room="hall")
        assert await asyncio.to_thread(moods.begun.wait, 20)
        await clock.advance(defaults.STANDARD_S)
        await clock.drive(first)
        assert first.result().code is Code.OUTCOME_UNKNOWN
        dead.add("w1")
        second = started(gateway, "paint", "2", room="hall", deadline_ms=50)
        await clock.drive(second)
        moods.go_on.set()
        assert second.result().status is Status.DONE


@requirement("EXE-7", "IDM-5")
async def test_an_operation_that_is_tried_again_is_not_in_its_own_way(open_gateway: Open) -> None:
    tries = list[int]()

    @tool(**{**WRITE, "idempotency": {"upstream": "meta"}, "max_retries": 0}, manifest=ONE_ROOM)
    def keyed(room: Room, invocation: Invocation) -> int:
        """Paint once for each key."""
        tries.append(1)
        if len(tries) == 1:
            begun.set()
            assert go_on.wait(20)
        return len(tries)

    begun, go_on, clock, house = threading.Event(), threading.Event(), ManualClock(), House()
    async with open_gateway([keyed], house, clock=clock) as gateway:
        first = started(gateway, "keyed", "1", room="hall")
        assert await asyncio.to_thread(begun.wait, 20)
        await clock.advance(defaults.STANDARD_S)
        await clock.drive(first)
        assert first.result().code is Code.OUTCOME_UNKNOWN
        again = await asyncio.wait_for(started(gateway, "keyed", "1", room="hall"), FELT_S)
        go_on.set()
        assert again.status is Status.DONE
        house.open.set()
        other = await asyncio.wait_for(started(gateway, "paint", "2", room="hall"), FELT_S)
        assert other.status is Status.DONE, "the earlier attempt has no lock any more"


@requirement("EXE-7", "CON-6")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_locks_name_nothing_in_clear_and_nothing_is_left_of_them(
    open_gateway: Open, store: str, tmp_path: Path
) -> None:
    house, clock = House(), ManualClock()
    async with open_gateway(house, clock=clock) as gateway:
        tasks = [
            started(gateway, "paint_all", "1", rooms=["bluebeard", "attic"]),
            started(gateway, "paint", "2", BEN, room="cellar"),
        ]
        for _ in tasks:
            await house.begun.get()
        found = rows(store, tmp_path, "SELECT kind, whole, resource, call_id, nonce FROM {}effect_lock")
        assert [row[:2] for row in found] == [("rooms", 0)] * 3
        assert "bluebeard" not in repr(found)
        house.open.set()
        for task in tasks:
            await clock.drive(task)
        assert not rows(store, tmp_path, "SELECT * FROM {}effect_lock")
