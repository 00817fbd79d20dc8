"""Who the configuration says exists, as identity knows them."""

from datetime import datetime
from math import inf

from holdfast.config import Config
from holdfast.config.tree import Agent as AgentSection
from holdfast.config.tree import Key as KeySection
from holdfast.config.tree import Person as PersonSection
from holdfast.identity import Agent, Grant, Identity, Key, Person


def identity(config: Config) -> Identity:
    auth = config.auth
    return Identity(
        auth.mode,
        [_person(name, person) for name, person in auth.people.items()],
        [_agent(name, agent) for name, agent in auth.agents.items()],
        [_key(key) for key in auth.keys],
    )


def _person(name: str, said: PersonSection) -> Person:
    return Person(
        name=name,
        roles=frozenset(said.roles),
        grants=tuple(Grant(held.scope, held.granted_by, _end(held.expires)) for held in said.scopes),
        tenant=said.tenant,
        trust=said.trust,
        secret=said.approver_secret,
    )


def _agent(name: str, said: AgentSection) -> Agent:
    return Agent(name=name, user=said.user, scopes=_limit(said.scopes), trust=said.trust)


def _key(said: KeySection) -> Key:
    return Key(
        id=said.id,
        hash=said.hash,
        user=said.user,
        agent=said.agent,
        scopes=_limit(said.scopes),
        expires_at=_end(said.expires),
    )


def _limit(scopes: tuple[str, ...] | None) -> frozenset[str] | None:
    return None if scopes is None else frozenset(scopes)


def _end(expires: datetime | None) -> float:
    return inf if expires is None else expires.timestamp()
