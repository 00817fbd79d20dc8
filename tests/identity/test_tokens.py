"""Is a token of our own taken for what it says, and nothing else for one?"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OctKey, OKPKey

from holdfast.identity import Agent, Grant, Identity, Key, Person, Unauthenticated, mint
from holdfast.identity.delegation import Undelegable, Wish, delegate
from holdfast.identity.tokens import LONGEST, TYPE, Lineage, Tokens
from holdfast.model import defaults
from holdfast.model.bounds import Bounds
from holdfast.model.call import Principal
from holdfast.stores.keyring import Keyring
from tests.requirements import requirement
from tests.spoiled import spoiled

UNINFORMATIVE = "this credential is not accepted; get a new one and try again"


class House:
    """Alice, her key, her agent, and a keyring that several processes share."""

    def __init__(self) -> None:
        self.time = 5000.5
        self.plain, entry = mint("alice")
        key = Key(id=entry["id"], hash=entry["hash"], user="alice", expires_at=20_000.0)
        self.key = f"key:{key.id}"
        alice = Person(name="alice", grants=(Grant("orders:*"),), trust=60, tenant="north")
        people, agents = [alice, Person(name="bob", tenant="north")], [Agent(name="bobs", user="bob")]
        self.identity = Identity.api_key(people, agents, [key], now=lambda: self.time)
        self.keyring = Keyring()
        self.tokens = self.process(self.keyring)
        self.identity.readers.append(self.tokens)

    def process(self, keyring: Keyring) -> Tokens:
        return Tokens(keyring, "https://gateway.example", lambda: self.time, keys=self.identity.keys)

    def given(self, jti: str = "1", **wish: Any) -> Principal:
        parent = self.identity.holder(self.plain).principal
        return delegate(parent, Wish(**{"agent": "bot", **wish}), jti=jti, now=self.time)

    def token(self, **wish: Any) -> str:
        parent = self.identity.holder(self.plain)
        lineage = self.tokens.lineage(parent.principal, self.plain, parent.claim)
        return self.tokens.issue(self.given(**wish), lineage)

    def caller(self, token: str) -> Principal:
        return self.identity.authenticate({"Authorization": f"Bearer {token}"})


@pytest.fixture
def house() -> House:
    return House()


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    head, body, seal = token.split(".")
    return orjson.loads(_decoded(head)), orjson.loads(_decoded(body)), seal


def joined(head: dict[str, Any], body: dict[str, Any], seal: str) -> str:
    return f"{_encoded(orjson.dumps(head))}.{_encoded(orjson.dumps(body))}.{seal}"


def _decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


@requirement("AUT-2")
def test_what_was_handed_on_comes_back_as_it_was_given(house: House) -> None:
    wish = {"scopes": frozenset({"orders:read"}), "tools": frozenset({"shop.*"}), "life_s": 60.0}
    caller = house.caller(house.token(**wish))
    assert (caller.tenant, caller.id, caller.act) == ("north", "alice/bot", ("bot",))
    assert caller.scopes == {"orders:read"}
    assert (caller.roles, caller.trust) == (frozenset(), 60)
    assert caller.bounds == Bounds(frozenset({"shop.*"}), None, 5060)
    assert caller.rests_on == (house.key, "token:hf-1")


@requirement("AUT-2")
def test_a_token_says_who_acts_as_rfc_8693_does(house: House) -> None:
    given = delegate(house.given(), Wish(agent="helper"), jti="2", now=house.time)
    head, said, _ = parts(house.tokens.issue(given, Lineage()))
    assert head == {"typ": TYPE, "alg": "Ed25519", "kid": head["kid"]}
    assert (said["iss"], said["sub"]) == ("https://gateway.example", "alice")
    assert said["act"] == {"sub": "helper", "act": {"sub": "bot"}}
    assert said["scope"] == "orders:*"
    assert (said["iat"], said["nbf"], said["exp"]) == (5000, 5000, 8600)
    assert said["hf"]["rests_on"] == [house.key, "token:hf-1"]


def test_every_process_on_the_store_reads_it_and_no_other(house: House) -> None:
    token = house.token()
    root = Keyring(b"r" * 32)
    one, other = house.process(root), house.process(Keyring(b"r" * 32))
    issued = one.issue(house.given(), Lineage())
    assert other.prove(issued).user == "alice"
    with pytest.raises(Unauthenticated, match="not issued here"):
        other.prove(token)


def _other_type(house: House, token: str) -> str:
    head, body, _ = parts(token)
    key = house.tokens._key
    return jwt.encode({**head, "typ": "at+jwt"}, body, key, algorithms=["Ed25519"])


def _no_algorithm(house: House, token: str) -> str:
    head, body, _ = parts(token)
    return joined({**head, "alg": "none"}, body, "")


def _hmac_with_the_public_key(house: House, token: str) -> str:
    head, body, _ = parts(token)
    public = house.tokens._key.as_dict(private=False)["x"]
    return jwt.encode({**head, "alg": "HS256"}, body, OctKey.import_key(_decoded(str(public)) + b"-" * 8))


def _own_key(house: House, token: str) -> str:
    head, body, _ = parts(token)
    return jwt.encode(head, body, OKPKey.generate_key("Ed25519"), algorithms=["Ed25519"])


def _key_in_the_header(house: House, token: str) -> str:
    head, body, _ = parts(token)
    key = OKPKey.generate_key("Ed25519")
    return jwt.encode({**head, "jwk": key.as_dict(private=False)}, body, key, algorithms=["Ed25519"])


def _more_scopes(house: House, token: str) -> str:
    head, body, seal = parts(token)
    return joined(head, {**body, "scope": "**"}, seal)


def _no_seal(house: House, token: str) -> str:
    return token.rpartition(".")[0] + "."


def _padded_seal(house: House, token: str) -> str:
    return token + "=="


def _other_spelling_of_the_seal(house: House, token: str) -> str:
    """The last digit of 86 has four bits that say nothing."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + alphabet[alphabet.index(token[-1]) | 1]


def _signed_twice(house: House, token: str) -> str:
    return f"{token}.{token.rpartition('.')[2]}"


def _seal_of_another(house: House, token: str) -> str:
    other = house.token(jti="2")
    return f"{token.rpartition('.')[0]}.{other.rpartition('.')[2]}"


FORGERIES = [
    _no_algorithm,
    _hmac_with_the_public_key,
    _own_key,
    _key_in_the_header,
    _more_scopes,
    _no_seal,
    _padded_seal,
    _other_spelling_of_the_seal,
    _seal_of_another,
    _other_type,
    _signed_twice,
]


@requirement("AUT-1", "AUT-2")
@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: str(forge.__name__).strip("_"))
def test_a_forged_token_is_refused_and_told_nothing(
    house: House, forge: Callable[[House, str], str], caplog: pytest.LogCaptureFixture
) -> None:
    token = house.token()
    forged = forge(house, token)
    assert forged != token
    with pytest.raises(Unauthenticated) as refused:
        house.caller(forged)
    if house.tokens.reads(forged):
        assert str(refused.value) == UNINFORMATIVE
    assert house.caller(token).user == "alice"
    assert forged not in caplog.text


@given(st.data())
def test_no_change_of_a_single_character_is_taken(data: st.DataObject) -> None:
    house = House()
    token = house.token()
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="ascii", categories=["L", "N", "P"]).filter(token[place].__ne__))
    changed = token[:place] + other + token[place + 1 :]
    with pytest.raises(Unauthenticated):
        house.caller(changed)


def test_it_is_good_from_a_little_before_it_was_made_until_its_end(house: House) -> None:
    token = house.token(life_s=60.0)
    for time, good in [
        (5000 - defaults.TOKEN_SKEW_S, True),
        (5000 - defaults.TOKEN_SKEW_S - 1, False),
        (5059.9, True),
        (5060, False),
    ]:
        house.time = time
        house.identity.forget()
        if good:
            house.caller(token)
        else:
            with pytest.raises(Unauthenticated, match=UNINFORMATIVE):
                house.caller(token)


@requirement("AUT-4")
@pytest.mark.parametrize("name", ["token:hf-1", "key"])
def test_one_that_was_taken_back_is_refused_at_once_though_it_was_known(house: House, name: str) -> None:
    token = house.token()
    house.caller(token)
    taken = house.key if name == "key" else name
    house.identity.taken_back = frozenset({f"north/{taken}"})
    with pytest.raises(Unauthenticated, match=UNINFORMATIVE):
        house.caller(token)


def test_it_rests_on_the_key_it_was_made_from(house: House) -> None:
    token = house.token()
    house.identity.keys.clear()
    house.identity.forget()
    with pytest.raises(Unauthenticated, match=UNINFORMATIVE):
        house.caller(token)


@requirement("AUT-5")
def test_what_the_person_lost_is_lost_in_every_delegation(house: House) -> None:
    token = house.token(scopes=frozenset({"orders:read", "orders:write"}))
    alice = house.identity.people["alice"]
    house.identity.people["alice"] = Person(
        name="alice", grants=(Grant("orders:read"), Grant("mail:*")), tenant="north", trust=10
    )
    house.identity.forget()
    caller = house.caller(token)
    assert caller.scopes == {"orders:read"}
    assert caller.trust == 10
    del house.identity.people["alice"]
    house.identity.forget()
    with pytest.raises(Unauthenticated, match=UNINFORMATIVE):
        house.caller(token)
    house.identity.people["alice"] = Person(name="alice", grants=alice.grants, tenant="south")
    house.identity.forget()
    with pytest.raises(Unauthenticated, match=UNINFORMATIVE):
        house.caller(token)


def test_an_agent_of_somebody_else_is_refused(house: House) -> None:
    with pytest.raises(Unauthenticated, match=UNINFORMATIVE):
        house.caller(house.token(agent="bobs"))


def test_a_token_that_would_be_too_long_is_not_made(house: House) -> None:
    alice = Person(name="alice", grants=(Grant("**"),), tenant="north")
    house.identity.people["alice"] = alice
    house.identity.forget()
    many = frozenset(f"orders:{'x' * 200}{number}" for number in range(60))
    with pytest.raises(Undelegable, match="too long for a token"):
        house.token(scopes=many)
    assert len(house.token()) < LONGEST


def test_a_delegation_works_on_this_machine_without_any_key() -> None:
    keyring, identity = Keyring(), Identity.local(os_user="ann")
    tokens = Tokens(keyring, "", identity.now)
    identity.readers.append(tokens)
    parent = identity.at_terminal()
    given = delegate(parent, Wish(agent="bot", scopes=frozenset({"a"})), jti="1", now=identity.now())
    token = tokens.issue(given, tokens.lineage(parent, None, None))
    caller = identity.authenticate({"Authorization": f"Bearer {token}", "X-Holdfast-User": "root"})
    assert caller.id == "ann/bot"
    assert caller.scopes == {"a"}
    with pytest.raises(Unauthenticated):  # not taken by name instead
        identity.authenticate({"Authorization": f"Bearer {spoiled(token)}"})
