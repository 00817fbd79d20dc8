"""Which approvals cover more than one call: rules that stand, and plans? APR-8, APR-9.

Both rest on an ordinary question to people. What they approve is a set of calls, not one: bound to tool,
contract, caller and arguments, for a while, and not for ever.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote

from holdfast.model.approval import Answer, Need, Vote
from holdfast.model.call import Call
from holdfast.model.constraint import Constraint, misfits
from holdfast.model.moment import iso

PLAN, RULE = "holdfast.plan", "holdfast.rule"
"""The tools of the operations that are not calls: what people are asked about a plan or a rule."""
ANYBODY = "*"


class Holders(Protocol):
    def holders(self, tenant: str, role: str) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """For these calls, this many people have said yes once and for a while."""

    tenant: str
    id: str
    tool: str
    upstream: str
    contract_digest: str
    principals: str
    """`user/agent`; `*` stands for anything within either."""
    arguments: Mapping[str, Constraint]
    need: Need
    """Whose approval it stands for."""
    made_by: str
    note: str
    at: float
    expires_at: float
    approval_id: str
    most: int | None = None
    used: int = 0
    ended_at: float | None = None
    ended_by: str | None = None
    answer: Answer = Answer.PENDING
    votes: tuple[Vote, ...] = ()

    def state(self, now: float) -> str:
        if self.ended_at is not None:
            return "revoked"
        if self.answer is not Answer.APPROVED:
            return "proposed" if self.answer is Answer.PENDING and self.expires_at > now else "denied"
        if self.expires_at <= now:
            return "expired"
        return "used up" if self.most is not None and self.used >= self.most else "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call of a plan; used once."""

    number: int
    tool: str
    contract_digest: str
    fingerprint: str
    """Of the arguments, where they are known to the last; else empty."""
    arguments: Mapping[str, Constraint] | None = None
    """What the arguments must be, where they are not known yet."""
    cost: float | None = None
    used_nonce: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Calls that one principal wants to make, approved as a whole."""

    tenant: str
    id: str
    principal: str
    at: float
    expires_at: float
    approval_id: str
    steps: tuple[Step, ...]
    need: Need
    ended_at: float | None = None
    ended_by: str | None = None
    answer: Answer = Answer.PENDING
    votes: tuple[Vote, ...] = ()

    def state(self, now: float) -> str:
        if self.ended_at is not None:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        if self.answer is not Answer.APPROVED:
            return "proposed" if self.answer is Answer.PENDING else "denied"
        return "used up" if all(step.used_nonce is not None for step in self.steps) else "live"


def named(pattern: str, principal: str) -> bool:
    """Whether a principal is one of those a rule speaks of."""
    return re.fullmatch("[^/]*".join(map(re.escape, pattern.split("*"))), principal) is not None


def is_pattern(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9%@._~*-]+/[A-Za-z0-9%@._~*-]+", text) is not None


def user_of(pattern: str) -> str:
    """The one person a rule speaks of, or `*`."""
    user = pattern.partition("/")[0]
    return ANYBODY if "*" in user else unquote(user)


def why_not(rule: Rule, call: Call, need: Need, holders: Holders) -> list[str]:
    """Why a rule that stands does not cover a call."""
    if rule.contract_digest != call.tool.contract.digest or rule.upstream != call.upstream:
        return [f"rule '{rule.id}' was accepted for another contract of this tool"]
    if not named(rule.principals, call.principal.id):
        return [f"rule '{rule.id}' is for {rule.principals}"]
    said = misfits(rule.arguments, call.arguments)
    return [f"rule '{rule.id}': {text}" for text in (*said, *unmet(rule, call, need, holders))]


def step_for(plan: Plan, call: Call) -> Step | None:
    """The slice of a plan that is this call: rather one for exactly it than one that leaves room."""
    mine = (call.tool.contract.tool, call.tool.contract.digest)
    free = [s for s in plan.steps if s.used_nonce is None and (s.tool, s.contract_digest) == mine]
    for step in free:
        if step.arguments is None and step.fingerprint == call.fingerprint:
            return step
    for step in free:
        if step.arguments is not None and not misfits(step.arguments, call.arguments):
            return step
    return None


def unmet(cover: Rule | Plan, call: Call, need: Need, holders: Holders) -> Iterator[str]:
    """What of a need the people behind a rule or plan do not cover for this call, as they stand today.

    Nobody covers their own calls, except that `user` is the caller's own consent.
    """
    given: Counter[str] = Counter()
    for vote in cover.votes:
        own = vote.person == call.principal.user
        if vote.approve and own == (vote.role == "user") and _holds(vote, call, holders):
            given[vote.role] += 1
    for role, count in need.items():
        if given[role] < count:
            yield f"this call needs {count} x {role}, and {given[role]} who said yes may say so today"


def _holds(vote: Vote, call: Call, holders: Holders) -> bool:
    return vote.held == "user" or vote.person in holders.holders(call.principal.tenant, vote.held)


def granted(scope: str, cover: Rule | Plan) -> dict[str, Any]:
    """What the observation says of it; NAM-4."""
    people: Sequence[str] = [vote.person for vote in cover.votes if vote.approve]
    return {"scope": scope, "granted_by": ", ".join(people), "expires_at": iso(cover.expires_at)}
