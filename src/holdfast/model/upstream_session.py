"""What is known of a session that an upstream keeps open, and what may be done in it now? EXE-8.

Not a client's session with this gateway: a transaction, or the like, at a tool's own server. What is done in
it counts once it is committed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from holdfast.model.canonical import digest
from holdfast.model.errors import Code
from holdfast.model.vocabulary import State, Word

Role = Literal["begin", "step", "commit", "rollback"]
Home = Literal["anywhere", "here", "elsewhere", "gone"]
"""Whether this process can work in it: one that lives in a process ends with that."""


class SessionState(Word):
    OPEN = "OPEN"
    COMMITTING = "COMMITTING"
    COMMITTED = "COMMITTED"
    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"
    UNKNOWN = "UNKNOWN"
    """It was asked to commit or to roll back, and nobody knows what came of that."""
    UNDONE = "UNDONE"
    """Committed, and taken back step by step."""

    @property
    def over(self) -> bool:
        return self in (SessionState.COMMITTED, SessionState.ROLLED_BACK, SessionState.UNDONE)


_S = SessionState
_RUNNING = (State.CLAIMED, State.DISPATCHED)
COMES_FROM: dict[SessionState, tuple[SessionState, ...]] = {
    _S.OPEN: (_S.COMMITTING, _S.UNKNOWN),
    _S.COMMITTING: (_S.OPEN, _S.UNKNOWN),
    _S.COMMITTED: (_S.COMMITTING, _S.UNKNOWN),
    _S.ROLLING_BACK: (_S.OPEN, _S.COMMITTING, _S.UNKNOWN),
    _S.ROLLED_BACK: (_S.OPEN, _S.ROLLING_BACK, _S.UNKNOWN),
    _S.UNKNOWN: (_S.COMMITTING, _S.ROLLING_BACK),
    _S.UNDONE: (_S.COMMITTED,),
}
"""From where each state is reached; nothing else moves a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSession:
    tenant: str
    id: str
    principal: str
    """Who began it, as `Principal.id` names them; nobody else works in it."""
    namespace: str
    name: str
    state: SessionState
    call_id: str
    """The call that began it."""
    home: Home
    idle_s: float
    created_at: float
    touched_at: float
    at_work: str = ""
    """The last call that wrote in it, committed it or rolled it back."""
    at_work_state: State | None = None
    """What the ledger says of that call."""
    why: str = ""
    handle: str | None = field(default=None, repr=False)
    """What the upstream calls it; no caller sees it. None where it was not asked for, or was erased."""
    wanted_by: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Who began it, in full."""

    @property
    def idle_at(self) -> float:
        return self.touched_at + self.idle_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """Something that was done in a session."""

    number: int
    call_id: str
    tool: str
    at: float
    arguments: Any = None
    result: Any = None
    compensation: Mapping[str, Any] | None = None
    """`tool` and `arguments` of what takes it back, once it was committed."""


class Why(NamedTuple):
    code: Code
    message: str


def session_id(tenant: str, call_id: str) -> str:
    """Of the session that a call begins: the same however often that call is tried."""
    return f"ses_{digest({'tenant': tenant, 'call': call_id})[:24]}"


def refused(session: UpstreamSession, role: Role, call_id: str, now: float) -> Why | None:
    """Why a call of this role may not work in it now; the store asks again in the claim's transaction."""
    own = session.at_work == call_id and session.at_work_state is not State.COMMITTED
    if role == "rollback" and session.state in (_S.OPEN, _S.ROLLING_BACK):
        return None if own or session.at_work_state not in _RUNNING else _busy(session)
    if own and session.state in (_S.COMMITTING, _S.ROLLING_BACK, _S.UNKNOWN) and role != "step":
        return None  # the same call again, which the upstream knows by its key
    if session.state is not _S.OPEN:
        return Why(Code.STALE_STATE, _not_open(session))
    if session.idle_at <= now:
        text = f"session '{session.id}' was left alone for more than {session.idle_s:g} s"
        return Why(Code.STALE_STATE, f"{text} and is rolled back; begin a new one")
    if own:
        return None
    if session.at_work_state is State.UNKNOWN:
        text = f"nobody knows what call '{session.at_work}' did in session '{session.id}'"
        return Why(Code.STALE_STATE, f"{text}, so it is rolled back; begin a new one with a new key")
    return _busy(session) if session.at_work_state in _RUNNING else None


def _busy(session: UpstreamSession) -> Why:
    text = f"call '{session.at_work}' is still at work in session '{session.id}'"
    return Why(Code.CONFLICT, f"{text}; wait for it, then call again")


def _not_open(session: UpstreamSession) -> str:
    about = f"session '{session.id}'"
    why = f" ({session.why})" if session.why else ""
    match session.state:
        case _S.COMMITTED | _S.UNDONE:
            return f"{about} was committed{why}; begin a new one with a new key"
        case _S.COMMITTING:
            return f"{about} is being committed by call '{session.at_work}'; begin a new one"
        case _S.ROLLING_BACK:
            return f"{about} is being rolled back{why}; begin a new one with a new key"
        case _S.UNKNOWN:
            look = f"look: holdfast sessions show {session.id}"
            return f"nobody knows what became of {about}{why}; {look}"
        case _:
            return f"{about} was rolled back{why}; begin a new one with a new key"
