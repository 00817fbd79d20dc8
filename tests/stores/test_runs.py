"""Does a store begin a run once, let one process drive it, and keep what its steps came to?"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError, Overtaken
from holdfast.model.observation import Status
from holdfast.model.run import Evidence, Inversion, Line, Run, RunState, StepState
from holdfast.model.vocabulary import State
from holdfast.ports import Settlement
from tests.requirements import requirement
from tests.stores.calls import PAY, make_call, observed
from tests.stores.world import World

RUN = Run(
    tenant="default",
    id="run_1",
    chain="order",
    version="1.0.0",
    key="k-1",
    fingerprint="f-1",
    declared={"chain": "order", "steps": []},
    input={"card": "4111-secret"},
    principal="alice/bot",
    wanted_by={"user": "alice"},
)


def line(name: str, **said: Any) -> Line:
    return Line(name=name, state=StepState.DONE, tool="shop.pay", call_id="call_1", **said)


@requirement("CHN-7")
async def test_a_run_is_begun_once_for_a_key(world: World) -> None:
    first = await world.runs.begin(RUN)
    again = await world.runs.begin(replace(RUN, id="run_2"))
    assert (first.id, again.id) == ("run_1", "run_1")
    assert (again.declared, again.input, again.wanted_by) == (RUN.declared, RUN.input, RUN.wanted_by)
    other = await world.runs.begin(replace(RUN, id="run_3", key="k-2"))
    assert other.id == "run_3"
    with pytest.raises(HoldfastError, match="used for another run"):
        await world.runs.begin(replace(RUN, id="run_4", fingerprint="f-2"))


@requirement("CHN-7")
async def test_whoever_takes_a_run_up_writes_for_it_and_nobody_else(world: World) -> None:
    await world.runs.begin(RUN)
    old = await world.runs.take_up("default", "run_1")
    assert old is not None
    before = world.runs.journal(old)
    await before.add(line("reserve"))
    new = await world.runs.take_up("default", "run_1")
    assert new is not None
    assert new.round == old.round + 1
    with pytest.raises(Overtaken):
        await before.add(line("charge"))
    with pytest.raises(Overtaken):
        await before.move(RunState.COMPLETED)
    with pytest.raises(Overtaken):
        await before.cancelled()
    await world.runs.journal(new).move(RunState.COMPLETED, output={"all": "well"})
    found = await world.runs.get("default", "run_1")
    assert found is not None
    assert (found.state, found.output) == (RunState.COMPLETED, {"all": "well"})
    assert await world.runs.take_up("default", "run_1") is None


@requirement("CHN-7")
async def test_what_a_step_came_to_is_written_once_and_in_order(world: World) -> None:
    await world.runs.begin(RUN)
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    journal = world.runs.journal(taken)
    first = await journal.add(line("reserve", arguments={"a": 1}, result={"id": "r"}, writes=True))
    again = await journal.add(line("reserve", result={"id": "other"}))
    await journal.add(line("charge", code="X", message="why"))
    assert (again.result, again.number) == (first.result, 0)
    lines = await world.runs.lines("default", "run_1")
    told = [(one.name, one.number, one.arguments, one.result, one.writes, one.code) for one in lines]
    assert told == [
        ("reserve", 0, {"a": 1}, {"id": "r"}, True, ""),
        ("charge", 1, None, None, False, "X"),
    ]


@requirement("CHN-7", "AUD-4")
async def test_what_steps_said_to_each_other_is_erased_when_the_run_is_over(world: World) -> None:
    await world.runs.begin(RUN)
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    journal = world.runs.journal(taken)
    await journal.add(line("reserve", result={"id": "r"}))
    await journal.move(RunState.COMPENSATING, why="x")
    assert (await world.runs.lines("default", "run_1"))[0].result == {"id": "r"}
    await journal.move(RunState.COMPENSATED, why="x")
    [kept] = await world.runs.lines("default", "run_1")
    assert (kept.name, kept.state, kept.result) == ("reserve", StepState.DONE, None)


@requirement("SAG-3")
async def test_a_person_cancels_resumes_and_abandons(world: World) -> None:
    await world.runs.begin(RUN)
    assert await world.runs.cancel("default", "run_1", "ben")
    assert not await world.runs.cancel("default", "run_1", "zoe")
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    journal = world.runs.journal(taken)
    assert await journal.cancelled() == "ben"
    await journal.move(RunState.COMPENSATION_FAILED, waits_for="a person")
    assert await world.runs.open() == [("default", "run_1")]
    resumed = await world.runs.take_up("default", "run_1")
    assert resumed is not None
    assert (resumed.state, resumed.waits_for) == (RunState.COMPENSATING, "")
    assert await world.runs.abandon("default", "run_1", "ben", "done by hand")
    assert not await world.runs.abandon("default", "run_1", "ben", "again")
    assert await world.runs.open() == []
    found = await world.runs.get("default", "run_1")
    assert found is not None
    assert (found.state, found.why) == (RunState.ABORTED, "abandoned by ben: done by hand")


@requirement("CHN-2")
async def test_a_person_chooses_once_for_a_run_that_waits_and_its_driver_is_overtaken(world: World) -> None:
    run = await world.runs.begin(RUN)
    way = Line(name="guess~choice", state=StepState.CHOSEN, result={"case": "pack"}, message="'pack'")
    assert await world.runs.choose(run, way, "ben") is None  # nobody waits yet
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    journal = world.runs.journal(taken)
    await journal.add(line("guess"))
    await journal.move(RunState.RUNNING, waits_for="a person: a choice", waits_on="")
    chosen = await world.runs.choose(run, way, "ben")
    assert chosen is not None
    assert (chosen.round, chosen.waits_for, chosen.state) == (taken.round + 1, "", RunState.RUNNING)
    with pytest.raises(Overtaken):
        await journal.add(line("charge"))
    kept = await world.runs.lines("default", "run_1")
    told = [(one.name, one.number, one.result, one.message) for one in kept]
    assert told == [("guess", 0, None, ""), ("guess~choice", 1, {"case": "pack"}, "'pack'")]
    again = await world.runs.take_up("default", "run_1")
    assert again is not None
    await world.runs.journal(again).move(RunState.RUNNING, waits_for="a person: a choice of another")
    assert await world.runs.choose(run, replace(way, result={"case": "charge"}), "zoe") is None
    assert len(await world.runs.lines("default", "run_1")) == 2


@requirement("CHN-2")
async def test_of_two_who_choose_at_once_one_is_heard(world: World) -> None:
    run = await world.runs.begin(RUN)
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    await world.runs.journal(taken).move(RunState.RUNNING, waits_for="a person: a choice")
    ways = [
        Line(name="guess~choice", state=StepState.CHOSEN, result={"case": case}) for case in ("pack", "ship")
    ]
    both = [world.runs.choose(run, way, "ben") for way in ways]
    heard = [one is not None for one in await asyncio.gather(*both)]
    assert sorted(heard) == [False, True]
    [kept] = await world.runs.lines("default", "run_1")
    assert kept.result == ways[heard.index(True)].result


@requirement("AUT-6")
async def test_no_tenant_sees_a_run_of_another(world: World) -> None:
    await world.runs.begin(RUN)
    await world.runs.begin(replace(RUN, tenant="other", input={"card": "none"}))
    assert [run.tenant for run in await world.runs.list("default")] == ["default"]
    mine = await world.runs.get("other", "run_1")
    assert mine is not None
    assert mine.input == {"card": "none"}
    assert await world.runs.get("third", "run_1") is None
    assert [run.id for run in await world.runs.list("default", principal="nobody/bot")] == []


@requirement("CHN-7")
async def test_a_run_is_due_when_what_it_waits_for_was_decided(world: World) -> None:
    call = make_call(world.clock, "k", tool=PAY)
    asked = await world.approvals.ask(call, {"operator": 1}, {})
    await world.runs.begin(RUN)
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    await world.runs.journal(taken).move(RunState.RUNNING, waits_for="approval", waits_on=asked.id)
    assert await world.runs.due() == []
    ben = Principal(user="ben", roles=frozenset({"operator"}))
    await world.approvals.decide(asked, ben, "operator", True, "")
    assert await world.runs.due() == [("default", "run_1", taken.round)]
    again = await world.runs.take_up("default", "run_1")
    assert again is not None
    assert await world.runs.due() == []


@requirement("CHN-7")
async def test_a_run_is_due_when_an_outcome_it_waits_for_is_known(world: World) -> None:
    call = make_call(world.clock, "k", tool=PAY)
    operation = await world.claim(call)
    assert await world.ledger.finish(call, observed(call, Status.UNKNOWN), State.UNKNOWN)
    await world.runs.begin(RUN)
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    await world.runs.journal(taken).move(RunState.RUNNING, waits_for="x", waits_on=operation.call_id)
    assert await world.runs.due() == []
    found = await world.ledger.find_call("default", operation.call_id)
    assert found is not None
    assert await world.ledger.settle(found, Settlement(state=State.NO_EFFECT, observation=None, by="ben"))
    assert await world.runs.due() == [("default", "run_1", taken.round)]


@requirement("CHN-7")
@pytest.mark.parametrize("first", ["left", "right", "unknown", "time"])
async def test_a_run_that_waits_for_several_is_due_with_the_first_of_them(world: World, first: str) -> None:
    asked = {}
    for name in ("left", "right"):
        asked[name] = await world.approvals.ask(make_call(world.clock, name, tool=PAY), {"operator": 1}, {})
    call = make_call(world.clock, "unknown", tool=PAY)
    operation = await world.claim(call)
    assert await world.ledger.finish(call, observed(call, Status.UNKNOWN), State.UNKNOWN)
    await world.runs.begin(RUN)
    taken = await world.runs.take_up("default", "run_1")
    assert taken is not None
    moment = f"at:{world.clock.now() + 60.0:.3f}"
    waits_on = " ".join([asked["left"].id, moment, operation.call_id, asked["right"].id])
    await world.runs.journal(taken).move(RunState.RUNNING, waits_for="several", waits_on=waits_on)
    assert await world.runs.due() == []
    match first:
        case "unknown":
            assert await world.settle(await world.look(call), State.NO_EFFECT)
        case "time":
            await world.clock.advance(60.0)
        case name:
            ben = Principal(user="ben", roles=frozenset({"operator"}))
            await world.approvals.decide(asked[name], ben, "operator", False, "")
    assert await world.runs.due() == [("default", "run_1", taken.round)]
    assert await world.runs.take_up("default", "run_1") is not None
    assert await world.runs.due() == []


@requirement("SAG-4")
async def test_what_is_known_of_an_undoing_is_kept_per_tenant_and_the_newest_counts(world: World) -> None:
    said = Evidence(digest="d-1", how=Inversion.REFUTED, chain="order", step="pay", by="ola")
    await world.runs.attest("default", [said, replace(said, digest="d-2")])
    await world.runs.attest("default", [replace(said, how=Inversion.ACCEPTED, by="ben", note="checked")])
    known = await world.runs.attested("default", ["d-1", "d-2", "d-3"])
    assert {digest: (one.how, one.by, one.note, one.step) for digest, one in known.items()} == {
        "d-1": (Inversion.ACCEPTED, "ben", "checked", "pay"),
        "d-2": (Inversion.REFUTED, "ola", "", "pay"),
    }
    assert not await world.runs.attested("acme", ["d-1"])


@requirement("SAG-3")
async def test_only_runs_that_wait_for_a_person_are_stuck_and_the_longest_wait_comes_first(
    world: World,
) -> None:
    for number, waits in enumerate(("", "approval 'a-1' of step 'pay'", "a person: b", "a person: a")):
        await world.runs.begin(replace(RUN, id=f"run_{number}", key=f"k-{number}"))
        taken = await world.runs.take_up("default", f"run_{number}")
        assert taken is not None
        await world.runs.journal(taken).move(RunState.RUNNING, waits_for=waits)
    assert [run.id for run in await world.runs.stuck("default", 10)] == ["run_2", "run_3"]
    assert [run.id for run in await world.runs.stuck("default", 1)] == ["run_2"]
    await world.runs.abandon("default", "run_2", "ola", "enough")
    assert [run.id for run in await world.runs.stuck("default", 10)] == ["run_3"]
    assert not await world.runs.stuck("acme", 10)


@requirement("CHN-7")
async def test_a_run_that_waits_for_nothing_and_was_not_taken_up_lately_is_idle(world: World) -> None:
    await world.runs.begin(RUN)
    await world.runs.begin(replace(RUN, id="run_2", key="k-2"))
    await world.clock.advance(10.0)
    since = world.clock.now() - 5.0
    assert await world.runs.idle(since) == [("default", "run_1", 0), ("default", "run_2", 0)]
    taken = await world.runs.take_up("default", "run_1")
    other = await world.runs.take_up("default", "run_2")
    assert taken is not None
    assert other is not None
    assert await world.runs.idle(since) == []
    await world.runs.journal(other).move(RunState.RUNNING, waits_for="a person")
    await world.clock.advance(10.0)
    assert await world.runs.idle(world.clock.now() - 5.0) == [("default", "run_1", 1)]
