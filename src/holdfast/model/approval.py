"""What has a person been asked, who may answer, and what did they say?"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from holdfast.model.call import Decision, Principal
from holdfast.model.observation import ApprovalRef
from holdfast.model.operation import OperationRef
from holdfast.model.vocabulary import Floor

Need = Mapping[str, int]
"""How many people of which role must say yes."""


class Answer(StrEnum):
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


def joined(*needs: Need) -> dict[str, int]:
    """Everything that any of them asks for; the larger count where several ask for a role."""
    union: dict[str, int] = {}
    for need in needs:
        for role, count in need.items():
            union[role] = max(count, union.get(role, 0))
    return union


def needed(floor: Floor, decision: Decision) -> dict[str, int]:
    """Who must say yes to a call whose contract has this floor."""
    return joined(NEEDS[floor], NEEDS[decision.floor], decision.need)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    person: str
    role: str
    approve: bool
    note: str
    at: float


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

    def role_of(self, person: Principal) -> str | None:
        """In which needed role `person` may answer, if any.

        Nobody approves their own call, except that `user` is the caller's own consent,
        given where an agent cannot stand in: identity hands out that role only there.
        """
        for role in self.missing or self.need:
            if role not in person.roles:
                continue
            if (role == "user") == (person.user == self.requester):
                return role
        return None

    def shown(self, base_url: str) -> ApprovalRef:
        expires = datetime.fromtimestamp(self.expires_at, UTC).isoformat()
        return ApprovalRef(self.id, f"{base_url}/v1/approvals/{self.id}", expires)
