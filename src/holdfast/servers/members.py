"""Does a request have exactly the members it may have, each of the right kind?

Every fault is reported at once. Checked by hand: this stands before every call.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from holdfast.model.fields import FieldError, pointer

SHOWN_NAME = 64
"""Characters of an unknown name that are looked at and shown: likeness costs the square of the length."""
SHOWN_FAULTS = 20
"""Faults reported of one request: thousands of unknown members are not worth thousands of guesses."""


@dataclass(frozen=True, slots=True)
class Member:
    expected: str
    fits: Callable[[Any], bool]
    required: bool = False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1


def text(*, required: bool = False) -> Member:
    return Member("a string", _is_text, required)


def choice(*words: str, required: bool = True) -> Member:
    return Member("one of " + ", ".join(f"'{word}'" for word in words), words.__contains__, required)


WHOLE = Member("a whole number of at least 1", _is_whole)
SECONDS = Member("a number of seconds, at least 1", _is_seconds)
FLAG = Member("true or false", lambda value: isinstance(value, bool))
ARGUMENTS = Member(
    "an object, or a string that holds one as JSON",
    lambda value: isinstance(value, dict | str),
    required=True,
)

Members = Mapping[str, Member]

CALL: Members = {
    "tool": text(required=True),
    "version": text(),
    "arguments": ARGUMENTS,
    "key": text(),
    "task": text(),
    "step": text(),
    "session": text(),
    "deadline_ms": WHOLE,
    "if_match": text(),
    "approval_token": text(),
    "plan_token": text(),
    "plan": text(),
    "release": choice("caller", "gateway", required=False),
    "preview": FLAG,
}
DECISION: Members = {"decision": choice("approve", "deny"), "note": text()}
SETTLEMENT: Members = {"outcome": choice("committed", "no-effect"), "note": text(required=True)}
HALT: Members = {"target": text(required=True), "note": text()}
GRANT: Members = {
    "person": text(required=True),
    "agent": text(),
    "scope": text(required=True),
    "for_s": SECONDS,
    "renew": FLAG,
    "note": text(),
}
ELEVATION: Members = {"scope": text(required=True), "for_s": SECONDS, "reason": text(required=True)}
LISTING: Members = {"q": text(), "cursor": text(), "limit": WHOLE}
AUDIT: Members = {"call": text(), "since": text(), "cursor": text(), "limit": WHOLE}
WHY_TOOL: Members = {"tool": text(required=True)}
WHY: Members = {**WHY_TOOL, "arguments": replace(ARGUMENTS, required=False)}
FOUND_CALL: Members = {"call_id": text(required=True)}


def faults(body: Any, members: Members) -> list[FieldError]:
    """Everything that is wrong with a body, or the first `SHOWN_FAULTS` of it."""
    if not isinstance(body, dict):
        return [FieldError("", "an object", kind(body), "the request must be a JSON object")]
    found: list[FieldError] = []
    for fault in _each(body, members):
        found.append(fault)
        if len(found) == SHOWN_FAULTS:
            break
    return found


def fits(body: Any, members: Members) -> bool:
    """Whether there would be no faults."""
    if type(body) is not dict:
        return False
    for name, value in body.items():
        member = members.get(name)
        if member is None or not (value is None or member.fits(value)):
            return False
    return all(body.get(name) is not None for name, member in members.items() if member.required)


def given(body: Mapping[str, Any]) -> dict[str, Any]:
    """The members that say something: null is the same as leaving one out."""
    return {name: value for name, value in body.items() if value is not None}


def kind(value: Any) -> str:
    """The JSON kind of a value; never the value itself, which may be a secret."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return "a number"


def _each(body: dict[str, Any], members: Members) -> Iterator[FieldError]:
    for name, member in members.items():
        value = body.get(name)
        if value is None:
            if member.required:
                yield FieldError(pointer([name]), member.expected, "nothing", f"member '{name}' is required")
        elif not member.fits(value):
            message = f"member '{name}' must be {member.expected}"
            yield FieldError(pointer([name]), member.expected, kind(value), message)
    for name in body:
        if name not in members:
            yield _unknown(name, members)


def _unknown(name: str, members: Members) -> FieldError:
    shown = name[:SHOWN_NAME]
    nearest = get_close_matches(shown.lower(), members, n=1, cutoff=0.0)[0]
    return FieldError(
        pointer([shown]),
        "one of " + ", ".join(f"'{known}'" for known in members),
        "an unknown member",
        f"unknown member '{shown}', did you mean '{nearest}'",
    )
