"""What is kept of a call for people to look at, and for the next record of it to go on from?"""

from dataclasses import dataclass, fields
from typing import Any

from holdfast.model.view import CallRow

LONGEST = 256
"""Bytes of a name that are kept: agents write some of them, and an index takes only a few thousand."""


@dataclass(slots=True)
class Line:
    """The members of `CallRow` first, in their order, then what only the projection reads."""

    tenant: str
    call_id: str
    at: float
    updated_at: float
    tool: str
    version: str
    caller: str
    agent: str
    effect: str
    status: str
    code: str
    latency_ms: float | None
    attempts: int
    replayed: bool
    alarms: int
    task: str
    approval_id: str
    cost: int
    upstream: str
    leaf: int
    """Of its first record."""
    stated_at: float
    """Of the record that the status is from; 0 while nothing is known but that it did not run."""
    ended: str
    """The attempt that was counted last, by its nonce."""
    paid: str
    """The attempt whose cost was added last."""

    @staticmethod
    def new(tenant: str, call_id: str, at: float, leaf: int) -> "Line":
        nobody = ("",) * 5
        return Line(
            tenant, call_id, at, at, *nobody, "", "", None, 0, False, 0, "", "", 0, "", leaf, 0.0, "", ""
        )

    def name(self, tool: str, caller: str, agent: str) -> None:
        """Whatever was called has a name here: a line without one is not shown."""
        name, _, self.version = tool.partition("@")
        self.tool = name or tool or "?"
        self.upstream = self.tool.partition(".")[0]
        self.caller, self.agent = caller, agent

    def row(self) -> CallRow:
        return CallRow(*[getattr(self, name) for name in CallRow._fields])

    def values(self) -> tuple[Any, ...]:
        """As its row is kept."""
        return (
            self.tenant,
            self.call_id,
            self.at,
            self.updated_at,
            self.tool,
            self.version,
            self.caller,
            self.agent,
            self.effect,
            self.status,
            self.code,
            self.latency_ms,
            self.attempts,
            int(self.replayed),
            self.alarms,
            self.task,
            self.approval_id,
            self.cost,
            self.upstream,
            self.leaf,
            self.stated_at,
            self.ended,
            self.paid,
        )


COLUMNS = tuple(member.name for member in fields(Line))


def cleaned(text: str) -> str:
    """Text that every database takes, in an index too."""
    if len(text) > LONGEST or not text.isascii():
        text = text.encode(errors="replace")[:LONGEST].decode(errors="ignore")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text
