"""What does a client get that knows no keys and calls again? docs/explanation/keys-and-replay.md, by row."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Code, Gateway, Observation, Status
from holdfast.model.vocabulary import KeySource
from holdfast.testing import settle_loop
from tests.lifecycle.keyless import Heard, House, Shelf, ask, got, lost
from tests.lifecycle.test_approvals import BEN, PEOPLE
from tests.lifecycle.world import ANA
from tests.lifecycle.world import BEN as OTHER
from tests.requirements import requirement
from tests.stored import DURABLE, place


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def house(store: str, tmp_path: Path, shelf: Shelf) -> House:
    return House(store, tmp_path, shelf)


async def leave(gateway: Gateway, shelf: Shelf, **how: Any) -> None:
    """A client that goes away while its call runs."""
    request = asyncio.create_task(ask(gateway, **how))
    await shelf.entered.wait()
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)


# (mood of the first, did its answer arrive) -> (status of the second, is it the same operation, effects)
ROWS: dict[tuple[str, bool], tuple[Status, bool, int]] = {
    ("well", False): (Status.DONE, True, 1),
    ("well", True): (Status.DONE, False, 2),
    ("says_no", False): (Status.FAILED, True, 1),
    ("says_no", True): (Status.DONE, False, 2),
    ("no_effect", False): (Status.DONE, True, 1),
    ("no_effect", True): (Status.DONE, True, 1),
    ("asks", False): (Status.DONE, True, 1),
    ("asks", True): (Status.DONE, False, 1),  # who was asked comes back with its name
    ("lose", False): (Status.UNKNOWN, True, 1),
    ("lose", True): (Status.UNKNOWN, True, 1),
}


@requirement("IDM-1")
@pytest.mark.parametrize(("mood", "arrived"), list(ROWS))
async def test_an_equal_call_takes_over_what_is_open_or_reached_nobody(
    house: House, shelf: Shelf, mood: str, arrived: bool
) -> None:
    status, same, effects = ROWS[mood, arrived]
    shelf.mood = mood
    async with house.gateway() as gateway:
        first = await (got if arrived else lost)(gateway)
        shelf.mood = "well"
        second = await got(gateway)
    assert first.key_source is KeySource.REQUEST
    assert second.status is status
    assert (second.call_id == first.call_id) is same
    assert (second.key == first.key) is same
    assert second.key_source is (KeySource.ADOPTED if same else KeySource.REQUEST)
    assert len(shelf.items) == effects


@requirement("IDM-1")
async def test_a_replay_by_adoption_is_the_first_answer_and_says_how_it_came_by_it(house: House) -> None:
    async with house.gateway() as gateway:
        first = await lost(gateway)
        second = await got(gateway)
    assert second == replace(first.as_replayed(), key_source=KeySource.ADOPTED)


@requirement("IDM-1")
async def test_once_the_answer_arrived_the_next_equal_call_is_meant_anew(house: House, shelf: Shelf) -> None:
    async with house.gateway() as gateway:
        await lost(gateway)
        again = await got(gateway)
        fresh = await got(gateway)
    assert again.replayed
    assert not fresh.replayed
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1", "EXE-1")
async def test_who_left_while_it_ran_comes_back_to_the_same_run(house: House, shelf: Shelf) -> None:
    shelf.mood = "wait"
    async with house.gateway() as gateway:
        await leave(gateway, shelf)
        again = asyncio.create_task(got(gateway))
        await house.clock.quiet()
        shelf.release.set()
        seen = await again
    assert (seen.status, seen.replayed, seen.key_source) == (Status.DONE, True, KeySource.ADOPTED)
    assert shelf.items == ["milk"]


@requirement("IDM-1")
async def test_who_comes_back_too_early_is_told_to_come_again_and_then_gets_the_answer(
    house: House, shelf: Shelf
) -> None:
    shelf.mood = "wait"
    async with house.gateway() as gateway:
        await leave(gateway, shelf)
        early = asyncio.create_task(got(gateway))
        await house.clock.drive(early)
        told = await early
        shelf.release.set()
        await house.clock.quiet()
        seen = await got(gateway)
    assert (told.code, told.key_source) == (Code.KEY_IN_USE, KeySource.ADOPTED)
    assert "in the same way" in (told.message or "")
    assert (seen.status, seen.replayed) == (Status.DONE, True)
    assert shelf.items == ["milk"]


@requirement("IDM-1")
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 7, 10, 15, 25, 100])
async def test_whoever_leaves_at_whatever_moment_and_calls_again_acts_once(
    house: House, shelf: Shelf, turns: int
) -> None:
    async with house.gateway() as gateway:
        request = asyncio.create_task(ask(gateway))
        await settle_loop(turns)
        was_answered = request.done()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        if was_answered:
            await gateway.abandoned(ANA, request.result().call_id)
        seen = await got(gateway)
    assert seen.status is Status.DONE
    assert shelf.items == ["milk"]


@requirement("IDM-1")
async def test_equal_calls_of_clients_that_both_wait_are_two_operations(house: House, shelf: Shelf) -> None:
    shelf.mood = "wait"
    async with house.gateway() as gateway:
        both = [asyncio.create_task(ask(gateway)) for _ in range(2)]
        await house.clock.quiet()
        shelf.release.set()
        one, two = await asyncio.gather(*both)
        third = await ask(gateway)  # both answers are on their way, and neither has arrived
    assert len({one.call_id, two.call_id, third.call_id}) == 3
    assert {one.key_source, two.key_source, third.key_source} == {KeySource.REQUEST}
    assert shelf.items == ["milk"] * 3


@requirement("IDM-1")
async def test_two_that_come_back_for_two_lost_answers_get_one_each(house: House, shelf: Shelf) -> None:
    async with house.gateway() as gateway:
        first = await asyncio.gather(ask(gateway), ask(gateway))
        for seen in first:
            await gateway.abandoned(ANA, seen.call_id)
        again = await asyncio.gather(ask(gateway), ask(gateway))
    assert {seen.call_id for seen in again} == {seen.call_id for seen in first}
    assert all(seen.replayed for seen in again)
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1", "IDM-4")
async def test_of_two_that_come_back_at_once_for_one_lost_answer_one_gets_it_and_one_is_new(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway() as gateway:
        first = await lost(gateway)
        again = await asyncio.gather(ask(gateway), ask(gateway))
    assert sorted(seen.replayed for seen in again) == [False, True]
    assert sum(seen.call_id == first.call_id for seen in again) == 1
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1", "IDM-4")
async def test_of_many_that_come_back_at_once_to_what_had_no_effect_no_two_run_it(
    house: House, shelf: Shelf
) -> None:
    shelf.mood = "no_effect"
    async with house.gateway() as gateway:
        first = await got(gateway)
        shelf.mood = "well"
        again = await asyncio.gather(*(ask(gateway) for _ in range(5)))
    assert sum(seen.call_id == first.call_id for seen in again) == 1
    assert not any(seen.replayed for seen in again)
    assert len({seen.call_id for seen in again}) == len(shelf.items) == 5


@requirement("IDM-1", "AUT-6")
@pytest.mark.parametrize("other", ["principal", "agent", "tenant", "tool", "arguments"])
async def test_nobody_takes_over_what_is_not_equal_or_not_theirs(
    house: House, shelf: Shelf, other: str
) -> None:
    hows: dict[str, dict[str, Any]] = {
        "principal": {"by": OTHER},
        "agent": {"by": replace(ANA, agent="other")},
        "tenant": {"by": replace(ANA, tenant="acme")},
        "tool": {"to": "push"},
        "arguments": {"item": "oats"},
    }
    async with house.gateway() as gateway:
        first = await lost(gateway)
        second = await got(gateway, **hows[other])
    assert (second.key_source, second.replayed) == (KeySource.REQUEST, False)
    assert second.call_id != first.call_id
    assert len(shelf.items) == 2


@requirement("IDM-1")
@pytest.mark.parametrize("details", [{"key": "k"}, {"task": "t", "step": "s"}])
async def test_who_names_the_operation_takes_over_nothing_and_leaves_nothing_to_take(
    house: House, shelf: Shelf, details: dict[str, str]
) -> None:
    async with house.gateway() as gateway:
        await lost(gateway)
        named = await lost(gateway, **details)
        await got(gateway)
        fresh = await got(gateway)
    assert named.key_source in (KeySource.CALLER, KeySource.DERIVED)
    assert not fresh.replayed
    assert len(shelf.items) == 3


@requirement("IDM-1")
async def test_only_the_one_who_asked_can_say_what_became_of_the_answer(house: House, shelf: Shelf) -> None:
    async with house.gateway() as gateway:
        first = await ask(gateway)
        await gateway.delivered(OTHER, first.call_id)
        await gateway.abandoned(ANA, first.call_id)
        await gateway.delivered(ANA, first.call_id)  # too late: it is not ours any more
        assert (await got(gateway)).call_id == first.call_id
    assert shelf.items == ["milk"]


@requirement("IDM-1")
@pytest.mark.parametrize("details", [{"key": "k"}, {"task": "t", "step": "s"}])
async def test_a_write_with_a_name_costs_the_ledger_nothing_more(
    house: House, details: dict[str, str]
) -> None:
    heard: list[str] = []
    async with house.gateway(ledger=lambda ledger: Heard(ledger, heard)) as gateway:
        await got(gateway, **details)
        await got(gateway, **details)
        assert heard == []
        await got(gateway)
        assert heard == ["alike", "leave"]


@requirement("IDM-1")
@pytest.mark.parametrize("handed", [got, lost])
async def test_what_became_of_an_answer_is_remembered_here_where_it_cannot_be_written(
    house: House, shelf: Shelf, handed: Any
) -> None:
    async with house.gateway(ledger=lambda ledger: Heard(ledger, [], broken=True)) as gateway:
        first = await handed(gateway)
        second = await ask(gateway)
    assert (second.call_id == first.call_id) is (handed is lost)
    assert len(shelf.items) == (1 if handed is lost else 2)


# --- other processes --------------------------------------------------------------------------


@requirement("IDM-1", "IDM-4")
async def test_an_answer_that_its_process_took_with_it_is_given_by_the_next(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway() as gateway:
        first = await ask(gateway)
    async with house.gateway() as gateway:
        second = await got(gateway)
        third = await got(gateway)
    assert (second.call_id, second.replayed) == (first.call_id, True)
    assert not third.replayed
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1")
async def test_an_answer_that_arrived_is_not_given_again_by_another_process(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway() as gateway:
        await got(gateway)
    async with house.gateway() as gateway:
        assert not (await got(gateway)).replayed
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1")
@pytest.mark.parametrize("store", DURABLE, indirect=True)
async def test_nobody_is_given_the_answer_that_another_process_is_handing_over(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway() as one, house.gateway() as two:
        first = await ask(one)
        parallel = await got(two)
        await one.abandoned(ANA, first.call_id)
        again = await got(two)
    assert not parallel.replayed
    assert (again.call_id, again.replayed) == (first.call_id, True)
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1")
async def test_after_its_window_a_lost_answer_is_no_longer_waited_for(house: House, shelf: Shelf) -> None:
    async with house.gateway() as gateway:
        await lost(gateway)
        await house.clock.advance(3601)
        fresh = await got(gateway)
    assert not fresh.replayed
    assert shelf.items == ["milk", "milk"]


# --- approvals and unknown outcomes --------------------------------------------------------------


async def asked(gateway: Gateway) -> Observation:
    return await got(gateway, to="lock_up")


@requirement("IDM-1", "APR-4")
async def test_a_held_call_is_asked_about_once_and_runs_once_when_approved(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway(PEOPLE) as gateway:
        held, again = await asked(gateway), await asked(gateway)
        assert (held.status, again.status) == (Status.HELD, Status.HELD)
        assert again.approval == held.approval
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        done = await asked(gateway)
        fresh = await asked(gateway)
    assert (done.status, done.call_id, done.key_source) == (Status.DONE, held.call_id, KeySource.ADOPTED)
    assert shelf.items == ["milk"]
    assert fresh.status is Status.HELD
    assert fresh.call_id != held.call_id


@requirement("IDM-1", "APR-4")
async def test_many_that_come_back_at_once_to_an_approved_call_run_it_once(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway(PEOPLE) as gateway:
        held = await asked(gateway)
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        answers = await asyncio.gather(*(ask(gateway, to="lock_up") for _ in range(5)))
    ran = [seen for seen in answers if seen.call_id == held.call_id]
    assert {seen.status for seen in ran} == {Status.DONE}
    assert {seen.status for seen in answers if seen not in ran} <= {Status.HELD}
    assert shelf.items == ["milk"]


@requirement("IDM-1", "APR-4")
async def test_a_denial_is_told_once_and_then_the_question_may_be_asked_anew(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway(PEOPLE) as gateway:
        held = await asked(gateway)
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, False)
        unheard = await lost(gateway, to="lock_up")
        denied = await asked(gateway)
        fresh = await asked(gateway)
    assert (unheard.code, denied.code) == (Code.APPROVAL_DENIED, Code.APPROVAL_DENIED)
    assert denied.call_id == held.call_id
    assert fresh.status is Status.HELD
    assert fresh.approval is not None
    assert fresh.approval.id != held.approval.id
    assert shelf.items == []


@requirement("IDM-1", "APR-4")
async def test_an_approval_that_nothing_came_of_serves_the_next_equal_call(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway(PEOPLE) as gateway:
        held = await asked(gateway)
        assert held.approval is not None
        await gateway.decide(BEN, held.approval.id, True)
        shelf.mood = "no_effect"
        failed = await asked(gateway)
        shelf.mood = "well"
        done = await asked(gateway)
    assert failed.status is Status.FAILED
    assert (done.status, done.call_id) == (Status.DONE, held.call_id)
    assert shelf.items == ["milk"]


@requirement("IDM-1", "LIF-3")
async def test_what_the_gateway_ran_for_nobody_is_given_to_the_client_that_comes_for_it(
    house: House, shelf: Shelf
) -> None:
    async with house.gateway({**PEOPLE, "approvals": {"release": "gateway"}}) as gateway:
        held = await asked(gateway)
        assert held.approval is not None
        shelf.mood = "wait"
        await gateway.decide(BEN, held.approval.id, True)
        await shelf.entered.wait()
        early = asyncio.create_task(asked(gateway))
        await house.clock.quiet()
        shelf.release.set()
        seen = await early
        fresh = await asked(gateway)
    assert (seen.status, seen.call_id, seen.replayed) == (Status.DONE, held.call_id, True)
    assert seen.key_source is KeySource.ADOPTED
    assert fresh.status is Status.HELD
    assert shelf.items == ["milk"]


@requirement("IDM-1")
async def test_a_held_call_that_was_cancelled_says_so_once(house: House) -> None:
    async with house.gateway(PEOPLE) as gateway:
        held = await asked(gateway)
        assert await gateway.cancel(ANA, held.call_id) == "cancelled"
        told, fresh = await asked(gateway), await asked(gateway)
    assert (told.code, told.call_id) == (Code.CANCELLED, held.call_id)
    assert fresh.status is Status.HELD


@requirement("IDM-1", "IDM-5")
async def test_an_unknown_outcome_is_probed_for_the_client_that_comes_back(
    house: House, shelf: Shelf
) -> None:
    shelf.mood = "lose"
    async with house.gateway() as gateway:
        await house.clock.advance(1)
        unknown = await lost(gateway, to="place")
        shelf.mood = "well"
        seen = await got(gateway, to="place")
        fresh = await got(gateway, to="place")
    assert unknown.status in (Status.UNKNOWN, Status.DONE)  # a probe may be in time
    assert (seen.status, seen.call_id, seen.key_source) == (Status.DONE, unknown.call_id, KeySource.ADOPTED)
    assert fresh.call_id != unknown.call_id
    assert shelf.items == ["milk", "milk"]


@requirement("IDM-1", "IDM-5")
@pytest.mark.parametrize("outcome", ["committed", "no-effect"])
async def test_what_a_person_settles_is_told_to_the_client_that_comes_back(
    house: House, shelf: Shelf, outcome: Any
) -> None:
    shelf.mood = "lose"
    operator = replace(ANA, roles=frozenset({"operator"}))
    async with house.gateway() as gateway:
        unknown = await got(gateway)
        shelf.mood = "well"
        await gateway.settle(operator, unknown.call_id, outcome, "looked")
        seen, fresh = await got(gateway), await got(gateway)
    assert (unknown.status, seen.status) == (Status.UNKNOWN, Status.DONE)
    assert seen.call_id == unknown.call_id
    assert seen.replayed is (outcome == "committed")
    assert fresh.call_id != unknown.call_id


# --- whatever happens ----------------------------------------------------------------------------

EVENTS = st.sampled_from(["answer lost", "left while it ran", "no effect", "outcome lost", "process gone"])


INTENTIONS = st.lists(st.lists(EVENTS, max_size=4), min_size=1, max_size=3)


@requirement("IDM-1", "IDM-4")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@given(INTENTIONS)
@settings(max_examples=25, deadline=None)
def test_a_client_that_calls_until_it_has_an_answer_acts_once_each_time(
    kind: str, intentions: list[list[str]]
) -> None:
    _acts_once_each_time(kind, intentions)


@requirement("IDM-1", "IDM-4")
@given(INTENTIONS)
@settings(max_examples=6, deadline=None)  # each opens a store for every process
def test_a_client_that_calls_until_it_has_an_answer_acts_once_each_time_on_postgres(
    intentions: list[list[str]],
) -> None:
    _acts_once_each_time("postgres", intentions)


def _acts_once_each_time(kind: str, intentions: list[list[str]]) -> None:
    async def scenario(folder: Path) -> None:
        shelf = Shelf()
        house = House(kind, folder, shelf)
        for number, events in enumerate(intentions, start=1):
            for event in (*events, "well"):
                if await _happens(event, house, shelf):
                    break
            assert len(shelf.items) == number, (intentions, shelf.items)

    async def placed() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with place(kind, Path(folder)):
                await scenario(Path(folder))

    asyncio.run(placed())


async def _happens(event: str, house: House, shelf: Shelf) -> bool:
    """Whether the client has its answer now."""
    shelf.mood = {"no effect": "no_effect", "outcome lost": "lose", "left while it ran": "wait"}.get(
        event, "well"
    )
    async with house.gateway() as gateway:
        if event == "left while it ran":
            await _left(house, gateway, shelf)
            return False
        seen = await ask(gateway, to="place")
        if event == "process gone":
            return False
        if event in ("answer lost", "outcome lost"):
            await gateway.abandoned(ANA, seen.call_id)
            return False
        await gateway.delivered(ANA, seen.call_id)
        assert event != "well" or seen.status is Status.DONE
        return seen.status is Status.DONE


async def _left(house: House, gateway: Gateway, shelf: Shelf) -> None:
    shelf.release = asyncio.Event()
    request = asyncio.create_task(ask(gateway, to="place"))
    await settle_loop(100)
    await house.clock.quiet()
    request.cancel()
    shelf.release.set()
    await asyncio.gather(request, return_exceptions=True)
