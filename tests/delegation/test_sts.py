"""Does the token service give what RFC 8693 promises, and never more than its subject holds?"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from holdfast import Gateway
from holdfast.servers.app import build
from holdfast.servers.token import ACCESS, GRANT
from tests.approvals.opening import House
from tests.delegation.shop import at_work, key
from tests.requirements import requirement
from tests.servers.asgi import Answer, Client
from tests.spoiled import spoiled

JWT = "urn:ietf:params:oauth:token-type:jwt"
HERE = "http://gateway.example"


class Desk:
    """Where tokens are asked for."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.client = Client(build(gateway), {"host": "gateway.example"})

    async def ask(self, by: str, **said: Any) -> Answer:
        form = {"grant_type": GRANT, **said}
        for token in ("subject_token", "actor_token"):
            if token in form:
                form.setdefault(f"{token}_type", ACCESS)
        return await self.send(by, "/oauth/token", form)

    async def send(self, by: str, path: str, form: Any, **headers: str) -> Answer:
        told = {"content-type": "application/x-www-form-urlencoded", **headers}
        if by:
            told["authorization"] = f"Bearer {by}"
        return await self.client.send("POST", path, [urlencode(form, doseq=True).encode()], told)

    async def tools(self, token: str) -> list[str]:
        listed = await self.client.get("/v1/tools", authorization=f"Bearer {token}")
        return [one["name"] for one in listed.json()["tools"]] if listed.status == 200 else ["refused"]


@pytest.fixture
async def desk(house: House) -> AsyncIterator[Desk]:
    async with at_work(house) as gateway:
        yield Desk(gateway)


@requirement("AUT-2")
async def test_an_agent_gets_a_token_of_its_own_for_what_the_person_lets_it_do(desk: Desk) -> None:
    answer = await desk.ask(
        key("alice"),
        subject_token=key("alice"),
        agent="bot",
        scope="orders:read",
        tools="test.*",
        expires_in=60,
    )
    said = answer.json()
    token = said.pop("access_token")
    assert said == {
        "issued_token_type": ACCESS,
        "token_type": "Bearer",
        "expires_in": 60,
        "scope": "orders:read",
        "tools": "test.*",
        "jti": said["jti"],
    }
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    assert answer.headers["pragma"] == "no-cache"
    assert sorted(await desk.tools(token)) == ["test.order", "test.search"]


@requirement("AUT-2")
async def test_an_agent_that_shows_itself_and_the_persons_token_acts_for_the_person(desk: Desk) -> None:
    """Its own key narrows: the person could refund and write, the agent may not write."""
    for more in ({}, {"actor_token": key("bot")}):
        by = key("bot") if not more else key("alice")
        said = (await desk.ask(by, subject_token=key("alice"), **more)).json()
        assert said["scope"] == "orders:read orders:refund"
        caller = desk.gateway.identity.holder(said["access_token"]).principal
        assert (caller.id, caller.act) == ("alice/bot", ("bot",))
        assert caller.rests_on[:2] == ("key:alicekey", "key:botkey")


@requirement("AUT-2", "AUT-5")
async def test_a_token_is_exchanged_for_a_narrower_one(desk: Desk) -> None:
    first = (await desk.ask(key("bot"), subject_token=key("bot"), scope="orders:read")).json()["access_token"]
    narrower = await desk.ask(
        first, subject_token=first, subject_token_type=JWT, tools="test.order", resources="orders/o-1"
    )
    assert narrower.json()["resources"] == "orders/o-1"
    assert await desk.tools(narrower.json()["access_token"]) == ["test.order"]
    wider = await desk.ask(first, subject_token=first, scope="orders:read orders:refund")
    assert (wider.status, wider.json()["error"]) == (400, "invalid_scope")
    assert wider.json()["would_give"]["scope"] == "orders:read"
    less = await desk.ask(first, subject_token=first, scope="orders:read orders:refund", narrow="true")
    assert less.json()["scope"] == "orders:read"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"subject_token": None}, "invalid_request"),
        ({"subject_token": "eyJhbGciOiJub25lIn0.e30."}, "invalid_request"),
        ({"subject_token": "hf_nobody_" + "0" * 64}, "invalid_request"),
        ({"subject_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}, "invalid_request"),
        ({"requested_token_type": "urn:ietf:params:oauth:token-type:saml2"}, "invalid_request"),
        ({"actor_token_type": ACCESS}, "invalid_request"),
        ({"actor_token": "nonsense", "agent": None}, "invalid_request"),
        ({"actor_token": key("bot")}, "invalid_request"),
        ({"actor_token": key("olga"), "agent": None}, "invalid_request"),
        ({"agent": None}, "invalid_request"),
        ({"agent": "sams"}, "invalid_request"),
        ({"agent": "person"}, "invalid_request"),
        ({"expires_in": "-1"}, "invalid_request"),
        ({"expires_in": "0"}, "invalid_request"),
        ({"expires_in": "1e9"}, "invalid_request"),
        ({"expires_in": "\u0661"}, "invalid_request"),
        ({"narrow": "yes"}, "invalid_request"),
        ({"scope": "orders:read mail:**x"}, "invalid_request"),
        ({"scope": "orders:r\u0435ad"}, "invalid_request"),
        ({"scope": ["orders:read", "orders:refund"]}, "invalid_request"),
        ({"scope": "**"}, "invalid_scope"),
        ({"expires_in": "999999"}, "invalid_scope"),
        ({"resource": "https://elsewhere.example/api"}, "invalid_target"),
        ({"audience": "crm"}, "invalid_target"),
        ({"resource": [HERE, "https://elsewhere.example/api"]}, "invalid_target"),
    ],
)
async def test_what_cannot_be_given_is_refused_as_oauth_says(
    desk: Desk, said: dict[str, Any], error: str
) -> None:
    whole = {"subject_token": key("alice"), "agent": "bot", **said}
    answer = await desk.ask(key("alice"), **{name: it for name, it in whole.items() if it is not None})
    assert (answer.status, answer.json()["error"]) == (400, error)
    assert answer.headers["cache-control"] == "no-store"
    assert "access_token" not in answer.json()


@pytest.mark.parametrize("target", [HERE, f"{HERE}/mcp", "own name"])
async def test_a_token_is_for_this_gateway(desk: Desk, target: str) -> None:
    named = desk.gateway.delegation.tokens.audience if target == "own name" else target
    answer = await desk.ask(key("alice"), subject_token=key("alice"), agent="bot", audience=named)
    assert answer.status == 200


@requirement("AUT-1")
async def test_whoever_asks_shows_a_credential_of_their_own(desk: Desk) -> None:
    for by in ("", "nonsense", "hf_alicekey_" + "0" * 64):
        answer = await desk.ask(by, subject_token=key("alice"), agent="bot")
        assert (answer.status, "www-authenticate" in answer.headers) == (401, True)


@requirement("AUT-6")
async def test_a_token_of_another_tenant_is_as_good_as_none(desk: Desk) -> None:
    foreign = await desk.ask(key("alice"), subject_token=key("sam"), agent="bot")
    nothing = await desk.ask(key("alice"), subject_token="nonsense", agent="bot")
    assert (foreign.status, foreign.body) == (nothing.status, nothing.body)
    actor = await desk.ask(key("sam"), subject_token=key("sam"), actor_token=key("bot"))
    assert actor.body == nothing.body


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data", ""])
async def test_it_takes_a_form_and_nothing_else(desk: Desk, kind: str) -> None:
    answer = await desk.send(key("alice"), "/oauth/token", {"grant_type": GRANT}, **{"content-type": kind})
    assert (answer.status, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "body", [b"grant_type=%ff", b"\xff\xfe", b"a&b", b"x=" + b"1" * 70_000, b"a=1&" * 200]
)
async def test_a_form_that_cannot_be_read_is_refused(desk: Desk, body: bytes) -> None:
    told = {"content-type": "application/x-www-form-urlencoded", "authorization": f"Bearer {key('alice')}"}
    answer = await desk.client.send("POST", "/oauth/token", [body], told)
    assert answer.status in (400, 413)


@requirement("AUT-2", "AUT-4")
async def test_whoever_has_a_token_can_end_it_with_all_that_was_handed_on_from_it(desk: Desk) -> None:
    first = (await desk.ask(key("alice"), subject_token=key("alice"), agent="bot")).json()["access_token"]
    second = (await desk.ask(first, subject_token=first, agent="helper")).json()["access_token"]
    assert len(await desk.tools(second)) == 3
    for _ in range(2):
        assert (await desk.send(key("alice"), "/oauth/revoke", {"token": first})).status == 200
        assert [await desk.tools(token) for token in (first, second)] == [["refused"], ["refused"]]
    assert (await desk.send(key("alice"), "/oauth/revoke", {"token": "nonsense"})).status == 200
    assert (await desk.send(key("alice"), "/oauth/revoke", {})).status == 400
    assert (await desk.send(key("alice"), "/oauth/revoke", {"token": key("alice")})).status == 200
    assert len(await desk.tools(key("alice"))) == 4  # a key is ended by its owner, not here


@requirement("AUT-1")
async def test_every_refused_token_gets_the_same_answer(desk: Desk) -> None:
    said = (await desk.ask(key("alice"), subject_token=key("alice"), agent="bot", expires_in=60)).json()
    token = said["access_token"]
    head, body, seal = token.split(".")
    revoked = (await desk.ask(key("alice"), subject_token=key("alice"), agent="bot")).json()["access_token"]
    await desk.send(key("alice"), "/oauth/revoke", {"token": revoked})
    bad = [f"{head}.{body}.{spoiled(seal)}", f"{head}.{body}.", f"{head}.e30.{seal}", revoked]
    desk.gateway._ports.clock.jump(61)  # type: ignore[attr-defined]
    answers = [
        await desk.client.get("/v1/tools", authorization=f"Bearer {presented}") for presented in (*bad, token)
    ]
    assert {(answer.status, answer.body) for answer in answers} == {(401, answers[0].body)}
    assert {answer.headers["www-authenticate"] for answer in answers} == {
        answers[0].headers["www-authenticate"]
    }


@requirement("AUT-7")
async def test_nothing_in_an_answer_or_the_log_holds_the_token(desk: Desk, house: House) -> None:
    answer = await desk.ask(key("alice"), subject_token=key("alice"), agent="bot")
    token = answer.json()["access_token"]
    kept = orjson.dumps([record.body for record in house.records()])
    assert token.encode() not in kept
    assert key("alice").encode() not in answer.body
