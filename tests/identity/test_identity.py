"""Is a caller who they say, and may they do no more than they should?"""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from holdfast.config import parse
from holdfast.identity import Agent, Grant, Identity, Key, Person, Unauthenticated, build, mint
from holdfast.identity.keys import hash_chosen, hash_random, matches
from holdfast.model.scopes import covers
from tests.identity.test_scopes import SCOPES, SETS
from tests.requirements import requirement


def person(name: str, *scopes: str, **more: Any) -> Person:
    return Person(name=name, grants=tuple(map(Grant, scopes)), **more)


def local(*people: Person, agents: tuple[Agent, ...] = ()) -> Identity:
    return Identity.local(people, agents, os_user="ann")


class Keyed:
    """Two people, an agent of the first, and a key for each of the three."""

    def __init__(self) -> None:
        self.time = 0.0
        self.plain: dict[str, str] = {}
        keys = []
        for name, user, agent in [("alice", "alice", None), ("bot", "alice", "bot"), ("bob", "bob", None)]:
            self.plain[name], entry = mint(user, agent)
            scopes = frozenset(["orders:read", "mail:*"]) if agent else None
            keys.append(
                Key(
                    id=entry["id"],
                    hash=entry["hash"],
                    user=user,
                    agent=agent,
                    scopes=scopes,
                    expires_at=100.0,
                )
            )
        alice = person("alice", "orders:*", roles=frozenset(["operator"]), trust=70, tenant="acme")
        bob = person("bob", "**", roles=frozenset(["operator"]), secret="plain:hunter2")
        bot = Agent(name="bot", user="alice", scopes=frozenset(["**"]), trust=20)
        self.identity = Identity.api_key([alice, bob], [bot], keys, now=lambda: self.time)

    def headers(self, name: str, **more: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.plain[name]}", **more}


@requirement("AUT-1")
def test_local_mode_is_the_os_user_through_a_named_agent() -> None:
    identity = local()
    assert identity.authenticate({}).id == "ann/local"
    caller = identity.authenticate({"X-Holdfast-Agent": "claims-bot"})
    assert (caller.id, caller.tenant) == ("ann/claims-bot", "default")
    assert caller.scopes == {"**"}


@requirement("AUT-1")
def test_local_mode_chooses_only_among_people_who_are_configured() -> None:
    identity = local(person("alice", "orders:*", tenant="acme", trust=60))
    caller = identity.authenticate({"X-Holdfast-User": "alice"})
    assert (caller.user, caller.tenant, caller.trust) == ("alice", "acme", 60)
    assert caller.scopes == {"orders:*"}
    with pytest.raises(Unauthenticated, match="there is no person 'mallory' here \\(known: 'alice'\\)"):
        identity.authenticate({"X-Holdfast-User": "mallory"})


def test_a_listed_os_user_has_what_the_list_says() -> None:
    assert local(person("ann", "orders:read")).authenticate({}).scopes == {"orders:read"}


@pytest.mark.parametrize("agent", ["", "a b", "x" * 129, "a\x00", "ä"])
def test_an_agents_name_is_short_and_printable(agent: str) -> None:
    with pytest.raises(Unauthenticated, match="printable"):
        local().authenticate({"X-Holdfast-Agent": agent})


def test_an_agent_acts_for_its_own_person_only() -> None:
    identity = local(person("alice"), agents=(Agent(name="bot", user="alice"),))
    identity.authenticate({"X-Holdfast-User": "alice", "X-Holdfast-Agent": "bot"})
    with pytest.raises(Unauthenticated, match="acts for 'alice', not for 'ann'"):
        identity.authenticate({"X-Holdfast-Agent": "bot"})


@requirement("AUT-1")
def test_a_key_says_who_is_calling() -> None:
    keyed = Keyed()
    assert keyed.identity.authenticate(keyed.headers("alice")).id == "alice/person"
    assert keyed.identity.authenticate(keyed.headers("bot")).id == "alice/bot"
    lower = {name.lower(): value for name, value in keyed.headers("bot").items()}
    assert keyed.identity.authenticate(Headers(lower)).id == "alice/bot"


@requirement("AUT-1")
def test_a_key_that_is_absent_wrong_or_foreign_is_refused() -> None:
    keyed = Keyed()
    good = keyed.plain["alice"]
    id, other = good.split("_")[1], keyed.plain["bob"].split("_")[2]
    malformed = [
        "",
        "Bearer",
        f"Basic {good}",
        good,
        f"Bearer {good}x",
        f"Bearer {good[:-1]}",
        f"Bearer {good} {good}",
    ]
    for header in malformed:
        with pytest.raises(Unauthenticated, match="Authorization: Bearer"):
            keyed.identity.authenticate({"authorization": header})
    for forged in [f"hf_{id}_{'0' * 64}", f"hf_{id}_{other}", f"hf_000000000000_{other}"]:
        with pytest.raises(Unauthenticated, match="not known here"):
            keyed.identity.authenticate({"authorization": f"Bearer {forged}"})
    with pytest.raises(Unauthenticated):
        keyed.identity.authenticate({"X-Holdfast-User": "alice"})


@requirement("AUT-1")
def test_a_key_stops_at_its_end() -> None:
    keyed = Keyed()
    keyed.time = 99.9
    keyed.identity.authenticate(keyed.headers("alice"))
    keyed.time = 100.0
    with pytest.raises(Unauthenticated, match="has expired; ask for a new one"):
        keyed.identity.authenticate(keyed.headers("alice"))


@requirement("AUT-5")
def test_what_a_key_may_do_is_what_person_agent_and_key_all_allow() -> None:
    keyed = Keyed()
    caller = keyed.identity.authenticate(keyed.headers("bot"))
    assert caller.scopes == {"orders:read"}
    assert caller.trust == 20


@requirement("AUT-5")
@given(SETS, SETS | st.none(), SETS | st.none(), SCOPES)
def test_no_agent_and_no_key_ever_holds_more_than_its_person(
    held: frozenset[str], agent: frozenset[str] | None, key: frozenset[str] | None, scope: str
) -> None:
    plain, entry = mint("alice", "bot")
    given_key = Key(id=entry["id"], hash=entry["hash"], user="alice", agent="bot", scopes=key)
    bot = Agent(name="bot", user="alice", scopes=agent)
    identity = Identity.api_key([person("alice", *held)], [bot], [given_key])
    caller = identity.authenticate({"authorization": f"Bearer {plain}"})
    if covers(caller.scopes, scope):
        assert covers(held, scope)
        assert agent is None or covers(agent, scope)
        assert key is None or covers(key, scope)


@requirement("AUT-6")
def test_the_tenant_is_the_persons_and_no_header_changes_it() -> None:
    keyed = Keyed()
    headers = keyed.headers("bot", **{"X-Holdfast-Tenant": "other", "X-Holdfast-User": "bob"})
    assert (keyed.identity.authenticate(headers).tenant, keyed.identity.authenticate(headers).user) == (
        "acme",
        "alice",
    )


@requirement("AUT-4")
def test_a_scope_that_ends_is_gone_at_the_next_request() -> None:
    time = 0.0
    alice = Person(name="alice", grants=(Grant("a"), Grant("b", "bob", expires_at=10.0)))
    identity = Identity.local([alice], os_user="alice", now=lambda: time)
    assert identity.authenticate({}).scopes == {"a", "b"}
    time = 10.0
    assert identity.authenticate({}).scopes == {"a"}


@requirement("APR-2")
def test_an_agent_has_no_roles_whoever_it_acts_for() -> None:
    keyed = Keyed()
    assert keyed.identity.authenticate(keyed.headers("alice")).roles == {"operator"}
    assert keyed.identity.authenticate(keyed.headers("bot")).roles == set()
    identity = local(person("alice", roles=frozenset(["operator"])))
    assert identity.authenticate({"X-Holdfast-User": "alice"}).roles == {"operator"}
    assert identity.authenticate({"X-Holdfast-User": "alice", "X-Holdfast-Agent": "bot"}).roles == set()


@requirement("APR-2")
def test_where_a_secret_is_set_roles_need_it() -> None:
    keyed = Keyed()

    def roles(**headers: str) -> frozenset[str]:
        return keyed.identity.authenticate(keyed.headers("bob", **headers)).roles

    assert roles() == set()
    assert roles(**{"X-Holdfast-Approver-Secret": "hunter2"}) == {"operator", "user"}
    with pytest.raises(Unauthenticated, match="not the approver secret of 'bob'"):
        roles(**{"X-Holdfast-Approver-Secret": "hunter3"})


@requirement("APR-2")
def test_a_secret_nobody_set_gives_an_agent_nothing() -> None:
    keyed = Keyed()
    said = {"X-Holdfast-Approver-Secret": "anything"}
    assert keyed.identity.authenticate(keyed.headers("bot", **said)).roles == set()
    assert keyed.identity.authenticate(keyed.headers("alice", **said)).roles == {"operator"}
    assert keyed.identity.at_terminal(key=keyed.plain["bot"], secret="anything").roles == set()
    identity = local(person("alice", roles=frozenset(["operator"])))
    by_name = {"X-Holdfast-User": "alice", "X-Holdfast-Agent": "bot"}
    assert identity.authenticate({**by_name, **said}).roles == set()


@requirement("APR-2")
def test_own_consent_is_had_only_where_an_agent_cannot_stand_in() -> None:
    identity = local(person("alice", roles=frozenset(["user", "operator"])))
    assert "user" not in identity.authenticate({}).roles
    assert "user" not in identity.authenticate({"X-Holdfast-User": "alice"}).roles
    assert identity.at_terminal().roles == {"user"}
    assert identity.at_terminal("alice").roles == {"user", "operator"}


@requirement("APR-2")
def test_a_secret_that_is_not_known_here_proves_nothing() -> None:
    identity = local(person("alice", roles=frozenset(["operator"]), secret="plain:"))
    assert identity.at_terminal("alice").roles == set()
    with pytest.raises(Unauthenticated, match="not the approver secret"):
        identity.at_terminal("alice", secret="anything")


def test_at_the_terminal_key_mode_wants_a_key_or_a_secret() -> None:
    keyed = Keyed()
    identity = keyed.identity
    assert identity.at_terminal(key=keyed.plain["alice"]).roles == {"operator"}
    assert identity.at_terminal("bob", secret="hunter2").roles == {"operator", "user"}
    for wrong in [{}, {"name": "alice"}, {"name": "alice", "secret": "x"}, {"name": "bob", "secret": "x"}]:
        with pytest.raises(Unauthenticated):
            identity.at_terminal(**wrong)
    with pytest.raises(Unauthenticated, match="belongs to 'alice', not to 'bob'"):
        identity.at_terminal("bob", key=keyed.plain["alice"])


@requirement("APR-2")
def test_who_could_answer_is_known_by_tenant_and_role() -> None:
    identity = local(
        person("alice", roles=frozenset(["operator"])),
        person("bob", roles=frozenset(["operator"]), tenant="acme"),
        person("carol"),
    )
    assert identity.holders("default", "operator") == {"alice"}
    assert identity.holders("default", "user") == {"alice", "carol", "ann"}
    assert identity.holders("acme", "operator") == {"bob"}
    assert identity.holders("acme", "compliance") == set()
    assert Keyed().identity.holders("acme", "user") == {"alice"}


def test_many_agents_names_do_not_fill_the_memory() -> None:
    identity = local()
    for i in range(3000):
        identity.authenticate({"X-Holdfast-Agent": f"agent-{i}"})
    assert len(identity._known) <= 1024


@pytest.mark.parametrize("secret", ["hunter2", "ünïcode", "x" * 500])
def test_stored_secrets_match_themselves_only(secret: str) -> None:
    for stored in (hash_random(secret), hash_chosen(secret), f"plain:{secret}"):
        assert matches(stored, secret)
        assert not matches(stored, secret + "x")
        assert not matches(stored, "")
        assert stored.startswith("plain:") or secret not in stored


@pytest.mark.parametrize(
    "stored", ["", "plain:", "scrypt:1:2", "scrypt:x:8:1:AA==:AA==", "scrypt:16384:8:1:é:é", "md5:x"]
)
def test_an_unreadable_stored_secret_matches_nothing(stored: str) -> None:
    assert not matches(stored, "")
    assert not matches(stored, "x")


def test_minted_keys_are_different_and_only_hashes_are_kept() -> None:
    (first, entry), (second, _) = mint("alice"), mint("alice")
    assert first != second
    assert first.split("_")[2] not in str(entry)
    assert entry["user"] == "alice"
    assert "agent" not in entry


@requirement("AUT-1")
def test_a_minted_entry_works_in_the_configuration() -> None:
    plain, entry = mint("alice", "bot")
    tree: Mapping[str, Any] = {
        "auth": {
            "mode": "api_key",
            "people": {"alice": {"scopes": ["orders:*", {"scope": "x", "expires": "2001-01-01T00:00:00Z"}]}},
            "agents": {"bot": {"user": "alice"}},
            "keys": [entry],
        }
    }
    identity = build(parse(tree).auth.model_dump())
    caller = identity.authenticate({"Authorization": f"Bearer {plain}"})
    assert caller.id == "alice/bot"
    assert caller.scopes == {"orders:*"}


@requirement("AUT-4")
def test_who_somebody_is_can_be_remembered_until_a_scope_or_their_key_ends() -> None:
    alice = Person(name="alice", grants=(Grant("a"), Grant("b", "bob", expires_at=10.0)))
    identity = Identity.local([alice, person("carol", "a")], os_user="alice", now=lambda: 0.0)
    standing = identity.standing({})
    assert (standing.principal, standing.until) == (identity.authenticate({}), 10.0)
    assert identity.standing({"X-Holdfast-User": "carol"}).until == math.inf
    keyed = Keyed()
    standing = keyed.identity.standing(keyed.headers("bot"))
    assert (standing.principal.agent, standing.until) == ("bot", 100.0)
