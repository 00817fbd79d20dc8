"""What does the effect ledger know about one operation?

One row per (tenant, principal, tool, key), from the first hold on (DEC-2).
"""

from typing import NamedTuple

from holdfast.model.vocabulary import KeySource, State


class OperationRef(NamedTuple):
    """The caller's name for an operation, and its scope."""

    tenant: str
    principal: str
    tool: str
    key: str


class Operation(NamedTuple):
    """A tuple: as frozen as a dataclass, and made in a quarter of the time. One is made for every write."""

    ref: OperationRef
    call_id: str
    version: str
    contract_digest: str
    fingerprint: str
    state: State
    epoch: int
    nonce: str
    owner: str
    key_source: KeySource
    trace_id: str
    created_at: float
    updated_at: float
    deadline_passed: bool = False
    """The attempt's own deadline lies behind us."""
    since_deadline_s: float = 0.0
    lease_passed: bool = False
    owner_alive: bool = True
    """Whether the owning worker can still act; a dead one, or one that gave it up, can do no more harm."""
    observation: bytes | None = None
    payload: bytes | None = None
    """The proposal as JSON: arguments, task, step, principal."""
    note: str = ""
    attendant: str | None = None
    """The worker whose client waits for it without knowing its key; `""`: that client left; else None."""

    @property
    def orphaned(self) -> bool:
        """It was running and nobody is running it any more."""
        return self.state.running and (not self.owner_alive or self.lease_passed)
