"""Which arguments can a policy read, and as what?

One plan per tool, made from its input schema, gives the Cedar type of every argument and turns values into
it, so the two cannot disagree:

    string -> String    integer -> Long    boolean -> Bool    number -> decimal (at most 4 digits)
    array -> Set (no order, no repetition)    object -> record of its declared members

What is marked `x-sensitivity` has no place in a plan: policies may not read it (CON-6). What has no Cedar
type (alternatives, recursion, open values) has none either, and says why. A value that does not fit its type,
such as a number with five digits, is left out and named, so that whoever reads it can be refused.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson

from holdfast.model.fields import pointer
from holdfast.model.schema.sensitivity import Sensitivity
from holdfast.model.schema.tree import Tree

DEEPEST = 6
"""Levels of nested records; nobody writes a policy about the seventh."""
MOST_LONG = 2**63 - 1
MOST_DECIMAL = Decimal("922337203685477.5807")

Path = tuple[str, ...]
Gone = list[str]
"""JSON Pointers of what was left out."""


class Unreadable(Exception):
    """A value does not fit; its pointer was noted."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """String, Long, Bool or decimal."""

    cedar: str

    def convert(self, value: Any, path: Path, gone: Gone) -> Any:
        match self.cedar, value:
            case ("String", str()) | ("Bool", bool()):
                return value
            case "Long", bool():
                pass
            case "Long", int() if abs(value) <= MOST_LONG:
                return value
            case "Long", float() if value.is_integer() and abs(value) <= MOST_LONG:
                return int(value)
            case "decimal", int() | float() if not isinstance(value, bool) and (text := as_decimal(value)):
                return {"__extn": {"fn": "decimal", "arg": text}}
        gone.append(pointer(path))
        raise Unreadable


_AS_IT_IS: Mapping[str, type] = {"String": str, "Bool": bool}
"""What needs no conversion."""


@dataclass(frozen=True, slots=True)
class SetOf:
    items: "Kind"

    @property
    def cedar(self) -> str:
        return f"Set<{self.items.cedar}>"

    def convert(self, value: Any, path: Path, gone: Gone) -> Any:
        if not isinstance(value, list):
            gone.append(pointer(path))
            raise Unreadable
        return [self.items.convert(item, (*path, str(i)), gone) for i, item in enumerate(value)]


@dataclass(frozen=True, slots=True)
class RecordOf:
    members: Mapping[str, "Kind"]
    required: frozenset[str]
    hidden: Mapping[str, str] = field(default_factory=dict)
    """Members that policies cannot read, and why."""
    as_it_is: dict[str, type] = field(init=False, compare=False, repr=False)
    """The type of a member's value that needs no conversion: of nearly every argument there is."""

    def __post_init__(self) -> None:
        plain = {name: _AS_IT_IS.get(kind.cedar) for name, kind in self.members.items()}
        object.__setattr__(self, "as_it_is", {name: kind for name, kind in plain.items() if kind})

    @property
    def cedar(self) -> str:
        said = (
            f"{quoted(name)}{'' if name in self.required else '?'}: {kind.cedar}"
            for name, kind in self.members.items()
        )
        return f"{{{', '.join(said)}}}"

    def convert(self, value: Any, path: Path, gone: Gone) -> dict[str, Any]:
        if not isinstance(value, dict):
            gone.append(pointer(path))
            raise Unreadable
        made = {}
        for name, item in value.items():
            kind = self.members.get(name)
            if kind is None or item is None:
                continue
            if type(item) is self.as_it_is.get(name):
                made[name] = item
                continue
            try:
                made[name] = kind.convert(item, (*path, name), gone)
            except Unreadable:
                continue
        return made

    def look(self, path: Path) -> "Kind | str | None":
        """What stands at a path: a kind, why it cannot be read, or None for nothing."""
        if not path:
            return self
        name, *rest = path
        if name in self.hidden:
            return self.hidden[name]
        kind = self.members.get(name)
        return kind.look(tuple(rest)) if isinstance(kind, RecordOf) else kind


Kind = Scalar | SetOf | RecordOf
NOTHING = RecordOf({}, frozenset())


def quoted(text: str) -> str:
    """As Cedar writes a string; the same escapes as JSON for what names can hold."""
    return orjson.dumps(text).decode()


def as_decimal(value: int | float) -> str | None:
    """As Cedar writes a decimal, or None when it has more than four digits or is too large."""
    exact = Decimal(repr(value))
    if abs(exact) > MOST_DECIMAL or exact != (rounded := exact.quantize(Decimal("0.0001"))):
        return None
    return format(rounded + 0, "f")  # without a sign before zero


def plan(schema: Mapping[str, Any]) -> RecordOf:
    """What policies can read of arguments that this schema describes."""
    found = _Planner(dict(schema)).kind("", ())
    return found if isinstance(found, RecordOf) else NOTHING


def merged(plans: "list[RecordOf]") -> RecordOf:
    """One plan for several versions of a tool: what they agree about."""
    first, *others = plans
    for other in others:
        first = _both(first, other)
    return first


def _both(one: RecordOf, other: RecordOf) -> RecordOf:
    members: dict[str, Kind] = {}
    hidden = {**one.hidden, **other.hidden}
    for name in dict.fromkeys((*one.members, *other.members)):
        mine, theirs = one.members.get(name), other.members.get(name)
        if isinstance(mine, RecordOf) and isinstance(theirs, RecordOf):
            members[name] = _both(mine, theirs)
        elif mine is not None and theirs is not None and mine != theirs:
            hidden[name] = "its type differs between versions of the tool"
        elif name not in hidden:
            members[name] = mine or theirs  # type: ignore[assignment]  # one of them is there
    members = {name: kind for name, kind in members.items() if name not in hidden}
    return RecordOf(members, one.required & other.required & members.keys(), hidden)


class _Planner:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._tree = Tree.of(schema)
        self._marks = Sensitivity(schema)

    def kind(self, place: str, path: tuple[str | int, ...]) -> Kind | str:
        """The kind of the value that a subschema describes, or why it has none."""
        if mark := self._marks.label(path):
            return f"it is marked '{mark}', which policies may not read"
        if len(path) > DEEPEST:
            return f"it lies deeper than {DEEPEST} levels"
        parts = self._parts(place)
        if isinstance(parts, str):
            return parts
        types = {name for part in parts for name in _types(part)} - {"null"}
        if len(types) != 1:
            return "it can be of several types" if types else "its type is not stated"
        match types.pop():
            case "object":
                return self._record(place, path)
            case "array":
                return self._set(place, path)
            case name:
                return Scalar(_SCALARS[name])

    def _parts(self, place: str) -> list[dict[str, Any]] | str:
        """Everything that holds for sure at this place; why not, where alternatives decide."""
        places = self._tree.parts(place, ("allOf", "$ref"))
        for here in places:
            schema = self._tree.at[here]
            if not isinstance(schema, dict):
                continue
            if {"$dynamicRef", "if", "dependentSchemas"} & schema.keys():
                return "what it is depends on a condition"
            for keyword in ("anyOf", "oneOf"):
                if keyword in schema and not (one := self._but_null(here, keyword)):
                    return "it can be of several types"
                if keyword in schema:
                    below = self._parts(one)
                    return below if isinstance(below, str) else [schema, *below]
        return [schema for here in places if isinstance(schema := self._tree.at[here], dict)]

    def _but_null(self, place: str, keyword: str) -> str:
        """The only alternative beside null."""
        others = [
            link.target
            for link in self._tree.in_place[place]
            if link.keyword == keyword and self._tree.at[link.target] != {"type": "null"}
        ]
        return others[0] if len(others) == 1 else ""

    def _children(self, place: str, keyword: str) -> Iterator[tuple[str, str]]:
        for here in self._places(place):
            for link in self._tree.children[here]:
                if link.keyword == keyword:
                    yield str(link.key), link.target

    def _places(self, place: str) -> list[str]:
        found = []
        for here in self._tree.parts(place, ("allOf", "$ref")):
            found.append(here)
            for keyword in ("anyOf", "oneOf"):
                if one := self._but_null(here, keyword):
                    found += self._places(one)
        return found

    def _record(self, place: str, path: tuple[str | int, ...]) -> Kind | str:
        members: dict[str, Kind] = {}
        hidden: dict[str, str] = {}
        for name, target in self._children(place, "properties"):
            kind = self.kind(target, (*path, name))
            if name.startswith("__"):
                kind = "names that start with '__' are Cedar's own"
            if isinstance(kind, str):
                hidden[name] = kind
                members.pop(name, None)
            elif name not in hidden and members.setdefault(name, kind) != kind:
                hidden[name] = "it is described twice"
                del members[name]
        required = {
            name
            for here in self._places(place)
            if isinstance(schema := self._tree.at[here], dict)
            for name in schema.get("required", ())
        }
        sure = frozenset(name for name in required & members.keys() if not self._nullable(place, name))
        return RecordOf(members, sure, hidden)

    def _nullable(self, place: str, name: str) -> bool:
        for key, target in self._children(place, "properties"):
            if key == name:
                for here in self._places(target):
                    schema = self._tree.at[here]
                    if isinstance(schema, dict) and ({"anyOf", "oneOf"} & schema.keys() or _has_null(schema)):
                        return True
        return False

    def _set(self, place: str, path: tuple[str | int, ...]) -> Kind | str:
        items = list(self._children(place, "items"))
        if len(items) != 1 or list(self._children(place, "prefixItems")):
            return "its items are not all of one type"
        kind = self.kind(items[0][1], (*path, 0))
        return kind if isinstance(kind, str) else SetOf(kind)


_SCALARS = {"string": "String", "integer": "Long", "number": "decimal", "boolean": "Bool"}
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def _types(schema: Mapping[str, Any]) -> set[str]:
    said = schema.get("type")
    if isinstance(said, str):
        return {said}
    if isinstance(said, list):
        return set(said)
    given = schema.get("enum", [schema["const"]] if "const" in schema else [])
    found = {_KINDS.get(type(value), "object") for value in given}
    if not found and "properties" in schema:
        return {"object"}
    return found


def _has_null(schema: Mapping[str, Any]) -> bool:
    return "null" in _types(schema) or None in schema.get("enum", ())
