"""What is different between two schemas, by name and path?

Names changes for people. It does not prove anything: `compatibility` does.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.model.canonical import canonical
from holdfast.model.fields import pointer
from holdfast.model.schema.tree import Tree

Level = Literal["none", "patch", "minor", "major"]
Face = Literal["input", "output"]
Kind = Literal[
    "added", "removed", "renamed", "required", "type", "enum", "bound", "closed", "default", "mark", "other"
]

_SURELY = ("$ref", "$dynamicRef", "allOf")
_ANYWAY = (*_SURELY, "anyOf", "oneOf", "then", "else", "dependentSchemas")
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains")
_EXACT = ("pattern", "format", "multipleOf", "uniqueItems")
_ANY_TYPE = frozenset({"null", "boolean", "number", "integer", "string", "array", "object"})
_MAX_CHANGES = 200


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    """`/input` or `/output`, then the JSON Pointer of the field."""
    what: str
    level: Level
    kind: Kind = "other"


def differences(old: dict[str, Any], new: dict[str, Any], face: Face) -> Iterator[Change]:
    """Each difference once; recursion is followed to its first repetition."""
    before, after = Tree(old), Tree(new)
    queue: list[tuple[tuple[str, ...], frozenset[str], frozenset[str]]] = [
        ((face,), frozenset({""}), frozenset({""}))
    ]
    seen: set[tuple[frozenset[str], frozenset[str]]] = set()
    told = 0
    while queue and told < _MAX_CHANGES:
        steps, left, right = queue.pop(0)
        if (left, right) in seen:
            continue
        seen.add((left, right))
        a, b = _Place(before, left), _Place(after, right)
        for change in (*_members(a, b, steps, face), *_here(a, b, pointer(steps), face)):
            told += 1
            yield change
        common = [name for name in a.members if name in b.members]
        queue.extend(((*steps, name), a.members[name], b.members[name]) for name in common)
        if a.items and b.items:
            queue.append(((*steps, "*"), a.items, b.items))


class _Place:
    """All that one schema says of one place of a value."""

    def __init__(self, tree: Tree, places: frozenset[str]) -> None:
        self._tree = tree
        self._places = places
        surely = [part for place in sorted(places) for part in tree.parts(place, _SURELY)]
        self.said = [tree.at[part] for part in surely if isinstance(tree.at[part], dict)]
        self.required = {name for said in self.said for name in said.get("required", ())}
        self.members: dict[str, frozenset[str]] = {}
        self.items: frozenset[str] = frozenset()
        for part in (part for place in places for part in tree.parts(place, _ANYWAY)):
            for link in tree.children[part]:
                if link.keyword == "properties":
                    name = str(link.key)
                    self.members[name] = self.members.get(name, frozenset()) | {link.target}
                elif link.keyword == "items":
                    self.items |= {link.target}

    def first(self, keyword: str) -> Any:
        return next((said[keyword] for said in self.said if keyword in said), None)

    def has(self, keyword: str) -> bool:
        return any(keyword in said for said in self.said)

    def types(self) -> frozenset[str]:
        said = self.first("type")
        if said is None:
            return _ANY_TYPE
        named = frozenset({said} if isinstance(said, str) else said)
        return named | {"integer"} if "number" in named else named

    def values(self) -> dict[bytes, Any] | None:
        if self.has("const"):
            return {canonical(self.first("const")): self.first("const")}
        said = self.first("enum")
        return None if said is None else {canonical(value): value for value in said}

    def closed(self) -> bool:
        return any(
            said.get(k) is False
            for said in self.said
            for k in ("additionalProperties", "unevaluatedProperties")
        )

    def text(self, name: str) -> bytes:
        return canonical([self._tree.at[place] for place in sorted(self.members[name])])


def _members(a: _Place, b: _Place, steps: tuple[str, ...], face: Face) -> Iterator[Change]:
    removed = [name for name in a.members if name not in b.members]
    added = [name for name in b.members if name not in a.members]
    for name in list(removed):
        twin = next((n for n in added if _same_member(a, name, b, n)), None)
        if twin is not None:
            removed.remove(name)
            added.remove(twin)
            yield Change(pointer((*steps, name)), f"renamed to '{twin}'", "major", "renamed")
    for name in removed:
        yield Change(pointer((*steps, name)), "removed", "major", "removed")
    for name in added:
        must = face == "input" and name in b.required
        what = "added as required" if must else "added"
        yield Change(pointer((*steps, name)), what, "major" if must else "minor", "added")
    for name in (n for n in a.members if n in b.members and (n in a.required) != (n in b.required)):
        now = name in b.required
        if face == "input":
            what, breaks = ("is now required", True) if now else ("is no longer required", False)
        else:
            what, breaks = ("is now always present", False) if now else ("is no longer always present", True)
        yield Change(pointer((*steps, name)), what, "major" if breaks else "minor", "required")


def _same_member(a: _Place, old: str, b: _Place, new: str) -> bool:
    """A rename keeps the schema; one that says nothing is no evidence."""
    return a.text(old) == b.text(new) not in (b"[{}]", b"[true]") and (old in a.required) == (
        new in b.required
    )


def _here(a: _Place, b: _Place, path: str, face: Face) -> Iterator[Change]:
    yield from _types(a, b, path, face)
    yield from _values(a, b, path, face)
    yield from _bounds(a, b, path, face)
    if face == "input":
        yield from _default(a, b, path)
        if a.closed() != b.closed():
            what = "no longer takes undeclared fields" if b.closed() else "now takes undeclared fields"
            yield Change(path, what, "major" if b.closed() else "minor", "closed")
    if a.first("x-sensitivity") != b.first("x-sensitivity"):
        marks = f"from '{a.first('x-sensitivity')}' to '{b.first('x-sensitivity')}'"
        yield Change(path, f"sensitivity changed {marks}", "minor", "mark")


def _types(a: _Place, b: _Place, path: str, face: Face) -> Iterator[Change]:
    old, new = a.types(), b.types()
    if old != new:
        fits = old <= new if face == "input" else new <= old
        what = f"retyped from {_names(old)} to {_names(new)}"
        yield Change(path, what, "minor" if fits else "major", "type")


def _values(a: _Place, b: _Place, path: str, face: Face) -> Iterator[Change]:
    old, new = a.values(), b.values()
    if old == new or (old is not None and new is not None and old.keys() == new.keys()):
        return
    if old is None or new is None:
        what = "is no longer an enum" if new is None else "is now an enum"
        breaks = (new is not None) if face == "input" else (new is None)
        yield Change(path, what, "major" if breaks else "minor", "enum" if breaks else "bound")
        return
    if gone := [old[key] for key in old if key not in new]:
        yield Change(path, f"enum lost {_list(gone)}", "major", "enum")
    if more := [new[key] for key in new if key not in old]:
        yield Change(path, f"enum gained {_list(more)}", "minor" if face == "input" else "major", "enum")


def _bounds(a: _Place, b: _Place, path: str, face: Face) -> Iterator[Change]:
    for keyword in (*_LOWER, *_UPPER, *_EXACT):
        old, new = a.first(keyword), b.first(keyword)
        if old == new:
            continue
        tighter, looser = _direction(keyword, old, new)
        breaks = not looser if face == "input" else not tighter
        word = "tightened" if tighter else "relaxed" if looser else "changed"
        what = f"{word}: {keyword} from {_json(old)} to {_json(new)}"
        yield Change(path, what, "major" if breaks else "minor", "bound")


def _direction(keyword: str, old: Any, new: Any) -> tuple[bool, bool]:
    """Whether it became tighter, and whether it became looser; neither where that cannot be said."""
    if old is None or new is None:
        return old is None, new is None
    if keyword in _LOWER:
        return new > old, new < old
    if keyword in _UPPER:
        return new < old, new > old
    return False, False


def _default(a: _Place, b: _Place, path: str) -> Iterator[Change]:
    had, has = a.has("default"), b.has("default")
    if had and not has:
        yield Change(path, f"default {_json(a.first('default'))} removed", "major", "default")
    elif has and not had:
        yield Change(path, f"default {_json(b.first('default'))} added", "minor", "default")
    elif had and canonical(a.first("default")) != canonical(b.first("default")):
        what = f"default changed from {_json(a.first('default'))} to {_json(b.first('default'))}"
        yield Change(path, what, "major", "default")


def _names(types: frozenset[str]) -> str:
    return (
        "anything"
        if types == _ANY_TYPE
        else "/".join(sorted(types - {"integer"} if "number" in types else types))
    )


def _list(values: list[Any]) -> str:
    return ", ".join(map(_json, values[:5])) + (", ..." if len(values) > 5 else "")


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
