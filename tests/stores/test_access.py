"""Are keys, grants and revocations kept the same in every store, and felt by the next claim?"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from holdfast.model.access import ELEVATION, WAITING, AccessGrant, AccessKey, qualified
from holdfast.model.call import Principal
from holdfast.model.errors import Code
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import State
from holdfast.ports import Begun, Denied, Revoked
from holdfast.stores.memory import MemoryStore
from holdfast.testing import ManualClock
from tests.requirements import requirement
from tests.stored import ALL, DURABLE, Store, durable, place, records, stored
from tests.stores.calls import LOOK, make_call, observed

BOT = Principal(user="alice", agent="bot", rests_on=("key:k1", "grant:g1"))
KEY = AccessKey(
    tenant="default",
    id="k1abc",
    hash="sha256:00",
    person="alice",
    agent="bot",
    scopes=("orders:read",),
    made_by="olga",
    at=1.0,
)
GRANT = AccessGrant(
    tenant="default",
    id="g1",
    person="alice",
    scope="orders:*",
    granted_by="olga",
    note="for the move",
    at=1.0,
    expires_at=4e9,
    life_s=3600.0,
    renewed=True,
)


class Place:
    """One store, and what it wrote down."""

    def __init__(self, kind: str, folder: Path, store: Store, clock: ManualClock) -> None:
        self.store, self.access, self.clock = store, store.access, clock
        self._kind, self._folder = kind, folder

    def told(self, tenant: str = "default") -> list[dict[str, object]]:
        ours = self.store.records if isinstance(self.store, MemoryStore) else None
        kept = records(self._kind, self._folder) if ours is None else ours
        return [json.loads(r.body) for r in kept if r.kind == "access" and r.tenant == tenant]


@pytest.fixture(params=ALL)
async def here(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    clock = ManualClock()
    async with place(request.param, tmp_path), stored(request.param, tmp_path, clock) as store:
        yield Place(request.param, tmp_path, store, clock)


# --- what a claim obeys -------------------------------------------------------------------


@requirement("AUT-4")
@pytest.mark.parametrize("name", BOT.rests_on)
async def test_a_claim_that_rests_on_something_revoked_is_denied(here: Place, name: str) -> None:
    before = make_call(here.clock, "before", principal=BOT)
    assert isinstance(await here.store.ledger.begin(before), Begun)
    assert await here.access.revoke(name, "default", "olga", "lost laptop")
    denied = await here.store.ledger.begin(make_call(here.clock, "after", principal=BOT))
    assert isinstance(denied, Revoked)
    assert (denied.code, "lost laptop" in denied.message) == (Code.PERMISSION_DENIED, False)


@requirement("AUT-4")
async def test_a_read_that_rests_on_something_revoked_is_denied_too(here: Place) -> None:
    await here.access.revoke("key:k1", "default", "olga", "")
    assert isinstance(
        await here.store.ledger.begin(make_call(here.clock, None, tool=LOOK, principal=BOT)), Denied
    )


@requirement("AUT-4", "AUT-6")
async def test_others_go_on_and_so_does_another_tenant_with_the_same_name(here: Place) -> None:
    await here.access.revoke("key:k1", "default", "olga", "")
    other = replace(BOT, rests_on=("key:k2",))
    elsewhere = replace(BOT, tenant="acme")
    for number, principal in enumerate((other, elsewhere, replace(BOT, rests_on=()))):
        begun = await here.store.ledger.begin(make_call(here.clock, f"k-{number}", principal=principal))
        assert isinstance(begun, Begun)


@requirement("AUT-4")
async def test_a_call_that_has_begun_may_still_say_how_it_ended(here: Place) -> None:
    call = make_call(here.clock, "k-1", principal=BOT)
    begun = await here.store.ledger.begin(call)
    assert isinstance(begun, Begun)
    call.operation = begun.operation
    await here.access.revoke("key:k1", "default", "olga", "")
    assert await here.store.ledger.finish(call, observed(call), State.COMMITTED)


@requirement("AUT-4", "PPL-6")
@pytest.mark.parametrize("kind", DURABLE)
async def test_another_process_feels_a_revocation_with_its_next_claim(kind: str, tmp_path: Path) -> None:
    clock = ManualClock()
    async with (
        place(kind, tmp_path),
        durable(kind, tmp_path, clock) as one,
        durable(kind, tmp_path, clock) as other,
    ):
        for number, name in enumerate(("key:k1", "grant:g1", "token:t1")):
            principal = replace(BOT, rests_on=(name,))
            free = make_call(clock, f"free-{number}", principal=principal)
            assert isinstance(await other.ledger.begin(free), Begun)
            assert await one.access.revoke(name, "default", "olga", "")
            late = make_call(clock, f"late-{number}", principal=principal)
            assert isinstance(await other.ledger.begin(late), Revoked)


@requirement("AUT-4")
@pytest.mark.parametrize("kind", DURABLE)
async def test_claims_that_are_written_together_are_each_judged_by_what_they_rest_on(
    kind: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    async with place(kind, tmp_path), durable(kind, tmp_path, clock) as store:
        await store.access.revoke("key:k1", "default", "olga", "")
        mine = [make_call(clock, f"m-{n}", principal=BOT) for n in range(8)]
        free = [make_call(clock, f"f-{n}", principal=replace(BOT, rests_on=("key:k2",))) for n in range(8)]
        mixed = [call for pair in zip(mine, free, strict=True) for call in pair]
        said = await asyncio.gather(*(store.ledger.begin(call) for call in mixed))
        assert [type(one) for one in said] == [Revoked, Begun] * 8


# --- what is kept -------------------------------------------------------------------------


@requirement("AUT-1")
async def test_a_key_is_found_as_it_was_made_and_only_once(here: Place) -> None:
    assert await here.access.add_key(KEY)
    assert not await here.access.add_key(replace(KEY, tenant="acme"))
    assert await here.access.keys("default") == [KEY]
    assert await here.access.keys("acme") == []


@requirement("AUT-1")
async def test_the_first_key_is_first_once(here: Place) -> None:
    assert await here.access.add_key(KEY, first=True)
    assert not await here.access.add_key(replace(KEY, id="k2abc"), first=True)
    assert await here.access.add_key(replace(KEY, id="k2abc"))


@requirement("AUT-4")
async def test_whoever_follows_gets_what_changed_and_nothing_else(here: Place) -> None:
    await here.access.add_key(KEY)
    first = await here.access.since(0)
    assert (first.keys, first.grants, first.revoked) == ((KEY,), (), frozenset())
    assert await here.access.changed() == first.mark
    await here.access.add_grant(GRANT)
    await here.access.revoke(KEY.name, "default", "olga", "")
    then = await here.access.since(first.mark)
    assert then.mark > first.mark
    assert then.grants == (GRANT,)
    assert [key.ended_by for key in then.keys] == ["olga"]
    assert then.revoked == {qualified("default", "key:k1abc")}
    assert (await here.access.since(then.mark))[1:] == ((), (), frozenset())


@requirement("AUT-4")
async def test_whoever_begins_gets_only_what_holds(here: Place) -> None:
    now = here.clock.now()
    await here.access.add_key(replace(KEY, expires_at=now - 1))
    await here.access.add_key(replace(KEY, id="k2abc", expires_at=now + 9))
    await here.access.add_grant(replace(GRANT, expires_at=now - 1))
    await here.access.add_grant(replace(GRANT, id="g2", expires_at=WAITING))
    await here.access.add_grant(replace(GRANT, id="g3", expires_at=now + 9))
    begun = await here.access.since(0)
    assert ([k.id for k in begun.keys], [g.id for g in begun.grants]) == (["k2abc"], ["g3"])


@requirement("AUT-4")
async def test_a_grant_is_renewed_once_however_many_try(here: Place) -> None:
    await here.access.add_grant(GRANT)
    assert await here.access.renew(GRANT, GRANT.expires_at + 10)
    assert not await here.access.renew(GRANT, GRANT.expires_at + 20)
    [kept] = await here.access.grants("default")
    assert kept == replace(GRANT, expires_at=GRANT.expires_at + 10)
    assert await here.access.renew(kept, None, "olga is no operator any more")
    [kept] = await here.access.grants("default")
    assert not kept.renewed
    assert [told["operation"] for told in here.told()] == ["grant", "renew grant", "end renewal"]


@requirement("AUT-4")
async def test_what_was_revoked_is_not_renewed_and_not_revoked_twice(here: Place) -> None:
    await here.access.add_grant(GRANT)
    assert await here.access.revoke(GRANT.name, "default", "olga", "over")
    assert not await here.access.renew(GRANT, GRANT.expires_at + 10)
    assert not await here.access.revoke(GRANT.name, "default", "olga", "again")
    [said] = await here.access.revocations("default")
    assert (said.name, said.by, said.note, said.until) == ("grant:g1", "olga", "over", inf)
    assert await here.access.revocations("acme") == []


@requirement("AUT-4")
async def test_every_change_is_on_record_and_no_hash_is(here: Place) -> None:
    await here.access.add_key(KEY)
    await here.access.add_grant(GRANT)
    await here.access.revoke(KEY.name, "default", "olga", "lost")
    told = here.told()
    assert [(one["operation"], one["caller"]) for one in told] == [
        ("issue key", "olga"),
        ("grant", "olga"),
        ("revoke", "olga"),
    ]
    assert (told[1]["scope"], told[1]["person"], told[1]["note"]) == ("orders:*", "alice", "for the move")
    assert (told[2]["credential"], told[2]["note"]) == ("key:k1abc", "lost")
    assert "sha256" not in json.dumps(told)


@requirement("AUT-4")
async def test_a_revocation_is_forgotten_when_what_it_names_would_have_ended_and_no_number_comes_again(
    here: Place,
) -> None:
    now = here.clock.now()
    await here.access.revoke("token:t1", "default", "olga", "", now + 10)
    await here.access.revoke("token:t2", "default", "olga", "", now + 10)
    last = await here.access.changed()
    await here.clock.advance(11)
    assert await here.access.forget() == 1
    assert await here.access.changed() == last
    await here.access.revoke("token:t3", "default", "olga", "")
    assert await here.access.changed() > last
    assert [said.name for said in await here.access.revocations("default")] == ["token:t2", "token:t3"]
    principal = replace(BOT, rests_on=("token:t3",))
    assert isinstance(await here.store.ledger.begin(make_call(here.clock, "k", principal=principal)), Revoked)


# --- elevations ---------------------------------------------------------------------------


def _elevation() -> Tool:
    named = LOOK.contract.identity.model_copy(update={"namespace": "holdfast", "name": "elevation"})
    return Tool.compile(LOOK.contract.model_copy(update={"identity": named}))


ELEVATE = _elevation()


@requirement("AUT-8")
async def test_a_grant_that_waits_begins_with_the_last_yes(here: Place) -> None:
    waiting = replace(GRANT, id="g9", granted_by="", expires_at=WAITING, renewed=False, life_s=60.0)
    await here.access.add_grant(waiting)
    call = make_call(here.clock, "g9", tool=ELEVATE)
    assert call.tool.contract.tool == ELEVATION
    asked = await here.store.approvals.ask(call, {"operator": 2}, {"action": "elevate"})
    mark = await here.access.changed()
    await here.store.approvals.decide(asked, Principal(user="olga"), "operator", True, "")
    assert await here.access.changed() == mark
    await here.store.approvals.decide(asked, Principal(user="otto"), "operator", True, "")
    [begun] = (await here.access.since(mark)).grants
    assert (begun.granted_by, begun.approval_id) == ("otto", asked.id)
    assert begun.expires_at == here.clock.now() + 60
    assert [told["operation"] for told in here.told()] == ["ask for elevation", "elevate"]


@requirement("AUT-8")
async def test_a_grant_that_was_denied_or_revoked_never_begins(here: Place) -> None:
    waiting = replace(GRANT, id="g9", granted_by="", expires_at=WAITING, renewed=False)
    for id in ("g8", "g9"):
        await here.access.add_grant(replace(waiting, id=id))
    denied = make_call(here.clock, "g8", tool=ELEVATE)
    asked = await here.store.approvals.ask(denied, {"operator": 1}, {})
    await here.store.approvals.decide(asked, Principal(user="olga"), "operator", False, "")
    revoked = make_call(here.clock, "g9", tool=ELEVATE)
    asked = await here.store.approvals.ask(revoked, {"operator": 1}, {})
    await here.access.revoke("grant:g9", "default", "alice", "not needed")
    await here.store.approvals.decide(asked, Principal(user="olga"), "operator", True, "")
    assert [grant.expires_at for grant in await here.access.grants("default")] == [WAITING, WAITING]
