"""Is a person asked once, heard once, and never overheard?"""

from dataclasses import replace

import pytest

from holdfast.model import defaults
from holdfast.model.approval import Answer, due_level
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError, TooManyAsks
from holdfast.model.vocabulary import State
from tests.requirements import requirement
from tests.stores.calls import BOB, OTHER_TENANT, make_call
from tests.stores.world import World, ref_of

OLGA, OMAR = Principal(user="olga"), Principal(user="omar")
ONE, TWO = {"operator": 1}, {"operator": 2}


@requirement("DEC-2")
async def test_asking_holds_the_operation_and_claiming_keeps_its_call_id(world: World) -> None:
    first = make_call(world.clock)
    asked = await world.approvals.ask(first, ONE, {"action": "pay"})
    held = await world.look(first)
    assert (held.state, held.epoch, held.call_id, held.orphaned) == (State.HELD, 0, first.id, False)
    assert (asked.call_id, asked.ref, dict(asked.packet)) == (first.id, first.ref, {"action": "pay"})
    claimed = await world.claim(make_call(world.clock))
    assert (claimed.call_id, claimed.epoch) == (first.id, 1)


@requirement("APR-4")
async def test_asking_again_finds_the_open_question(world: World) -> None:
    first = await world.approvals.ask(make_call(world.clock), ONE, {"n": 1})
    again = await world.approvals.ask(make_call(world.clock), ONE, {"n": 2})
    assert again == first
    assert await world.approvals.open("default") == [first]


@requirement("APR-4")
async def test_a_need_that_rose_voids_the_question(world: World) -> None:
    granted = await world.grant(make_call(world.clock))
    asked = await world.approvals.ask(make_call(world.clock), TWO, {})
    assert (asked.id != granted.id, asked.answer) == (True, Answer.PENDING)
    found = await world.approvals.find(ref_of(make_call(world.clock)))
    assert found is not None
    assert found.id == asked.id


@requirement("APR-4")
async def test_a_denied_key_stays_denied(world: World) -> None:
    asked = await world.approvals.ask(make_call(world.clock), TWO, {})
    denied = await world.approvals.decide(asked, OLGA, "operator", False, "no")
    assert denied.answer is Answer.DENIED
    assert (await world.approvals.ask(make_call(world.clock), ONE, {})).id == asked.id
    with pytest.raises(HoldfastError, match="already answered: DENIED"):
        await world.approvals.decide(asked, OMAR, "operator", True, "")


@requirement("APR-4")
async def test_everybody_needed_must_say_yes_and_nobody_counts_twice(world: World) -> None:
    asked = await world.approvals.ask(make_call(world.clock), {"operator": 2, "compliance": 1}, {})
    once = await world.approvals.decide(asked, OLGA, "operator", True, "fine")
    assert (once.answer, once.missing) == (Answer.PENDING, {"operator": 1, "compliance": 1})
    with pytest.raises(HoldfastError, match="'olga' has already voted"):
        await world.approvals.decide(asked, OLGA, "compliance", True, "")
    await world.clock.advance(1.0)
    await world.approvals.decide(asked, OMAR, "operator", True, "")
    await world.clock.advance(1.0)
    last = await world.approvals.decide(asked, Principal(user="cleo"), "compliance", True, "")
    assert (last.answer, [vote.person for vote in last.votes]) == (Answer.APPROVED, ["olga", "omar", "cleo"])
    assert await world.approvals.get("default", asked.id) == last
    assert world.kinds() == ["ask", "vote", "vote", "vote"]


@requirement("APR-3")
async def test_only_questions_that_are_due_are_told_and_none_of_those_is_missed(world: World) -> None:
    chain, told = (("operator",), ("compliance",), ("security",)), []
    asked = await world.approvals.ask(make_call(world.clock), ONE, {"n": 1})
    assert await world.approvals.due(3) == []
    for _ in range(100):
        await world.clock.advance(defaults.APPROVAL_S / 100)
        due = await world.approvals.due(3)
        [level] = {due_level(one, world.clock.now(), chain) for one in due} or {0}
        if due and due[0].expires_at > world.clock.now():
            assert (due[0].id, dict(due[0].packet), due[0].level) == (asked.id, {}, level - 1)
            assert await world.approvals.escalate(due[0], level, chain[level])
            told.append(level)
        else:
            assert due_level(replace(asked, level=0), world.clock.now(), chain) == len(told)
    assert told == [1, 2]
    assert [one.id for one in await world.approvals.due(3)] == [asked.id]  # past its time
    assert [one.id for one in await world.approvals.due(0)] == [asked.id]
    assert await world.approvals.expire(asked)
    assert await world.approvals.due(3) == []


@requirement("APR-3")
async def test_nobody_is_asked_instead_where_there_is_nobody_else(world: World) -> None:
    await world.approvals.ask(make_call(world.clock), ONE, {})
    await world.clock.advance(defaults.APPROVAL_S - 1.0)
    assert [len(await world.approvals.due(groups)) for groups in (0, 1, 2)] == [0, 0, 1]


@requirement("APR-3")
async def test_unanswered_means_denied_even_if_the_clock_is_set_back(world: World) -> None:
    asked = await world.approvals.ask(make_call(world.clock), ONE, {})
    await world.clock.advance(defaults.APPROVAL_S)
    with pytest.raises(HoldfastError, match="has expired"):
        await world.approvals.decide(asked, OLGA, "operator", True, "")
    assert await world.approvals.open("default") == []
    found = await world.approvals.find(asked.ref)
    assert found is not None
    assert found.answer is Answer.AUTO_DENIED
    world.clock.jump(-2 * defaults.APPROVAL_S)
    found = await world.approvals.get("default", asked.id)
    assert found is not None
    assert found.answer is Answer.AUTO_DENIED


@requirement("APR-4")
async def test_open_questions_are_capped_per_principal(world: World) -> None:
    for n in range(defaults.OPEN_ASKS):
        await world.approvals.ask(make_call(world.clock, f"k{n}"), ONE, {})
    with pytest.raises(TooManyAsks, match="'alice/bot' has 50 open questions"):
        await world.approvals.ask(make_call(world.clock, "more"), ONE, {})
    assert await world.ledger.find(ref_of(make_call(world.clock, "more"))) is None
    await world.approvals.ask(make_call(world.clock, "k", principal=BOB), ONE, {})
    await world.approvals.ask(make_call(world.clock, "k0"), ONE, {})  # this one stands already


@requirement("DEC-2")
async def test_what_ran_or_is_another_call_cannot_be_held(world: World) -> None:
    await world.run(make_call(world.clock, "done"), State.COMMITTED)
    with pytest.raises(HoldfastError, match="'done' is already committed"):
        await world.approvals.ask(make_call(world.clock, "done"), ONE, {})
    await world.approvals.ask(make_call(world.clock, "held"), ONE, {})
    with pytest.raises(HoldfastError, match="'held' is already held"):
        await world.approvals.ask(make_call(world.clock, "held", arguments={"amount": 8}), ONE, {})


@requirement("DEC-2")
async def test_what_had_no_effect_can_wait_for_approval_again(world: World) -> None:
    first = make_call(world.clock)
    await world.run(first, State.NO_EFFECT)
    asked = await world.approvals.ask(make_call(world.clock), ONE, {})
    assert asked.call_id == first.id
    assert (await world.look(first)).state is State.HELD


@requirement("PPL-4")
async def test_cancelling_a_held_operation_closes_its_question(world: World) -> None:
    call = make_call(world.clock)
    asked = await world.approvals.ask(call, ONE, {})
    assert await world.settle(await world.look(call), State.FAILED_FINAL)
    found = await world.approvals.get("default", asked.id)
    assert found is not None
    assert found.answer is Answer.AUTO_DENIED


@requirement("AUT-6")
async def test_tenants_do_not_see_each_others_questions(world: World) -> None:
    asked = await world.approvals.ask(make_call(world.clock), ONE, {})
    await world.approvals.ask(make_call(world.clock, principal=OTHER_TENANT), ONE, {})
    assert await world.approvals.get("acme", asked.id) is None
    assert [a.id for a in await world.approvals.open("default")] == [asked.id]
