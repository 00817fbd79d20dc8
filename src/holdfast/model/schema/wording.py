"""How is a validation error said, without showing what must not be shown?"""

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from jsonschema_rs import ValidationErrorKind as Kind

from holdfast.model.fields import Violation

MAX_SHOWN = 80

_STRUCTURAL = frozenset(
    {
        "required",
        "additionalProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "propertyNames",
        "anyOf",
        "oneOf",
        "not",
        "falseSchema",
    }
)


def violation(kind: Kind) -> Violation:
    if kind.name == "type":
        return "TYPE_MISMATCH"
    return "STRUCTURAL_VIOLATION" if kind.name in _STRUCTURAL else "OUT_OF_BOUNDS"


def expected(kind: Kind) -> str:
    """What the schema wants, in a few words that follow "must be"."""
    match kind:
        case Kind.Type():
            return one_of_types(kind.types)
        case Kind.Enum():
            return "one of " + shorten(", ".join(map(_json, kind.options)), 200)
        case Kind.Constant():
            return shorten(_json(kind.expected_value))
        case Kind.Pattern():
            return f"text matching '{shorten(kind.pattern)}'"
        case Kind.Format():
            return f"text in format '{kind.format}'"
        case Kind.MultipleOf():
            return f"a multiple of {kind.multiple_of}"
        case Kind.UniqueItems():
            return "an array without equal items"
        case Kind.Contains():
            return "an array with the items that 'contains' asks for"
        case Kind.AnyOf() | Kind.OneOfNotValid():
            return "a match for one of the alternatives"
        case Kind.OneOfMultipleValid():
            return "a match for exactly one of the alternatives"
        case Kind.Not():
            return "something other than what 'not' describes"
        case Kind.FalseSchema():
            return "absent"
        case Kind.UnevaluatedItems():
            return "an array without further items"
        case _:
            return _bound(kind)


def one_of_types(types: Iterable[str]) -> str:
    return " or ".join(sorted(dict.fromkeys(types), key=lambda name: name == "null"))


def _bound(kind: Kind) -> str:
    match kind:
        case Kind.Minimum():
            return f"at least {kind.limit}"
        case Kind.Maximum():
            return f"at most {kind.limit}"
        case Kind.ExclusiveMinimum():
            return f"more than {kind.limit}"
        case Kind.ExclusiveMaximum():
            return f"less than {kind.limit}"
        case Kind.MinLength():
            return f"at least {kind.limit} characters long"
        case Kind.MaxLength():
            return f"at most {kind.limit} characters long"
        case Kind.MinItems():
            return f"an array of at least {kind.limit} items"
        case Kind.MaxItems():
            return f"an array of at most {kind.limit} items"
        case Kind.MinProperties():
            return f"an object with at least {kind.limit} properties"
        case Kind.MaxProperties():
            return f"an object with at most {kind.limit} properties"
        case _:
            return f"valid for '{kind.name}'"


def actual(value: Any, hidden: bool) -> str:
    """A scalar as JSON, shortened; of a container, or of a marked field, no more than what it is."""
    kind = json_type(value)
    if hidden:
        return kind
    match value:
        case dict():
            return f"object with {len(value)} properties"
        case list() | tuple():
            return f"array of {len(value)} items"
        case _:
            return shorten(_json(value))


def json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case list() | tuple():
            return "array"
        case _:
            return type(value).__name__


def nearest(name: str, declared: list[str]) -> str:
    """ "; did you mean 'x'?" or what is declared."""
    if close := get_close_matches(name, declared, 1):
        return f"; did you mean '{close[0]}'?"
    if declared:
        return f"; declared are {shorten(', '.join(sorted(declared)), 200)}"
    return "; nothing is declared here"


def shorten(text: str, limit: int = MAX_SHOWN) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
