"""Does everybody reach an upstream in their own name, and nobody in another's?"""

import asyncio
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.model.errors import Code, HoldfastError, NoEffect
from holdfast.upstreams.mcp.oauth_client import Client, Redirect
from holdfast.upstreams.mcp.oauth_grant import GATEWAY, Owner
from tests.requirements import requirement
from tests.upstreams.oauth.world import ALICE, HERE, decoded, world

BOB = "acme/bob/desk-agent"


@requirement("AUT-1")
async def test_a_person_signs_in_once_and_is_known_to_the_upstream() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        assert [await w.call(gateway) for _ in range(3)] == [(200, "alice")] * 3
        [address] = w.opened
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert asked["code_challenge_method"] == "S256"
        assert (asked["resource"], asked["redirect_uri"]) == (w.url, HERE)


@requirement("AUT-6")
async def test_each_person_has_a_token_of_their_own_whichever_agent_calls() -> None:
    async with world() as w:
        await w.sign_in()
        w.office.person = "bob"
        await w.sign_in(BOB)
        gateway = w.authorizer()
        assert await w.call(gateway, ALICE) == (200, "alice")
        assert await w.call(gateway, "acme/alice/other-agent") == (200, "alice")
        assert await w.call(gateway, BOB) == (200, "bob")


@requirement("AUT-6")
@pytest.mark.parametrize(
    "stranger", ["other/alice/desk-agent", "acme/eve/desk-agent", "acme%2Falice/x/y", ""]
)
async def test_nobody_else_is_let_in_with_it(stranger: str) -> None:
    async with world() as w:
        await w.sign_in()
        with pytest.raises(NoEffect):
            await w.call(w.authorizer(), stranger)
        assert w.seen == [""]


async def test_a_shared_sign_in_is_everybodys() -> None:
    async with world() as w:
        w.office.person = "the-gateway"
        await w.sign_in("", shared=True)
        gateway = w.authorizer(shared=True)
        assert await w.call(gateway, ALICE) == await w.call(gateway, BOB) == (200, "the-gateway")


async def test_the_gateway_has_a_sign_in_for_what_it_asks_itself() -> None:
    async with world() as w:
        w.office.person = "the-gateway"
        await w.sign_in("")
        assert await w.call(w.authorizer(), "") == (200, "the-gateway")
        assert decoded(await w.store.load(GATEWAY, "crm"))["holder"] == ["*", "*", "crm"]


@requirement("AUT-8")
async def test_a_call_never_waits_for_a_person_and_says_how_to_sign_in() -> None:
    async with world() as w:
        with pytest.raises(NoEffect, match=r"'crm' .* run 'holdfast login crm --as alice'") as refused:
            await w.call(w.authorizer())
        assert refused.value.code is Code.PERMISSION_DENIED
        with pytest.raises(NoEffect, match=r"'holdfast login crm'$"):
            await w.call(w.authorizer(shared=True))
        with pytest.raises(NoEffect, match="'holdfast login crm --gateway'"):
            await w.call(w.authorizer(), "")
        assert w.office.asked == [], "a call that cannot go on registers nothing"


async def test_another_port_is_registered_anew_and_the_same_one_is_not() -> None:
    async with world() as w:
        await w.sign_in()
        await w.sign_in()
        assert w.office.count("/register") == 1
        await w.sign_in(client=Client(redirect_uri="http://127.0.0.1:8888/callback"))
        assert w.office.count("/register") == 2
        assert await w.authorizer().redirect_uris(ALICE) == ("http://127.0.0.1:8888/callback",)


async def test_configured_scopes_are_asked_for_beside_what_the_upstream_names() -> None:
    async with world() as w:
        await w.sign_in(client=Client(redirect_uri=HERE, scopes=("admin",)))
        [asked] = parse_qs(urlsplit(w.opened[0]).query)["scope"]
        assert set(asked.split()) == {"admin"}
        assert decoded(await w.store.load(Owner("acme", "alice"), "crm"))["tokens"]["scope"] == asked


@requirement("AUT-8")
async def test_more_scopes_are_asked_for_at_the_next_sign_in_beside_those_there_are() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer()
        w.required.append("admin")
        with pytest.raises(NoEffect, match=r"the scope 'tools admin' .* 'holdfast login crm --as alice'"):
            await w.call(gateway)
        await w.sign_in()
        [asked] = parse_qs(urlsplit(w.opened[-1]).query)["scope"]
        assert set(asked.split()) == {"tools", "admin"}
        assert await w.call(gateway) == (200, "alice")


async def test_scopes_that_were_granted_and_are_not_honoured_are_not_asked_for_again() -> None:
    async with world() as w:
        await w.sign_in()
        gateway = w.authorizer(open_url=w.browse)
        challenge = 'Bearer error="insufficient_scope", scope="tools"'
        await gateway.headers(ALICE)
        assert await gateway.challenged(ALICE, 403, challenge) is False
        assert await gateway.challenged(ALICE, 403, 'Bearer error="forbidden"') is False
        assert len(w.opened) == 1


async def test_who_is_there_to_be_asked_is_asked_once_however_many_calls_wait() -> None:
    async with world() as w:
        gateway = w.authorizer(open_url=w.browse)
        answers = await asyncio.gather(*(w.call(gateway) for _ in range(8)))
        assert answers == [(200, "alice")] * 8
        assert len(w.opened) == 1


@requirement("AUT-3")
async def test_a_changed_state_ends_the_sign_in_and_is_not_told() -> None:
    async with world() as w:

        async def tricked(address: str) -> Redirect:
            code, _, _ = await w.browse(address)  # type: ignore[misc]
            return code, "somebody-elses-state"

        with pytest.raises(
            HoldfastError, match="signing in to 'crm' failed: the state came back changed"
        ) as ended:
            await w.authorizer(open_url=tricked).sign_in(ALICE)
        assert "somebody" not in str(ended.value)
        assert await w.store.load(Owner("acme", "alice"), "crm") is None


async def test_a_sign_in_says_what_the_authorization_server_answered() -> None:
    async with world() as w:

        async def late(address: str) -> Redirect:
            answer = await w.browse(address)
            w.office.codes.clear()
            return answer

        with pytest.raises(
            HoldfastError, match=r"asking for a token failed: .* answered 400 'invalid_grant'"
        ):
            await w.authorizer(open_url=late).sign_in(ALICE)
