"""Do keys that are made while gateways run open every door at once, and no wider than they may?"""

import asyncio
from typing import Any, cast

import pytest

from holdfast import Code, Status
from holdfast.identity import Unauthenticated, mint
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from holdfast.ports import Access as Kept
from tests.access.office import ANA, ANA_KEY, ANA_KEY_ID, BEA, FINA, OLGA, OTTO, Office
from tests.requirements import requirement


@requirement("AUT-1", "PPL-6")
async def test_a_key_works_at_once_in_every_process(office: Office) -> None:
    plain, key = await office.one.keys.create(OLGA, "ana", agent="bot")
    for gateway in (office.one, office.other):
        caller = await office.come_in(gateway, plain)
        assert (caller.user, caller.agent, caller.rests_on) == ("ana", "bot", (f"key:{key.id}",))


@requirement("AUT-1")
async def test_the_key_itself_is_kept_nowhere(office: Office) -> None:
    plain, key = await office.one.keys.create(OLGA, "ana")
    secret = plain.rpartition("_")[2]
    assert secret not in repr(key)
    assert secret not in str(office.told())
    assert key.hash.startswith("sha256:")


@requirement("AUT-1", "PPL-6")
async def test_a_revoked_key_opens_nothing_in_any_process(office: Office) -> None:
    plain, key = await office.one.keys.create(OLGA, "ana", agent="bot")
    await office.come_in(office.other, plain)
    await office.one.keys.revoke(OLGA, key.id, "lost")
    with pytest.raises(Unauthenticated):
        await office.come_in(office.one, plain)
    await office.other.access.follow()
    with pytest.raises(Unauthenticated):
        await office.come_in(office.other, plain)


@requirement("AUT-1")
async def test_a_key_of_the_configuration_is_revoked_too_and_stays_so_after_a_restart(office: Office) -> None:
    assert (await office.come_in(office.one, ANA_KEY)).user == "ana"
    await office.one.keys.revoke(OLGA, ANA_KEY_ID)
    await office.other.access.follow()
    for gateway in (office.one, office.other):
        with pytest.raises(Unauthenticated, match="revoked"):
            await office.come_in(gateway, ANA_KEY)
        with pytest.raises(Unauthenticated, match="revoked"):
            gateway.identity.at_terminal(key=ANA_KEY)


@requirement("AUT-4")
async def test_a_call_whose_key_is_revoked_between_the_door_and_the_claim_does_not_act(
    office: Office,
) -> None:
    plain, key = await office.one.keys.create(OLGA, "ana")
    await office.one.grants.give(OLGA, "ana", "orders:refund")
    await office.other.access.follow()
    caller = await office.come_in(office.other, plain)  # let in, and on its way
    await office.one.keys.revoke(OLGA, key.id)
    refused = await office.refund(office.other, caller)
    assert (refused.status, refused.code) == (Status.REFUSED, Code.PERMISSION_DENIED)
    assert office.orders.refunded == []
    assert any("revoked" in str(told["alarm"]) for told in office.told("security"))


@requirement("AUT-1", "AUT-5")
async def test_a_key_holds_no_more_than_its_person_and_its_own_scopes(office: Office) -> None:
    wide, _ = await office.one.keys.create(OLGA, "ana", scopes=["**"])
    none, _ = await office.one.keys.create(OLGA, "ana", scopes=["mail:*"])
    assert (await office.come_in(office.one, wide)).scopes == {"orders:read"}
    assert (await office.come_in(office.one, none)).scopes == frozenset()


@requirement("AUT-1")
async def test_a_key_ends_when_it_was_to_end(office: Office) -> None:
    now = office.house.clock.now()
    plain, _ = await office.one.keys.create(OLGA, "ana", expires_at=now + 10)
    await office.come_in(office.one, plain)
    await office.house.clock.advance(10)
    with pytest.raises(Unauthenticated, match="expired"):
        await office.come_in(office.one, plain)


@requirement("APR-2", "AUT-5")
async def test_a_key_that_somebody_else_made_does_not_give_the_roles_of_its_person(office: Office) -> None:
    """Else one operator could be two."""
    theirs, _ = await office.one.keys.create(OLGA, "otto")
    own, _ = await office.one.keys.create(OTTO, "otto")
    assert (await office.come_in(office.one, theirs)).roles == frozenset()
    assert (await office.come_in(office.one, own)).roles == {"operator"}


@requirement("AUT-5")
async def test_nobody_makes_themselves_a_wider_key_than_the_one_they_hold(office: Office) -> None:
    narrow, _ = await office.one.keys.create(OTTO, "otto", scopes=["mail:read"])
    caller = await office.come_in(office.one, narrow)
    assert "operator" in caller.roles
    with pytest.raises(Forbidden, match="does not hold 'orders:read'"):
        await office.one.keys.create(caller, "otto")


@requirement("AUT-1", "AUT-6")
async def test_only_operators_make_keys_and_only_for_their_tenant(office: Office) -> None:
    with pytest.raises(Forbidden, match="needs the role 'operator'"):
        await office.one.keys.create(ANA, "ana")
    for by, user in ((OLGA, "fred"), (FINA, "ana"), (OLGA, "nobody")):
        with pytest.raises(NotFound):
            await office.one.keys.create(by, user)
    with pytest.raises(NotFound, match="no agent"):
        await office.one.keys.create(OLGA, "bea", agent="bot")
    with pytest.raises(HoldfastError, match="ended before"):
        await office.one.keys.create(OLGA, "ana", expires_at=1.0)


@requirement("AUT-1", "AUT-6")
async def test_keys_are_listed_without_their_hashes_to_those_they_concern(office: Office) -> None:
    _, key = await office.one.keys.create(OLGA, "bea")
    listed = await office.other.keys.list(OLGA)
    assert [(one.id, one.made_by) for one in listed] == [(key.id, "olga"), (ANA_KEY_ID, "config")]
    assert [one.id for one in await office.other.keys.list(BEA)] == [key.id]
    assert await office.other.keys.list(FINA) == []
    await office.one.keys.revoke(OLGA, ANA_KEY_ID)
    assert [one.ended_by for one in await office.other.keys.list(OLGA)] == [None, "olga"]


@requirement("AUT-1", "AUT-6")
async def test_a_key_is_revoked_by_its_person_or_an_operator_of_their_tenant_and_once(office: Office) -> None:
    _, key = await office.one.keys.create(OLGA, "ana")
    for stranger in (BEA, FINA):
        with pytest.raises(NotFound):
            await office.one.keys.revoke(stranger, key.id)
    await office.one.keys.revoke(ANA, key.id)
    with pytest.raises(NotFound, match="before"):
        await office.one.keys.revoke(OLGA, key.id)


@requirement("AUT-1")
async def test_the_first_key_of_all_needs_no_other(office: Office) -> None:
    """Not here: the configuration has one."""
    with pytest.raises(Forbidden, match="HOLDFAST_API_KEY"):
        await office.one.keys.create_first("terminal:root", "olga")


@requirement("AUT-4")
async def test_a_token_is_revoked_by_name_in_every_process(office: Office) -> None:
    assert await office.one.keys.revoke(OLGA, "token:t-1") == "token:t-1"
    await office.other.access.follow()
    assert "default/token:t-1" in office.other.identity.taken_back
    with pytest.raises(Forbidden):
        await office.one.keys.revoke(ANA, "token:t-2")


class Counted:
    """The keys of a store that is slow at first, and how often somebody asked it whether anything changed."""

    def __init__(self, kept: Kept) -> None:
        self._kept, self.asked, self.opened = kept, 0, asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)

    async def changed(self) -> int:
        self.asked += 1
        await self.opened.wait()
        return await self._kept.changed()


@requirement("AUT-1")
async def test_many_strangers_with_unknown_keys_make_the_store_be_asked_once_for_all(office: Office) -> None:
    access = office.one.access
    counted = Counted(access.kept)
    made, _ = await office.other.keys.create(OLGA, "bea")
    access.kept = cast(Kept, counted)
    shown = [made, *(mint("bea")[0] for _ in range(50))]
    learning = [office.one.identity.learn({"authorization": f"Bearer {key}"}) for key in shown]

    async def open_door() -> None:  # runs when all of them wait
        counted.opened.set()

    await asyncio.gather(*learning, open_door())
    assert (await office.come_in(office.one, made)).user == "bea"
    assert counted.asked <= 4


@requirement("AUT-4")
async def test_what_was_revoked_is_remembered_no_longer_than_it_would_have_lasted(office: Office) -> None:
    access, now = office.one.access, office.house.clock.now()
    for name, until in (("token:hf-1", now + 10), ("token:hf-2", now + 100), ("token:hf-3", now + 10)):
        await access.revoke(OLGA, name, until=until)
    await office.house.clock.advance(50)
    await access.forget()
    assert "default/token:hf-1" not in office.one.identity.taken_back
    assert "default/token:hf-2" in office.one.identity.taken_back
