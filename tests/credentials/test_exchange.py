"""Does each caller reach an upstream with a token of its own, made of what the gateway says, and no other?"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from holdfast.config import parse
from holdfast.config.upstream import McpServer
from holdfast.gateway.egress import exchanger
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.secrets import Proofs
from holdfast.identity.subject import Subjects
from holdfast.model.errors import Code, NoEffect
from holdfast.testing import ManualClock
from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.credentials.sts import Hand, Sts
from tests.requirements import requirement
from tests.upstreams.mcp.callers import attempt, upstream
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit
from tests.upstreams.secrets.kept import Kept, wallet


async def done(visit: Visit) -> None:
    visit.answer(content=[], structuredContent={"text": "done"})


@dataclass
class World:
    sts: Sts
    rogue: RogueHttp
    shop: McpUpstream
    clock: ManualClock
    secret: Kept

    async def call(self, principal: str = "ada/bot", tenant: str = "acme") -> str:
        """The token the upstream saw."""
        await self.shop.invoke(attempt("tool", principal=principal, tenant=tenant))
        return self.last

    @property
    def last(self) -> str:
        return self.seen[-1]

    @property
    def seen(self) -> list[str]:
        return [v.headers.get("authorization", "") for v in self.rogue.visits if v.method == "tools/call"]


@asynccontextmanager
async def world(act: Any = done, **auth: Any) -> AsyncIterator[World]:
    clock, kept, rogue = ManualClock(), Kept("client-secret-one"), RogueHttp(act)
    subjects = Subjects(Hand(), "https://gateway.example", clock.now)
    sts = Sts(subjects)
    async with sts.open() as token_url, rogue.open() as target:
        said = {
            "type": "token_exchange",
            "token_url": token_url,
            "client_id": "gateway:1",
            "client_secret": "${secret:sts}",
            "scopes": ["tools", "more"],
            **auth,
        }
        tree = {
            "secrets": {"sts": {"env": "STS"}},
            "upstreams": {"shop": {"mcp": {"url": target.url, "auth": said}}},
        }
        config = parse(tree)
        server = config.upstreams["shop"].mcp
        assert isinstance(server, McpServer)
        assert server.auth is not None
        proofs = Proofs(wallet(clock, sts=kept), subjects, clock.now)
        signs = exchanger("shop", server, server.auth, Egress(config), proofs)
        async with upstream(replace(target, auth=signs)) as shop:
            yield World(sts, rogue, shop, clock, kept)


@requirement("AUT-3")
async def test_each_principal_has_a_token_of_its_own_that_is_used_until_shortly_before_it_ends() -> None:
    async with world() as w:
        first = await w.call("ada/bot")
        assert await w.call("ada/bot") == first
        assert await w.call("bob/bot") != first
        assert await w.call("ada/bot", tenant="globex") != first  # of that name, and somebody else
        await w.clock.advance(539.0)
        assert await w.call("ada/bot") == first
        await w.clock.advance(1.0)
        later = await w.call("ada/bot")
    assert later != first
    assert first.removeprefix("Bearer ") in w.sts.issued


@requirement("AUT-3", "AUT-7")
async def test_the_token_server_is_told_of_a_caller_without_a_name_and_in_the_words_of_the_standard() -> None:
    async with world(audience="urn:shop") as w:
        await w.call("ursula%40example.com/claims-bot", tenant="acme-holding")
    form, claims = w.sts.asked[-1], w.sts.claims[-1]
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
    assert form["subject_token_type"] == "urn:ietf:params:oauth:token-type:jwt"
    assert form["requested_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    assert (form["audience"], form["scope"]) == ("urn:shop", "tools more")
    assert "resource" not in form
    assert claims["iss"] == "https://gateway.example"
    assert claims["exp"] - claims["iat"] == 60
    assert claims["act"]["sub"] != claims["sub"]
    assert not any(name in f"{claims} {form}" for name in ("ursula", "claims-bot", "acme-holding"))


async def test_without_an_audience_the_upstream_itself_is_the_resource() -> None:
    async with world() as w:
        await w.call()
    assert w.sts.asked[-1]["resource"].endswith("/mcp")


@requirement("AUT-7")
def test_a_caller_is_somebody_else_at_every_token_server_and_the_same_at_each() -> None:
    said = Subjects(Hand(), "", lambda: 1_800_000_000.0)
    again = Subjects(Hand(), "", lambda: 1_800_000_000.0)
    one = said.opaque("acme", "https://a/token", "user", "ada")
    assert one == again.opaque("acme", "https://a/token", "user", "ada")
    assert one != said.opaque("acme", "https://b/token", "user", "ada")
    assert one != said.opaque("globex", "https://a/token", "user", "ada")
    assert said.jwks() == again.jwks()
    assert "d" not in said.jwks()["keys"][0]


@requirement("EXE-2")
async def test_a_401_exchanges_once_more_and_the_same_request_goes_again() -> None:
    async def act(visit: Visit) -> None:
        if visit.headers["authorization"] in refused:
            visit.reply(b"", 401)
        else:
            await done(visit)

    refused: set[str] = set()
    async with world(act) as w:
        refused.add(await w.call())
        answer = await w.shop.invoke(attempt("tool", principal="ada/bot", key="k-1"))
        before, first, second = w.seen
        assert answer.data == {"text": "done"}
        assert (before, first != second) == (first, True)
        issued = len(w.sts.issued)
        refused |= {f"Bearer token-{n}-of-{w.sts.claims[-1]['sub']}" for n in range(99)}
        with pytest.raises(NoEffect) as told:
            await w.call()
    assert told.value.code is Code.PERMISSION_DENIED
    assert len(w.sts.issued) == issued + 1  # once, and no more


@requirement("AUT-3")
async def test_many_calls_of_one_caller_exchange_once() -> None:
    async with world() as w:
        before = len(w.sts.asked)
        await asyncio.gather(*(w.call() for _ in range(8)))
    assert len(w.sts.asked) == before + 1


@requirement("AUT-8")
async def test_one_that_has_ended_and_cannot_be_renewed_refuses_before_anything_is_sent() -> None:
    async with world() as w:
        first = await w.call()
        w.sts.status = 503
        await w.clock.advance(560.0)
        assert await w.call() == first  # it still lives
        await w.clock.advance(40.0)
        sent = len(w.seen)
        with pytest.raises(NoEffect, match="nothing was sent") as told:
            await w.call()
        assert (told.value.code, len(w.seen)) == (Code.DEPENDENCY_UNAVAILABLE, sent)
        w.sts.status = 200
        assert await w.call() != first


@pytest.mark.parametrize(
    "said",
    [
        {"error": "invalid_grant", "error_description": "kanarienvogel-7391"},
        {"token_type": "Bearer"},
        {"access_token": "x\r\ninjected: 1", "token_type": "Bearer"},
        {"access_token": "kanarienvogel-7391", "token_type": "DPoP"},
        {"access_token": 7, "token_type": "Bearer"},
    ],
)
@requirement("AUT-8")
async def test_a_server_that_gives_none_is_told_to_operators_without_its_words(
    said: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with world() as w:
        w.sts.said, w.sts.status = said, 400 if "error" in said else 200
        with caplog.at_level(logging.DEBUG), pytest.raises(NoEffect, match="ask an operator") as told:
            await w.call()
        assert told.value.code is Code.PERMISSION_DENIED
        assert w.seen == []
    assert "kanarienvogel" not in f"{caplog.text} {told.value}"
    assert "token server" in caplog.text


@requirement("AUT-8", "EXE-2")
async def test_the_clients_own_secret_is_replaced_without_a_restart() -> None:
    async with world() as w:
        await w.call("ada/bot")
        w.sts.secret = w.secret.text = "client-secret-two"
        await w.call("bob/bot")  # the old one is refused, so it is read anew
        assert len(w.sts.issued) >= 2
    assert w.secret.reads == 2


@requirement("AUT-1", "AUT-3")
async def test_no_token_of_the_gateways_own_reaches_the_upstream() -> None:
    async with world() as w:
        for n in range(20):
            await w.call(f"user-{n}/bot")
    subjects = {form["subject_token"] for form in w.sts.asked}
    said = [f"{visit.headers} {visit.message}" for visit in w.rogue.visits]
    assert len(subjects) > 20
    assert not any(subject in text for subject in subjects for text in said)
