"""What becomes of a call that begins, works in or ends a session at its upstream? EXE-8.

Callers know a session by an id of ours; the upstream's own name for it is put in as late as a secret is, and
taken out of whatever comes back. What the call means for its session is written with its outcome: a step that
cannot be trusted has the session rolled back before anything could commit it.
"""

from dataclasses import replace
from typing import Any

import orjson

from holdfast.execution.result import Ran, Result
from holdfast.execution.verify import Judged, invalid
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.expression import ExpressionError
from holdfast.model.handle import Exchange, telling
from holdfast.model.masking import masked
from holdfast.model.observation import Status
from holdfast.model.sequel import Sequel, SessionBegun, SessionMoved, SessionWorked
from holdfast.model.tool import InSession
from holdfast.model.upstream_session import SessionState, UpstreamSession, session_id
from holdfast.model.vocabulary import State
from holdfast.model.whose import told
from holdfast.ports import Ports

_UNTRUSTED = frozenset({Code.OUTPUT_INVALID, Code.EFFECT_MISMATCH, Code.COMPENSATION_REQUIRED})

_AFTER: dict[tuple[str, State], SessionState] = {
    ("commit", State.COMMITTED): SessionState.COMMITTED,
    ("commit", State.NO_EFFECT): SessionState.OPEN,
    ("commit", State.FAILED_FINAL): SessionState.ROLLING_BACK,
    ("commit", State.UNKNOWN): SessionState.UNKNOWN,
    ("rollback", State.COMMITTED): SessionState.ROLLED_BACK,
    ("rollback", State.FAILED_FINAL): SessionState.UNKNOWN,
    ("rollback", State.UNKNOWN): SessionState.UNKNOWN,
}


def seated(call: Call) -> None:
    """Let the upstream hear its own name of the session."""
    session, part = call.seat, call.tool.session
    if session is None or part is None or session.handle is None:
        return
    given = call.arguments if call.sent is None else call.sent
    call.sent = {**given, part.argument: session.handle}
    if telling(session.handle) and session.handle not in call.injected:
        call.injected = (*call.injected, session.handle)


def exchanged(session: UpstreamSession, result: Result) -> Result:
    """What the upstream said, with the session called as its caller knows it."""
    instead = Exchange(session.handle or "", session.id)
    native = None if result.native is None else instead.data(dict(result.native))
    if isinstance(result, Ran):
        error = None if result.error is None else instead.text(result.error)
        return replace(result, value=instead.data(result.value), native=native, error=error)
    return replace(result, message=instead.text(result.message), native=native)


def accounted(call: Call, judged: Judged, result: Result, ports: Ports) -> Judged:
    """The outcome, and what it means for the session, to be written with it."""
    part, session = call.tool.session, call.seat
    if part is None:
        return judged
    if part.role == "begin":
        return _begun(call, part, judged, result, ports)
    if session is None:
        return judged
    after = _after(call, part, judged)
    sequels: list[Sequel] = []
    if part.role == "step" and judged.status is Status.DONE and call.writes:
        sequels.append(_line(call, session, judged))
    if after is not None:
        sequels.append(SessionMoved(id=session.id, state=after.value, why=_why(call, after)))
    call.sequels = tuple(sequels)
    if after is SessionState.ROLLING_BACK:
        judged.message = f"{judged.message}; session '{session.id}' is being rolled back"
    judged.session = _shown(session.id, part, after or session.state)
    return judged


def _after(call: Call, part: InSession, judged: Judged) -> SessionState | None:
    """Where the session is from then on; None: where it was."""
    if part.role != "step":
        return _AFTER.get((part.role, judged.state))
    lost = call.writes and judged.state is State.UNKNOWN
    return SessionState.ROLLING_BACK if lost or call.misfit or judged.code in _UNTRUSTED else None


def _why(call: Call, after: SessionState) -> str:
    about = f"call '{call.id}' of '{call.tool.contract.tool}'"
    match after:
        case SessionState.COMMITTED | SessionState.ROLLED_BACK:
            return f"by {about}"
        case SessionState.ROLLING_BACK:
            return f"{about} cannot be trusted"
        case SessionState.UNKNOWN:
            return f"nobody knows what came of {about}"
        case _:
            return ""


def _line(call: Call, session: UpstreamSession, judged: Judged) -> SessionWorked:
    """What was done, and what takes it back once it is committed."""
    undo, compensation = call.tool.compensation, None
    if undo is not None:
        try:
            filled = undo.arguments.fill({"args": call.arguments, "result": judged.data})
            compensation = {"tool": undo.tool, "arguments": filled}
        except ExpressionError as error:
            judged.warnings.append(f"it cannot be taken back once it is committed: {error}")
    result = masked(judged.data, call.decision.redact)
    said = {"arguments": call.arguments, "result": result, "compensation": compensation}
    return SessionWorked(id=session.id, tool=call.tool.contract.tool, body=orjson.dumps(said))


def _begun(call: Call, part: InSession, judged: Judged, result: Result, ports: Ports) -> Judged:
    if not isinstance(result, Ran) or result.unfinished or result.pending is not None:
        call.sequels = ()
        return judged
    handle, done = _handle(part, result.value), judged.status is Status.DONE
    if handle is None:
        call.sequels = ()
        fault = f"the answer names no session: {part.handle.source if part.handle else ''!r} is no text in it"
        return invalid(call, fault) if done else judged
    own = session_id(call.principal.tenant, call.id)
    begun = SessionBegun(
        id=own,
        namespace=call.tool.contract.identity.namespace,
        name=part.name,
        body=orjson.dumps({"handle": handle, "wanted_by": told(call.principal)}),
        idle_s=part.idle_s,
        lives_here=call.upstream in ports.in_process,
    )
    instead = Exchange(handle, own)
    judged.data, judged.native = instead.data(judged.data), None
    judged.warnings = [instead.text(warning) for warning in judged.warnings]
    if done:
        call.sequels = (begun,)
        judged.session = _shown(own, part, SessionState.OPEN)
        return judged
    to = SessionState.ROLLING_BACK  # it is open there, whatever else is wrong
    call.sequels = (begun, SessionMoved(id=own, state=to.value, why=_why(call, to)))
    judged.message = f"{instead.text(judged.message or '')}; session '{own}' is being rolled back"
    judged.session = _shown(own, part, to)
    return judged


def _handle(part: InSession, value: Any) -> str | None:
    if part.handle is None:
        return None
    try:
        found = part.handle.evaluate({"result": value})
    except ExpressionError:
        return None
    return found if isinstance(found, str) and found else None


def _shown(own: str, part: InSession, state: SessionState) -> dict[str, Any]:
    return {"id": own, "name": part.name, "state": state.value}
