"""What does a bearer credential prove, and who can read it?

A reader understands one form of credential: an API key, a token of the issuer, a token of our own. `Identity`
asks the first reader that knows the form, and makes a principal of what it says. A reader only ever says who
somebody is and what narrows them; what they may do at most is said by the configuration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Protocol

from holdfast.identity.people import Person
from holdfast.model.bounds import UNBOUND, Bounds
from holdfast.model.errors import HoldfastError

LONGEST = 16_384
"""Characters of a credential: signed tokens with many groups have some thousand, and all are read whole."""


class Unauthenticated(HoldfastError):
    """Nobody knows who this is."""


class WrongSecret(Unauthenticated):
    """Somebody is who they say, as far as their credential goes; not by their approver secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one credential proves."""

    user: str
    agent: str | None = None
    """None: the person holds it, and may act in person with it."""
    limits: tuple[frozenset[str], ...] = ()
    """Each narrows the scopes of the person."""
    then: tuple[frozenset[str], ...] = ()
    """Each narrows what is left when the agent's own limit has; a delegation's, from the first on."""
    holder: str | None = None
    """Whose own grants count: the agent's, or None; `person` where a person handed on to the agent."""
    until: float = inf
    """When the credential ends."""
    tenant: str | None = None
    """Another tenant than the person's is refused; None says nothing of it."""
    trust: int | None = None
    """Narrows the trust of the person."""
    roles: frozenset[str] = frozenset()
    """What it gives beside the roles of the person; they are had in person only."""
    grants: frozenset[str] = frozenset()
    """Scopes that hold for the person because of it, such as those of a group; `limits` narrow them too."""
    bounds: Bounds = UNBOUND
    act: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    in_person: bool = True
    """Whether who holds it acts with the person's roles, where no secret proves that it is the person."""
    told: bool = False
    """Whether an issuer says it, who knows today's roles and groups of the person."""
    person: Person | None = None
    """Who it is where nobody of that name is configured; None: only configured people are let in."""


class Reader(Protocol):
    """Knows one form of credential."""

    tells: bool
    """Whether somebody who is refused may be told why."""

    def reads(self, presented: str) -> bool:
        """Whether it has this reader's form; nothing is checked yet."""
        ...

    def prove(self, presented: str) -> Claim:
        """Raises Unauthenticated, with the reason. No I/O: against what is known here."""
        ...

    async def learn(self, presented: str) -> bool:
        """Find out what was missing to check this one; False where there was nothing to find out."""
        ...


def bearer(headers: Mapping[str, str]) -> str:
    """The credential of a request, empty where there is none."""
    kind, _, presented = headers.get("authorization", "").partition(" ")
    return presented.strip() if kind.lower() == "bearer" else ""
