"""Is what two calls would change at once changed one after the other? EXE-7."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from holdfast import Code, Status, tool
from holdfast.model.call import Call
from holdfast.ports import Begun, Denied, Ledger, Ports, Taken
from holdfast.testing import ManualClock
from tests.conflicts.house import ACME, ANA, BEN, OLGA, WRITE, House, Room, started
from tests.lifecycle.conftest import Open
from tests.polling import FELT_S
from tests.requirements import requirement

CROWD = 24


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@requirement("EXE-7")
async def test_who_changes_the_same_waits_until_the_other_is_done(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, "paint", "1", room="hall")
        assert await house.begun.get() == "hall"
        second = started(gateway, "paint", "2", BEN, room="hall")
        other = started(gateway, "paint", "3", room="attic")
        assert await house.begun.get() == "attic", "another room is nobody's business"
        await clock.quiet()
        assert not second.done()
        assert house.begun.empty()
        house.open.set()
        for task in (first, other, second):
            await clock.drive(task)
            assert task.result().status is Status.DONE
    assert not house.clashes
    assert sorted(house.painted) == ["attic", "hall", "hall"]


@requirement("EXE-7")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("gut", {}), ("paint", {"room": "hall"})),
        (("paint", {"room": "hall"}), ("gut", {})),
        (("gut", {}), ("gut", {})),
        (("paint_all", {"rooms": ["attic", "hall"]}), ("paint", {"room": "hall"})),
        (("paint_all", {"rooms": ["attic", "hall"]}), ("paint_all", {"rooms": ["hall", "cellar"]})),
        (("paint_all", {"rooms": [f"r{n}" for n in range(100)]}), ("paint", {"room": "hall"})),
        (("paint", {"room": "../hall"}), ("paint", {"room": "hall"})),
    ],
    ids=["whole, part", "part, whole", "whole, whole", "many, one", "many, many", "too many", "unclear"],
)
async def test_effects_that_overlap_exclude_each_other(
    open_gateway: Open,
    house: House,
    clock: ManualClock,
    one: tuple[str, dict[str, Any]],
    other: tuple[str, dict[str, Any]],
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, one[0], "1", **one[1])
        await house.begun.get()
        second = started(gateway, other[0], "2", **other[1])
        await clock.quiet()
        assert house.begun.empty(), "the second has not begun"
        house.open.set()
        await clock.drive(first)
        await clock.drive(second)
        assert (first.result().status, second.result().status) == (Status.DONE, Status.DONE)
    assert not house.clashes


@requirement("EXE-7")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("dig", {"place": "left"}), ("dig", {"place": "left"})),
        (("paint_all", {"rooms": ["a", "b"]}), ("paint_all", {"rooms": ["c"]})),
        (("gut", {}), ("dig", {"place": "left"})),
        (("paint_all", {"rooms": []}), ("gut", {})),
    ],
    ids=["nobody can tell", "others", "another kind", "nothing"],
)
async def test_what_cannot_be_told_to_overlap_goes_on_at_once(
    open_gateway: Open,
    house: House,
    clock: ManualClock,
    one: tuple[str, dict[str, Any]],
    other: tuple[str, dict[str, Any]],
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        tasks = [started(gateway, one[0], "1", **one[1]), started(gateway, other[0], "2", **other[1])]
        for _ in tasks:
            await house.begun.get()
        house.open.set()
        for task in tasks:
            await clock.drive(task)
            assert task.result().status is Status.DONE


@requirement("EXE-7")
async def test_tenants_do_not_meet(open_gateway: Open, house: House, clock: ManualClock) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        tasks = [started(gateway, "paint", "1", who, room="hall") for who in (ANA, ACME)]
        for _ in tasks:
            await house.begun.get()
        house.open.set()
        for task in tasks:
            await clock.drive(task)


@requirement("EXE-7")
async def test_who_waited_too_long_is_told_of_the_conflict_and_nothing_ran(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, "paint", "1", room="hall")
        await house.begun.get()
        found = []
        for number, who in enumerate((ANA, BEN, OLGA)):
            late = started(gateway, "paint", f"late{number}", who, room="hall", deadline_ms=500)
            await clock.drive(late)
            found.append(late.result())
        assert [one.code for one in found] == [Code.CONFLICT] * 3
        assert all(one.status is Status.REFUSED and one.remedy.retryable for one in found)
        [running] = [call.id for call in gateway._under_way]
        told = [running in (one.message or "") for one in found]
        assert told == [True, False, True], "it is none of Ben's business who works there"
        house.open.set()
        await clock.drive(first)
        again = started(gateway, "paint", "late0", ANA, room="hall")
        await clock.drive(again)
        assert again.result().status is Status.DONE
        assert not gateway._ports.line
    assert house.painted == ["hall", "hall"]


@requirement("EXE-7", "VAL-4")
async def test_who_waited_looks_again_at_what_it_planned_on(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, "repaint", "1", room="hall", if_match="0")
        await house.begun.get()
        second = started(gateway, "repaint", "2", BEN, room="hall", if_match="0")
        third = started(gateway, "repaint", "3", BEN, room="hall")
        await clock.quiet()
        house.open.set()
        for task in (first, second, third):
            await clock.drive(task)
        assert first.result().status is Status.DONE
        assert second.result().code is Code.STALE_STATE, "the other has changed it meanwhile"
        assert third.result().status is Status.DONE, "it planned on nothing"
        assert not gateway._ports.line
    assert not house.clashes


@requirement("EXE-7", "VAL-4")
@pytest.mark.parametrize(
    ("late", "meanwhile"),
    [
        (("repaint", {"room": "hall"}), ("paint", {"room": "hall"})),
        (("repaint", {"room": "hall"}), ("paint_all", {"rooms": ["attic", "hall"]})),
        (("repaint", {"room": "hall"}), ("gut", {})),
        (("regut", {}), ("paint", {"room": "hall"})),
        (("regut", {}), ("gut", {})),
    ],
    ids=["part, part", "part, many", "part, whole", "whole, part", "whole, whole"],
)
async def test_what_was_changed_after_the_look_at_it_is_looked_at_again(
    open_gateway: Open,
    house: House,
    clock: ManualClock,
    late: tuple[str, dict[str, Any]],
    meanwhile: tuple[str, dict[str, Any]],
) -> None:
    house.open.set()
    house.told.clear()
    async with open_gateway(house, clock=clock) as gateway:
        second = started(gateway, late[0], "2", BEN, if_match="0", **late[1])
        await house.looked.get()
        first = started(gateway, meanwhile[0], "1", **meanwhile[1])
        await clock.drive(first)
        assert first.result().status is Status.DONE, "nobody was in its way"
        house.told.set()
        await clock.drive(second)
        assert second.result().code is Code.STALE_STATE
        assert not gateway._ports.line
    assert house.looks == 2


@requirement("EXE-7")
async def test_what_was_changed_elsewhere_is_no_reason_to_look_again(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    house.open.set()
    async with open_gateway(house, clock=clock) as gateway:
        for number, done in enumerate(("paint", "gut", "paint")):
            given = {"room": "hall"} if done == "paint" else {}
            await clock.drive(started(gateway, done, f"before-{number}", ANA, **given))
        house.told.clear()
        second = started(gateway, "repaint", "2", BEN, room="hall", if_match="3")
        await house.looked.get()
        await clock.drive(started(gateway, "paint", "1", room="attic"))
        house.told.set()
        await clock.drive(second)
        assert second.result().status is Status.DONE
    assert house.looks == 1


@requirement("EXE-7", "IDM-3")
async def test_a_duplicate_still_waits_for_its_own_operation(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, "paint", "1", room="hall")
        await house.begun.get()
        twin = started(gateway, "paint", "1", room="hall", deadline_ms=1000)
        await clock.drive(twin)
        assert twin.result().code is Code.KEY_IN_USE
        house.open.set()
        await clock.drive(first)
    assert house.painted == ["hall"]


@requirement("EXE-7", "EXE-1")
async def test_who_waits_can_be_cancelled(open_gateway: Open, house: House, clock: ManualClock) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, "paint", "1", room="hall")
        await house.begun.get()
        second = started(gateway, "paint", "2", room="hall")
        await clock.quiet()
        [waiting] = [call for call in gateway._under_way if call.proposal.key == "2"]
        assert await gateway.cancel(ANA, waiting.id) == "cancelled"
        await clock.drive(second)
        assert second.result().code is Code.CANCELLED
        assert not gateway._ports.line
        house.open.set()
        await clock.drive(first)
    assert house.painted == ["hall"]


class Counting:
    """A ledger that counts how often anybody tried."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.tries = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def begin(self, call: Call) -> Begun | Taken | Denied:
        self.tries += call.writes
        return await self._ledger.begin(call)


@requirement("EXE-7", "PPL-6")
async def test_of_many_who_wait_only_the_first_in_line_tries(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    counting: list[Counting] = []

    def adapt(ports: Ports, runtime: Any) -> tuple[Ports, Any]:
        counting.append(Counting(ports.ledger))
        return replace(ports, ledger=cast(Ledger, counting[0])), runtime

    async with open_gateway(house, clock=clock, adapt=adapt) as gateway:
        tasks = [started(gateway, "paint", f"k{n}", room="hall") for n in range(CROWD)]
        await house.begun.get()
        await clock.quiet()
        late = started(gateway, "paint", "late", room="hall", deadline_ms=500)
        await clock.drive(late)
        assert late.result().code is Code.CONFLICT, "its turn did not come in time"
        tasks[CROWD // 2].cancel()
        house.open.set()
        everyone = asyncio.gather(*tasks, return_exceptions=True)
        await clock.drive(everyone)
        assert len(house.painted) >= CROWD - 1
        assert not house.clashes
        assert not gateway._ports.line
        assert counting[0].tries <= 4 * CROWD, "and not each of them whenever one is done"


@requirement("EXE-7")
async def test_many_who_want_the_same_come_one_after_the_other(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    house.open.set()
    async with open_gateway(house, clock=clock) as gateway:
        wanted: list[tuple[str, dict[str, Any]]] = [
            ("gut", {}) if n % 7 == 0 else ("paint", {"room": f"r{n % 3}"}) for n in range(30)
        ]
        tasks = [started(gateway, name, f"k{n}", **given) for n, (name, given) in enumerate(wanted)]
        everyone = asyncio.gather(*tasks)
        await clock.drive(everyone)
        assert [one.code for one in everyone.result()] == [None] * len(wanted)
    assert not house.clashes
    assert len(house.painted) == len(wanted)


@requirement("EXE-7", "AUD-1")
async def test_the_time_that_was_waited_is_told_as_that_of_the_claim(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    async with open_gateway(house, clock=clock) as gateway:
        first = started(gateway, "paint", "1", OLGA, room="hall")
        await house.begun.get()
        second = started(gateway, "paint", "2", OLGA, room="hall")
        await clock.quiet()
        await clock.advance(2.0)
        house.open.set()
        await clock.drive(first)
        await clock.drive(second)
        story = await gateway.timeline.of(OLGA, second.result().call_id)
        assert story.decided is not None
        took = {gate.name: gate.micros or 0 for gate in story.decided.gates}
        assert [gate.name for gate in story.decided.gates] == list(took), "each is told once"
        assert took["claim"] >= 2_000_000
        assert took["state"] + took["limits"] + took["approval"] == 0


class Relay:
    """Painters who are done when they are told."""

    def __init__(self, begun: "asyncio.Queue[str]") -> None:
        self.begun = begun
        self.done: dict[str, asyncio.Event] = {}

    @tool(**WRITE, manifest=[("rooms", "UPDATE", "one")])
    async def coat(self, room: Room) -> str:
        """Paint a room until somebody says that it is enough."""
        self.begun.put_nowait(room)
        await self.done.setdefault(room, asyncio.Event()).wait()
        return room


@requirement("EXE-7")
async def test_who_wants_everything_is_not_kept_out_by_those_who_come_later(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    """Each takes another part: none of them meets another, and one of them would always be there."""
    relay = Relay(house.begun)
    house.open.set()
    async with open_gateway(house, relay, clock=clock) as gateway:
        first = started(gateway, "coat", "1", room="hall")
        assert await house.begun.get() == "hall"
        everything = started(gateway, "gut", "2")
        await clock.quiet()
        later = started(gateway, "coat", "3", BEN, room="attic")
        await clock.quiet()
        assert house.begun.empty(), "it stands in line"
        other = started(gateway, "coat", "4", ACME, room="attic")
        assert await house.begun.get() == "attic", "another tenant does not"
        relay.done["hall"].set()
        assert await asyncio.wait_for(house.begun.get(), FELT_S) == "*"
        assert await asyncio.wait_for(house.begun.get(), FELT_S) == "attic"
        relay.done["attic"].set()
        for task in (first, everything, later, other):
            await clock.drive(task)
            assert task.result().status is Status.DONE
        assert not gateway._ports.line


@requirement("EXE-7")
async def test_a_part_of_a_call_does_not_stand_behind_those_who_wait_for_that(
    open_gateway: Open, house: House, clock: ManualClock
) -> None:
    relay = Relay(house.begun)
    house.open.set()
    async with open_gateway(house, relay, clock=clock) as gateway:
        whole = started(gateway, "coat", "1", room="hall")
        await house.begun.get()
        [call] = list(gateway._under_way)
        waits = started(gateway, "gut", "2")
        await clock.quiet()
        part = gateway.call("test.paint", {"room": "hall"}, key="3", principal=ANA, part_of=call.id)
        assert (await asyncio.wait_for(part, FELT_S)).status is Status.DONE
        relay.done["hall"].set()
        for task in (whole, waits):
            await clock.drive(task)
            assert task.result().status is Status.DONE
