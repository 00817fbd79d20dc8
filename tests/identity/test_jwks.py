"""Are the issuer's keys at hand when they are needed, and not asked for when they are not?"""

import asyncio
import logging
from typing import Any

import pytest
from joserfc.jwk import ECKey

from holdfast.identity import Identity, Unauthenticated
from holdfast.identity.jwks import metadata_urls
from holdfast.model.defaults import JWKS_REFRESH_S, JWKS_STALE_S, JWKS_UNKNOWN_S
from tests.identity.issuer import EC, ISSUER, NOW, Issuer, shown
from tests.requirements import requirement

NEXT = ECKey.generate_key("P-256", {"kid": "next"})


async def asked(identity: Identity, token: str) -> str:
    """Who that is, as a server finds out: at once, else after a look at the issuer's keys."""
    for _ in range(2):
        try:
            return identity.authenticate(shown(token)).user
        except Unauthenticated:
            if not await identity.learn(shown(token)):
                break
    return "nobody"


@requirement("AUT-1")
async def test_keys_are_found_by_the_issuers_own_metadata() -> None:
    issuer = Issuer()
    identity = issuer.identity()
    assert await asked(identity, issuer.token()) == "alice"
    assert issuer.asked == [f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/jwks"]


@requirement("AUT-1")
async def test_keys_are_found_by_the_metadata_of_an_authorization_server() -> None:
    issuer = Issuer()
    _, second = metadata_urls(ISSUER)
    assert second == "https://login.example.com/.well-known/oauth-authorization-server/t1"
    issuer.documents = {second: {"issuer": ISSUER, "jwks_uri": "https://keys.example.com/jwks"}}
    assert await asked(issuer.identity(), issuer.token()) == "alice"
    assert issuer.asked[-1] == "https://keys.example.com/jwks"


async def test_where_the_keys_are_can_be_configured() -> None:
    issuer = Issuer()
    assert await asked(issuer.identity(jwks_url="https://keys.example.com/jwks"), issuer.token()) == "alice"
    assert issuer.asked == ["https://keys.example.com/jwks"]


@requirement("AUT-1")
@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://evil.example.com", "jwks_uri": "https://evil.example.com/jwks"},
        {"issuer": f"{ISSUER}/", "jwks_uri": f"{ISSUER}/jwks"},
        {"issuer": ISSUER, "jwks_uri": "http://login.example.com/jwks"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd#/jwks"},
        {"issuer": ISSUER, "jwks_uri": "https://a@b/jwks"},
        {"issuer": ISSUER, "jwks_uri": 5},
        {"issuer": ISSUER},
        [],
    ],
)
async def test_metadata_that_is_not_the_issuers_or_leads_elsewhere_is_not_followed(said: Any) -> None:
    issuer = Issuer()
    issuer.documents = dict.fromkeys(metadata_urls(ISSUER), said)
    assert await asked(issuer.identity(), issuer.token()) == "nobody"
    assert not any(url.endswith("jwks") for url in issuer.asked)


@requirement("AUT-1")
async def test_a_new_key_is_learnt_when_a_token_names_it_and_a_dropped_one_counts_no_more() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    old, new = issuer.token(EC), issuer.token(NEXT)
    assert await asked(identity, old) == "alice"
    issuer.keys = [NEXT]
    issuer.now += JWKS_UNKNOWN_S
    assert await asked(identity, new) == "alice"
    assert len(issuer.asked) == 2
    issuer.now += JWKS_UNKNOWN_S
    assert await asked(identity, old) == "nobody"  # though it was believed before


@requirement("AUT-1")
async def test_however_many_tokens_name_unknown_keys_the_issuer_is_asked_seldom() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    issuer.now += JWKS_UNKNOWN_S
    made_up = [issuer.token(NEXT, {"kid": f"k{number}"}) for number in range(20)]
    assert [await asked(identity, token) for token in made_up] == ["nobody"] * 20
    assert len(issuer.asked) == 2
    assert await asked(identity, issuer.token()) == "alice"
    issuer.now += JWKS_UNKNOWN_S
    await asked(identity, made_up[0])
    assert len(issuer.asked) == 4


@requirement("AUT-1")
async def test_all_who_wait_for_the_same_keys_wait_for_one_look() -> None:
    issuer = Issuer()
    identity = issuer.identity()
    issuer.gate.clear()
    waiting = [asyncio.create_task(asked(identity, issuer.token(jti=f"t{n}"))) for n in range(10)]
    while not issuer.asked:  # noqa: ASYNC110  # the first has begun
        await asyncio.sleep(0)
    waiting[0].cancel()  # whoever leaves takes nothing from the others
    issuer.gate.set()
    assert await asyncio.gather(*waiting[1:]) == ["alice"] * 9
    assert len(issuer.asked) == 2


@requirement("AUT-1")
async def test_what_no_look_at_the_keys_could_mend_asks_for_none() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    issuer.now += JWKS_UNKNOWN_S
    for token in (issuer.token(aud="x"), issuer.token(header={"alg": "ES256", "typ": "other"}), "a.b.c", "x"):
        assert await asked(identity, token) == "nobody"
    assert issuer.asked == []


@requirement("AUT-1")
async def test_while_the_issuer_is_away_its_keys_count_on_for_a_bounded_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    issuer.away = True
    issuer.now = NOW + JWKS_STALE_S - 1
    with caplog.at_level(logging.WARNING):
        identity.tend()
        await asyncio.sleep(0)
        assert await asked(identity, issuer.token()) == "alice"
        believed = issuer.token()
        assert await asked(identity, believed) == "alice"
    issuer.now = NOW + JWKS_STALE_S
    assert await asked(identity, believed) == "nobody"
    issuer.away = False
    issuer.now += JWKS_UNKNOWN_S
    assert await asked(identity, believed) == "alice"
    assert "cannot be had" in caplog.text


async def test_keys_are_looked_at_again_in_the_background_in_time() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    keys = identity.issuer_keys
    assert keys is not None
    assert not keys.due
    issuer.now += JWKS_REFRESH_S
    issuer.keys = [NEXT]
    identity.tend()
    identity.tend()
    while len(issuer.asked) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    await keys.close()
    assert len(issuer.asked) == 2
    assert not keys.due
    assert identity.authenticate(shown(issuer.token(NEXT))).user == "alice"


async def test_an_issuer_that_was_away_is_asked_again_soon() -> None:
    issuer = Issuer()
    identity = issuer.identity()
    keys = identity.issuer_keys
    assert keys is not None
    issuer.away = True
    assert not await keys.look()
    assert not keys.due
    issuer.now += JWKS_UNKNOWN_S
    assert keys.due


@pytest.mark.parametrize("said", [b"", b"[]", b'{"keys":5}', b"<html>", b'{"keys":[]' + b" " * 300_000])
async def test_what_is_no_set_of_keys_leaves_those_that_are_known(said: bytes) -> None:
    issuer = Issuer()
    identity = await issuer.ready(jwks_url="https://keys.example.com/jwks")
    keys = identity.issuer_keys
    assert keys is not None

    async def fetch(url: str) -> bytes:
        return said

    keys._fetch = fetch
    assert not await keys.look()
    assert identity.authenticate(shown(issuer.token())).user == "alice"
