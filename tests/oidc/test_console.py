"""Do people sign in to the console at a real provider, and nobody else?"""

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import yaml

from holdfast import config as configuration
from holdfast.gateway import Gateway
from holdfast.identity.keys import hash_chosen
from holdfast.model.errors import ConfigError
from holdfast.servers.app import build
from holdfast.servers.console.sign_in import AGENT, WRONG
from tests.console.visitor import Visitor, text
from tests.docs.pages import ROOT, Page
from tests.oidc.conftest import PEOPLE
from tests.oidc.provider import Provider
from tests.requirements import requirement
from tests.servers.asgi import Answer
from tests.servers.desk import Desk

BACK = "http://127.0.0.1:8080/sign-in/callback"
CLIENT = "holdfast-console"


@pytest.fixture
def config(config: dict[str, Any]) -> dict[str, Any]:
    config["auth"] |= {"in_person": [CLIENT], "scopes": ["notes:read"]}
    return {**config, "console": {"client_id": CLIENT}}


@pytest.fixture
async def visitor(config: dict[str, Any], desk: Desk) -> AsyncIterator[Visitor]:
    async with Gateway.open(config) as gateway:
        yield Visitor(build(gateway))


async def sent(visitor: Visitor, then: str = "/") -> str:
    """Where the browser is sent to sign in."""
    answer = await visitor.get(f"/sign-in/openid?{urlencode({'next': then})}")
    assert answer.status == 303, text(answer)
    return answer.headers["location"]


async def came_back(visitor: Visitor, brought: dict[str, str]) -> Answer:
    return await visitor.get(f"/sign-in/callback?{urlencode(brought)}")


async def signed_in(visitor: Visitor, issuer: Provider, person: str, then: str = "/") -> Answer:
    return await came_back(visitor, await issuer.browsed(person, await sent(visitor, then), BACK))


@requirement("AUT-1", "PPL-2")
async def test_somebody_signs_in_at_the_issuer_and_is_themselves(visitor: Visitor, issuer: Provider) -> None:
    page = await visitor.get("/sign-in?next=/audit")
    assert f"Sign in with {urlsplit(issuer.url).netloc}" in text(page)
    answer = await signed_in(visitor, issuer, "alice", "/audit")
    assert answer.status == 200
    assert 'content="0; url=/audit"' in answer.body.decode()
    assert set(visitor.cookies) == {"holdfast-session"}, "what was carried there and back is gone"
    home = await visitor.get("/")
    assert home.status == 200
    assert "alice" in text(home)
    assert 'title="operator"' in home.body.decode()


async def test_the_browser_carries_nothing_it_could_use_itself(visitor: Visitor) -> None:
    url = await sent(visitor)
    asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["state"]) == len(asked["nonce"]) == 43
    assert asked["redirect_uri"] == BACK
    assert asked["scope"] == "openid notes:read"
    flow = visitor.cookies["holdfast-flow"]
    assert asked["state"] not in flow
    assert asked["nonce"] not in flow


@requirement("AUT-1")
async def test_what_another_browser_began_is_not_finished_here(
    visitor: Visitor, issuer: Provider, config: dict[str, Any]
) -> None:
    theirs = Visitor(visitor._client.app)
    brought = await issuer.browsed("alice", await sent(theirs), BACK)
    await sent(visitor)
    without = Visitor(visitor._client.app)
    for one in (visitor, without):
        answer = await came_back(one, brought)
        assert answer.status == 401
        assert WRONG in text(answer)
        assert "holdfast-session" not in one.cookies


@requirement("AUT-1")
@pytest.mark.parametrize(
    "change",
    [
        {"state": "x"},
        {"state": ""},
        {"code": ""},
        {"code": "forged"},
        {"iss": "https://evil.example"},
        {"code": "", "error": "access_denied"},
    ],
    ids=str,
)
async def test_what_was_changed_on_the_way_back_opens_nothing(
    visitor: Visitor, issuer: Provider, change: dict[str, str]
) -> None:
    brought = await issuer.browsed("alice", await sent(visitor), BACK)
    answer = await came_back(visitor, {**brought, **change})
    assert answer.status == 401
    assert visitor.cookies == {}


async def test_what_came_back_is_good_once(visitor: Visitor, issuer: Provider) -> None:
    brought = await issuer.browsed("alice", await sent(visitor), BACK)
    flow = dict(visitor.cookies)
    assert (await came_back(visitor, brought)).status == 200
    visitor.cookies = flow
    assert (await came_back(visitor, brought)).status == 401
    assert visitor.cookies == {}


async def test_a_code_of_another_sign_in_is_no_good_in_this_one(visitor: Visitor, issuer: Provider) -> None:
    """Somebody plants their own code: the proof that goes with it is another's."""
    other = Visitor(visitor._client.app)
    planted = await issuer.browsed("bert", await sent(other), BACK)
    brought = await issuer.browsed("alice", await sent(visitor), BACK)
    answer = await came_back(visitor, {**brought, "code": planted["code"]})
    assert answer.status == 401
    assert visitor.cookies == {}


async def test_somebody_the_gateway_does_not_know_is_not_let_in(visitor: Visitor, issuer: Provider) -> None:
    answer = await signed_in(visitor, issuer, "mallory")
    assert answer.status == 401
    assert visitor.cookies == {}


@requirement("APR-2")
async def test_who_has_an_approver_secret_shows_it_next(
    config: dict[str, Any], issuer: Provider, desk: Desk
) -> None:
    people = {**PEOPLE, "alice": {**PEOPLE["alice"], "approver_secret": hash_chosen("correct horse")}}
    config["auth"] |= {"people": people}
    async with Gateway.open(config) as gateway:
        visitor = Visitor(build(gateway))
        assert (await signed_in(visitor, issuer, "alice", "/audit")).status == 200
        half = visitor.cookies["holdfast-session"]
        assert (await visitor.get("/")).headers["location"] == "/sign-in"
        assert "alice, show that it is you" in text(await visitor.get("/sign-in"))
        answer = await visitor.post("/sign-in", {"step": "secret", "secret": "guess"})
        assert answer.status == 401
        assert "show that it is you" in text(answer)
        answer = await visitor.post(
            "/sign-in", {"step": "secret", "secret": "correct horse", "next": "/audit"}
        )
        assert (answer.status, answer.headers["location"]) == (303, "/audit")
        assert visitor.cookies["holdfast-session"] != half
        assert (await visitor.get("/")).status == 200
        visitor.cookies["holdfast-session"] = half
        assert (await visitor.get("/")).status == 303


@requirement("AUT-2")
async def test_a_token_that_an_agent_holds_is_refused_and_a_persons_is_taken(
    visitor: Visitor, issuer: Provider
) -> None:
    for token in (await issuer.of_person("alice"), await issuer.of_program()):
        answer = await visitor.post("/sign-in", {"credential": token})
        assert answer.status == 403
        assert AGENT in text(answer)
    await signed_in(visitor, issuer, "alice")
    assert (await visitor.get("/")).status == 200


async def test_where_the_client_is_the_audience_the_id_token_is_taken(
    config: dict[str, Any], issuer: Provider, desk: Desk
) -> None:
    config["auth"] |= {"audience": CLIENT, "claims": {"scopes": [], "agent": ["aud"]}}
    async with Gateway.open(config) as gateway:
        visitor = Visitor(build(gateway))
        assert (await signed_in(visitor, issuer, "alice")).status == 200
        assert (await visitor.get("/")).status == 200


async def test_while_the_issuer_is_away_one_is_told_so(config: dict[str, Any], desk: Desk) -> None:
    config["auth"] |= {"issuer": "http://127.0.0.1:9"}
    async with Gateway.open(config) as gateway:
        answer = await Visitor(build(gateway)).get("/sign-in/openid")
        assert answer.status == 503
        assert "cannot be asked now" in text(answer)


async def test_without_a_client_there_is_no_such_way_in(config: dict[str, Any], desk: Desk) -> None:
    async with Gateway.open({**config, "console": {}}) as gateway:
        visitor = Visitor(build(gateway))
        assert "Sign in with" not in text(await visitor.get("/sign-in"))
        assert (await visitor.get("/sign-in/openid")).status == 404
        assert (await visitor.get("/sign-in/callback?code=x&state=y")).status == 404


@pytest.mark.parametrize("auth", [{"in_person": []}, {"mode": "local"}])
async def test_a_client_that_nobody_could_sign_in_through_is_refused(
    config: dict[str, Any], auth: dict[str, Any]
) -> None:
    said = {"mode": "local"} if "mode" in auth else {**config["auth"], **auth}
    with pytest.raises(ConfigError, match=r"console\.client_id"):
        configuration.parse({**config, "auth": said})


def test_the_set_up_that_the_docs_show_can_be_used() -> None:
    [block] = [one for one in Page(ROOT / "docs/how-to/use-the-console.md").blocks if one.language == "yaml"]
    assert configuration.parse(yaml.safe_load(block.body)).console.client_id == CLIENT
