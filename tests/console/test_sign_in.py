"""Who comes in, by what they show, and who does not?"""

from typing import Any
from urllib.parse import urlencode

import pytest

from holdfast.gateway import Gateway
from holdfast.identity.keys import mint
from holdfast.servers.app import build
from holdfast.servers.console.sign_in import AGENT, UNDONE, WRONG, ours
from holdfast.testing import ManualClock
from tests.console.conftest import PEOPLE, PETRAS_SECRET, console
from tests.console.visitor import Visitor, text
from tests.requirements import requirement
from tests.servers.asgi import Answer, Client
from tests.spoiled import spoiled

HOST = "gateway.example.com"


def keyed(*entries: dict[str, str]) -> dict[str, Any]:
    agents = {"bot": {"user": "ana"}}
    return {"auth": {"mode": "api_key", "people": PEOPLE, "agents": agents, "keys": list(entries)}}


def cookie(answer: Answer) -> str:
    [line] = answer.all("set-cookie")
    return line


@requirement("PPL-2")
async def test_an_answer_after_the_session_ended_is_not_lost_silently(visitor: Visitor) -> None:
    sent = await visitor.post("/approvals/apr_1/decision", {"decision": "approve"})
    assert sent.headers["location"] == "/sign-in?next=/approvals/apr_1&undone=1"
    assert UNDONE in text(await visitor.get(sent.headers["location"]))
    assert UNDONE not in text(await visitor.get("/sign-in?next=/approvals/apr_1"))


async def test_on_this_machine_one_chooses_who_one_is(gateway: Gateway, visitor: Visitor) -> None:
    page = text(await visitor.get("/sign-in"))
    for name in (*PEOPLE, gateway.identity.os_user):
        assert f"Sign in as {name}" in page
    assert page.count("Approver secret of") == 1
    answer = await visitor.sign_in("ana")
    assert answer.headers["location"] == "/"
    assert (await visitor.get("/")).status == 200


@requirement("APR-2")
async def test_who_has_a_secret_comes_in_with_it_alone(visitor: Visitor) -> None:
    for wrong in ({}, {"secret": ""}, {"secret": "guess"}):
        answer = await visitor.post("/sign-in", {"person": "petra", **wrong})
        assert (answer.status, visitor.cookies) == (401, {})
    await visitor.sign_in("petra", PETRAS_SECRET)
    assert (await visitor.get("/")).status == 200


@requirement("AUT-1")
async def test_a_key_opens_the_console_to_its_person(clock: ManualClock) -> None:
    key, entry = mint("ana")
    async with console(clock, keyed(entry)) as gateway:
        visitor = Visitor(build(gateway), host=HOST, address=("203.0.113.9", 1))
        page = await visitor.get("/sign-in")
        assert "API key" in text(page)
        assert "ana" not in text(page), "it says nothing of who exists"
        await visitor.shows(credential=f"  {key}\r\n")
        assert (await visitor.get("/")).status == 200


@requirement("AUT-1")
async def test_whatever_is_wrong_is_answered_alike(clock: ManualClock) -> None:
    key, entry = mint("petra")
    other, _ = mint("ana")
    wrong: list[dict[str, str]] = [
        {},
        {"credential": ""},
        {"credential": "hello"},
        {"credential": other},
        {"credential": spoiled(key), "secret": PETRAS_SECRET},
        {"credential": key},
        {"credential": key, "secret": "guess"},
        {"credential": f"{key}\r\nX-Holdfast-User: ana"},
        {"person": "ana"},
    ]
    async with console(clock, keyed(entry)) as gateway:
        visitor = Visitor(build(gateway), host=HOST)
        came = [await visitor.post("/sign-in", one) for one in wrong]
    assert {answer.status for answer in came} == {401}
    assert len({answer.body for answer in came}) == 1
    assert WRONG in text(came[0])
    assert visitor.cookies == {}


@requirement("AUT-2")
async def test_no_agent_signs_in(clock: ManualClock) -> None:
    agents, entry = mint("ana", "bot")
    persons, own = mint("ana")
    async with console(clock, keyed(entry, own)) as gateway:
        app = build(gateway)
        wish = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": persons,
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "agent": "bot",
        }
        delegated = await Client(app, {"host": HOST, "authorization": f"Bearer {persons}"}).send(
            "POST",
            "/oauth/token",
            [urlencode(wish).encode()],
            {"content-type": "application/x-www-form-urlencoded"},
        )
        assert delegated.status == 200, delegated.body
        for credential in (agents, delegated.json()["access_token"]):
            visitor = Visitor(app, host=HOST)
            answer = await visitor.post("/sign-in", {"credential": credential})
            assert (answer.status, visitor.cookies) == (403, {})
            assert AGENT in text(answer)


async def test_every_sign_in_gives_another_cookie_and_ends_the_one_before(
    gateway: Gateway, visitor: Visitor
) -> None:
    visitor.cookies["holdfast-session"] = planted = "A" * 43
    await visitor.sign_in("ana")
    first = visitor.cookies["holdfast-session"]
    assert first != planted
    assert await gateway.sessions.find(planted) is None
    await visitor.post("/sign-in", {"person": "ben"})
    assert visitor.cookies["holdfast-session"] != first
    assert await gateway.sessions.find(first) is None


async def test_a_cookie_is_worth_nothing_after_its_sign_out(visitor: Visitor) -> None:
    await visitor.sign_in("ana")
    stolen = dict(visitor.cookies)
    answer = await visitor.post("/sign-out")
    assert (answer.status, answer.headers["location"], visitor.cookies) == (303, "/sign-in", {})
    visitor.cookies = stolen
    assert (await visitor.get("/")).headers["location"] == "/sign-in"


async def test_the_cookie_is_for_this_site_alone(gateway: Gateway, visitor: Visitor) -> None:
    line = cookie(await visitor.post("/sign-in", {"person": "ana"})).lower()
    assert {"httponly", "path=/", "samesite=strict"} <= set(line.split("; "))
    assert "secure" not in line
    assert "domain" not in line


async def test_over_https_it_is_never_sent_elsewhere(clock: ManualClock) -> None:
    key, entry = mint("ana")
    config = {**keyed(entry), "base_url": f"https://{HOST}"}
    async with console(clock, config) as gateway:
        app = build(gateway)
        visitor = Visitor(app, host=HOST)
        line = cookie(await visitor.post("/sign-in", {"credential": key}))
        assert line.startswith("__Host-")
        assert "secure" in line.lower()
        assert "domain" not in line.lower()
        assert (await visitor.get("/")).status == 200
        visitor.cookies = {"holdfast-session": next(iter(visitor.cookies.values()))}
        assert (await visitor.get("/")).status == 303, (
            "one that anybody on the line can set counts for nothing"
        )


async def test_somebody_becomes_somebody_else_by_one_click_but_not_past_a_secret(
    gateway: Gateway, visitor: Visitor
) -> None:
    await visitor.sign_in("ana")
    before = visitor.cookies["holdfast-session"]
    answer = await visitor.post("/switch", {"person": "petra"})
    assert answer.status == 401
    assert visitor.cookies["holdfast-session"] == before
    answer = await visitor.post("/switch", {"person": "ben", "next": "/live"})
    assert (answer.status, answer.headers["location"]) == (303, "/live")
    assert await gateway.sessions.find(before) is None
    found = await gateway.sessions.find(visitor.cookies["holdfast-session"])
    assert found is not None
    assert found[0].user == "ben"


async def test_who_wanted_a_page_gets_there(visitor: Visitor) -> None:
    answer = await visitor.get("/live?tool=shop.refund")
    assert answer.headers["location"] == "/sign-in?next=/live%3Ftool%3Dshop.refund"
    page = await visitor.get(answer.headers["location"])
    assert 'name="next" value="/live?tool=shop.refund"' in page.body.decode()
    answer = await visitor.post("/sign-in", {"person": "ana", "next": "/live?tool=shop.refund"})
    assert answer.headers["location"] == "/live?tool=shop.refund"
    assert (await visitor.get("/sign-in?next=/audit")).headers["location"] == "/audit"


@pytest.mark.parametrize(
    "path",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/ok\r\nSet-Cookie: a=b",
        "/ok\nX: y",
        "javascript:alert(1)",
        "/" + "a" * 3000,
        "/\u202eok",
        "/sign-out",
        "/sign-in?next=/sign-in",
        "",
        "evil",
        '/"><script>',
    ],
)
async def test_afterwards_one_is_only_ever_here(visitor: Visitor, path: str) -> None:
    assert ours(path) == "/"
    answer = await visitor.post("/sign-in", {"person": "ana", "next": path})
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert len(answer.all("set-cookie")) == 1


async def test_a_link_in_a_mail_leads_to_its_page_through_one_of_ours(visitor: Visitor) -> None:
    """A browser shows a strict cookie only to where a page of the same site leads."""
    came = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    answer = await visitor.get("/approvals/apr_1", **came)
    assert answer.status == 200
    assert 'content="0; url=/approvals/apr_1"' in answer.body.decode()
    assert (await visitor.get("/approvals/apr_1", **{**came, "sec-fetch-site": "same-origin"})).status == 303


async def test_a_piece_of_a_page_is_told_to_sign_in(visitor: Visitor) -> None:
    answer = await visitor.get("/", **{"hx-request": "true"})
    assert (answer.status, answer.headers["hx-redirect"], answer.body) == (401, "/sign-in", b"")


@requirement("APR-2")
async def test_guessing_a_secret_takes_longer_and_longer(
    gateway: Gateway, visitor: Visitor, clock: ManualClock
) -> None:
    for _ in range(5):
        assert (await visitor.post("/sign-in", {"person": "petra", "secret": "guess"})).status == 401
    answer = await visitor.post("/sign-in", {"person": "petra", "secret": PETRAS_SECRET})
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")
    rest = Client(build(gateway), {"host": "127.0.0.1:8080", "x-holdfast-user": "petra"})
    answer = await rest.get("/v1/tools", **{"x-holdfast-approver-secret": "guess"})
    assert (answer.status, answer.headers["retry-after"]) == (429, "2"), "one bound for every door"
    await clock.advance(2)
    await visitor.sign_in("petra", PETRAS_SECRET)


async def test_guessing_goes_on_record(gateway: Gateway, visitor: Visitor) -> None:
    for _ in range(5):
        await visitor.post("/sign-in", {"person": "petra", "secret": "guess"})
    await gateway.tidy()
    ana = gateway.identity.authenticate({"x-holdfast-user": "ana"})
    records = [entry.record.body for entry in await gateway.log.since(ana, 0.0, -1, 100)]
    [told] = [body for body in records if "wrong approver secrets" in body]
    assert '"petra"' in told
    assert "guess" not in told


async def test_an_address_that_is_wrong_too_often_waits(clock: ManualClock) -> None:
    key, entry = mint("ana")
    async with console(clock, keyed(entry)) as gateway:
        app = build(gateway)
        visitor = Visitor(app, host=HOST, address=("203.0.113.9", 1))
        for _ in range(20):
            assert (await visitor.post("/sign-in", {"credential": "x"})).status == 401
        assert (await visitor.post("/sign-in", {"credential": "x"})).status == 429
        other = Visitor(app, host=HOST, address=("203.0.113.10", 1))
        await other.shows(credential=key)
        await clock.advance(1)
        await visitor.shows(credential=key)
