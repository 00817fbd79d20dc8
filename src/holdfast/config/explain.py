"""What is wrong with a configuration, in words a person can act on?"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from holdfast.config.place import Fault, Place
from holdfast.config.section import Section
from holdfast.config.tree import Config
from holdfast.config.unbuilt import keys_below
from holdfast.model.docstrings import docstrings

SHAPES = {
    "store": "write 'sqlite:///holdfast.db' or 'postgresql://user@host/database'",
    "base_url": "write 'https://host'",
    "endpoint": "write 'http://host:4318'; a credential goes into OTEL_EXPORTER_OTLP_HEADERS",
    "functions": "write 'module:object'",
    "token": "write 'file:PATH' or 'env:NAME'",
    "token_url": "write 'https://host/token'",
    "address": "write 'https://host:8200'",
    "env": "use letters, digits and '_'",
    "secrets": "use letters, digits and '.', '_', '-', at most 64",
    "url": "write 'https://host/mcp'; a credential goes into 'headers' or 'auth'",
    "prefix": "use letters, digits, '_' and '-', at most 32",
    "store_key": "write 'file:PATH' or 'env:NAME'",
    "key": "write 'file:PATH' or 'env:NAME'",
    "hash": "paste what 'holdfast keys create --for-config' printed",
    "id": "use 4 to 32 small letters and digits",
    "upstreams": "use small letters, digits and '-', at most 32",
    "host": "write the name of a server, and its port under 'port'",
    "fallbacks": "write the tag of a capability, without spaces, at most 64",
    "channels": "use small letters, digits, '_' and '-', at most 32",
}
"""What a value under this key looks like."""
NAME_SHAPE = "use letters, digits and '.', '_', '@', '-', at most 64"


def explain(error: ValidationError, tree: Any, earlier: list[Fault]) -> list[Fault]:
    """Every fault once, without those that only follow from another one."""
    found: dict[Fault, None] = {}
    for detail in error.errors(include_url=False):
        found |= dict.fromkeys(_faults(detail, _place(detail["loc"], tree)))
    slips = {f.place[:-1] for f in (*earlier, *found) if "unknown key" in f.text or "not built yet" in f.text}
    told = {f.place for f in earlier}
    return [
        fault
        for fault in found
        if fault.place not in told
        and not (fault.text == REQUIRED and fault.place[:-1] in slips)
        and not (fault.text.startswith(WHICH) and fault.place in slips)
    ]


def keys(section: type[Section] = Config, prefix: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every key there is: its path, what it means, its default (`...`: none). `*` is a name or an index."""
    said = docstrings(section)
    for name, field in section.model_fields.items():
        path = f"{prefix}{name}"
        yield path, said.get(name, ""), ... if field.is_required() else field.default
        for below, many in _sections(field.annotation):
            yield from keys(below, f"{path}.*." if many else f"{path}.")


def kind(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return "a yes or no"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


REQUIRED = "is required; add it"
WHICH = "name either "
"""Likewise, where one of several keys is required."""


def _faults(detail: ErrorDetails, place: Place) -> Iterator[Fault]:
    context = detail.get("ctx", {})
    given = "what is there" if _secret(place) else detail.get("input")
    match detail["type"]:
        case "extra_forbidden":
            yield Fault(place, _unknown(place[-1], sorted(_known(place[:-1]))))
        case "missing":
            yield Fault(place, REQUIRED)
        case "literal_error" | "enum":
            yield Fault(place, f"must be {context['expected']}, not {given!r}")
        case "string_pattern_mismatch":
            shape = next((SHAPES[step] for step in reversed(place) if step in SHAPES), NAME_SHAPE)
            yield Fault(place, f"{given!r} is not allowed here; {shape}")
        case "value_error":
            said = context["error"].args[0]
            inner = said if isinstance(said, list) else [Fault((), str(said))]
            yield from (Fault((*place, *fault.place), fault.text) for fault in inner)
        case "too_short":
            if not given:  # else what was wrong with each is said at its place
                yield Fault(place, "must not be empty")
        case "model_type" | "dict_type" | "model_attributes_type":
            yield Fault(place, f"must be a mapping of keys, not {kind(given)}")
        case _:
            wanted = detail["msg"].removeprefix("Input should ").partition(",")[0]
            yield Fault(place, f"must {wanted[:1].lower()}{wanted[1:]}, not {given!r}")


_SECRETS = (("approver_secret",), ("client_secret",), ("url",), ("secret",), ("password",))


def _secret(place: Place) -> bool:
    """Whether what stands here may be a secret, and is not repeated."""
    return place[-1:] in _SECRETS or place[-2:-1] in (
        ("env",),
        ("headers",),
    )


def _unknown(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    rest = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(map(repr, known))}"
    return f"unknown key {key!r}; {rest}"


def _place(loc: tuple[int | str, ...], tree: Any) -> Place:
    """The place in the file; pydantic also names `[key]` and the inside of what was a plain string."""
    place: Place = ()
    for step in loc:
        if isinstance(tree, dict) and step != "[key]":
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int):
            tree = tree[step]
        else:
            break
        place = (*place, str(step))
    return place


def _known(place: Place) -> set[str]:
    here: list[tuple[type[Section], bool]] = [(Config, False)]
    named = False
    for step in place:
        if named:  # this step is a name or an index
            named = False
            continue
        fields = [section.model_fields[step] for section, _ in here if step in section.model_fields]
        here = [below for field in fields for below in _sections(field.annotation)]
        named = any(many for _, many in here)
    return {name for section, _ in here for name in section.model_fields} | set(keys_below(place))


def _sections(annotation: Any) -> Iterator[tuple[type[Section], bool]]:
    """The sections below a key, and whether they are named or listed there."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation, False
        return
    many = get_origin(annotation) in (dict, tuple)
    for inner in get_args(annotation):
        yield from ((section, many or deeper) for section, deeper in _sections(inner))
