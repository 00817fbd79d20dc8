"""Which arguments of a planned call are known, and which depend on what earlier steps will say? APR-8.

    {"to": {"$any": {"domain": "example.com"}, "like": "ana@example.com"}, "amount": 12}

`$any` holds a constraint; `like` is a value of that kind, by which the step is judged before it is known.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.model.constraint import Constraint, faults, holds, told
from holdfast.model.fields import FieldError, pointer

ANY, LIKE = "$any", "like"


class Read(NamedTuple):
    """A planned call's arguments."""

    example: dict[str, Any]
    """Values that could be called with."""
    open: dict[str, Constraint]
    """Of the arguments that are not known yet."""
    faults: tuple[FieldError, ...] = ()


def read(arguments: Mapping[str, Any]) -> Read:
    example: dict[str, Any] = {}
    left_open: dict[str, Constraint] = {}
    wrong: list[FieldError] = []
    for name, value in arguments.items():
        if not is_open(value):
            example[name] = value
            if (deep := _deep(value)) is not None:
                wrong.append(_fault(name, deep))
            continue
        said = _wrong(value)
        if said is not None:
            wrong.append(_fault(name, said))
            continue
        left_open[name], example[name] = dict(value[ANY]), _like(value)
    return Read(example, left_open, tuple(wrong))


def is_open(value: Any) -> bool:
    return isinstance(value, Mapping) and ANY in value


def shown(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """As people see it: what is not known in words, with the example."""
    return {
        name: {ANY: told(value[ANY]), LIKE: _like(value)} if is_open(value) else value
        for name, value in arguments.items()
    }


def _wrong(value: Mapping[str, Any]) -> str | None:
    if set(value) - {ANY, LIKE}:
        return f"beside '{ANY}' only '{LIKE}' may stand"
    if (said := faults(value[ANY])) is not None:
        return said
    if LIKE not in value and not _derivable(value[ANY]):
        return f"give a value of this kind in '{LIKE}': the step is judged by it until the real one is known"
    return None if holds(value[ANY], _like(value)) else f"the value in '{LIKE}' is not {told(value[ANY])}"


_FROM = ("equals", "at_most", "at_least")


def _derivable(constraint: Constraint) -> bool:
    return "one_of" in constraint or any(word in constraint for word in _FROM)


def _like(value: Mapping[str, Any]) -> Any:
    if LIKE in value:
        return value[LIKE]
    constraint = value[ANY]
    if "one_of" in constraint:
        return constraint["one_of"][0]
    return next(constraint[word] for word in _FROM if word in constraint)


def _deep(value: Any) -> str | None:
    """A placeholder stands for a whole argument; deeper down it would be taken at its word."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if any(is_open(one) or _deep(one) is not None for one in inner):
        return f"'{ANY}' stands for a whole argument, not for a part of one; use 'each' for a list"
    return None


def _fault(name: str, said: str) -> FieldError:
    text = f"argument '{name}': {said}"
    return FieldError(pointer([name]), "a value, or a constraint", "something else", text)
