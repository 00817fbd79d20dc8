"""What may a function know about the call it is serving?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Handed to a function that has a parameter of this type; never part of its schema."""

    key: str | None
    """The operation's key, the same on every attempt: pass it on to whatever deduplicates by it."""
    call_id: str
    tenant: str
    trace_id: str
    attempt: int
    deadline_s: float
    """Seconds left when the attempt began."""
