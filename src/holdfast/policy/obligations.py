"""What does a policy say beside permit and forbid?

@id("refunds.large")                       its name, unique in the bundle
@reason("refunds above 100 are watched")   what callers and approvers are told
@approval("operator:2,compliance:1")       on a permit: who must say yes first
@redact("/customer/email, /notes/*/text")  on a permit: parts of the result that nobody is shown
@verify("postconditions")                  on a permit: how the effect must be shown to have happened
@alert("the glass was broken")             whenever it decides: a security event, in the log and the metrics
@contract("pay/shop.refund sha256:...")    it was written for exactly this contract, from this upstream
@description("...")  @owner("...")         for people

Where several permits hold, everything that any of them asks for is asked for.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.model.approval import joined

KNOWN = ("alert", "approval", "contract", "description", "id", "owner", "reason", "redact", "verify")
_DUTIES = frozenset({"alert", "approval", "redact", "verify"})
PROBE, POSTCONDITIONS = "probe", "postconditions"
WAYS = (POSTCONDITIONS, PROBE)
"""How an effect can be shown to have happened."""
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_PART = re.compile(r"([A-Za-z0-9][A-Za-z0-9._@-]{0,63})(?::([1-9]\d?))?")
_POINTER = re.compile(r"(?:/(?:[^~/,\s]|~[01])+)+")
_PIN = re.compile(r"([^/\s]+)/(\S+)\s+sha256:([0-9a-f]{64})")


class Pin(NamedTuple):
    """One contract of one tool, from one upstream; REG-8."""

    upstream: str
    tool: str
    digest: str

    def __str__(self) -> str:
        return f"{self.upstream}/{self.tool} sha256:{self.digest}"


class Duties(NamedTuple):
    """What a permit asks for before and after the call runs."""

    need: Mapping[str, int] = {}
    redact: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    alert: tuple[str, ...] = ()
    """What is to be told whenever the policy decides; of a forbid too."""


FREE = Duties()


def union(duties: Iterable[Duties]) -> Duties:
    """Everything that any of them asks for."""
    all_ = [one for one in duties if one is not FREE]
    if not all_:
        return FREE
    return Duties(
        joined(*(one.need for one in all_)),
        tuple(sorted({path for one in all_ for path in one.redact})),
        tuple(sorted({way for one in all_ for way in one.verify})),
        tuple(sorted({text for one in all_ for text in one.alert})),
    )


def duties(annotations: Mapping[str, str]) -> Duties:
    """Raises ValueError where one of them cannot be read."""
    if not annotations.keys() & _DUTIES:
        return FREE
    said = {name: annotations.get(name) for name in _DUTIES}
    return Duties(
        {} if said["approval"] is None else approval(said["approval"]),
        () if said["redact"] is None else redact(said["redact"]),
        () if said["verify"] is None else verify(said["verify"]),
        () if said["alert"] is None else (alert(said["alert"]),),
    )


def approval(text: str) -> dict[str, int]:
    """Roles and how many of each, from `operator` or `operator:2,compliance`; raises ValueError."""
    need: dict[str, int] = {}
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        if found is None:
            raise ValueError(
                f"{text!r} names no roles; write them as 'operator' or 'operator:2,compliance:1'"
            )
        if found[1] in need:
            raise ValueError(f"role {found[1]!r} is named twice; say how many once")
        need[found[1]] = int(found[2] or 1)
    return need


def redact(text: str) -> tuple[str, ...]:
    """JSON Pointers, `*` for any name or index; raises ValueError."""
    paths = tuple(part.strip() for part in text.split(","))
    for path in paths:
        if not _POINTER.fullmatch(path):
            raise ValueError(f"{path!r} is no path of a result; write '/customer/email, /notes/*/text'")
    return paths


def verify(text: str) -> tuple[str, ...]:
    """Raises ValueError."""
    ways = tuple(part.strip() for part in text.split(","))
    for way in ways:
        if way not in WAYS:
            raise ValueError(f"{way!r} is no way to verify; known are {', '.join(map(repr, WAYS))}")
    return ways


def alert(text: str) -> str:
    """Raises ValueError."""
    if not text.strip():
        raise ValueError("an alert says what happened; write one")
    return text.strip()


def pins(text: str) -> tuple[Pin, ...]:
    """From `UPSTREAM/TOOL DIGEST`, several with commas between them; raises ValueError."""
    made = []
    for part in text.split(","):
        found = _PIN.fullmatch(part.strip())
        if found is None:
            said = "write 'UPSTREAM/TOOL sha256:...' as 'holdfast policy check --pin' prints it"
            raise ValueError(f"{part.strip()!r} names no contract; {said}")
        made.append(Pin(found[1], found[2], found[3]))
    return tuple(made)


def reason(annotations: Mapping[str, str]) -> str:
    return annotations.get("reason") or annotations["id"]
