"""What does a gate want written when the claim is made?

Gates do no I/O of their own for what must be atomic with the claim: they stage it
on the call, and `ledger.begin` writes everything in one transaction (DEC-1). A
staged write that fails becomes the refusal of the gate that staged it.
"""

from dataclasses import dataclass
from typing import NamedTuple

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


class PolicyVersion(NamedTuple):
    """The bundle the call was judged under must still be the one in force; nothing is written (DEC-5)."""

    promoted: str | None


Stage = TakeRate | ReserveBudget | UseGrant | PolicyVersion
