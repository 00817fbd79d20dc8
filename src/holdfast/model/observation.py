"""What does a caller get back?

An observation is the only thing that leaves the gateway. Its JSON form (NAM-4) is
what is stored, replayed and sent: reading it back gives an equal observation.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from holdfast.model.errors import TABLE, Code, Remedy
from holdfast.model.fields import FieldError
from holdfast.model.vocabulary import KeySource, Rung, Strength


class Status(StrEnum):
    DONE = "done"
    PARTIAL = "partial"
    HELD = "held"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    PREVIEW = "preview"


@dataclass(frozen=True, slots=True)
class ApprovalRef:
    id: str
    url: str
    expires_at: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How much is known about an effect, and how firmly the key is bound to it."""

    rung: Rung
    strength: Strength


@dataclass(frozen=True, slots=True)
class Provenance:
    source: str
    version: str
    retrieved_at: str
    freshness: str  # live, cached, stale or replayed
    confidence: float


@dataclass(frozen=True, slots=True)
class Timing:
    queued_at: str
    started_at: str | None
    completed_at: str


NO_REMEDY = Remedy(False, False, False, False, False, "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    call_id: str
    tool: str
    status: Status
    version: str | None = None
    code: Code | None = None
    message: str | None = None
    field_errors: tuple[FieldError, ...] = ()
    remedy: Remedy = NO_REMEDY
    data: Any = None
    warnings: tuple[str, ...] = ()
    approval: ApprovalRef | None = None
    outcome: Outcome | None = None
    replayed: bool = False
    attempts: int = 0
    provenance: Provenance | None = None
    policy_decision_id: str | None = None
    trace_id: str = ""
    latency_ms: float = 0.0
    cost: dict[str, Any] | None = None
    key: str | None = None
    key_source: KeySource | None = None
    timing: Timing | None = None
    input_commitment: str | None = None
    grant: dict[str, Any] | None = None
    pagination: dict[str, Any] | None = None
    citations: tuple[dict[str, Any], ...] = ()
    mutations: tuple[dict[str, Any], ...] = ()
    deprecation: dict[str, Any] | None = None
    verification: dict[str, Any] | None = None
    steps: dict[str, Any] | None = None
    preview: dict[str, Any] | None = None
    native: dict[str, Any] | None = None
    """The answer in the form of the protocol it came by, where that says more than `data`."""

    @property
    def http_status(self) -> int:
        """NAM-3: done, partial and preview are 200, held is 202, else the code decides."""
        if self.status in (Status.DONE, Status.PARTIAL, Status.PREVIEW):
            return 200
        if self.status is Status.HELD:
            return 202
        return TABLE[self.code or Code.INTERNAL].http

    def as_replayed(self) -> "Observation":
        return replace(self, replayed=True)

    def to_json(self) -> bytes:
        return orjson.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Members marked `?` in NAM-4 are left out where there is nothing to say."""
        members: dict[str, Any] = {}
        for name in _NAMES:
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            members[name] = value
        members["remedy"] = _remedy_dict(self.remedy)
        return members

    @classmethod
    def from_json(cls, raw: bytes) -> "Observation":
        return cls.from_dict(orjson.loads(raw))

    @classmethod
    def from_dict(cls, members: dict[str, Any]) -> "Observation":
        fields = dict(members)
        fields["status"] = Status(fields["status"])
        fields["remedy"] = Remedy(**fields["remedy"])
        fields["field_errors"] = tuple(FieldError(**e) for e in fields.get("field_errors", ()))
        for name in ("warnings", "citations", "mutations"):
            fields[name] = tuple(fields.get(name, ()))
        for name, kind in _NESTED.items():
            if fields.get(name) is not None:
                fields[name] = kind(**fields[name])
        if fields.get("outcome") is not None:
            fields["outcome"] = Outcome(
                Rung(fields["outcome"]["rung"]), Strength(fields["outcome"]["strength"])
            )
        if fields.get("code") is not None:
            fields["code"] = Code(fields["code"])
        if fields.get("key_source") is not None:
            fields["key_source"] = KeySource(fields["key_source"])
        return cls(**fields)


def _remedy_dict(remedy: Remedy) -> dict[str, Any]:
    members: dict[str, Any] = {
        "retryable": remedy.retryable,
        "repairable": remedy.repairable,
        "requires_approval": remedy.requires_approval,
        "fail_closed": remedy.fail_closed,
        "escalate": remedy.escalate,
        "next_action": remedy.next_action,
    }
    if remedy.retry_after_ms is not None:
        members["retry_after_ms"] = remedy.retry_after_ms
    return members


_NAMES = tuple(Observation.__slots__)
_OPTIONAL = frozenset(
    "code message approval outcome cost timing input_commitment grant pagination deprecation "
    "verification steps preview native provenance key version".split()
)
_NESTED: dict[str, Any] = {"approval": ApprovalRef, "provenance": Provenance, "timing": Timing}
