"""Under which key does an MCP call run, and what else does its `_meta` say about it?

A client that knows keys names its operation in `_meta["holdfast/key"]`, or in the argument `idempotency_key`
that writes offer. One that knows none gets a key per request: a fresh one in the modern era, where every
request stands alone, else the session and the request's id (IDM-1).
"""

import hashlib
from collections.abc import Iterator, Mapping
from secrets import token_hex
from typing import Any, NamedTuple

from holdfast.model.fields import FieldError
from holdfast.model.trail import incoming
from holdfast.servers.mcp.names import KEY, Entry

META_KEY = "holdfast/key"
TEXTS = ("key", "task", "step", "session", "approval_token", "plan_token", "plan", "if_match", "version")
"""Members of `_meta` behind `holdfast/`, each a string."""
_MEMBERS = {f"holdfast/{name}": name for name in TEXTS}
_OTHERS = frozenset({"holdfast/deadline_ms", "holdfast/preview", "traceparent"})
_OURS = _OTHERS | _MEMBERS.keys()


class Said(NamedTuple):
    """What a call says about itself beside its arguments."""

    arguments: Mapping[str, Any]
    members: Mapping[str, Any]
    """As the gateway takes them."""
    faults: tuple[FieldError, ...] = ()


def read(arguments: Mapping[str, Any], meta: Mapping[str, Any], entry: Entry | None) -> Said:
    """Arguments as the tool gets them, and the rest; a key given twice must be the same key."""
    if entry is None or not entry.takes_key or KEY not in arguments:
        plain = _plainly(meta)
        if plain is not None:
            return Said(arguments, plain)
    return _carefully(arguments, meta, entry)


def silent(arguments: Mapping[str, Any], meta: Mapping[str, Any], entry: Entry) -> bool:
    """Whether nothing is said about a call but its arguments, as most clients have it."""
    return _OURS.isdisjoint(meta) and not (entry.takes_key and KEY in arguments)


def _plainly(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """What `_meta` says where that is texts alone, or nothing at all."""
    members: dict[str, Any] = {}
    for name, value in meta.items():
        if name in _MEMBERS:
            if type(value) is not str:
                return None
            members[_MEMBERS[name]] = value
        elif name in _OTHERS:
            return None
    return members


def _carefully(arguments: Mapping[str, Any], meta: Mapping[str, Any], entry: Entry | None) -> Said:
    faults = list(_faults(meta))
    members = {
        name: meta[f"holdfast/{name}"] for name in TEXTS if isinstance(meta.get(f"holdfast/{name}"), str)
    }
    if isinstance(meta.get("holdfast/deadline_ms"), int):
        members["deadline_ms"] = meta["holdfast/deadline_ms"]
    if meta.get("holdfast/preview") is True:
        members["preview"] = True
    if entry is not None and entry.takes_key and KEY in arguments:
        given = arguments[KEY]
        arguments = {name: value for name, value in arguments.items() if name != KEY}
        if not isinstance(given, str):
            faults.append(_fault(f"/{KEY}", "a string", f"'{KEY}' must be a string"))
        elif members.setdefault("key", given) != given:
            text = f"'{KEY}' and _meta['{META_KEY}'] differ; send one of them"
            faults.append(_fault(f"/{KEY}", "one key", text))
    members.update(_trace(meta))
    return Said(arguments, members, tuple(faults))


def fresh() -> str:
    """A key for one request that stands alone."""
    return f"mcp-{token_hex(16)}"


def of_request(session: str, request_id: str | int | None) -> str:
    """The key of a request in a session; the session's name is not told to anybody else."""
    text = f"{session}\0{type(request_id).__name__}\0{request_id}"
    return f"mcp-{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _faults(meta: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in TEXTS:
        if meta.get(f"holdfast/{name}") is not None and not isinstance(meta[f"holdfast/{name}"], str):
            yield _fault(f"/_meta/holdfast~1{name}", "a string", f"_meta['holdfast/{name}'] must be a string")
    if not isinstance(meta.get("holdfast/preview", False), bool):
        yield _fault(
            "/_meta/holdfast~1preview", "true or false", "_meta['holdfast/preview'] must be a boolean"
        )
    patience = meta.get("holdfast/deadline_ms", 1)
    if not isinstance(patience, int) or isinstance(patience, bool) or patience < 1:
        text = "_meta['holdfast/deadline_ms'] must be a whole number of at least 1"
        yield _fault("/_meta/holdfast~1deadline_ms", "a whole number", text)


def _trace(meta: Mapping[str, Any]) -> dict[str, Any]:
    parent, state = meta.get("traceparent"), meta.get("tracestate")
    told = incoming(parent, state if isinstance(state, str) else "") if isinstance(parent, str) else None
    return {} if told is None else {"trace_id": told[0], "parent": told[1]}


def _fault(path: str, expected: str, message: str) -> FieldError:
    return FieldError(path, expected, "something else", message)
