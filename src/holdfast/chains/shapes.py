"""What does a path into earlier results give? A JSON Schema of it, as far as that can be told.

`Shape.schema` is None where nothing can be told: then the value is looked at when the chain runs, by the gate
that looks at every call's arguments. `sure` says whether the value is certainly there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import jmespath
import jsonschema_rs
from jmespath.exceptions import JMESPathError
from jsonschema_rs.canonical import Containment, Satisfiability

MOST_PATH = 1024
_BOOLEAN = {"type": "boolean"}
_FUNCTIONS: Mapping[str, dict[str, Any]] = {
    "length": {"type": "integer"},
    "sum": {"type": "number"},
    "abs": {"type": "number"},
    "ceil": {"type": "integer"},
    "floor": {"type": "integer"},
    "contains": _BOOLEAN,
    "starts_with": _BOOLEAN,
    "ends_with": _BOOLEAN,
    "join": {"type": "string"},
    "to_string": {"type": "string"},
    "type": {"type": "string"},
    "keys": {"type": "array", "items": {"type": "string"}},
}


class BadPath(ValueError):
    """A path that cannot be read, or that certainly finds nothing."""


@dataclass(frozen=True, slots=True)
class Shape:
    schema: dict[str, Any] | None
    """A document of its own; None: nothing is known."""
    sure: bool = True
    """Whether it is certainly there."""


UNKNOWN = Shape(None, sure=False)


@cache
def compiled(path: str) -> Any:
    """Raises BadPath."""
    if len(path) > MOST_PATH:
        raise BadPath(f"the path is longer than {MOST_PATH} characters")
    try:
        return jmespath.compile(path)
    except JMESPathError as error:
        raise BadPath(f"the path {path!r} cannot be read: {str(error).splitlines()[0]}") from None


def search(path: str, value: Any) -> Any:
    """What a path finds. Raises BadPath where it cannot be followed, and tells nothing of what is there."""
    try:
        return compiled(path).search(value)
    except (JMESPathError, ArithmeticError, TypeError, ValueError) as error:
        if isinstance(error, BadPath):
            raise
        raise BadPath(f"the path {path!r} leads to something of another kind") from None


def names(path: str) -> frozenset[str]:
    """What a path begins with: the input, or steps."""
    return frozenset(_roots(compiled(path).parsed))


def paths_in(value: Any) -> set[str]:
    """The names that paths in a value begin with; a path that cannot be read has none."""
    match value:
        case str() if value.startswith("=") and not value.startswith("=="):
            try:
                return set(names(value[1:]))
            except BadPath:
                return set()
        case Mapping():
            return {name for inner in value.values() for name in paths_in(inner)}
        case list():
            return {name for inner in value for name in paths_in(inner)}
        case _:
            return set()


def shape(path: str, known: Mapping[str, Shape]) -> Shape:
    """Of what a path finds in `known`; raises BadPath where it certainly finds nothing."""
    scope = Shape({"type": "object", "properties": {}, "additionalProperties": False})
    return _Reader(known).of(compiled(path).parsed, scope, at_root=True)


Fit = Literal["yes", "perhaps", "no", "unknown"]


def fits(found: dict[str, Any], wanted: dict[str, Any]) -> Fit:
    """Whether every value of one schema is one of the other, some are, or none is."""
    try:
        given, taken = _canonical(found), _canonical(wanted)
        if taken.covers(given) == Containment.YES:
            return "yes"
        common = given.intersect(taken).satisfiability()
    except ValueError:
        return "unknown"
    return "no" if common == Satisfiability.NO else "perhaps"


def member(schema: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The schema of one property as a document of its own; None where there is no such property."""
    found = _resolved(schema).get("properties", {})
    return _document(found[name], schema) if name in found else None


def _roots(node: Any) -> set[str]:
    """Fields that are looked up in the whole, not in what a part of the path found."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return {node["value"]}
    if kind in (
        "subexpression",
        "pipe",
        "index_expression",
        "projection",
        "value_projection",
        "filter_projection",
    ):
        return _roots(children[0])
    return {name for child in children if isinstance(child, dict) for name in _roots(child)}


class _Reader:
    def __init__(self, known: Mapping[str, Shape]) -> None:
        self._known = known

    def of(self, node: Any, scope: Shape, *, at_root: bool) -> Shape:
        kind = node["type"]
        read: Callable[[Any, Shape, bool], Shape] | None = getattr(self, f"_{kind}", None)
        if read is not None:
            return read(node, scope, at_root)
        if kind in ("comparator", "not_expression"):
            return Shape(_BOOLEAN)
        return UNKNOWN

    def _field(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        name = node["value"]
        if at_root:
            return self._known.get(name, UNKNOWN)
        return _member_of(scope, name)

    def _subexpression(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        first, *rest = node["children"]
        found = self.of(first, scope, at_root=at_root)
        for child in rest:
            found = self._inside(child, found)
        return found

    def _pipe(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        return self._subexpression(node, scope, at_root)

    def _index_expression(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        return self._subexpression(node, scope, at_root)

    def _inside(self, node: Any, scope: Shape) -> Shape:
        found = self.of(node, scope, at_root=False)
        return Shape(found.schema, sure=found.sure and scope.sure)

    def _index(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        if scope.schema is None:
            return UNKNOWN
        array = _resolved(scope.schema)
        items, place = array.get("items"), node["value"]
        if not isinstance(items, dict):
            return UNKNOWN
        return Shape(_document(items, scope.schema), sure=array.get("minItems", 0) > place >= 0)

    def _projection(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        """`a[*].b`: a list of what is found in each; what is missing in some is left out."""
        listed = self.of(node["children"][0], scope, at_root=at_root)
        items = None if listed.schema is None else _resolved(listed.schema).get("items")
        if listed.schema is None or not isinstance(items, dict):
            return UNKNOWN
        each = self._inside(node["children"][1], Shape(_document(items, listed.schema)))
        return UNKNOWN if each.schema is None else Shape(_array(each.schema), listed.sure)

    def _filter_projection(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        return self._projection(node, scope, at_root)

    def _identity(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        return scope

    def _current(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        return UNKNOWN if at_root else scope

    def _literal(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        return Shape({"const": node["value"]})

    def _function_expression(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        found = _FUNCTIONS.get(node["value"])
        return UNKNOWN if found is None else Shape(found)

    def _multi_select_dict(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        made = {
            pair["value"]: self.of(pair["children"][0], scope, at_root=at_root) for pair in node["children"]
        }
        return together(made)

    def _multi_select_list(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        made = [self.of(child, scope, at_root=at_root) for child in node["children"]]
        schemas = [one.schema for one in made if one.schema is not None]
        if len(schemas) < len(made):
            return UNKNOWN
        return Shape({"type": "array", "prefixItems": schemas, "items": False, "minItems": len(schemas)})

    def _or_expression(self, node: Any, scope: Shape, at_root: bool) -> Shape:
        made = [self.of(child, scope, at_root=at_root) for child in node["children"]]
        schemas = [one.schema for one in made if one.schema is not None]
        if len(schemas) < len(made):
            return UNKNOWN
        return Shape({"anyOf": schemas}, sure=any(one.sure for one in made))


def together(members: Mapping[str, Shape]) -> Shape:
    """An object made of these."""
    if any(one.schema is None for one in members.values()):
        return UNKNOWN
    return Shape(
        {
            "type": "object",
            "properties": {name: one.schema for name, one in members.items()},
            "required": [name for name, one in members.items() if one.sure],
            "additionalProperties": False,
        }
    )


def _member_of(scope: Shape, name: str) -> Shape:
    if scope.schema is None:
        return UNKNOWN
    whole = _resolved(scope.schema)
    kind = whole.get("type")
    if isinstance(kind, str) and kind != "object":
        raise BadPath(f"{name!r} is looked for in a value of type {kind!r}, which has no members")
    found = whole.get("properties", {})
    if name in found:
        return Shape(_document(found[name], scope.schema), sure=name in whole.get("required", ()))
    if whole.get("additionalProperties") is False and not whole.get("patternProperties"):
        there = ", ".join(map(repr, found)) or "nothing"
        raise BadPath(f"there is no {name!r}; there is {there}")
    return UNKNOWN


def _resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a reference, or a lone `allOf`."""
    found: Any = schema
    for _ in range(16):  # references may go in circles
        if isinstance(found.get("$ref"), str):
            found = _pointed(schema, found["$ref"])
        elif len(found.get("allOf", ())) == 1 and not set(found) - {"allOf", "$defs", "definitions"}:
            found = found["allOf"][0]
        else:
            return found if isinstance(found, dict) else {}
        if not isinstance(found, dict):
            return {}
    return {}


def _pointed(root: Mapping[str, Any], reference: str) -> Any:
    if not reference.startswith("#/"):
        return {}
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, dict) else {}
    return found


def _document(part: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    shared = {name: root[name] for name in ("$defs", "definitions") if name in root}
    return {"allOf": [part], **shared} if shared else dict(part) if isinstance(part, dict) else {}


def _array(items: dict[str, Any]) -> dict[str, Any]:
    shared: dict[str, Any] = {name: items[name] for name in ("$defs", "definitions") if name in items}
    bare = {name: value for name, value in items.items() if name not in shared}
    return {"type": "array", "items": bare, **shared}


def _canonical(schema: dict[str, Any]) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(schema, draft=jsonschema_rs.Draft202012, offline=True)
