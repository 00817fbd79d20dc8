"""What can a gate answer? Exactly four things, so every reader can handle all of them."""

from dataclasses import dataclass, field
from typing import Any

from holdfast.model.errors import Code
from holdfast.model.fields import FieldError
from holdfast.model.observation import ApprovalRef, Observation


@dataclass(frozen=True, slots=True)
class Pass:
    """The gate has no objection."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The call must not run."""

    code: Code
    message: str
    field_errors: tuple[FieldError, ...] = ()
    retry_after_ms: int | None = None
    next_action: str | None = None
    data: Any = None
    private: Code | None = field(default=None, kw_only=True)
    """What audit and metrics keep where the caller is told less; VAL-2+."""


class Waited(Refusal):
    """Another call was changing the same, and was waited for: judge this one again, as things are now."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The call may run once the named approval is given."""

    approval: ApprovalRef
    message: str


@dataclass(frozen=True, slots=True)
class Replay:
    """The call already ran; this is what it observed."""

    observation: Observation


Verdict = Pass | Refusal | Hold | Replay
PASS = Pass()
