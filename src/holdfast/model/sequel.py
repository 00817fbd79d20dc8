"""What else is written when the outcome of a call is, in the same transaction?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """The answer named a job, which goes on without the call; EXE-6."""

    body: bytes
    """In clear; the store seals it."""
    token: str
    """Digest of the word that the address to call back ends with."""
    next_at: float
    give_up_at: float
    progress: float | None = None
    ends_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBegun:
    """The upstream has opened a session; EXE-8."""

    id: str
    namespace: str
    name: str
    body: bytes
    """In clear; the store seals it."""
    idle_s: float
    lives_here: bool
    """It ends with this process, as its upstream does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWorked:
    """Something was done in a session, to count once that is committed."""

    id: str
    tool: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMoved:
    """It was committed, or rolled back, or nobody knows."""

    id: str
    state: str
    why: str = ""


Sequel = NewJob | SessionBegun | SessionWorked | SessionMoved
