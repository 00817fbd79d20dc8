"""Does exactly one of many get the right to act?"""

import asyncio

import pytest

from holdfast.model.call import Principal
from holdfast.model.errors import Code
from holdfast.model.observation import Status
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Taken
from tests.requirements import requirement
from tests.stores.calls import BOB, LOOK, OTHER_TENANT, PAY_2, make_call, observed
from tests.stores.world import World, ref_of


@requirement("IDM-4", "DEC-2")
async def test_of_many_duplicates_at_once_exactly_one_gets_the_claim(world: World) -> None:
    calls = [make_call(world.clock, "k-1") for _ in range(50)]
    answers = await asyncio.gather(*map(world.ledger.begin, calls))
    won = [answer.operation for answer in answers if isinstance(answer, Begun)]
    lost = [answer.operation for answer in answers if isinstance(answer, Taken)]
    assert len(won) == 1
    assert won[0] is not None
    assert {(o.call_id, o.nonce, o.epoch) for o in lost} == {(won[0].call_id, won[0].nonce, 1)}
    assert len(lost) == 49


@requirement("IDM-4")
async def test_a_claim_is_there_for_everybody_before_begin_returns(world: World) -> None:
    call = make_call(world.clock)
    claimed = await world.claim(call)
    found = await world.look(call)
    assert (found.state, found.epoch, found.nonce) == (State.DISPATCHED, 1, call.nonce)
    assert (found.call_id, found.owner, found.fingerprint) == (claimed.call_id, "w_test", call.fingerprint)
    assert await world.ledger.find_call("default", call.id) == found


@requirement("IDM-3")
async def test_the_same_key_with_other_arguments_leaves_the_first_as_it_is(world: World) -> None:
    first = make_call(world.clock, arguments={"amount": 1})
    await world.claim(first)
    assert (await world.taken(make_call(world.clock, arguments={"amount": 2}))).call_id == first.id
    assert (await world.look(first)).fingerprint == first.fingerprint


@requirement("IDM-2", "AUT-6")
@pytest.mark.parametrize("principal", [BOB, OTHER_TENANT], ids=["other user", "other tenant"])
async def test_keys_of_others_are_other_keys(world: World, principal: Principal) -> None:
    first = make_call(world.clock, "k-1")
    second = make_call(world.clock, "k-1", principal=principal)
    assert (await world.claim(first)).call_id != (await world.claim(second)).call_id
    assert await world.ledger.find_call(second.principal.tenant, second.id) is not None
    if second.principal.tenant != "default":
        assert await world.ledger.find_call("default", second.id) is None


@requirement("IDM-5")
async def test_what_had_no_effect_is_claimed_again_under_its_first_call_id(world: World) -> None:
    first, second = make_call(world.clock), make_call(world.clock)
    await world.run(first, State.NO_EFFECT)
    claimed = await world.claim(second)
    assert (claimed.epoch, claimed.call_id, claimed.nonce) == (2, first.id, second.nonce)
    assert await world.look(second) == (await world.ledger.find_call("default", first.id))


@requirement("IDM-3")
@pytest.mark.parametrize("changed", ["arguments", "contract"])
async def test_what_had_no_effect_is_not_claimed_by_another_call(world: World, changed: str) -> None:
    await world.run(make_call(world.clock), State.NO_EFFECT)
    other = (
        make_call(world.clock, arguments={"amount": 8})
        if changed == "arguments"
        else make_call(world.clock, tool=PAY_2)
    )
    assert (await world.taken(other)).state is State.NO_EFFECT


@requirement("IDM-3", "IDM-5")
@pytest.mark.parametrize("state", [State.COMMITTED, State.UNKNOWN, State.FAILED_FINAL])
async def test_what_may_have_had_an_effect_is_never_free_again(world: World, state: State) -> None:
    await world.run(make_call(world.clock), state)
    await world.clock.advance(1e9)
    world.boot.restart()
    await world.ledger.forget()
    assert (await world.taken(make_call(world.clock))).state is state


@requirement("IDM-5")
async def test_an_unknown_one_is_claimed_again_only_where_the_upstream_honours_the_key(world: World) -> None:
    first = make_call(world.clock)
    await world.run(first, State.UNKNOWN)
    again = make_call(world.clock)
    again.rerun_unknown = True
    assert (await world.claim(again)).epoch == 2
    assert not await world.end(first, State.COMMITTED), "the first attempt no longer owns the key"


@requirement("AUD-1")
async def test_a_read_claims_nothing_and_is_on_record_before_it_runs(world: World) -> None:
    call = make_call(world.clock, "k-1", tool=LOOK)
    assert await world.ledger.begin(call) == Begun(None)
    assert world.kinds() == ["intent"]
    assert await world.ledger.find(ref_of(call)) is None
    assert await world.ledger.finish(call, observed(call, data=[1]), None)
    assert world.kinds() == ["intent", "outcome"]


@requirement("LIF-3")
async def test_the_proposal_is_kept_so_that_it_can_be_made_again(world: World) -> None:
    call = make_call(world.clock, arguments={"amount": 9, "to": "é"})
    await world.claim(call)
    payload = (await world.look(call)).payload
    assert payload is not None
    assert b'"arguments":{"amount":9,"to":"\xc3\xa9"}' in payload
    assert (
        b'"principal":{"user":"alice","agent":"bot","roles":["user"],"scopes":["pay.*"],"trust":70}'
        in payload
    )


@requirement("AUD-1")
async def test_what_did_not_run_leaves_one_record_of_its_kind(world: World) -> None:
    call = make_call(world.clock)
    await world.ledger.refuse(
        call, observed(call, Status.REFUSED, Code.TOOL_NOT_FOUND), Code.PERMISSION_DENIED
    )
    await world.ledger.refuse(call, observed(call, Status.HELD), None)
    await world.ledger.refuse(call, observed(call, replayed=True), None)
    assert world.kinds() == ["refusal", "hold", "replay"]
    assert '"error_code":"PERMISSION_DENIED"' in world.records()[0].body
