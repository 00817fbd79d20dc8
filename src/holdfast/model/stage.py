"""What does a gate want written when the claim is made?

Gates do no I/O of their own for what must be atomic with the claim: they stage it
on the call, and `ledger.begin` writes everything in one transaction (DEC-1). A
staged write that fails becomes the refusal of the gate that staged it.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from holdfast.model.holders import Holders
from holdfast.model.limits import Amount, Bucket, Limit


@dataclass(frozen=True, slots=True)
class TakeRate:
    """One call out of a rate, by GCRA on the store's clock."""

    bucket: str
    calls: float
    per_s: float
    shared: bool = False
    """One bucket for all tenants."""


@dataclass(frozen=True, slots=True)
class ReserveBudget:
    """Set `ask` aside until the outcome is known, if it still fits under `limit`."""

    bucket: Bucket
    ask: Amount
    limit: Limit


@dataclass(frozen=True, slots=True)
class UseGrant:
    """Consume an approval, once."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class UseRule:
    """Count one use of a standing rule, while it stands and is not used up."""

    rule_id: str


@dataclass(frozen=True, slots=True)
class UseStep:
    """Consume one step of an approved plan, once."""

    plan_id: str
    number: int


class PolicyVersion(NamedTuple):
    """The bundle the call was judged under must still be the one in force; nothing is written (DEC-5)."""

    promoted: str | None


class SeenLabels(NamedTuple):
    """What the caller had seen when the call was judged must still be all; nothing is written (LIF-6)."""

    holders: Holders
    labels: frozenset[str]


class Locked(NamedTuple):
    """Something that is to be changed."""

    kind: str
    name: str
    """A commitment: ids are nobody's business."""
    whole: bool = False
    """Everything of its kind."""


@dataclass(frozen=True, slots=True)
class Lock:
    """Keep others from changing the same until this attempt is over, unless somebody is at it (EXE-7)."""

    resources: tuple[Locked, ...]
    within: str = ""
    """The call that this one is a part of: what that one has is not in its way."""
    seen: str | None = None
    """Who had changed any of it last, as the store tells, when the target was looked at; None: it was not."""


@dataclass(frozen=True, slots=True)
class AnswerFor:
    """No other tool of the capability has done anything under this key, and none will from now on (EXE-4)."""

    capability: str
    tools: tuple[str, ...] = ()
    """All of them."""


@dataclass(frozen=True, slots=True)
class WorkIn:
    """Work in a session at the upstream, commit it or roll it back, while it lets that be done (EXE-8)."""

    session: str
    role: Literal["begin", "step", "commit", "rollback"]
    writes: bool
    """Whoever only reads keeps nobody else out."""


Stage = (
    WorkIn
    | AnswerFor
    | Lock
    | TakeRate
    | ReserveBudget
    | UseGrant
    | UseRule
    | UseStep
    | PolicyVersion
    | SeenLabels
)


RESTS_ON = frozenset({UseGrant, UseRule, UseStep})
"""Stages that use an approval up."""


def approval_of(stage: Stage) -> str | None:
    """What a call rests on, as its record and its operation name it: an approval, a rule, a plan's step."""
    match stage:
        case UseGrant(approval_id):
            return approval_id
        case UseRule(rule_id):
            return rule_id
        case UseStep(plan_id, number):
            return f"{plan_id}#{number}"
        case _:
            return None
