"""What does a caller get back?

An observation is the only thing that leaves the gateway. Its JSON form (NAM-4) is
what is stored, replayed and sent: reading it back gives an equal observation.
"""

from operator import attrgetter
from typing import Any

import orjson

from holdfast.model.errors import NO_REMEDY, TABLE, Code, Remedy
from holdfast.model.fields import FieldError
from holdfast.model.members import members as as_members
from holdfast.model.value import value
from holdfast.model.vocabulary import KeySource, Rung, Strength, Word


class Status(Word):
    DONE = "done"
    PARTIAL = "partial"
    HELD = "held"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    PREVIEW = "preview"


@value()
class ApprovalRef:
    id: str
    url: str
    expires_at: str


@value()
class Outcome:
    """How much is known about an effect, and how firmly the key is bound to it."""

    rung: Rung
    strength: Strength


@value()
class Provenance:
    source: str
    version: str
    retrieved_at: str
    freshness: str  # live, cached, stale or replayed
    confidence: float


@value()
class Timing:
    queued_at: str
    started_at: str | None
    completed_at: str


class _Written:
    """What was worked out from an observation once, and is kept beside its members."""

    __slots__ = ("_json", "_members")


@value(kw_only=True)
class Observation(_Written):
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
    pending: dict[str, Any] | None = None
    """What goes on without the call: a job or a run, and how far it is."""
    upstream_session: dict[str, Any] | None = None
    """The session at the upstream that it began, worked in or ended: its id, and its state then; EXE-8."""
    preview: dict[str, Any] | None = None
    fallback: dict[str, Any] | None = None
    """Which level of its capability answered, and what was tried before; EXE-4."""
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

    @property
    def unsettled(self) -> bool:
        """Whether what comes of it is not known yet."""
        return self.status is Status.UNKNOWN or self.pending is not None

    def as_replayed(self) -> "Observation":
        told = dict(zip(_NAMES, _values(self), strict=True))  # a fifth of what `replace` costs
        told["replayed"] = True
        return Observation(**told)

    def to_json(self) -> bytes:
        """Written once: the ledger, the audit and the answer get the same bytes."""
        written: bytes | None = getattr(self, "_json", None)
        if written is None:
            members = as_members(self)
            written = orjson.dumps(members)
            object.__setattr__(self, "_json", written)
            object.__setattr__(self, "_members", members)
        return written

    def to_dict(self) -> dict[str, Any]:
        """Members marked `?` in NAM-4 are left out where there is nothing to say."""
        members: dict[str, Any] | None = getattr(self, "_members", None)
        return as_members(self) if members is None else members.copy()

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


_NAMES = tuple(Observation.__slots__)
_values = attrgetter(*_NAMES)
_NESTED: dict[str, Any] = {"approval": ApprovalRef, "provenance": Provenance, "timing": Timing}
