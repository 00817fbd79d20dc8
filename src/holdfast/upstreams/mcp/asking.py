"""What is said to a server for one attempt?

A tool's call is `tools/call`. Three names are our own: they carry the protocol's other reads through the
gates.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from holdfast.model.contract import Contract
from holdfast.model.mcp import COMPANIONS
from holdfast.ports import Attempt

KEY_META = "holdfast/key"

Mirror = Callable[[str, Contract, Mapping[str, Any]], Mapping[str, str]]
"""The headers that repeat some of a tool's arguments."""


class Asking(NamedTuple):
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
    arguments = attempt.arguments
    place, carrier, key = _graft(attempt)
    if place == "argument":
        arguments = {**arguments, carrier: key}
    elif type(arguments) is not dict:
        arguments = dict(arguments)
    if attempt.credentials:
        arguments = {**arguments, **_secrets(attempt)}
    headers = None if mirror is None else mirror(name, contract, arguments)
    if place == "header":
        headers = {**(headers or {}), carrier.lower(): key}
    return Asking("tools/call", {"name": name, "arguments": arguments, "_meta": meta}, headers or None)


def _secrets(attempt: Attempt) -> dict[str, str]:
    return {
        one.credential.name: one.text for one in attempt.credentials if one.credential.place == "argument"
    }


def _graft(attempt: Attempt) -> tuple[str, str, str]:
    """Where else the upstream wants the key, under which name, and the key; IDM-7."""
    how, key = attempt.tool.contract.idempotency, attempt.key
    if how is None or how.name is None or key is None:
        return "none", "", ""
    return how.upstream, how.name, key


def _meta(attempt: Attempt) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if attempt.key is not None:
        said[KEY_META] = attempt.key
    if attempt.traceparent is not None:
        said["traceparent"] = attempt.traceparent
    if attempt.tracestate is not None:
        said["tracestate"] = attempt.tracestate
    return said
