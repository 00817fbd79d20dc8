"""How does the configuration's `auth` section become an identity?

It comes as plain data, so that this package does not know the configuration.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from math import inf
from time import time
from typing import TYPE_CHECKING, Any

from holdfast.identity.grants import Grant
from holdfast.identity.identity import Identity
from holdfast.identity.people import Agent, Key, Person, Strangers

if TYPE_CHECKING:
    from holdfast.identity.jwks import Fetch
    from holdfast.identity.jwt import IssuerTokens


def build(
    auth: Mapping[str, Any],
    *,
    os_user: str | None = None,
    now: Callable[[], float] = time,
    fetch: "Fetch | None" = None,
) -> Identity:
    """From `config.auth.model_dump()`. Without `fetch` no token of an issuer can be checked."""
    identity = Identity(
        auth["mode"],
        [_person(name, said) for name, said in auth["people"].items()],
        [_agent(name, said) for name, said in auth["agents"].items()],
        [_key(said) for said in auth["keys"]],
        strangers=_strangers(auth) if auth["mode"] == "jwt" else None,
        os_user=os_user,
        now=now,
    )
    if auth["mode"] == "jwt":
        tokens = _tokens(auth, now, fetch, identity.forget)
        identity.readers.append(tokens)
        identity.issuer_keys = tokens.keys
    return identity


def _tokens(
    auth: Mapping[str, Any], now: Callable[[], float], fetch: "Fetch | None", changed: Callable[[], None]
) -> "IssuerTokens":
    from holdfast.identity.jwks import Jwks  # only who checks tokens pays for what checks signatures
    from holdfast.identity.jwt import IssuerTokens, Wanted
    from holdfast.identity.jwt_claims import Group, Places, Reading

    wanted = Wanted(
        issuer=auth["issuer"],
        audience=auth["audience"],
        resource=auth["resource"] or auth["audience"],
        algorithms=frozenset(auth["algorithms"]),
        skew_s=auth["skew_s"],
    )
    keys = Jwks(auth["issuer"], auth["jwks_url"], auth["algorithms"], fetch, now=now, changed=changed)
    reading = Reading(
        places=Places(**auth["claims"]),
        groups={
            name: Group(frozenset(said["roles"]), frozenset(said["scopes"]))
            for name, said in auth["groups"].items()
        },
        strangers=_strangers(auth),
        in_person=frozenset(auth["in_person"]),
    )
    return IssuerTokens(wanted, keys, reading, now)


def _strangers(auth: Mapping[str, Any]) -> Strangers:
    said = auth["unlisted"]
    return Strangers(
        admitted=said is not None,
        scopes=frozenset(said["scopes"] if said else ()),
        members=bool(auth["groups"]),
        by_group=frozenset(scope for group in auth["groups"].values() for scope in group["scopes"]),
        roles=None if auth["claims"]["roles"] else _roles(auth["groups"]),
        trust=said["trust"] if said else 0,
        tenants=bool(auth["claims"]["tenant"]),
    )


def _roles(groups: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(role for group in groups.values() for role in group["roles"])


def _person(name: str, said: Mapping[str, Any]) -> Person:
    return Person(
        name=name,
        roles=frozenset(said["roles"]),
        grants=tuple(Grant(h["scope"], h["granted_by"], _end(h["expires"])) for h in said["scopes"]),
        tenant=said["tenant"],
        trust=said["trust"],
        secret=said["approver_secret"],
    )


def _agent(name: str, said: Mapping[str, Any]) -> Agent:
    return Agent(name=name, user=said["user"], scopes=_limit(said["scopes"]), trust=said["trust"])


def _key(said: Mapping[str, Any]) -> Key:
    return Key(
        id=said["id"],
        hash=said["hash"],
        user=said["user"],
        agent=said["agent"],
        scopes=_limit(said["scopes"]),
        expires_at=_end(said["expires"]),
    )


def _limit(scopes: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if scopes is None else frozenset(scopes)


def _end(expires: datetime | None) -> float:
    return inf if expires is None else expires.timestamp()
