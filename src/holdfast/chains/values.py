"""What does a declared value say now that the steps before it are over?"""

from collections.abc import Mapping
from typing import Any

from holdfast.chains.declared import Place
from holdfast.chains.faults import shown
from holdfast.chains.shapes import BadPath, search
from holdfast.model.expression import Expression, ExpressionError


class Missing(Exception):
    """A path found nothing, or a condition could not be judged; the text says where. CHN-4."""


def filled(value: Any, known: Mapping[str, Any], place: Place, required: frozenset[str] = frozenset()) -> Any:
    """The value with what its paths find. Members of an object that find nothing are left out; a member in
    `required`, or a value that is no member of anything, is `Missing`.
    """
    match value:
        case Mapping():
            return _members(value, known, place, required)
        case list():
            return [_found(item, known, (*place, number)) for number, item in enumerate(value)]
        case _:
            return _found(value, known, place)


def holds(source: str, known: Mapping[str, Any], place: Place) -> bool:
    """Whether a condition is true; one that says neither is `Missing`."""
    try:
        said = Expression(source, set(known)).evaluate(known)
    except ExpressionError as error:
        raise Missing(f"{shown(place)}: {error}") from None
    if not isinstance(said, bool):
        raise Missing(f"{shown(place)}: the condition {source!r} says neither true nor false")
    return said


def score(source: str, known: Mapping[str, Any], result: Any, place: Place) -> float:
    """How good a result is."""
    try:
        said = Expression(source, {*known, "result"}).evaluate({**known, "result": result})
    except ExpressionError as error:
        raise Missing(f"{shown(place)}: {error}") from None
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise Missing(f"{shown(place)}: the score {source!r} is no number")
    return float(said)


def _members(
    value: Mapping[str, Any], known: Mapping[str, Any], place: Place, required: frozenset[str]
) -> dict[str, Any]:
    made = {}
    for name, inner in value.items():
        found = (
            filled(inner, known, (*place, name))
            if not _is_path(inner)
            else _search(inner, known, (*place, name))
        )
        if found is None and _is_path(inner):
            if name in required:
                raise Missing(f"{shown((*place, name))}: {inner!r} finds nothing, and {name!r} is needed")
            continue
        made[name] = found
    return made


def _found(value: Any, known: Mapping[str, Any], place: Place) -> Any:
    if isinstance(value, Mapping | list):
        return filled(value, known, place)
    if not _is_path(value):
        return value[1:] if isinstance(value, str) and value.startswith("==") else value
    found = _search(value, known, place)
    if found is None:
        raise Missing(f"{shown(place)}: {value!r} finds nothing")
    return found


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=") and not value.startswith("==")


def _search(value: str, known: Mapping[str, Any], place: Place) -> Any:
    try:
        return search(value[1:], known)
    except BadPath as error:
        raise Missing(f"{shown(place)}: {error}") from None
