"""What would other policies have said? POL-8.

Facts that were judged once are judged again. Whatever comes out otherwise is a flip; what cannot be judged
any more is named, never left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from holdfast.model.approval import NEEDS, joined
from holdfast.model.vocabulary import Floor
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.facts import Facts
from holdfast.policy.obligations import FREE, union


class Change(Enum):
    """How a decision flips."""

    DENIED = "allow->deny"
    ALLOWED = "deny->allow"
    APPROVAL = "approval"
    """Allowed before and after, and other people must say yes first."""
    DUTIES = "duties"
    """The same, and something else is to be redacted or verified."""


class Left(Enum):
    """Why a decision cannot be judged again."""

    TOOL = "its tool is not in the catalog any more"
    CONTRACT = "its tool has another contract now"
    FACTS = "what was judged is not kept, or was erased"
    LABELS = "what its session had seen by then is not kept any more"
    OWN = "the gateway's own reading, which no policy judges"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What policy said, or would say."""

    allow: bool
    need: Mapping[str, int]
    """Everybody who must say yes first, the floor included."""
    redact: tuple[str, ...]
    verify: tuple[str, ...]
    policies: tuple[str, ...]
    version: str
    reasons: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Where those policies stand, file:line:column."""

    def to_dict(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in said.items() if value not in ((), {})}


class Past(NamedTuple):
    """A decision as its record tells it."""

    call_id: str
    decision_id: str | None
    kind: str
    """Of the record: `intent`, `refusal`, `hold` or `replay`."""
    tool: str
    facts: Facts | None
    allow: bool
    floor: Floor
    need: Mapping[str, int]
    redact: tuple[str, ...]
    verify: tuple[str, ...]
    policies: tuple[str, ...]
    version: str
    code: str | None
    """Why the call was refused, by policy or by a later gate."""
    own: bool = False
    """The gateway's own reading: no policy judged it."""


@dataclass(frozen=True, slots=True)
class Flip:
    past: Past
    facts: Facts
    change: Change
    before: Ruling
    after: Ruling


def judge_again(past: Past, candidate: CedarPolicy, against: CedarPolicy | None = None) -> Flip | Left | None:
    """How a decision flips, why it cannot be judged, or None where it stays.

    What was decided then is compared, or with `against` what that would decide now.
    """
    if past.own:
        return Left.OWN
    if past.facts is None:
        return Left.FACTS
    least = _contract_floor(candidate, past.facts)
    if isinstance(least, Left):
        return least
    if past.facts.get("labels") is None and any(
        _looks_at_labels(one, past.facts) for one in (candidate, against)
    ):
        return Left.LABELS
    after = ruling(candidate, past.facts, least)
    before = _then(past, least) if against is None else ruling(against, past.facts, least)
    change = _change(before, after)
    return None if change is None else Flip(past, past.facts, change, before, after)


def ruling(policy: CedarPolicy, facts: Facts, least: Floor) -> Ruling:
    """`least` is what the contract itself asks for."""
    judged = policy.judge(facts)
    duties = union([one.duties for one in judged.policies]) if judged.allow else FREE
    return Ruling(
        judged.allow,
        _need(least, Floor(facts["floor"]), duties.need) if judged.allow else {},
        duties.redact,
        duties.verify,
        tuple(one.id for one in judged.policies),
        policy.version,
        judged.reasons,
        tuple(_place(one) for one in judged.policies),
    )


def _then(past: Past, least: Floor) -> Ruling:
    return Ruling(
        past.allow,
        _need(least, past.floor, past.need) if past.allow else {},
        past.redact,
        past.verify,
        past.policies,
        past.version,
    )


def _change(before: Ruling, after: Ruling) -> Change | None:
    if before.allow != after.allow:
        return Change.ALLOWED if after.allow else Change.DENIED
    if dict(before.need) != dict(after.need):
        return Change.APPROVAL
    if (sorted(before.redact), sorted(before.verify)) != (sorted(after.redact), sorted(after.verify)):
        return Change.DUTIES
    return None


def _looks_at_labels(policy: CedarPolicy | None, facts: Facts) -> bool:
    return policy is not None and "labels" in policy.shard(facts["tool"], facts["digest"]).names


def _contract_floor(policy: CedarPolicy, facts: Facts) -> Floor | Left:
    listing = policy.catalog.exact(facts["tool"], facts["version"])
    if listing is not None and listing.tool.contract.digest == facts["digest"]:
        return listing.tool.contract.security.approval_floor
    known = policy.catalog.find(facts["tool"], None)
    return Left.TOOL if known is None else Left.CONTRACT


def _need(least: Floor, floor: Floor, need: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(joined(NEEDS[least], NEEDS[floor], need).items()))


def _place(policy: Policy) -> str:
    return str(policy.statement.place)


@dataclass(slots=True)
class Group:
    """Flips of one kind, of one principal's calls to one tool."""

    tool: str
    principal: str
    change: Change
    count: int
    limited: int
    """Of these, calls that a budget or rate stopped then: whether they ran was not policy's doing."""
    examples: list[Flip]


def grouped(flips: Sequence[Flip], examples: int, limited: frozenset[str]) -> list[Group]:
    """By tool, principal and change; the newest as examples."""
    groups: dict[tuple[str, str, str], Group] = {}
    for flip in flips:
        name = (flip.facts["tool"], flip.facts["principal"], flip.change.value)
        group = groups.setdefault(name, Group(name[0], name[1], flip.change, 0, 0, []))
        group.count += 1
        group.limited += flip.past.code in limited
        group.examples.append(flip)
        del group.examples[: max(len(group.examples) - examples, 0)]
    return [groups[name] for name in sorted(groups)]
