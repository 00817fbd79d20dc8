"""How long is somebody signed in, and what ends it? In every store, and in every process."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.identity import Unauthenticated
from holdfast.identity.identity import SECRET, USER
from holdfast.identity.keys import hash_chosen, mint
from holdfast.identity.tries import TooMany
from holdfast.model.people import SignedIn
from holdfast.servers.app import build
from holdfast.testing import CountingIds, ManualClock
from tests.console.conftest import PEOPLE, PETRAS_SECRET, console
from tests.console.visitor import Visitor, text
from tests.requirements import requirement
from tests.stored import DURABLE, Store, durable, place, rows

Open = Callable[[dict[str, Any]], Gateway]
LOCAL: dict[str, Any] = {"auth": {"people": PEOPLE}}


def by_key(*entries: dict[str, str], **people: Any) -> dict[str, Any]:
    return {"auth": {"mode": "api_key", "people": {"ana": PEOPLE["ana"], **people}, "keys": list(entries)}}


def shown(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def test_a_store_keeps_who_is_signed_in_until_it_is_over(store: Store, clock: ManualClock) -> None:
    now = clock.now()
    one = SignedIn(hash="h", person="ana", credential={"a": "b"}, at=now, seen_at=now, expires_at=now + 10)
    await store.sessions.add(one)
    assert await store.sessions.find("h") == one
    assert await store.sessions.find("other") is None
    await store.sessions.seen("h", now + 5, now + 15)
    clock_later = await store.sessions.find("h")
    assert clock_later is not None
    assert (clock_later.seen_at, clock_later.expires_at) == (now + 5, now + 15)
    await store.sessions.seen("h", now + 1, now + 11)  # heard of later than what came after it
    assert await store.sessions.find("h") == clock_later
    await clock.advance(15)
    assert await store.sessions.find("h") is None
    assert await store.sessions.forget() == 1
    assert await store.sessions.forget() == 0
    assert not await store.sessions.end("h")


async def test_what_has_ended_does_not_come_back_by_being_seen(store: Store, clock: ManualClock) -> None:
    now = clock.now()
    await store.sessions.add(
        SignedIn(hash="h", person="ana", credential={}, at=now, seen_at=now, expires_at=now + 10)
    )
    assert await store.sessions.end("h")
    await store.sessions.seen("h", now + 1, now + 11)
    assert await store.sessions.find("h") is None


@requirement("PPL-2")
async def test_who_signs_out_is_out_in_every_process(open_gateway: Open) -> None:
    one, other = open_gateway(LOCAL), open_gateway(LOCAL)
    id = await one.sessions.begin({USER: "ana"})
    found, again = await one.sessions.find(id), await other.sessions.find(id)
    assert found is not None
    assert again is not None
    assert found[0].user == again[0].user == "ana"
    assert found[1].token == again[1].token, "a form of one process is good in the other"
    await other.sessions.end(id)
    assert await one.sessions.find(id) is None


@pytest.mark.parametrize("kind", DURABLE)
async def test_a_session_outlives_the_process_and_the_store_knows_no_credential(
    kind: str, tmp_path: Path, clock: ManualClock
) -> None:
    key, entry = mint("petra")
    config = by_key(entry, petra=PEOPLE["petra"])
    async with place(kind, tmp_path):
        async with durable(kind, tmp_path, clock) as store:
            gateway = Gateway.assemble(config, store, {}, clock=clock, ids=CountingIds())
            id = await gateway.sessions.begin({**shown(key), SECRET: PETRAS_SECRET})
        [kept] = rows(kind, tmp_path, "SELECT hash, sealed FROM {}console_session")
        everything = str(kept).encode() + bytes(kept[1])
        for secret in (id, key, PETRAS_SECRET, key.rpartition("_")[2]):
            assert secret.encode() not in everything
        async with durable(kind, tmp_path, clock) as store:
            again = Gateway.assemble(config, store, {}, clock=clock, ids=CountingIds())
            found = await again.sessions.find(id)
            assert found is not None
            assert "operator" in found[0].roles


@requirement("PPL-2")
async def test_a_session_ends_when_nobody_uses_it_and_after_a_time_anyway(clock: ManualClock) -> None:
    settings = {"idle_minutes": 30, "session_hours": 2}
    async with console(clock, {**LOCAL, "console": settings}) as gateway:
        id = await gateway.sessions.begin({USER: "ana"})
        for _ in range(4):
            await clock.advance(29 * 60)
            assert await gateway.sessions.find(id) is not None
        await clock.advance(5 * 60)  # two hours and a minute since it began
        assert await gateway.sessions.find(id) is None
        id = await gateway.sessions.begin({USER: "ana"})
        await clock.advance(30 * 60)
        assert await gateway.sessions.find(id) is None
        assert await gateway.sessions.forget() == 2


@requirement("PPL-2")
async def test_a_page_that_is_left_open_keeps_no_session(clock: ManualClock) -> None:
    async with console(clock, {**LOCAL, "console": {"idle_minutes": 30}}) as gateway:
        id = await gateway.sessions.begin({USER: "ana"})
        for _ in range(5):
            assert await gateway.sessions.find(id, active=False) is not None
            await clock.advance(6 * 60)
        assert await gateway.sessions.find(id, active=False) is None


async def test_a_session_that_is_used_all_the_time_is_not_written_all_the_time(
    store: Store, open_gateway: Open, clock: ManualClock
) -> None:
    gateway = open_gateway(LOCAL)
    id = await gateway.sessions.begin({USER: "ana"})
    began = clock.now()
    await clock.advance(30)
    await gateway.sessions.find(id)
    assert await _seen(store, id) == began
    await clock.advance(40)
    await gateway.sessions.find(id)
    assert await _seen(store, id) == began + 70


async def _seen(store: Store, id: str) -> float:
    found = await store.sessions.find(sha256(id.encode()).hexdigest())
    assert found is not None
    return found.seen_at


@requirement("AUT-1")
async def test_a_key_that_is_revoked_ends_the_session_at_the_next_request(clock: ManualClock) -> None:
    key, entry = mint("ana")
    async with console(clock, by_key(entry)) as gateway:
        visitor = Visitor(build(gateway), host="gateway.example.com")
        await visitor.shows(credential=key)
        assert (await visitor.get("/")).status == 200
        ana = gateway.identity.authenticate(shown(key))
        await gateway.keys.revoke(ana, entry["id"])
        answer = await visitor.get("/")
        assert (answer.status, answer.headers["location"]) == (303, "/sign-in")


@requirement("AUT-1")
async def test_roles_and_people_count_as_they_are_now(open_gateway: Open) -> None:
    id = await open_gateway(LOCAL).sessions.begin({USER: "ana"})
    less = {"auth": {"people": {**PEOPLE, "ana": {"roles": []}}}}
    found = await open_gateway(less).sessions.find(id)
    assert found is not None
    assert found[0].roles == frozenset()
    without = {"auth": {"people": {name: said for name, said in PEOPLE.items() if name != "ana"}}}
    assert await open_gateway(without).sessions.find(id) is None
    assert await open_gateway(LOCAL).sessions.find(id) is None, "it ended for good"


@requirement("APR-2")
async def test_another_approver_secret_ends_what_the_old_one_opened(open_gateway: Open) -> None:
    gateway = open_gateway(LOCAL)
    id = await gateway.sessions.begin({USER: "petra", SECRET: PETRAS_SECRET})
    found = await gateway.sessions.find(id)
    assert found is not None
    assert {"operator", "user"} <= found[0].roles
    changed = {**PEOPLE, "petra": {"roles": ["operator"], "approver_secret": hash_chosen("another")}}
    assert await open_gateway({"auth": {"people": changed}}).sessions.find(id) is None


@requirement("APR-2")
async def test_a_secret_given_to_somebody_later_is_asked_for(open_gateway: Open) -> None:
    id = await open_gateway(LOCAL).sessions.begin({USER: "ana"})
    changed = {**PEOPLE, "ana": {"roles": ["operator"], "approver_secret": hash_chosen("new")}}
    assert await open_gateway({"auth": {"people": changed}}).sessions.find(id) is None


async def test_whoever_has_a_secret_does_not_sign_in_without_it(gateway: Gateway) -> None:
    with pytest.raises(Unauthenticated):
        await gateway.sessions.begin({USER: "petra"})


async def test_who_is_signed_in_is_not_shut_out_by_somebody_who_guesses_their_secret(
    gateway: Gateway,
) -> None:
    id = await gateway.sessions.begin({USER: "petra", SECRET: PETRAS_SECRET})
    for guess in ("a", "b", "c", "d", "e"):
        with pytest.raises(Unauthenticated):
            gateway.identity.authenticate({USER: "petra", SECRET: guess})
    with pytest.raises(TooMany):
        gateway.identity.authenticate({USER: "petra", SECRET: "f"})
    found = await gateway.sessions.find(id)
    assert found is not None
    assert "operator" in found[0].roles, "it is not hashed again at every click"


@pytest.mark.parametrize("cookie", ["", "x", "A" * 43, "A" * 100_000, "ä" * 43, "../../etc", "'; DROP TABLE"])
async def test_what_was_never_given_opens_nothing(gateway: Gateway, cookie: str) -> None:
    await gateway.sessions.begin({USER: "ana"})
    assert await gateway.sessions.find(cookie) is None


async def test_a_hash_from_the_store_is_no_cookie(gateway: Gateway, clock: ManualClock) -> None:
    id = await gateway.sessions.begin({USER: "ana"})
    assert await gateway.sessions.find(sha256(id.encode()).hexdigest()) is None


@requirement("AUT-6")
async def test_somebody_sees_their_own_tenant_whatever_cookie_they_hold(
    gateway: Gateway, visitor: Visitor
) -> None:
    await visitor.sign_in("xena")
    found = await gateway.sessions.find(next(iter(visitor.cookies.values())))
    assert found is not None
    assert found[0].tenant == "acme"
    assert "xena" in text(await visitor.get("/"))
