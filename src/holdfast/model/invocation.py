"""What may a function know about the call it is serving?"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Handed to a function that has a parameter of this type; never part of its schema."""

    key: str | None
    """The operation's own key, the same on every attempt: pass it on to whatever deduplicates by it.

    It is the caller's key with a mark of tenant, principal and tool, since two callers may use one key.
    """
    call_id: str
    tenant: str
    trace_id: str
    attempt: int
    deadline_s: float
    """Seconds left when the attempt began."""
    traceparent: str | None = None
    """W3C trace context of this attempt: send it on as the header of that name."""
    tracestate: str | None = None
    costs: dict[str, float] = field(default_factory=dict, compare=False)
    """Put in here what this call really cost, such as `costs["token"] = 0.02`, in the contract's currency."""
