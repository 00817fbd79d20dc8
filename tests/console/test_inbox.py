"""Is the inbox sorted, alive, and no way to say yes to what nobody read?"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast import Effect, Floor, Gateway, Status, Undo, tool
from holdfast.approvals import triage
from holdfast.gateway.inbox import MOST_AT_ONCE
from holdfast.model.function import toolset
from holdfast.servers.app import build
from holdfast.stores.memory import MemoryStore
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.approvals.bank import ANA, BEN, Bank, config, pay, person
from tests.approvals.opening import House
from tests.console.asking import PICK, SEEN, Visitor, answered, asked, field, signed_in, text
from tests.requirements import requirement
from tests.servers.serving import Served, serving

SMALL: dict[str, Any] = {
    "effect": Effect.MEDIUM_RISK_WRITE,
    "undo": Undo.SEMANTIC,
    "floor": Floor.OPERATOR,
    "idempotency": {},
    "side_effects": "a parcel is sent to a customer",
    "manifest": [("parcels", "CREATE", "one")],
}


class Office(Bank):
    """A bank that also does small things."""

    def __init__(self) -> None:
        super().__init__()
        self.parcels: list[str] = []

    @tool(**SMALL)
    async def parcel(self, to: str) -> str:
        """Send a parcel."""
        self.parcels.append(to)
        return to

    @tool(**{**SMALL, "effect": Effect.LOW_RISK_INTERNAL, "side_effects": "a note is written"})
    async def jot(self, line: str) -> str:
        """Write something down."""
        return line


@pytest.fixture
def house() -> House:
    return House("memory", Path())


async def parcel(gateway: Gateway, to: str, **said: Any) -> str:
    held = await gateway.call("test.parcel", {"to": to}, key=f"p-{to!a}", principal=ANA, **said)
    return asked(held)


async def picked(visitor: Visitor, *ids: str) -> list[str]:
    """What the checkboxes of these rows would send."""
    found = dict(field(await visitor.get("/"), PICK))
    return [f"{id}:{found[id]}" for id in ids]


# --- the list -----------------------------------------------------------------------------


@requirement("PPL-2", "APR-2")
async def test_the_worst_comes_first_and_each_row_says_it_all(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        await gateway.call("test.jot", {"line": "hello"}, key="j", principal=ANA)
        first = await parcel(gateway, "mira")
        await house.clock.advance(5)
        second = await parcel(gateway, "jon")
        worst = asked(await pay(gateway, to="Eve"))
        [ben] = await signed_in(gateway, "ben")
        page = await ben.get("/")
    order = [id for id, _ in field(page, PICK)]
    assert order[0] == worst
    assert order[1:3] == [first, second]  # of the same risk, what ends sooner
    said = text(page)
    assert "Money leaves the bank test.pay@1.0.0" in said
    assert "critical cannot be undone ana through bot you and 1 more in 10 min" in said
    assert "A parcel is sent to a customer test.parcel@1.0.0 to mira" in said


@requirement("PPL-2")
async def test_the_inbox_is_searched_and_filtered(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        zoe, jon = await parcel(gateway, "zoe"), await parcel(gateway, "jon")
        paid = asked(await pay(gateway))
        ana, ben = await signed_in(gateway, "ana", "ben")
        found = {
            query: [id for id, _ in field(await ben.get(f"/?{query}"), PICK)]
            for query in ("q=ZOE", "q=nobody", "risk=critical", "show=mine", "show=asked")
        }
        own = text(await ana.get("/?show=asked"))
    assert found["q=ZOE"] == [zoe]
    assert found["q=nobody"] == found["show=asked"] == []
    assert found["risk=critical"] == [paid]
    assert set(found["show=mine"]) == {zoe, jon, paid}
    assert "nobody approves their own call" in own


@requirement("PPL-2")
async def test_an_empty_inbox_says_what_will_be_there(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        [ben] = await signed_in(gateway, "ben")
        page = text(await ben.get("/"))
    assert "Nothing waits for you" in page
    assert "holdfast call" in page


# --- several at once ----------------------------------------------------------------------


@requirement("APR-2", "PPL-2")
async def test_of_what_is_approved_together_a_drawn_one_is_opened_first(house: House) -> None:
    office = Office()
    async with house.gateway(office, config=config({"release": "gateway"})) as gateway:
        ids = [await parcel(gateway, f"c{n}") for n in range(6)]
        [ben] = await signed_in(gateway, "ben")
        form: dict[str, Any] = {"decision": "approve", "pick": await picked(ben, *ids), "note": "all fine"}
        unread = await ben.post("/approvals/several", form)
        before = await gateway.approvals(BEN)
        drawn = {id for id in ids if f'<li><a href="/approvals/{id}"' in unread.body.decode()}
        for id in ids:
            if id not in drawn:
                await ben.get(f"/approvals/{id}")
        others_only = await ben.post("/approvals/several", form)
        for id in drawn:
            await ben.get(f"/approvals/{id}")
        done = await ben.post("/approvals/several", form)
        while gateway._house._releasing:
            await asyncio.wait(gateway._house._releasing)
    assert (unread.status, len(before), len(drawn)) == (409, 6, 2)  # one in five, rounded up
    assert others_only.status == 409
    assert "6 of 6 approved" in text(done)
    assert sorted(office.parcels) == [f"c{n}" for n in range(6)]


@requirement("APR-2")
async def test_what_one_session_opened_counts_for_no_other(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        id = await parcel(gateway, "mira")
        ben, cat = await signed_in(gateway, "ben", "cat")
        await ben.get(f"/approvals/{id}")
        cat.cookies["holdfast-read"] = ben.cookies["holdfast-read"]
        [elsewhere] = await signed_in(gateway, "ben")
        elsewhere.cookies["holdfast-read"] = ben.cookies["holdfast-read"]
        said = [
            await one.post("/approvals/several", {"decision": "approve", "pick": await picked(one, id)})
            for one in (cat, elsewhere)
        ]
        own = await ben.post("/approvals/several", {"decision": "approve", "pick": await picked(ben, id)})
    assert [one.status for one in said] == [409, 409]
    assert "1 of 1 approved" in text(own)


@requirement("APR-2")
async def test_what_is_final_or_not_whole_is_denied_in_bulk_but_never_approved(house: House) -> None:
    office = Office()
    async with house.gateway(office, config=config({"release": "gateway"})) as gateway:
        paid, tricky = asked(await pay(gateway)), await parcel(gateway, "mi\u202era")
        fine = await parcel(gateway, "jon")
        ben, cat = await signed_in(gateway, "ben", "cat")
        for id in (paid, tricky, fine):
            await ben.get(f"/approvals/{id}")
        form: dict[str, Any] = {"decision": "approve", "pick": await picked(ben, paid, tricky, fine)}
        said = text(await ben.post("/approvals/several", form))
        left = {one.id for one in await gateway.approvals(BEN)}
        form = {"decision": "deny", "pick": await picked(cat, paid, tricky), "note": "not today"}
        no = text(await cat.post("/approvals/several", form))
        again = await pay(gateway)
    assert "1 of 3 approved" in said
    assert "not approved in bulk: it is critical" in said
    assert "not approved in bulk: it does not show in full on one line" in said
    assert left == {paid, tricky}
    assert "2 of 2 denied" in no
    assert (again.status, office.paid) == (Status.REFUSED, [])


@requirement("APR-2", "APR-4")
async def test_each_of_several_is_judged_alone(house: House) -> None:
    """One's own, one that somebody denied, a forged one, and one whose packet is another."""
    people = config()
    async with house.gateway(Office(), config=people) as gateway:
        good, other, gone = [await parcel(gateway, name) for name in ("a", "b", "c")]
        own = asked(
            await gateway.call("test.parcel", {"to": "d"}, key="d", principal=person("ben", "operator"))
        )
        [ben, cat] = await signed_in(gateway, "ben", "cat")
        picks = dict(field(await ben.get("/"), PICK))
        await answered(cat, gone, "deny")
        for id in (good, other):
            await ben.get(f"/approvals/{id}")
        form = [f"{good}:{picks[good]}", f"{other}:{picks[good]}", f"{gone}:{picks[gone]}"]
        form += [f"{own}:{'0' * 32}", f"apr_nothing:{'0' * 32}"]
        page = text(await ben.post("/approvals/several", {"decision": "approve", "pick": form}))
        left = {one.id for one in await gateway.approvals(BEN)}
    assert "1 of 5 approved" in page
    assert "not the question you were shown" in page
    assert "already answered" in page
    assert "needs another person" in page
    assert "there is no approval 'apr_nothing' here" in page
    assert left == {other, own}


@requirement("APR-2", "PPL-2")
async def test_a_bulk_form_of_nobody_or_without_an_answer_decides_nothing(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        id = await parcel(gateway, "mira")
        [ben] = await signed_in(gateway, "ben")
        form: dict[str, Any] = {"decision": "deny", "pick": await picked(ben, id)}
        refused = [
            await ben.post("/approvals/several", {**form, "csrf": "x"}),
            await ben.post("/approvals/several", {**form, "decision": "perhaps"}),
            await ben.post("/approvals/several", {"decision": "deny"}),
            await ben.send("GET", f"/approvals/several?decision=deny&pick={form['pick'][0]}"),
            await ben.post(
                "/approvals/several", {**form, "pick": [f"apr_{n}:x" for n in range(MOST_AT_ONCE + 1)]}
            ),
        ]
        left = await gateway.approvals(BEN)
    assert [one.status for one in refused] == [403, 400, 400, 404, 409]
    assert [one.id for one in left] == [id]


async def test_the_lot_is_drawn_by_the_gateway_and_stays_drawn(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        for n in range(10):
            await parcel(gateway, f"c{n}")
        secrets = gateway._ports.secrets
        several = list(await gateway.approvals(BEN))
        draws = [[one.id for one in triage.sample(several, "ben", secrets)] for _ in range(2)]
        other_way = [one.id for one in triage.sample(several[::-1], "ben", secrets)]
        fewer = [one.id for one in triage.sample(several[:5], "ben", secrets)]
    assert draws[0] == draws[1] == other_way
    assert (len(draws[0]), len(fewer)) == (2, 1)


# --- alive --------------------------------------------------------------------------------


@asynccontextmanager
async def served(tools: object) -> AsyncIterator[tuple[Gateway, Served]]:
    """On a socket, in real time."""
    clock = SystemClock()
    upstreams = {"test": FunctionUpstream(list(toolset(tools)))}
    gateway = Gateway.assemble(config(), MemoryStore(clock), upstreams, clock=clock, ids=RandomIds())
    try:
        async with serving(build(gateway)) as where:
            yield gateway, where
            gateway.drain()  # streams end, so that the server can
    finally:
        await gateway.close()


@asynccontextmanager
async def browser(url: str, name: str) -> AsyncIterator[aiohttp.ClientSession]:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(url, cookie_jar=jar) as session:
        async with session.post("/sign-in", data={"person": name}, allow_redirects=False) as answer:
            assert answer.status == 303
        yield session


async def heard(stream: aiohttp.StreamReader, what: str) -> str:
    """What a stream says, up to and with a text."""
    said = ""
    async with asyncio.timeout(20):
        while what not in said:
            line = await stream.readline()
            assert line, f"the stream ended without {what!r}"
            said += line.decode()
    return said


@requirement("PPL-2", "APR-5")
async def test_a_new_question_and_its_answer_reach_every_open_page() -> None:
    async with (
        served(Office()) as (gateway, where),
        browser(where.url, "ben") as ben,
        browser(where.url, "cat") as cat,
        ben.get("/inbox/events") as bens,
        cat.get("/inbox/events") as cats,
    ):
        assert bens.headers["content-type"].startswith("text/event-stream")
        await heard(bens.content, "Nothing waits for you")
        id = await parcel(gateway, "mira")
        for stream in (bens, cats):
            said = await heard(stream.content, f"/approvals/{id}")
            assert 'id="waiting"' in said
        assert gateway.inbox.pulse.listeners == 2
        tasks = [task for task in asyncio.all_tasks() if task.get_name() == "holdfast-inbox"]
        assert len(tasks) == 1  # one look for everybody
        await gateway.decide(BEN, id, False)
        await heard(cats.content, "Nothing waits for you")


@requirement("PPL-2")
async def test_a_stream_ends_with_the_session_and_with_the_gateway() -> None:
    async with (
        served(Office()) as (gateway, where),
        browser(where.url, "ben") as ben,
        browser(where.url, "cat") as cat,
        ben.get("/inbox/events?mark=none") as bens,
        cat.get("/inbox/events?mark=none") as cats,
    ):
        await heard(bens.content, "Nothing waits")
        await heard(cats.content, "Nothing waits")
        cookie = next(c.value for c in ben.cookie_jar if c.key == "holdfast-session")
        await gateway.sessions.end(cookie)
        id = await parcel(gateway, "mira")
        async with asyncio.timeout(20):
            rest = await bens.content.read()
        assert id.encode() not in rest  # nothing for who is signed out
        await heard(cats.content, id)
        gateway.drain()
        async with asyncio.timeout(20):
            await cats.content.read()


@requirement("PPL-2")
async def test_nobody_listens_without_a_session(house: House) -> None:
    async with house.gateway(Office(), config=config()) as gateway:
        stranger = Visitor(build(gateway))
        refused = await stranger.get("/inbox/events")
        piece = await stranger.get("/inbox/events", **{"hx-request": "true"})
    assert (refused.status, piece.status) == (303, 401)


async def test_the_form_of_a_question_is_the_one_of_its_page(house: House) -> None:
    """What a row sends and what the page sends name the same question."""
    async with house.gateway(Office(), config=config()) as gateway:
        id = await parcel(gateway, "mira")
        [ben] = await signed_in(gateway, "ben")
        row = dict(field(await ben.get("/"), PICK))[id]
        page = SEEN.search((await ben.get(f"/approvals/{id}")).body.decode())
    assert page is not None
    assert page[1] == row
