"""Do people and programs who hold a token of a real provider get in, as who they are, and nobody else?"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.gateway import Gateway
from tests.identity.issuer import signed
from tests.identity.test_jwt import confused_of, in_der, respelt, unsigned_of
from tests.oidc.conftest import served_by
from tests.oidc.doors import DOORS, come
from tests.oidc.provider import ELSEWHERE, GATEWAY, IN_RSA, Provider
from tests.requirements import requirement
from tests.servers.desk import DESKS, Desk
from tests.servers.mcp.raw import messages
from tests.servers.serving import Served
from tests.servers.ways import alike

EACH = pytest.mark.parametrize("door", DOORS)


@EACH
@requirement("AUT-1")
async def test_somebody_who_signed_in_calls_as_themselves(
    served: Served, issuer: Provider, gateway: Gateway, door: str, desk: Desk
) -> None:
    token = await issuer.of_person("alice")
    seen = (await come(served, door, f"Bearer {token}", "add", text="hello")).observation()
    assert (seen["status"], desk.notes) == ("done", ["hello"])
    seen = (await come(served, door, f"bearer {token}")).observation()
    assert seen["status"] == "done"
    who = gateway.identity.authenticate({"authorization": f"Bearer {token}"})
    assert (who.user, who.agent, who.tenant, who.roles) == ("alice", "notebook", "acme", frozenset())


@EACH
@requirement("AUT-1")
async def test_a_program_calls_as_itself_and_does_what_it_may(
    served: Served, issuer: Provider, door: str, desk: Desk
) -> None:
    token = await issuer.of_program()
    assert (await come(served, door, f"Bearer {token}")).observation()["status"] == "done"
    await come(served, door, f"Bearer {token}", "add", text="x")
    assert desk.notes == []


@EACH
@requirement("AUT-5")
async def test_a_token_for_less_gives_less(served: Served, issuer: Provider, door: str, desk: Desk) -> None:
    token = await issuer.of_person("alice", scope="notes:write")
    came = await come(served, door, f"Bearer {token}")
    assert b'"done"' not in came.body


async def test_the_issuer_may_sign_with_either_of_its_keys(
    config: dict[str, Any], issuer: Provider, desk: Desk
) -> None:
    config["auth"] |= {"audience": IN_RSA}
    async with Gateway.open(config) as gateway, served_by(gateway) as served:
        token = await issuer.of_person("alice", resource=IN_RSA)
        assert token.startswith("eyJhbGciOiJSUzI1NiI")  # {"alg":"RS256"
        assert (await come(served, "rest", f"Bearer {token}")).status == 200


async def refusals(issuer: Provider) -> dict[str, str | None]:
    """Whatever a stranger could try, by what is wrong with it."""
    good = await issuer.of_person("alice")
    key, rsa = await issuer.key("EC"), await issuer.key("RSA")
    header = {"alg": "ES256", "typ": "at+jwt", "kid": key.kid}
    claims: dict[str, Any] = {
        "iss": issuer.url,
        "aud": GATEWAY,
        "sub": "alice",
        "client_id": "notebook",
        "scope": "notes:read",
    }
    claims |= {"iat": 1_700_000_000, "exp": 4_000_000_000}
    head, body, _ = good.split(".")

    def made(told: Mapping[str, Any] | None = None, **more: Any) -> str:
        return signed({**header, **(told or {})}, {**claims, **more}, key)

    return {
        "another resource": await issuer.of_person("alice", resource=ELSEWHERE),
        "an id token": (await issuer.signed_in("alice"))["id_token"],
        "somebody who is not listed": await issuer.of_person("bert"),
        "another issuer": made(iss="https://evil.example.com"),
        "another audience": made(aud="notebook"),
        "expired": made(exp=1_700_000_600),
        "not yet valid": made(nbf=3_900_000_000),
        "a key nobody knows": made({"kid": "theirs"}),
        "a key of another kind": made({"kid": rsa.kid}),
        "no algorithm": unsigned_of({"alg": "none", "typ": "at+jwt"}, claims),
        "a shared secret": confused_of(claims, rsa),
        "no signature": f"{head}.{body}.",
        "a signature in another form": in_der(good),
        "a signature spelt another way": respelt(good),
        "half of it": good[: len(good) // 2],
        "garbage": "x.y.z",
        "a key that is none": "hf_aaaa_" + "0" * 64,
        "far too long": good + "A" * 20_000,
    }


@requirement("AUT-1")
async def test_every_bad_token_gets_one_answer_at_every_door(
    served: Served, issuer: Provider, desk: Desk
) -> None:
    bad = await refusals(issuer)
    for door in DOORS:
        said = {
            name: await come(served, door, f"Bearer {token}", "add", text="x") for name, token in bad.items()
        }
        answers = set(said.values())
        assert len(answers) == 1, said
        [one] = answers
        where = f"{served.url}/.well-known/oauth-protected-resource/mcp"
        assert one.status == 401
        assert one.challenge == f'Bearer realm="holdfast", error="invalid_token", resource_metadata="{where}"'
        assert b"not accepted" in one.body
    assert desk.notes == []


@EACH
@requirement("AUT-1")
async def test_whoever_comes_without_a_token_is_told_where_to_sign_in(
    served: Served, issuer: Provider, door: str
) -> None:
    for nothing in (None, "", "Bearer", "Basic YTpi"):
        came = await come(served, door, nothing)
        assert came.status == 401
        assert came.challenge is not None
        where = came.challenge.partition('resource_metadata="')[2].rstrip('"')
    async with aiohttp.ClientSession() as http:
        for url in (where, where.removesuffix("/mcp")):
            async with http.get(url) as answer:
                assert answer.status == 200
                told = await answer.json()
        assert told["resource"] == GATEWAY
        assert told["bearer_methods_supported"] == ["header"]
        async with http.get(f"{told['authorization_servers'][0]}/.well-known/openid-configuration") as answer:
            assert (await answer.json())["issuer"] == issuer.url


@requirement("AUT-6")
async def test_tenants_and_groups_are_the_issuers(
    config: dict[str, Any], issuer: Provider, desk: Desk
) -> None:
    config["auth"] |= {
        "claims": {"tenant": "tenant", "groups": "groups"},
        "groups": {"desk": {"scopes": ["notes:*"]}},
    }
    async with Gateway.open(config) as gateway, served_by(gateway) as served:
        alice, zoe = await issuer.of_person("alice"), await issuer.of_person("zoe")
        first = (await come(served, "rest", f"Bearer {alice}", "add", text="a")).observation()
        second = (await come(served, "rest", f"Bearer {zoe}", "add", text="z")).observation()
        assert (first["status"], second["status"]) == ("done", "done")
        async with aiohttp.ClientSession(headers={"authorization": f"Bearer {zoe}"}) as http:
            async with http.get(f"{served.url}/v1/calls/{second['call_id']}") as answer:
                assert answer.status == 200
            async with http.get(f"{served.url}/v1/calls/{first['call_id']}") as answer:
                assert answer.status == 404
        assert (await come(served, "rest", f"Bearer {await issuer.of_person('bert')}")).status == 401
        assert (await come(served, "rest", f"Bearer {await issuer.of_program()}")).status == 401  # no tenant


@requirement("APR-2")
async def test_people_approve_through_the_client_that_is_theirs(
    config: dict[str, Any], issuer: Provider, desk: Desk
) -> None:
    config["auth"] |= {"in_person": ["console"]}
    async with Gateway.open(config) as gateway, served_by(gateway) as served:
        for client, status in (("notebook", 403), ("console", 200)):
            token = await issuer.of_person("alice", client=client)
            headers = {"authorization": f"Bearer {token}"}
            async with (
                aiohttp.ClientSession(headers=headers) as http,
                http.get(f"{served.url}/metrics") as it,
            ):
                assert it.status == status


@EACH
@requirement("PRO-2", "AUT-1")
async def test_the_holder_of_a_token_is_answered_the_same_by_either_way(
    config: dict[str, Any], issuer: Provider, door: str, tmp_path: Path
) -> None:
    good, bad = await issuer.of_person("alice"), await issuer.of_person("bert")
    calls: list[tuple[str | None, str, dict[str, Any]]] = [
        (good, "count", {}),
        (good, "add", {"text": "a"}),
        (good, "read", {"number": 99}),
        (good, "add", {"text": 1}),
        (good, "nothing", {}),
        (good, "send", {"to": "x"}),
        (bad, "count", {}),
        (None, "count", {}),
        (f"{good}x", "count", {}),
    ]
    ways = []
    for short in (True, False):
        DESKS.append(Desk())
        own = {**config, "store": f"sqlite:///{tmp_path}/{short}.db"}
        async with Gateway.open(own) as gateway, served_by(gateway, short=short) as served:
            came = [
                await come(served, door, token and f"Bearer {token}", tool, **arguments)
                for token, tool, arguments in calls
            ]
        DESKS.pop()
        ways.append([(one.status, alike(one.challenge or ""), alike(messages(one.body)[-1])) for one in came])
    assert ways[0] == ways[1]
