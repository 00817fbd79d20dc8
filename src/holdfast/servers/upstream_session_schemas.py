"""What do sessions that upstreams keep open look like as JSON Schema?"""

from holdfast.model.observation import Status
from holdfast.model.upstream_session import SessionState
from holdfast.servers.schemas import COUNT, FLAG, TEXT, Schema, many, or_null, record, ref, words

_SESSION: dict[str, Schema] = {
    "id": TEXT,
    "name": TEXT,
    "namespace": TEXT,
    "state": words(SessionState),
    "begun_by": TEXT,
    "call_id": {**TEXT, "description": "the call that began it"},
    "last_call_id": or_null({**TEXT, "description": "the last call that wrote in it, or ended it"}),
    "why": or_null(TEXT),
    "created_at": TEXT,
    "touched_at": TEXT,
    "idle_at": or_null({**TEXT, "description": "when it is rolled back, unless somebody works in it"}),
}
_STEP = record({"number": COUNT, "tool": TEXT, "call_id": TEXT, "at": TEXT, "undone_by": or_null(TEXT)})
_UNDONE = record(
    {
        "number": COUNT,
        "tool": TEXT,
        "call_id": TEXT,
        "status": words(Status),
        "code": or_null(TEXT),
        "message": or_null(TEXT),
    }
)

SESSIONS: dict[str, Schema] = {
    "UpstreamSession": record(_SESSION, about="A session that an upstream keeps open, or kept."),
    "UpstreamSessions": record({"sessions": many(ref("UpstreamSession"))}),
    "UpstreamSessionShown": record(
        {**_SESSION, "steps": many(_STEP)}, about="A session, and what was done in it."
    ),
    "UpstreamSessionUndone": record(
        {**_SESSION, "undone": many(_UNDONE)}, about="A session, and what came of taking it back."
    ),
    "UpstreamSessionUndo": record(
        {}, {"partial": {**FLAG, "description": "also where some steps cannot be taken back"}}
    ),
    "UpstreamSessionOutcome": record(
        {"outcome": {"type": "string", "enum": ["committed", "rolled-back"]}}, {"note": TEXT}
    ),
}
