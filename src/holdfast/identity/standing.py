"""What may somebody do, by who they are and what they have shown?"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from holdfast.identity.credential import Claim, Unauthenticated, WrongSecret
from holdfast.identity.grants import Grant, added, narrowed, scopes, valid_until
from holdfast.identity.keys import matches
from holdfast.identity.people import Agent, Person
from holdfast.model.call import Principal

LOCAL_AGENT = "local"
IN_PERSON = "person"
"""The agent's name where there is none: the person holds the credential."""


Check = Callable[[Person, str], bool]
"""Whether a person has shown what they must."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A principal, and until when the same credentials mean the same."""

    principal: Principal
    until: float


def standing(
    person: Person, claim: Claim, agent: Agent | None, grants: Iterable[Grant], now: float
) -> Standing:
    """What person, agent and credential all allow; `grants` are given beside the configuration."""
    name = claim.agent or IN_PERSON
    if agent is not None and agent.user not in (None, person.name):
        raise Unauthenticated(f"agent {agent.name!r} acts for {agent.user!r}, not for {person.name!r}")
    own = () if agent is None or agent.scopes is None else (agent.scopes,)
    limits = (*claim.limits, *own, *claim.then)  # in this order: a delegation starts from its parent
    held = narrowed(scopes(person.grants, now) | claim.grants, limits)
    whose = claim.holder or name
    given = [grant for grant in grants if grant.reaches(whose)]
    more = added(given, limits, held, now) if given else ()
    if more:
        held = held.union(*(scope for _, scope in more))
    trusts = [person.trust, claim.trust, None if agent is None else agent.trust]
    principal = Principal(
        tenant=person.tenant,
        user=person.name,
        agent=name,
        scopes=held,
        trust=min(trust for trust in trusts if trust is not None),
        bounds=claim.bounds,
        act=claim.act,
        rests_on=(*claim.rests_on, *(name for name, _ in more)),
    )
    return Standing(principal, min(claim.until, valid_until((*person.grants, *given), now)))


def _is_secret(person: Person, presented: str) -> bool:
    return person.secret is not None and matches(person.secret, presented)


def in_person(
    person: Person,
    principal: Principal,
    secret: str | None = None,
    *,
    self_consent: bool = False,
    check: Check = _is_secret,
) -> Principal:
    """With the roles that this person has proven a right to."""
    if person.secret is None:
        roles = person.roles | {"user"} if self_consent else person.roles - {"user"}
    elif not secret:
        return principal
    elif check(person, secret):
        roles = person.roles | {"user"}
    else:
        raise WrongSecret(f"that is not the approver secret of {person.name!r}")
    return replace(principal, roles=roles) if roles else principal
