"""How is a session at an upstream told, as JSON data? Never by the name the upstream has for it."""

from collections.abc import Sequence
from typing import Any

from holdfast.gateway.upstream_sessions import ShownSession, Undone
from holdfast.model.moment import iso
from holdfast.model.upstream_session import SessionLine, UpstreamSession


def told(session: UpstreamSession) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name,
        "namespace": session.namespace,
        "state": session.state.value,
        "begun_by": session.principal,
        "call_id": session.call_id,
        "last_call_id": session.at_work or None,
        "why": session.why or None,
        "created_at": iso(session.created_at),
        "touched_at": iso(session.touched_at),
        "idle_at": None if session.state.over else iso(session.idle_at),
    }


def told_shown(shown: ShownSession) -> dict[str, Any]:
    return {**told(shown.session), "steps": [told_line(line) for line in shown.lines]}


def told_line(line: SessionLine) -> dict[str, Any]:
    undo = line.compensation
    return {
        "number": line.number,
        "tool": line.tool,
        "call_id": line.call_id,
        "at": iso(line.at),
        "undone_by": None if undo is None else undo["tool"],
    }


def told_undone(session: UpstreamSession, done: Sequence[Undone]) -> dict[str, Any]:
    return {
        **told(session),
        "undone": [
            {
                "number": one.line.number,
                "tool": one.seen.tool,
                "call_id": one.seen.call_id,
                "status": one.seen.status.value,
                "code": None if one.seen.code is None else one.seen.code.value,
                "message": one.seen.message,
            }
            for one in done
        ],
    }
