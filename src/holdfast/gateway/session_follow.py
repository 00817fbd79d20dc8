"""Where does a session at an upstream stand, by what became of the call that was last at work in it?

Nearly always the outcome of that call has moved the session. This is for what has no outcome: a process that
died, an answer that got lost and was settled later, a caller who went away for good.
"""

from holdfast.model.upstream_session import SessionState, UpstreamSession
from holdfast.model.vocabulary import State
from holdfast.ports import Ports

Move = tuple[SessionState, str]

_S = SessionState
_BY_COMMIT: dict[State, SessionState] = {
    State.COMMITTED: _S.COMMITTED,
    State.NO_EFFECT: _S.OPEN,
    State.FAILED_FINAL: _S.ROLLING_BACK,
    State.UNKNOWN: _S.UNKNOWN,
}
_BY_ROLLBACK: dict[State, SessionState] = {
    State.COMMITTED: _S.ROLLED_BACK,
    State.NO_EFFECT: _S.ROLLING_BACK,
    State.UNKNOWN: _S.UNKNOWN,
    State.FAILED_FINAL: _S.UNKNOWN,
}


async def follows(session: UpstreamSession, ports: Ports) -> Move | None:
    """Where it moves now, and why; None where it stays."""
    state = session.at_work_state
    if state is not None and state.running:
        return None
    if session.state is _S.OPEN:
        return _open(session, ports.clock.now())
    if session.state is _S.COMMITTING and state in (None, State.HELD):
        return _S.OPEN, ""
    role = await _role(session, ports)
    table = {"commit": _BY_COMMIT, "rollback": _BY_ROLLBACK}.get(role or "")
    to = None if table is None or state is None else table.get(state)
    return None if to is None else (to, f"call '{session.at_work}' is {state}")


def _open(session: UpstreamSession, now: float) -> Move | None:
    if session.home == "gone":
        return _S.ROLLING_BACK, "the process that its upstream lived in is gone"
    if session.home == "elsewhere":
        return None
    if session.at_work_state is State.UNKNOWN:
        return _S.ROLLING_BACK, f"nobody knows what call '{session.at_work}' did in it"
    if session.idle_at <= now:
        return _S.ROLLING_BACK, f"nobody worked in it for {session.idle_s:g} s"
    return None


async def _role(session: UpstreamSession, ports: Ports) -> str | None:
    """What the call that was last at work in it was to do there."""
    found = await ports.ledger.find_call(session.tenant, session.at_work) if session.at_work else None
    listing = None if found is None else ports.catalog.exact(found.ref.tool, found.version)
    part = None if listing is None else listing.tool.session
    return None if part is None else part.role
