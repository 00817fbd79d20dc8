"""Which values may an argument have? A closed form that can be shown to people, and checked; APR-8, APR-9.

A constraint is a JSON object of these words; all of them must hold.

    equals      the value itself
    one_of      one of a list of values
    at_most     a number no larger
    at_least    a number no smaller
    domain      one address (or web address) of this domain, or of one of these
    prefix      a text that begins like this
    longest     a text of at most so many characters, or a list of at most so many items
    each        a list, every item of which satisfies a constraint
    any         true: whatever the contract allows
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import orjson

from holdfast.model.canonical import NotCanonical, canonical

Constraint = Mapping[str, Any]

DEEPEST = 3
"""Lists within lists; more could not be explained."""
MOST_VALUES = 100
_ADDRESS = re.compile(r"[^\s@,;:<>()\[\]\\\"]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)")
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")


class _Word(NamedTuple):
    expected: str
    fits: Callable[[Any], bool]
    """Whether what stands behind the word can be used."""
    holds: Callable[[Any, Any], bool]
    told: Callable[[Any], str]


def faults(constraint: Any, depth: int = 0) -> str | None:
    """What is wrong with a constraint, or None."""
    if not isinstance(constraint, Mapping) or not constraint:
        return f"a constraint is an object of: {', '.join(WORDS)}"
    if depth > DEEPEST:
        return f"'each' stands in itself more than {DEEPEST} times; constrain the whole list instead"
    for word, given in constraint.items():
        if word not in WORDS:
            return f"no constraint is called '{str(word)[:64]}'; use: {', '.join(WORDS)}"
        if word == "each":
            if (inner := faults(given, depth + 1)) is not None:
                return inner
        elif not WORDS[word].fits(given):
            return f"'{word}' takes {WORDS[word].expected}"
    return None


def reveals(constraint: Constraint) -> bool:
    """Whether it says something of the value itself, which nobody may be shown of a secret."""
    return not constraint.keys() <= {"any", "longest"}


def holds(constraint: Constraint, value: Any) -> bool:
    return all(WORDS[word].holds(given, value) for word, given in constraint.items())


def told(constraint: Constraint) -> str:
    """The constraint in words."""
    return " and ".join(WORDS[word].told(given) for word, given in constraint.items())


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    try:
        return canonical(left) == canonical(right)
    except NotCanonical:
        return False


def misfits(constraints: Mapping[str, Constraint], arguments: Mapping[str, Any]) -> list[str]:
    """Why arguments are not covered; an argument nobody spoke of is not, and a missing one only by `any`."""
    found = []
    for name, value in arguments.items():
        if name not in constraints:
            found.append(f"nothing is said about argument '{name[:64]}'")
        elif not holds(constraints[name], value):
            found.append(f"argument '{name}' is not {told(constraints[name])}")
    for name, constraint in constraints.items():
        if name not in arguments and not constraint.get("any"):
            found.append(f"argument '{name}' is missing")
    return found


def domain_of(value: Any) -> str | None:
    """Whose address it is: of one mailbox, or of a web page; None for anything that is not plainly one."""
    if not isinstance(value, str):
        return None
    if (mailbox := _ADDRESS.fullmatch(value)) is not None:
        return mailbox[1].lower()
    try:
        parts = urlsplit(value)
        if parts.scheme in ("http", "https") and parts.hostname and parts.username is None:
            host = parts.hostname.lower()
            return host if _DOMAIN.fullmatch(host) and "\\" not in value and value.isprintable() else None
    except ValueError:
        pass
    return None


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _named(given: Any) -> list[Any]:
    return [given] if isinstance(given, str) else list(given)


def _of_domain(given: Any, value: Any) -> bool:
    return domain_of(value) in {domain.lower() for domain in _named(given)}


def _domains(given: Any) -> bool:
    if not isinstance(given, str | list) or not given or len(_named(given)) > MOST_VALUES:
        return False
    return all(isinstance(one, str) and _DOMAIN.fullmatch(one) for one in _named(given))


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(_shown(value) for value in values)


def _values(given: Any) -> bool:
    return isinstance(given, list) and 0 < len(given) <= MOST_VALUES


WORDS: dict[str, _Word] = {
    "equals": _Word("a value", lambda _: True, same, _shown),
    "one_of": _Word(
        f"a list of 1 to {MOST_VALUES} values",
        _values,
        lambda given, value: any(same(one, value) for one in given),
        lambda given: f"one of {_listed(given)}",
    ),
    "at_most": _Word(
        "a number", _number, lambda most, value: _number(value) and value <= most, lambda n: f"at most {n:g}"
    ),
    "at_least": _Word(
        "a number",
        _number,
        lambda least, value: _number(value) and value >= least,
        lambda n: f"at least {n:g}",
    ),
    "domain": _Word(
        "a domain, or a list of them",
        _domains,
        _of_domain,
        lambda given: f"an address at {' or '.join(_named(given))}",
    ),
    "prefix": _Word(
        "a text",
        lambda given: isinstance(given, str) and bool(given),
        lambda given, value: isinstance(value, str) and value.startswith(given),
        lambda given: f"a text that begins with {_shown(given)}",
    ),
    "longest": _Word(
        "a whole number",
        _whole,
        lambda most, value: isinstance(value, str | list) and len(value) <= most,
        lambda most: f"no longer than {most}",
    ),
    "each": _Word(
        "a constraint",
        lambda _: True,
        lambda given, value: isinstance(value, list) and all(holds(given, item) for item in value),
        lambda given: f"a list whose every item is {told(given)}",
    ),
    "any": _Word("true", lambda given: given is True, lambda _, __: True, lambda _: "anything"),
}
