"""How does the configuration's `auth` section become an identity?

It comes as plain data, so that this package does not know the configuration.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from math import inf
from time import time
from typing import Any

from holdfast.identity.grants import Grant
from holdfast.identity.identity import Identity
from holdfast.identity.people import Agent, Key, Person


def build(
    auth: Mapping[str, Any], *, os_user: str | None = None, now: Callable[[], float] = time
) -> Identity:
    """From `config.auth.model_dump()`."""
    return Identity(
        auth["mode"],
        [_person(name, said) for name, said in auth["people"].items()],
        [_agent(name, said) for name, said in auth["agents"].items()],
        [_key(said) for said in auth["keys"]],
        os_user=os_user,
        now=now,
    )


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
