"""What are people told beside the answers to their own calls: alerts, and notices on their way out?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """Something is not as it should be, or was."""

    tenant: str
    id: str
    kind: str
    subject: str
    text: str
    facts: Mapping[str, Any]
    at: float
    seen_at: float
    ended_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message on its way out; told once, however often it is tried."""

    tenant: str
    id: str
    channel: str
    event: str
    about: str
    body: Mapping[str, Any]
    """Empty once its tenant was erased."""
    at: float
    due_at: float
    to: str = ""
    """Whom in particular, where the channel reaches several."""
    tries: int = 0
    sent_at: float | None = None
    failed_at: float | None = None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """A question of whose state people were not told yet."""

    tenant: str
    approval_id: str
    level: int
    """How far they were told; -1: of nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of the notices of a channel."""

    channel: str
    sent: int
    waiting: int
    failed: int
    last_sent_at: float | None
    said: str
    """What went wrong last, of those that wait or were given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A person at the console, until they leave or the time is over."""

    hash: str
    person: str
    credential: Mapping[str, str]
    """The headers they showed; asked again at every request."""
    at: float
    seen_at: float
    expires_at: float
