"""Can whoever used the old version of a tool use the new one without noticing?

The proof is set containment: the new input must accept whatever the old one did, and the old output must
describe whatever the new one returns. What cannot be proven counts as breaking. A walk over both schemas
gives each change a name and a path, and finds what containment cannot see: renames, changed defaults,
narrowed output enums. Outputs are compared with openness left aside: an added output field breaks nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema_rs
from jsonschema_rs.canonical import Containment

from holdfast.catalog.differences import Change, Level, differences
from holdfast.model.canonical import canonical
from holdfast.model.schema import close
from holdfast.model.schema.tree import Tree
from holdfast.model.version import Bump, bump, parse_version

Match = Literal["FULL", "PARTIAL", "INCOMPATIBLE"]

_LEVELS: tuple[Level, ...] = ("none", "patch", "minor", "major")
_WORDS = (
    "title",
    "description",
    "examples",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
    "x-token-cost",
)
_CLOSED = ("additionalProperties", "unevaluatedProperties")
# A proof of containment does not take these back: the same values are accepted, but they mean something else.
_BEYOND_PROOF = ("removed", "renamed", "default", "enum", "closed")


@dataclass(frozen=True, slots=True)
class Faces:
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    level: Level
    changes: tuple[Change, ...]


def compare(old: Faces, new: Faces) -> Comparison:
    """What changed, and the least bump that says so honestly."""
    changes = (*_input(old.input_schema, new.input_schema), *_output(old.output_schema, new.output_schema))
    return Comparison(max((c.level for c in changes), key=_LEVELS.index, default="none"), changes)


def required_bump(old: Faces, new: Faces) -> Level:
    return compare(old, new).level


def refuse_lesser_bump(old_version: str, new_version: str, comparison: Comparison) -> list[str]:
    """Why the new version number is too small, one reason for each change that needs more.

    Below 1.0.0 the numbers shift by one place, as `^` reads them: 0.1 to 0.2 may break, 0.1.0 to 0.1.1 may
    only add. A pre-release promises nothing to the version after it.
    """
    actual = bump(old_version, new_version)
    if parse_version(old_version).prerelease and actual not in ("none", "down"):
        return []
    granted = _granted(old_version, new_version, actual)
    said = {"none": "is no new version", "down": "is older"}.get(actual, f"is only a {actual} step")
    return [
        f"'{change.path}' {change.what}: needs a {change.level} version, but '{new_version}' {said} "
        f"after '{old_version}'"
        for change in comparison.changes
        if _LEVELS.index(change.level) > _LEVELS.index(granted)
    ]


def negotiate(expected: dict[str, Any], offered: dict[str, Any]) -> Match:
    """How much of what a caller expects to send does the offered input take?

    FULL: all of it. PARTIAL: what the caller cannot do without. INCOMPATIBLE: less, or the offer requires
    something the caller does not know.
    """
    expected, offered = close(expected), close(offered)
    wanted, given = _properties(expected), _properties(offered)
    required = set(expected.get("required", ()))
    if not set(offered.get("required", ())) <= set(wanted):
        return "INCOMPATIBLE"
    taken = {n for n in wanted if n in given and _covers(_member(offered, n), _member(expected, n))}
    if taken >= set(wanted):
        return "FULL"
    return "PARTIAL" if taken >= required else "INCOMPATIBLE"


def _input(old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    if canonical(old) == canonical(new):
        return
    named = list(differences(old, new, "input"))
    # Closed for the proof: nobody is owed what an open object let through under a new field's name.
    proven = _covers(_bare(close(new)), _bare(close(old)))
    yield from _settled(named, proven, _bare(old) == _bare(new), "/input")


def _output(old: dict[str, Any] | None, new: dict[str, Any] | None) -> Iterator[Change]:
    if not old or not new:
        if old:
            yield Change("/output", "removed: results are no longer described", "major")
        elif new:
            yield Change("/output", "added: results are now described", "minor")
        return
    if canonical(old) == canonical(new):
        return
    named = list(differences(old, new, "output"))
    proven = _covers(_opened(_bare(old)), _opened(_bare(new)))
    yield from _settled(named, proven, _bare(old) == _bare(new), "/output")


def _settled(named: list[Change], proven: bool, same: bool, face: str) -> Iterator[Change]:
    if proven:
        kept = [c for c in named if c.level != "major" or c.kind in _BEYOND_PROOF]
        if not kept and not same:
            kept = [Change(face, "changed without breaking anybody", "minor")]
        yield from kept or [Change(face, "reads differently, means the same", "patch")]
        return
    yield from named
    if not any(c.level == "major" for c in named):
        yield Change(face, "cannot be proven compatible", "major")


def _granted(old: str, new: str, actual: Bump) -> Level:
    if actual == "none" or actual == "down":
        return "none"
    before, after = parse_version(old), parse_version(new)
    if before.major == after.major == 0:
        return "major" if after.minor != before.minor or before.minor == 0 else "minor"
    return actual


def _covers(wide: dict[str, Any], narrow: dict[str, Any]) -> bool:
    """Whether it is proven that `wide` accepts all that `narrow` accepts; unknown is no."""
    if wide == narrow:
        return True
    try:
        return _canonicalize(wide).covers(_canonicalize(narrow)) == Containment.YES
    except ValueError:
        return False


def _canonicalize(schema: dict[str, Any]) -> jsonschema_rs.CanonicalSchema:
    return jsonschema_rs.canonicalize(
        schema, draft=jsonschema_rs.Draft202012, validate_formats=True, offline=True
    )


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Without what does not decide whether a value is valid."""
    return _without(schema, (*_WORDS, "default", "x-sensitivity", "$schema", "$id"))


def _opened(schema: dict[str, Any]) -> dict[str, Any]:
    return _without(schema, _CLOSED, only=False)


def _without(schema: dict[str, Any], keywords: tuple[str, ...], only: Any = ...) -> dict[str, Any]:
    """A copy in which no subschema has these keywords; names of properties are not keywords."""
    at = {place for place, node in Tree(schema).at.items() if isinstance(node, dict)}

    def copy(node: Any, place: str) -> Any:
        if isinstance(node, list):
            return [copy(item, f"{place}/{index}") for index, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        dropped = (
            {k for k in keywords if k in node and (only is ... or node[k] is only)} if place in at else ()
        )
        return {
            key: copy(value, f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
            for key, value in node.items()
            if key not in dropped
        }

    copied: dict[str, Any] = copy(schema, "")
    return copied


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties", {})
    return found if isinstance(found, dict) else {}


def _member(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The schema of one property as a document of its own."""
    shared: dict[str, Any] = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return _bare({"allOf": [_properties(schema)[name]], **shared})
