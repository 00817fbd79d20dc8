"""How does a schema of any draft, or of OpenAPI, read in 2020-12, less what cannot be enforced?

Leaving something out makes a schema laxer, except below `not`, `if`, `oneOf`, `contains` and what depends on
what was evaluated: there the surrounding keyword goes, or becomes a laxer one.
"""

from collections.abc import Callable, Collection
from typing import Any

from holdfast.catalog.imports.patterns import usable
from holdfast.model.canonical import SAFE_INTEGER

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_OLD = ("draft-03", "draft-04", "draft-06", "draft-07")
_NEWER = frozenset(
    {
        "$dynamicRef",
        "dependentRequired",
        "dependentSchemas",
        "maxContains",
        "minContains",
        "prefixItems",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Of no meaning to a validator of an old draft."""
_BESIDE = ("$ref", "$defs", "definitions", "description", "title")
_MAY_BE_NULL = ("const", "default")
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_CONDITIONS = ("if", "then", "else")
_ONES = ("additionalProperties", "contains", "items", "not", "propertyNames", *_CONDITIONS)
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_COUNTED = ("Contains", "Items", "Length", "Properties")
_COUNTS = tuple(f"{end}{what}" for end in ("min", "max") for what in _COUNTED)
_BOUNDS = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum")


class Reading:
    """Reads one schema. `laxer`: something was left out so far; `refers`: it uses references."""

    def __init__(self, root: dict[str, Any], *, suspect: bool = False, lost: Collection[str] = ()) -> None:
        """`suspect`: what a reference leads to counts as laxer. `lost`: references that lead nowhere."""
        said = root.get("$schema")
        self._old = isinstance(said, str) and any(draft in said for draft in _OLD)
        base = root.get("$id", root.get("id"))
        self._base = base.rstrip("#") if isinstance(base, str) else ""
        self._root = root
        self._suspect = suspect
        self._lost = lost
        self._embedded = 0
        self.laxer = False
        self.refers = False

    def schema(self, given: Any) -> Any:
        if isinstance(given, bool):
            return given
        if not isinstance(given, dict):
            self.laxer = True
            return {}
        found = {key: value for key, value in given.items() if value is not None or key in _MAY_BE_NULL}
        if self._old:
            found = {key: value for key, value in found.items() if key not in _NEWER}
        self.laxer = self.laxer or len(found) < len(given) or given.get("nullable") is True
        if self._old and "$ref" in found:  # up to draft 7, what stands beside a reference does not count
            found = {key: value for key, value in found.items() if key in _BESIDE}
        _modernise(found)
        embedded = given is not self._root and isinstance(found.get("$id"), str) and found["$id"][:1] != "#"
        self._embedded += embedded
        made = _annotations(found)
        self._assertions(found, made)
        self._references(found, made)
        self._below(found, made)
        self._embedded -= embedded
        return _nullable(made) if given.get("nullable") is True else made

    def _assertions(self, found: dict[str, Any], made: dict[str, Any]) -> None:
        for keyword, fits in _ASSERTIONS.items():
            if keyword in found:
                if fits(found[keyword]):
                    made[keyword] = found[keyword]
                else:
                    self.laxer = True
        for keyword in ("required", "type"):
            if isinstance(made.get(keyword), list):
                made[keyword] = list(dict.fromkeys(made[keyword]))

    def _references(self, found: dict[str, Any], made: dict[str, Any]) -> None:
        for keyword in ("$ref", "$dynamicRef"):
            if keyword not in found:
                continue
            self.refers = True
            target = self._local(found[keyword])
            if target is None or target in self._lost:
                self.laxer = True
            else:
                self.laxer = self.laxer or self._suspect
                made[keyword] = target

    def _local(self, target: Any) -> str | None:
        if not isinstance(target, str):
            return None
        if self._embedded and target.startswith("#"):
            return None  # of the document in the document, which is not kept apart here
        if self._base and target.startswith(self._base):
            rest = target[len(self._base) :]
            return rest if rest.startswith("#") else target if rest else "#"
        return target

    def _below(self, found: dict[str, Any], made: dict[str, Any]) -> None:
        below: dict[str, bool] = {}
        for keyword in (*_MAPS, *_LISTS, *_ONES, *_UNEVALUATED):
            if keyword in found:
                before, self.laxer = self.laxer, False
                read = self._member(keyword, found[keyword])
                if read is not None:
                    made[keyword] = read
                below[keyword] = self.laxer
                self.laxer = before or self.laxer
        _loosen(made, below, self.laxer)

    def _member(self, keyword: str, value: Any) -> Any:
        if keyword in _MAPS and isinstance(value, dict):
            names = [n for n in value if keyword != "patternProperties" or usable(n)]
            self.laxer = len(names) < len(value)
            return {name: self.schema(value[name]) for name in names}
        if keyword in _LISTS and isinstance(value, list) and value:
            return [self.schema(item) for item in value]
        if keyword in (*_ONES, *_UNEVALUATED) and isinstance(value, dict | bool):
            return self.schema(value)
        self.laxer = True
        return None


def _loosen(made: dict[str, Any], below: dict[str, bool], laxer: bool) -> None:
    """What would become stricter, because something in it became laxer, goes."""
    if below.get("not"):
        made.pop("not", None)
    if below.get("if"):
        for keyword in _CONDITIONS:
            made.pop(keyword, None)
    if below.get("oneOf") and "oneOf" in made:
        alternatives = made.pop("oneOf")
        if "anyOf" in made:
            made["allOf"] = [*made.get("allOf", ()), {"anyOf": alternatives}]
        else:
            made["anyOf"] = alternatives
    if below.get("contains"):
        made.pop("maxContains", None)
    if below.get("patternProperties"):  # a name whose pattern is gone is no unknown name
        made.pop("additionalProperties", None)
    if laxer:
        for keyword in _UNEVALUATED:
            made.pop(keyword, None)


def _modernise(found: dict[str, Any]) -> None:
    """Keywords of older drafts in the words of 2020-12."""
    if isinstance(found.get("items"), list):
        found["prefixItems"] = found.pop("items")
        if "additionalItems" in found:
            found["items"] = found["additionalItems"]
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(found.get(exclusive), bool) and found.pop(exclusive) and bound in found:
            found[exclusive] = found.pop(bound)
    if isinstance(found.get("required"), bool):  # draft 3 and habit: said of the property, not of its object
        found.pop("required")
    if "$recursiveRef" in found:
        found.setdefault("$ref", found["$recursiveRef"])
    dependencies = found.pop("dependencies", None)
    if isinstance(dependencies, dict):
        for keyword, kind in (("dependentRequired", list), ("dependentSchemas", dict | bool)):
            taken = {name: value for name, value in dependencies.items() if isinstance(value, kind)}
            if taken and isinstance(found.get(keyword, {}), dict):
                found[keyword] = {**taken, **found.get(keyword, {})}


def _annotations(found: dict[str, Any]) -> dict[str, Any]:
    """What is shown. Marks as `x-sensitivity` are not believed: they would hide arguments from approvers."""
    made = {word: found[word] for word in ("title", "description") if isinstance(found.get(word), str)}
    for word in ("$anchor", "$dynamicAnchor"):
        if isinstance(found.get(word), str):
            made[word] = found[word]
    for word in ("$id", "id"):  # anchors up to draft 7
        anchor = found.get(word)
        if isinstance(anchor, str) and anchor.startswith("#") and len(anchor) > 1:
            made["$anchor"] = anchor[1:]
    if isinstance(found.get("examples"), list) and _canonical(found["examples"]):
        made["examples"] = found["examples"]
    if "default" in found and _canonical(found["default"]):
        made["default"] = found["default"]
    return made


def _nullable(made: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's way to say that null is taken too; in place, so that references still lead here."""
    shapes = {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "const", "if"} & made.keys()
    if not shapes and "type" in made:
        kinds = made["type"] if isinstance(made["type"], list) else [made["type"]]
        made["type"] = list(dict.fromkeys([*kinds, "null"]))
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made
    outside = ("title", "description", "default", "examples", "$defs", "definitions", "$anchor")
    kept = {word: made.pop(word) for word in outside if word in made}
    return {**kept, "anyOf": [made, {"type": "null"}]} if made else kept


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, str) and each in _TYPES for each in value)
    return isinstance(value, str) and value in _TYPES


def _is_number(value: Any) -> bool:
    """Bounds beyond what arguments can hold say nothing."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= SAFE_INTEGER


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and float(value).is_integer()


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _canonical(value: Any) -> bool:
    """Whether every reader sees the same numbers in it."""
    if isinstance(value, dict):
        return all(map(_canonical, value.values()))
    if isinstance(value, list):
        return all(map(_canonical, value))
    return isinstance(value, bool) or not isinstance(value, int | float) or abs(value) <= SAFE_INTEGER


_ASSERTIONS: dict[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list) and bool(value) and _canonical(value),
    "const": _canonical,
    "format": lambda _: False,  # libraries disagree about what fits
    "pattern": lambda value: isinstance(value, str) and usable(value),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "uniqueItems": lambda value: isinstance(value, bool),
    "required": _is_names,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
    **dict.fromkeys(_COUNTS, _is_count),
    **dict.fromkeys(_BOUNDS, _is_number),
}
"""Keywords that judge a value, and whether what stands there can be enforced."""
