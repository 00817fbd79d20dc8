"""What is said to a server for one attempt?

A tool's call is `tools/call`. Three names are our own: they carry the protocol's other reads through the
gates.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.model.contract import Contract
from holdfast.model.mcp import COMPANIONS
from holdfast.ports import Attempt

KEY_META = "holdfast/key"

Mirror = Callable[[str, Contract, Mapping[str, Any]], Mapping[str, str]]
"""The headers that repeat some of a tool's arguments."""


@dataclass(frozen=True, slots=True)
class Asking:
    method: str
    params: dict[str, Any]
    headers: Mapping[str, str] | None
    """Only for HTTP."""


def asking(attempt: Attempt, mirror: Mirror | None = None) -> Asking:
    contract = attempt.tool.contract
    identity = contract.identity
    meta = _meta(attempt)
    if (method := COMPANIONS.get(identity.name)) is not None:
        return Asking(method, {**attempt.arguments, "_meta": meta}, None)
    name = identity.upstream_name or identity.name
    arguments, headers = dict(attempt.arguments), dict[str, str]()
    place, grafted = _graft(attempt)
    if place == "argument":
        arguments.update(grafted)
    if mirror is not None:
        headers.update(mirror(name, contract, arguments))
    if place == "header":
        headers.update({header.lower(): key for header, key in grafted.items()})
    return Asking("tools/call", {"name": name, "arguments": arguments, "_meta": meta}, headers or None)


def _graft(attempt: Attempt) -> tuple[str, dict[str, str]]:
    """Where else the upstream wants the key, and under which name; IDM-7."""
    how = attempt.tool.contract.idempotency
    if attempt.key is None or how is None or how.name is None:
        return "none", {}
    return how.upstream, {how.name: attempt.key}


def _meta(attempt: Attempt) -> dict[str, Any]:
    said = {
        KEY_META: attempt.key,
        "traceparent": attempt.traceparent,
        "tracestate": attempt.tracestate,
    }
    return {name: value for name, value in said.items() if value is not None}
