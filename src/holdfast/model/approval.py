"""What has a person been asked, who may answer, and what did they say?"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from holdfast.model import defaults
from holdfast.model.call import Decision, Principal
from holdfast.model.observation import ApprovalRef
from holdfast.model.operation import OperationRef
from holdfast.model.vocabulary import Floor, Word

Need = Mapping[str, int]
"""How many people of which role must say yes."""
Chain = tuple[tuple[str, ...], ...]
"""Groups of roles, each standing in for those before it once a question was escalated to it."""


class Answer(Word):
    PENDING = "PENDING"
    APPROVED = "APPROVED"
    DENIED = "DENIED"
    AUTO_DENIED = "AUTO_DENIED"


NEEDS: dict[Floor, Need] = {
    Floor.NONE: {},
    Floor.USER: {"user": 1},
    Floor.OPERATOR: {"operator": 1},
    Floor.TWO_PERSON: {"operator": 2},
    Floor.COMPLIANCE: {"operator": 2, "compliance": 1},
}


ESCALATED: Need = {"operator": 1}
"""Who is asked about a call that no tool could answer; EXE-4."""

_NO_FLOOR = Floor.NONE


def joined(*needs: Need) -> dict[str, int]:
    """Everything that any of them asks for; the larger count where several ask for a role."""
    union: dict[str, int] = {}
    for need in needs:
        for role, count in need.items():
            union[role] = max(count, union.get(role, 0))
    return union


def needed(floor: Floor, decision: Decision) -> dict[str, int]:
    """Who must say yes to a call whose contract has this floor."""
    if floor is decision.floor is _NO_FLOOR:
        return dict(decision.need)
    return joined(NEEDS[floor], NEEDS[decision.floor], decision.need)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    person: str
    role: str
    approve: bool
    note: str
    at: float
    via: str = ""
    """The role the person holds, where it stands in for `role`."""

    @property
    def held(self) -> str:
        """The role the person must still have when the answer is used."""
        return self.via or self.role


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    id: str
    ref: OperationRef
    call_id: str
    fingerprint: str
    contract_digest: str
    need: Need
    answer: Answer
    votes: tuple[Vote, ...]
    packet: Mapping[str, Any]
    created_at: float
    expires_at: float
    used: bool = False
    level: int = 0
    """How often it was escalated."""
    release: str = "caller"
    tries: int = 0
    """How often the gateway has proposed the call again."""
    said: str = ""
    """Why that came to nothing."""
    token: str | None = field(default=None, repr=False)
    """Proof of the answer, for whoever gave it."""

    @property
    def missing(self) -> dict[str, int]:
        """Roles that still have to say yes; a person counts once."""
        left = dict(self.need)
        for vote in self.votes:
            if vote.approve and left.get(vote.role, 0) > 0:
                left[vote.role] -= 1
        return {role: count for role, count in left.items() if count}

    @property
    def requester(self) -> str:
        """The person in whose name the call was proposed."""
        return unquote(self.ref.principal.partition("/")[0])

    def role_of(self, person: Principal, chain: Chain = ()) -> tuple[str, str] | None:
        """In which needed role `person` may answer, and the role that stands in for it, if any.

        Nobody approves their own call, except that `user` is the caller's own consent,
        given where an agent cannot stand in: identity hands out that role only there.
        """
        for role in self.missing or self.need:
            if (role == "user") != (person.user == self.requester):
                continue
            if role in person.roles:
                return role, ""
            for other in stand_ins(role, chain, self.level):
                if other in person.roles:
                    return role, other
        return None

    def shown(self, asked_at: str) -> ApprovalRef:
        expires = datetime.fromtimestamp(self.expires_at, UTC).isoformat()
        return ApprovalRef(self.id, f"{asked_at}/{self.id}", expires)


def stand_ins(role: str, chain: Chain, level: int) -> tuple[str, ...]:
    """Who may answer for `role` after so many escalations: every later group that was reached."""
    for place, group in enumerate(chain):
        if role in group:
            return tuple(other for later in chain[place + 1 : level + 1] for other in later)
    return ()


def escalation_shares(groups: int) -> tuple[float, float]:
    """After which share of its life a question goes to the second group, and then from group to group."""
    first = defaults.ESCALATION_SHARE
    return first, (1 - first) / (groups - 1)


def due_level(approval: Approval, now: float, chain: Chain) -> int:
    """How far a question should be escalated by now; FIG-1.

    The second group is asked at a share of the question's life, the others evenly over what is left of it.
    """
    life = approval.expires_at - approval.created_at
    if len(chain) < 2 or life <= 0:
        return 0
    share, (first, step) = (now - approval.created_at) / life, escalation_shares(len(chain))
    if share < first:
        return 0
    return min(1 + int((share - first) / step + 1e-9), len(chain) - 1)
