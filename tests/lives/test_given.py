"""Does what was revoked stay revoked when a backup from before takes the store's place?"""

from dataclasses import replace

import pytest

from holdfast import Code, Principal, Status
from tests.lives.town import ANA, ZOE, Town
from tests.requirements import requirement

OPERATOR = replace(ANA, agent="local")


def resting_on(name: str) -> Principal:
    return replace(ANA, user="ben", rests_on=(name,))


@requirement("PPL-5", "AUT-4")
async def test_what_was_revoked_since_is_revoked_and_what_was_given_since_is_given(home: Town) -> None:
    async with home.open() as gateway:
        early = await gateway.grants.give(OPERATOR, "ben", "mail:send")
        _, key = await gateway.keys.create(OPERATOR, "ben")
    noon = await home.back_up()
    async with home.open() as gateway:
        await gateway.grants.revoke(OPERATOR, early.id)
        await gateway.keys.revoke(OPERATOR, key.id)
        await gateway.keys.revoke(OPERATOR, "token:t-1")
        late = await gateway.grants.give(OPERATOR, "ben", "mail:read")
    await home.restore(noon)
    async with home.open() as gateway:
        assert [one.ended_by for one in await gateway.grants.list(OPERATOR)] == [None], "as the backup has it"
    await home.recover()
    async with home.open() as gateway:
        found = {one.id: one.ended_by for one in await gateway.grants.list(OPERATOR)}
        assert found == {early.id: "ana", late.id: None}
        assert [one.ended_by for one in await gateway.keys.list(OPERATOR)] == ["ana"]
    for number, name in enumerate((early.name, key.name, "token:t-1")):
        refused = await home.call(f"k-{number}", principal=resting_on(name))
        assert (refused.status, refused.code) == (Status.REFUSED, Code.PERMISSION_DENIED)


@requirement("PPL-5", "AUT-4")
async def test_a_gateway_that_is_open_hears_of_what_recovery_brings(home: Town) -> None:
    noon = await home.back_up()
    async with home.open() as gateway:
        grant = await gateway.grants.give(OPERATOR, "ben", "mail:read")
    await home.restore(noon)
    async with home.open() as gateway:
        assert gateway.identity.given == {}
        await home.recover()
        await gateway.access.follow()
        assert [one.id for one in gateway.identity.given["default", "ben"]] == [grant.id]


@requirement("PPL-5", "AUT-4")
@pytest.mark.parametrize("name", ["key", "grant"])
async def test_an_exported_log_tells_what_was_revoked(home: Town, name: str) -> None:
    async with home.open() as gateway:
        grant = await gateway.grants.give(OPERATOR, "ben", "mail:send")
        _, key = await gateway.keys.create(OPERATOR, "ben")
    noon = await home.back_up()
    async with home.open() as gateway:
        await gateway.grants.revoke(OPERATOR, grant.id)
        await gateway.keys.revoke(OPERATOR, key.id)
    log = await home.export()
    await home.restore(noon)
    await home.recover(log, note="the disk died")
    rests = {"key": key.name, "grant": grant.name}[name]
    refused = await home.call("k-1", principal=resting_on(rests))
    assert (refused.status, refused.code) == (Status.REFUSED, Code.PERMISSION_DENIED)
    assert (await home.call("k-2", principal=replace(ZOE, rests_on=(rests,)))).status is Status.DONE
    async with home.open() as gateway:
        assert gateway.identity.given == {}
