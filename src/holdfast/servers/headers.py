"""What do the headers of a request say about the call in its body?

A header and a member of the body that name the same thing must agree: guessing which one was meant could run
an effect twice.
"""

import re
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers

from holdfast.model.fields import FieldError, pointer
from holdfast.model.trail import Parent, incoming

SAME_AS = {"Idempotency-Key": "key", "If-Match": "if_match", "X-Holdfast-Session": "session"}
"""Headers that stand for a member of the body."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\])*"')
_ESCAPED = re.compile(r"\\(.)")


def said(headers: Headers) -> dict[str, list[str]]:
    """For each member the different values its header was given."""
    values = {member: _values(headers, name) for name, member in SAME_AS.items()}
    return {member: found for member, found in values.items() if found}


def disagreements(body: Mapping[str, Any], headers: Headers) -> list[FieldError]:
    spoken = said(headers)
    return [
        FieldError(
            pointer([member]),
            "one value",
            "several",
            f"header '{name}' and member '{member}' differ; send one of them",
        )
        for name, member in SAME_AS.items()
        if member in spoken and len({*spoken[member], *_own(body, member)}) > 1
    ]


def completed(body: Mapping[str, Any], headers: Headers) -> dict[str, Any]:
    """The body with what only the headers say."""
    return {**{member: values[0] for member, values in said(headers).items()}, **body}


def trace(headers: Headers) -> tuple[str, Parent] | None:
    """The trace and the span a request was made in, by its W3C `traceparent` and `tracestate`."""
    return incoming(headers.get("traceparent", ""), ",".join(headers.getlist("tracestate")))


def _own(body: Mapping[str, Any], member: str) -> list[str]:
    value = body.get(member)
    return [value] if isinstance(value, str) else []


def _values(headers: Headers, name: str) -> list[str]:
    return list(dict.fromkeys(_unquoted(value) for value in headers.getlist(name)))


def _unquoted(value: str) -> str:
    """Entity tags and structured fields are written in quotes, which are not part of the value."""
    value = value.strip()
    return _ESCAPED.sub(r"\1", value[1:-1]) if _QUOTED.fullmatch(value) else value
