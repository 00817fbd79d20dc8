"""Does a token give no more than the configuration lets it, and say the right thing of its holder?"""

from typing import Any

import pytest
import yaml
from hypothesis import given

from holdfast.config import parse
from holdfast.gateway.operators import operates
from holdfast.identity import Unauthenticated, build, mint
from holdfast.model.call import Principal
from holdfast.model.errors import ConfigError
from holdfast.model.scopes import covers
from tests.docs.pages import ROOT, Page
from tests.identity.issuer import AUDIENCE, ISSUER, Issuer, shown
from tests.identity.test_scopes import SCOPES, SETS
from tests.requirements import requirement
from tests.spoiled import spoiled

GROUPS: dict[str, Any] = {
    "claims": {"groups": "groups"},
    "groups": {"desk": {"roles": ["clerk"], "scopes": ["notes:*"]}, "empty": {}},
}


async def caller(said: dict[str, Any], **auth: Any) -> Principal:
    issuer = Issuer()
    return (await issuer.ready(**auth)).authenticate(shown(issuer.token(**said)))


async def refused(said: dict[str, Any], **auth: Any) -> None:
    with pytest.raises(Unauthenticated, match="not accepted"):
        await caller(said, **auth)


@requirement("AUT-5")
async def test_somebody_who_is_listed_may_do_what_list_and_token_both_say() -> None:
    assert (await caller({"scope": "orders:read mail:send"})).scopes == {"orders:read"}
    assert (await caller({"scope": "orders:**"})).scopes == {"orders:*"}
    assert (await caller({"scope": None, "scp": ["orders:read"]})).scopes == {"orders:read"}
    assert (await caller({"scope": None})).scopes == set()
    assert (await caller({"scope": "openid or**ders:x **:*** :"})).scopes == set()


@requirement("AUT-5")
async def test_where_tokens_say_nothing_of_scopes_they_narrow_nothing() -> None:
    assert (await caller({"scope": "x"}, claims={"scopes": []})).scopes == {"orders:*"}


@requirement("AUT-5")
async def test_somebody_who_is_not_listed_is_refused_unless_the_configuration_lets_them_in() -> None:
    said = {"sub": "zoe", "scope": "orders:read mail:send"}
    await refused(said)
    assert (await caller(said, unlisted={})).scopes == set()
    stranger = await caller(said, unlisted={"scopes": ["mail:**"], "trust": 40})
    assert (stranger.user, stranger.tenant, stranger.trust) == ("zoe", "default", 40)
    assert (stranger.scopes, stranger.roles) == (frozenset(["mail:send"]), frozenset())


@requirement("AUT-5")
async def test_a_group_gives_what_is_configured_for_it_and_no_more_than_the_token() -> None:
    member = {"sub": "zoe", "scope": "notes:read orders:read", "groups": ["desk", "strangers"]}
    assert (await caller(member, **GROUPS)).scopes == {"notes:read"}
    listed = {"scope": "notes:read orders:read", "groups": ["desk"]}
    assert (await caller(listed, **GROUPS)).scopes == {"notes:read", "orders:read"}
    await refused({"sub": "zoe", "groups": ["strangers"]}, **GROUPS)
    await refused({"sub": "zoe", "groups": "other desk-2"}, **GROUPS)
    assert (await caller({"sub": "zoe", "groups": "desk", "scope": "notes:a"}, **GROUPS)).scopes == {
        "notes:a"
    }


@requirement("AUT-5")
@given(SETS, SETS, SETS, SCOPES)
async def test_no_token_gives_more_than_the_configuration(
    listed: frozenset[str], group: frozenset[str], token: frozenset[str], scope: str
) -> None:
    found = await caller(
        {"scope": " ".join(token), "groups": ["g"]},
        people={"alice": {"scopes": sorted(listed)}},
        claims={"groups": "groups"},
        groups={"g": {"scopes": sorted(group)}},
    )
    if covers(found.scopes, scope):
        assert covers(token, scope)
        assert covers(listed, scope) or covers(group, scope)


@requirement("APR-2")
async def test_roles_are_had_by_people_and_not_by_their_agents() -> None:
    auth = {**GROUPS, "in_person": ["console"]}
    said = {"groups": ["desk"], "scope": "notes:read"}
    assert (await caller(said, **auth)).roles == set()
    assert (await caller({**said, "client_id": "console"}, **auth)).roles == {"operator", "clerk"}
    assert (await caller({**said, "client_id": "console"}, **auth)).agent == "person"
    delegated = {**said, "client_id": "console", "act": {"sub": "bot"}}
    assert (await caller(delegated, **auth)).roles == set()
    nameless = {**said, "client_id": None}
    assert (await caller(nameless, **auth)).agent == "client"
    assert (await caller(nameless, **auth)).roles == set()


@requirement("APR-2")
async def test_a_secret_nobody_set_gives_an_agents_token_no_roles() -> None:
    issuer = Issuer()
    identity = await issuer.ready(**GROUPS)
    headers = shown(issuer.token(groups=["desk"])) | {"x-holdfast-approver-secret": "anything"}
    assert identity.authenticate(headers).roles == set()


@requirement("AUT-1")
@pytest.mark.parametrize(
    "said", [{"client_id": "person"}, {"client_id": "local"}, {"act": {"sub": "person"}}]
)
async def test_no_client_is_called_what_stands_for_the_person(said: dict[str, Any]) -> None:
    await refused(said)


@requirement("APR-2")
@pytest.mark.parametrize(
    "auth",
    [
        {"claims": {"groups": "groups"}, "groups": {"ops": {"roles": ["operator"]}}},
        {"claims": {"roles": "roles"}},
    ],
)
async def test_operators_whom_the_issuer_names_are_operators_before_they_come(auth: dict[str, Any]) -> None:
    issuer = Issuer()
    people: dict[str, Any] = {"alice": {}}
    ann = Principal(user="ann", roles=frozenset(["user"]))
    assert operates(ann, issuer.identity(people=people))
    assert not operates(ann, issuer.identity(people=people, **auth))


@requirement("APR-2")
async def test_roles_come_from_a_claim_only_where_it_is_named() -> None:
    said = {"sub": "zoe", "client_id": "console", "realm": {"roles": ["operator", "user", "no role!"]}}
    auth: dict[str, Any] = {"in_person": ["console"], "unlisted": {}}
    assert (await caller(said, **auth)).roles == set()
    assert (await caller(said, **auth, claims={"roles": "realm.roles"})).roles == {"operator"}


@requirement("POL-1")
async def test_policies_hear_of_the_roles_a_token_gave_last_whoever_acts() -> None:
    issuer = Issuer()
    plain, entry = mint("alice", "bot")
    identity = await issuer.ready(**GROUPS, keys=[entry], agents={"bot": {"user": "alice"}})
    caller = identity.authenticate(shown(issuer.token(groups=["desk"])))
    assert caller.roles == set()
    assert identity.roles_of(caller) == {"operator", "clerk"}
    assert identity.roles_of(identity.authenticate(shown(plain))) == {"operator", "clerk"}
    caller = identity.authenticate(shown(issuer.token(jti="t-2")))  # no longer in the group
    assert identity.roles_of(caller) == {"operator"}
    assert issuer.identity().roles_of(caller) == {"operator"}


@requirement("APR-2")
async def test_an_approver_secret_is_asked_for_with_a_token_too() -> None:
    people = {"alice": {"roles": ["operator"], "approver_secret": "plain:hunter2"}}
    issuer = Issuer()
    auth = parse(
        {"auth": {"mode": "jwt", "issuer": ISSUER, "audience": AUDIENCE, "people": {"alice": {}}}}
    ).auth.model_dump()
    auth["people"]["alice"] |= people["alice"]
    auth["in_person"] = ("notebook",)
    identity = build(auth, now=lambda: issuer.now, fetch=issuer.fetch)
    await identity.learn(shown(issuer.token()))
    token = shown(issuer.token())
    assert identity.authenticate(token).roles == set()
    assert identity.authenticate({**token, "x-holdfast-approver-secret": "hunter2"}).roles == {
        "operator",
        "user",
    }
    with pytest.raises(Unauthenticated):
        identity.authenticate({**token, "x-holdfast-approver-secret": "hunter3"})
    assert identity.at_terminal("alice", secret="hunter2").roles == {"operator", "user"}


@requirement("AUT-6")
async def test_the_tenant_is_the_claims_where_one_is_named_and_must_be_there() -> None:
    claims = {"claims": {"tenant": "org"}, "unlisted": {}}
    assert (await caller({"sub": "zoe", "org": "globex"}, **claims)).tenant == "globex"
    for wrong in (None, "", 5, ["globex"], "a/b", "x" * 65, "*"):
        await refused({"sub": "zoe", "org": wrong}, **claims)
    people = {"alice": {"tenant": "acme"}}
    assert (await caller({"org": "acme"}, **claims, people=people)).tenant == "acme"
    await refused({"org": "globex"}, **claims, people=people)
    assert (await caller({"org": "globex"}, people=people)).tenant == "acme"


@requirement("AUT-6")
async def test_where_tokens_name_tenants_nobody_is_taken_to_be_in_the_only_one() -> None:
    issuer = Issuer()
    assert issuer.identity().only_tenant("default")
    identity = await issuer.ready(claims={"tenant": "org"}, unlisted={})
    assert not identity.only_tenant("default")
    identity.authenticate(shown(issuer.token(sub="zoe", org="globex")))
    assert identity.tenants() == {"default", "globex"}
    assert identity.holders("globex", "user") == {"zoe"}
    assert identity.holders("default", "user") == {"alice"}


@requirement("AUT-1")
async def test_who_signed_in_is_read_from_the_claim_that_is_named() -> None:
    people: dict[str, Any] = {"alice@example.com": {}}
    claims = {"claims": {"user": ["upn", "email"]}}
    said = {"sub": "83ba", "email": "alice@example.com"}
    assert (
        await caller({**said, "email_verified": True}, people=people, **claims)
    ).user == "alice@example.com"
    await refused(said, people=people, **claims)
    await refused({**said, "email_verified": "true"}, people=people, **claims)
    assert (await caller({**said, "upn": "alice@example.com"}, people=people, **claims)).user


@requirement("AUT-2")
async def test_the_chain_of_who_acts_is_kept_and_its_first_is_the_agent() -> None:
    found = await caller({"act": {"sub": "bot-2", "act": {"sub": "bot-1"}}})
    assert (found.agent, found.act) == ("bot-2", ("bot-2", "bot-1"))
    await refused({"act": {"sub": 5}})
    deep: dict[str, Any] = {"sub": "x"}
    for _ in range(8):
        deep = {"sub": "x", "act": deep}
    await refused({"act": deep})


@requirement("AUT-5")
async def test_an_agent_that_is_listed_narrows_whoever_signed_in_to_it() -> None:
    agents = {"notebook": {"scopes": ["orders:read"], "trust": 10}}
    found = await caller({"scope": "orders:*"}, agents=agents)
    assert (found.scopes, found.trust) == (frozenset(["orders:read"]), 10)
    await refused({"sub": "bob"}, people={"alice": {}, "bob": {}}, agents={"notebook": {"user": "alice"}})


async def test_trust_is_the_least_that_anybody_says() -> None:
    assert (await caller({"trust": 20}, claims={"trust": "trust"})).trust == 20
    assert (await caller({"trust": 99}, claims={"trust": "trust"})).trust == 70
    assert (await caller({"trust": "99"}, claims={"trust": "trust"})).trust == 0
    assert (await caller({}, claims={"trust": "trust"})).trust == 0
    assert (await caller({"trust": 5})).trust == 70


@requirement("AUT-1")
async def test_keys_open_the_door_beside_tokens() -> None:
    plain, entry = mint("alice", None)
    issuer = Issuer()
    identity = issuer.identity(keys=[entry])
    assert identity.authenticate(shown(plain)).id == "alice/person"
    with pytest.raises(Unauthenticated, match=r"^this credential is not accepted"):
        identity.authenticate(shown(spoiled(plain)))
    with pytest.raises(Unauthenticated, match=r"^this needs a credential"):
        identity.authenticate({})


async def test_somebody_let_in_by_the_issuer_is_the_same_again_with_no_more_than_they_had() -> None:
    issuer = Issuer()
    identity = await issuer.ready(**GROUPS, unlisted={"scopes": ["mail:*"]})
    was = identity.authenticate(
        shown(issuer.token(sub="zoe", groups=["desk"], scope="notes:read mail:send orders:read"))
    )
    assert was.scopes == {"notes:read", "mail:send"}
    assert identity.again(was) == was
    listed = await issuer.ready()
    assert listed.again(was) is None


@requirement("PPL-3")
def test_what_the_page_shows_can_be_configured() -> None:
    page = Page(ROOT / "docs" / "how-to" / "sign-callers-in.md")
    shown = [yaml.safe_load(block.body) for block in page.blocks if block.language == "yaml"]
    assert [parse(tree).auth.mode for tree in shown] == ["jwt", "jwt"]


@pytest.mark.parametrize(
    ("auth", "told"),
    [
        ({"algorithms": ["none"]}, "auth.algorithms.0: 'none' lets whoever checks a token make one"),
        ({"algorithms": ["HS256"]}, "auth.algorithms.0: 'HS256' lets whoever checks a token make one"),
        ({"algorithms": ["XS"]}, "auth.algorithms.0: 'XS' is not known"),
        ({"algorithms": []}, "auth.algorithms: must"),
        ({"skew_s": 301}, "auth.skew_s: must be less than or equal to 300"),
        ({"issuer": "http://login.example.com"}, "auth.issuer: 'http://login.example.com' can be changed on"),
        ({"issuer": "https://a@b.example.com"}, "auth.issuer: 'https://a@b.example.com' is not allowed"),
        ({"jwks_url": "http://10.0.0.1/jwks"}, "auth.jwks_url: 'http://10.0.0.1/jwks' can be changed on"),
        ({"issuer": None}, "auth.issuer: is required with mode 'jwt'"),
        ({"audience": None}, "auth.audience: is required with mode 'jwt'"),
        ({"groups": {"a": {}}}, "auth.claims.groups: is required with 'groups'"),
        ({"mode": "api_key"}, "auth.audience: is for mode 'jwt'; set that, or remove this"),
    ],
)
@requirement("AUT-1", "NAM-2")
def test_a_configuration_that_would_believe_too_much_is_refused(auth: dict[str, Any], told: str) -> None:
    base = {"mode": "jwt", "issuer": "http://127.0.0.1:9", "audience": "x"}
    parse({"auth": base})
    tree = {name: value for name, value in (base | auth).items() if value is not None}
    with pytest.raises(ConfigError) as error:
        parse({"auth": tree})
    assert told in str(error.value)
