"""What does a gate want written when the claim is made?

Gates do no I/O of their own for what must be atomic with the claim: they stage it
on the call, and `ledger.begin` writes everything in one transaction (DEC-1). A
staged write that fails becomes the refusal of the gate that staged it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TakeRate:
    """One call out of a rate, by GCRA on the store's clock."""

    bucket: str
    calls: float
    per_s: float


@dataclass(frozen=True, slots=True)
class UseGrant:
    """Consume an approval, once."""

    approval_id: str


Stage = TakeRate | UseGrant
