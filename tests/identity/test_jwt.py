"""Is a token believed only if the issuer made it, for us, for now?"""

import hashlib
import hmac
import logging
from base64 import urlsafe_b64decode
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, RSAKey

from holdfast.identity import Unauthenticated
from tests.identity.issuer import AUDIENCE, EC, ED, NOW, RSA, Issuer, coded, shown
from tests.requirements import requirement

REFUSED = "this credential is not accepted; get a new one and try again"
FOREIGN = ECKey.generate_key("P-256", {"kid": "ec"})


def unsigned(issuer: Issuer, header: dict[str, Any], seal: bytes = b"", **more: Any) -> str:
    return unsigned_of(header, issuer.claims(**more), seal)


def unsigned_of(header: dict[str, Any], claims: dict[str, Any], seal: bytes = b"") -> str:
    return f"{coded(header)}.{coded(claims)}.{coded(seal)}"


def confused(issuer: Issuer) -> str:
    """Signed with the issuer's public key, as if it were a shared secret."""
    return confused_of(issuer.claims(), RSA)


def confused_of(claims: dict[str, Any], key: RSAKey) -> str:
    body = f"{coded({'alg': 'HS256', 'kid': key.kid, 'typ': 'at+jwt'})}.{coded(claims)}"
    return f"{body}.{coded(hmac.digest(key.as_pem(private=False), body.encode(), hashlib.sha256))}"


def in_der(token: str) -> str:
    """The same signature as certificates write it."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    body, _, seal = token.rpartition(".")
    raw = urlsafe_b64decode(seal + "==")
    half = len(raw) // 2
    numbers = [int.from_bytes(part, "big") for part in (raw[:half], raw[half:])]
    return f"{body}.{coded(encode_dss_signature(*numbers))}"


def respelt(token: str) -> str:
    """Other bits in the last letter that no decoder looks at."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + letters[letters.index(token[-1]) ^ 1]


def bad(issuer: Issuer) -> dict[str, str]:
    """Everything that is no token of ours, by what is wrong with it."""
    good = issuer.token()
    head, body, seal = good.split(".")
    other = coded(issuer.claims(sub="bob"))
    return {
        "another issuer": issuer.token(iss="https://login.example.com/t2"),
        "an issuer with a slash more": issuer.token(iss="https://login.example.com/t1/"),
        "no issuer": issuer.token(iss=None),
        "another audience": issuer.token(aud="https://other.example.com"),
        "no audience": issuer.token(aud=None),
        "an audience that is no text": issuer.token(aud={"a": AUDIENCE}),
        "expired": issuer.token(exp=int(NOW) - 31),
        "never ends": issuer.token(exp=None),
        "an end that is text": issuer.token(exp=str(int(NOW) + 600)),
        "an end that is a flag": issuer.token(exp=True),
        "not yet valid": issuer.token(nbf=int(NOW) + 31),
        "issued in the future": issuer.token(iat=int(NOW) + 31),
        "alg none": unsigned(issuer, {"alg": "none", "typ": "at+jwt"}),
        "alg None": unsigned(issuer, {"alg": "None", "kid": "ec"}),
        "alg none with a signature": unsigned(issuer, {"alg": "none", "kid": "ec"}, b"x" * 64),
        "no alg": unsigned(issuer, {"kid": "ec"}, b"x" * 64),
        "an alg that is a list": unsigned(issuer, {"alg": ["ES256"], "kid": "ec"}, b"x" * 64),
        "a public key as a shared secret": confused(issuer),
        "an algorithm that is not pinned": issuer.token(RSA, {"alg": "PS256"}),
        "the name of another kind of key": issuer.token(EC, {"kid": "rsa"}),
        "a foreign key under a known name": issuer.token(FOREIGN),
        "a foreign key": issuer.token(FOREIGN, {"kid": "theirs"}),
        "a key in the token itself": issuer.token(FOREIGN, {"jwk": FOREIGN.as_dict(private=False)}),
        "no signature": f"{head}.{body}.",
        "two parts": f"{head}.{body}",
        "another body": f"{head}.{other}.{seal}",
        "a signature in another form": in_der(good),
        "a signature spelt another way": respelt(good),
        "a signature with padding": f"{good}==",
        "a signature cut short": good[:-8],
        "a signature of zeros": f"{head}.{body}.{coded(bytes(64))}",
        "an id token": issuer.token(aud="notebook"),
        "a logout token": issuer.token(header={"typ": "logout+jwt"}),
        "an extension nobody knows": issuer.token(header={"crit": ["x"], "x": 1}),
        "bound to a key of its holder": issuer.token(cnf={"jkt": "x"}),
        "nobody": issuer.token(sub=None),
        "somebody who is not listed": issuer.token(sub="mallory"),
        "somebody with an odd name": issuer.token(sub="alice\nbob"),
        "a broken act": issuer.token(act="bot"),
        "garbage": "not.a.token",
        "more garbage": "Zm9v",
        "an unknown key": "hf_aaaa_" + "0" * 64,
        "too long": issuer.token(padding="x" * 20_000),
        "twice a member": f"{head}.{coded(body_with_two(issuer))}.{seal}",
    }


def body_with_two(issuer: Issuer) -> bytes:
    return orjson.dumps(issuer.claims())[:-1] + b',"sub":"bob"}'


@requirement("AUT-1")
@pytest.mark.parametrize("key", [RSA, EC, ED], ids=["RS256", "ES256", "EdDSA"])
async def test_a_token_of_the_issuer_says_who_is_calling(key: Any) -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    caller = identity.authenticate(shown(issuer.token(key)))
    assert (caller.user, caller.agent, caller.tenant) == ("alice", "notebook", "default")
    assert caller.rests_on == ("token:t-1",)
    assert identity.standing(shown(issuer.token(key))).until == NOW + 600 + 30


@requirement("AUT-1")
async def test_whatever_is_wrong_with_a_token_the_answer_is_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    said: dict[str, str] = {}
    with caplog.at_level(logging.INFO, "holdfast.identity"):
        for name, token in bad(issuer).items():
            caplog.clear()
            try:
                identity.authenticate(shown(token))
                said[name] = "let in"
            except Unauthenticated as error:
                said[name] = str(error)
            assert len(caplog.records) == 1, name
            assert not any(part in caplog.text for part in token.split(".") if len(part) > 15), name
    assert said == dict.fromkeys(said, REFUSED)
    identity.authenticate(shown(issuer.token()))


@requirement("AUT-1")
async def test_the_log_says_what_was_wrong(caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    with caplog.at_level(logging.INFO, "holdfast.identity"), pytest.raises(Unauthenticated):
        identity.authenticate(shown(issuer.token(aud="https://other.example.com")))
    assert "its audience is 'https://other.example.com'" in caplog.text


@requirement("AUT-1")
@given(st.data())
async def test_no_change_to_a_token_is_overlooked(data: st.DataObject) -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    good = issuer.token(data.draw(st.sampled_from([EC, ED, RSA])))
    place = data.draw(st.integers(0, len(good) - 1))
    letter = data.draw(st.sampled_from("ABab01-_.=+/ "))
    changed = good[:place] + letter + good[place + 1 :]
    if changed.strip() != good:
        with pytest.raises(Unauthenticated):
            identity.authenticate(shown(changed))


@requirement("AUT-1")
async def test_clocks_may_differ_by_the_configured_time_and_no_more() -> None:
    issuer = Issuer()
    identity = await issuer.ready(skew_s=5)
    second = int(NOW)
    for fine in (issuer.token(exp=second - 4), issuer.token(nbf=second + 5), issuer.token(iat=second + 5)):
        identity.authenticate(shown(fine))
    for off in (issuer.token(exp=second - 5), issuer.token(nbf=second + 6), issuer.token(iat=second + 6)):
        with pytest.raises(Unauthenticated):
            identity.authenticate(shown(off))


@requirement("AUT-1")
async def test_a_token_that_was_believed_is_not_believed_longer_than_it_lasts() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    token = issuer.token()
    identity.authenticate(shown(token))
    issuer.now = NOW + 629
    identity.authenticate(shown(token))
    issuer.now = NOW + 630
    with pytest.raises(Unauthenticated):
        identity.authenticate(shown(token))


@requirement("AUT-1")
@pytest.mark.parametrize(
    ("token", "fine"),
    [
        ({"aud": ["api", "https://gw.example.com"]}, True),
        ({"aud": "api", "resource": "https://gw.example.com"}, True),
        ({"aud": "api"}, False),
        ({"aud": "https://gw.example.com"}, False),
        ({"aud": ["api", "https://other.example.com"]}, False),
    ],
)
async def test_a_token_must_be_meant_for_this_resource_too(token: dict[str, Any], fine: bool) -> None:
    issuer = Issuer()
    identity = await issuer.ready(audience="api", resource="https://gw.example.com")
    if fine:
        identity.authenticate(shown(issuer.token(**token)))
        return
    with pytest.raises(Unauthenticated):
        identity.authenticate(shown(issuer.token(**token)))


@requirement("AUT-1")
async def test_a_token_that_was_taken_back_is_refused_at_once() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    token = issuer.token()
    identity.taken_back = frozenset(identity.authenticate(shown(token)).revocable)
    with pytest.raises(Unauthenticated, match=REFUSED):
        identity.authenticate(shown(token))
    identity.authenticate(shown(issuer.token(jti="t-2")))


@requirement("AUT-1")
async def test_no_credential_is_kept_and_few_are_remembered() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    token = issuer.token(ED)
    identity.authenticate(shown(token))
    assert token.rpartition(".")[2][:16] not in repr(vars(identity))
    for number in range(1100):
        identity.authenticate(shown(issuer.token(ED, jti=f"t-{number}")))
    assert len(identity._proven) <= 1024


@requirement("AUT-1")
async def test_short_keys_and_secret_ones_are_none() -> None:
    issuer = Issuer()
    with pytest.warns(SecurityWarning):
        weak = RSAKey.generate_key(1024, {"kid": "weak"})
    issuer.keys = [weak, EC]
    identity = await issuer.ready()
    with pytest.raises(Unauthenticated):
        identity.authenticate(shown(issuer.token(weak)))
    identity.authenticate(shown(issuer.token(EC)))


async def test_a_token_need_not_name_its_key_where_there_is_only_one() -> None:
    issuer = Issuer()
    identity = await issuer.ready()
    nameless = issuer.token(EC, {"kid": None})
    assert identity.authenticate(shown(nameless)).user == "alice"
    issuer.keys = [EC, ECKey.generate_key("P-256", {"kid": "ec2"})]
    identity = await issuer.ready()
    with pytest.raises(Unauthenticated):
        identity.authenticate(shown(nameless))
