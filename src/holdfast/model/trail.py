"""Which trace does a call belong to, and where did its time go?

A call carries the W3C context it came with. Only a sampled call also carries a trail: everything else about
tracing is decided by whether there is one (DEC-6).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import getrandbits
from typing import Any

_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
_STATE_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}")
MAX_STATE = 512
"""Characters of `tracestate` that are passed on; its standard asks for at least these."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The span a call was made in, wherever that is."""

    span_id: str | None
    sampled: bool
    state: str | None = None
    remote: bool = True


@dataclass(frozen=True, slots=True)
class Origin:
    """The trace of something that outlives the call it was begun by, and the span it was begun in."""

    trace_id: str
    parent: Parent | None = None

    def kept(self) -> dict[str, Any]:
        """To be found again by whoever goes on with it."""
        said: dict[str, Any] = {"trace_id": self.trace_id}
        if (parent := self.parent) is not None:
            said["parent"] = [parent.span_id, parent.sampled, parent.state, parent.remote]
        return said

    @classmethod
    def found(cls, said: Mapping[str, Any] | None) -> "Origin | None":
        """None for what was begun before traces were kept."""
        if said is None:
            return None
        parent = said.get("parent")
        return cls(said["trace_id"], None if parent is None else Parent(*parent))


@dataclass(slots=True)
class Try:
    """One attempt at the upstream."""

    number: int
    span_id: str
    began: float
    ended: float
    error: str | None = None


@dataclass(slots=True)
class Trail:
    """What a sampled call leaves behind for its spans."""

    span_id: str
    tries: list[Try] = field(default_factory=list)


def span_id() -> str:
    """Random and never zero, which the standard forbids; not a secret."""
    return f"{getrandbits(64) or 1:016x}"


def incoming(traceparent: str, tracestate: str = "") -> tuple[str, Parent] | None:
    """The trace and parent of a W3C `traceparent`; a bad one is ignored, as its standard asks."""
    match = _TRACEPARENT.fullmatch(traceparent.strip())
    if match is None or match["version"] == "ff" or (match["version"] == "00" and match["more"]):
        return None
    if not match["trace"].strip("0") or not match["span"].strip("0"):
        return None
    return match["trace"], Parent(match["span"], bool(int(match["flags"], 16) & 1), _state(tracestate))


def outgoing(trace_id: str, parent: Parent | None, own: str | None) -> str:
    """The `traceparent` an upstream gets; `own` is the span of the attempt, where it is sampled."""
    if own is not None:
        return f"00-{trace_id}-{own}-01"
    if parent is not None and parent.span_id is not None:
        return f"00-{trace_id}-{parent.span_id}-{'01' if parent.sampled else '00'}"
    return f"00-{trace_id}-{span_id()}-00"


def _state(header: str) -> str | None:
    """Others' part of the context, passed on as it came; one that is malformed is dropped as a whole."""
    members = [member.strip() for member in header.split(",") if member.strip()]
    if not members or len(members) > 32 or len(header) > MAX_STATE:
        return None
    return ",".join(members) if all(map(_STATE_MEMBER.fullmatch, members)) else None
