"""Does a grant add for a time to what somebody holds, within every limit, in every process?"""

from dataclasses import replace

import pytest

from holdfast import Code, Principal, Status
from holdfast.model.defaults import GRANT_REFRESH_S, GRANT_S
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from tests.access.office import ANA, BEA, CONFIG, FINA, OLGA, OTTO, Allow, Office
from tests.requirements import requirement

SCOPE = "orders:refund"


async def caller(office: Office, agent: str | None = None, **limits: list[str]) -> Principal:
    plain, _ = await office.one.keys.create(OLGA, "ana", agent=agent, scopes=limits.get("scopes"))
    return await office.come_in(office.one, plain)


@requirement("AUT-4", "PPL-6")
async def test_a_grant_lets_a_call_through_that_was_refused_and_its_end_ends_that(office: Office) -> None:
    plain, _ = await office.one.keys.create(OLGA, "ana", agent="bot")
    before = await office.refund(office.other, await office.come_in(office.other, plain), "o-1")
    assert before.code is Code.TOOL_NOT_FOUND
    grant = await office.one.grants.give(OLGA, "ana", SCOPE, note="moving")
    assert grant.expires_at == office.house.clock.now() + GRANT_S
    await office.other.access.follow()
    after = await office.refund(office.other, await office.come_in(office.other, plain), "o-2")
    assert after.status is Status.DONE
    await office.house.clock.advance(GRANT_S)
    over = await office.refund(office.other, await office.come_in(office.other, plain), "o-3")
    assert over.code is Code.TOOL_NOT_FOUND
    assert office.orders.refunded == ["o-2"]


@requirement("AUT-4", "PPL-6")
async def test_a_grant_that_is_revoked_ends_at_once_in_every_process(office: Office) -> None:
    grant = await office.one.grants.give(OLGA, "ana", SCOPE)
    await office.other.access.follow()
    plain, _ = await office.one.keys.create(OLGA, "ana")
    let_in = await office.come_in(office.other, plain)
    assert f"grant:{grant.id}" in let_in.rests_on
    await office.one.grants.revoke(OLGA, grant.id)
    refused = await office.refund(office.other, let_in)
    assert (refused.code, office.orders.refunded) == (Code.PERMISSION_DENIED, [])
    await office.other.access.follow()
    assert (await office.come_in(office.other, plain)).scopes == {"orders:read"}


@requirement("AUT-5")
async def test_a_grant_crosses_neither_the_limit_of_an_agent_nor_that_of_a_key(office: Office) -> None:
    await office.one.grants.give(OLGA, "ana", "orders:*")
    assert (await caller(office)).scopes == {"orders:read", "orders:*"}
    for limited in (await caller(office, "narrow"), await caller(office, scopes=["orders:read"])):
        assert limited.scopes == {"orders:read"}
        assert not any(name.startswith("grant:") for name in limited.rests_on)


@requirement("AUT-4")
async def test_a_grant_for_one_agent_is_that_agents_alone(office: Office) -> None:
    await office.one.grants.give(OLGA, "ana", SCOPE, agent="bot")
    assert SCOPE in (await caller(office, "bot")).scopes
    assert SCOPE not in (await caller(office)).scopes


@requirement("AUT-4")
async def test_a_star_stays_in_its_word_and_two_cross(office: Office) -> None:
    await office.one.grants.give(OLGA, "ana", "mail:*")
    assert "mail:*" in (await caller(office)).scopes
    with pytest.raises(HoldfastError, match="stands alone"):
        await office.one.grants.give(OLGA, "ana", "mail:a**")


@requirement("AUT-4", "AUT-6")
async def test_grants_are_given_by_operators_to_others_of_their_tenant(office: Office) -> None:
    with pytest.raises(Forbidden, match="needs the role 'operator'"):
        await office.one.grants.give(ANA, "bea", SCOPE)
    with pytest.raises(Forbidden, match="nobody gives themselves"):
        await office.one.grants.give(OLGA, "olga", SCOPE)
    for by, whom in ((OLGA, "fred"), (FINA, "ana"), (OLGA, "nobody")):
        with pytest.raises(NotFound):
            await office.one.grants.give(by, whom, SCOPE)


@requirement("AUT-6")
async def test_grants_are_seen_and_revoked_by_those_they_concern(office: Office) -> None:
    grant = await office.one.grants.give(OLGA, "ana", SCOPE)
    assert [one.id for one in await office.other.grants.list(ANA)] == [grant.id]
    assert await office.other.grants.list(BEA) == []
    assert await office.other.grants.list(FINA) == []
    for stranger in (BEA, FINA):
        with pytest.raises(NotFound):
            await office.one.grants.revoke(stranger, grant.id)
    agent = replace(ANA, agent="bot")
    with pytest.raises(NotFound):
        await office.one.grants.revoke(agent, grant.id)
    assert (await office.one.grants.revoke(ANA, grant.id)).ended_by == "ana"


@requirement("AUT-4")
@pytest.mark.parametrize("life_s", [0.5, 1e9])
async def test_a_grant_is_always_bound_in_time(office: Office, life_s: float) -> None:
    with pytest.raises(HoldfastError, match="lasts from"):
        await office.one.grants.give(OLGA, "ana", SCOPE, life_s=life_s)


# --- renewal ------------------------------------------------------------------------------


@requirement("AUT-4")
async def test_a_grant_that_says_so_is_renewed_before_it_ends_once_by_whichever_process(
    office: Office,
) -> None:
    clock = office.house.clock
    grant = await office.one.grants.give(OLGA, "ana", SCOPE, life_s=600, renew=True)
    await clock.advance(600 - GRANT_REFRESH_S - 1)
    await office.one.tidy()
    assert (await office.one.grants.list(OLGA))[0].expires_at == grant.expires_at
    await clock.advance(1)
    for gateway in (office.one, office.other):
        await gateway.tidy()
    [renewed] = await office.one.grants.list(OLGA)
    assert renewed.expires_at == clock.now() + 600
    assert office.done() == ["grant", "renew grant"]
    await clock.advance(300)
    assert SCOPE in (await caller(office)).scopes


@requirement("AUT-4")
async def test_a_grant_that_does_not_say_so_ends(office: Office) -> None:
    await office.one.grants.give(OLGA, "ana", SCOPE, life_s=600)
    await office.house.clock.advance(595)
    await office.one.tidy()
    await office.house.clock.advance(5)
    assert SCOPE not in (await caller(office)).scopes


@requirement("AUT-4")
async def test_a_revoked_grant_is_not_renewed(office: Office) -> None:
    grant = await office.one.grants.give(OLGA, "ana", SCOPE, life_s=600, renew=True)
    await office.one.grants.revoke(OLGA, grant.id)
    await office.house.clock.advance(595)
    await office.other.tidy()
    assert office.done() == ["grant", "revoke"]


@requirement("AUT-4")
async def test_a_grant_is_not_renewed_once_who_gave_it_may_give_none(office: Office) -> None:
    await office.one.grants.give(OLGA, "ana", SCOPE, life_s=600, renew=True)
    people = {**CONFIG["auth"]["people"], "olga": {}}
    later = {"auth": {**CONFIG["auth"], "people": people}}
    await office.house.clock.advance(595)
    async with office.house.gateway(office.orders, config=later, policy=Allow()) as gateway:
        await gateway.prepare()
        await gateway.tidy()
        [grant] = await gateway.grants.list(OTTO)
    assert (grant.renewed, grant.expires_at) == (False, grant.at + 600)
    assert [told["why"] for told in office.told() if "why" in told] == ["'olga' may no longer give it"]


@requirement("AUT-4")
async def test_a_life_that_is_shorter_than_its_renewal_is_refused(office: Office) -> None:
    with pytest.raises(HoldfastError, match="lasts 120 s at least"):
        await office.one.grants.give(OLGA, "ana", SCOPE, life_s=60, renew=True)
