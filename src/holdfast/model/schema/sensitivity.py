"""Which fields of a value may not be shown?

`x-sensitivity` is an annotation: it never decides whether a value is valid. Where it is not certain that a
marked subschema applies (alternatives, patterns), the field counts as marked.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from holdfast.model.fields import pointer
from holdfast.model.schema.tree import Link, Tree

LABELS = ("pii", "secret", "credential")
"""Weakest first: where several apply, the last one is shown."""

_IN_PLACE = frozenset(
    ("allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "$ref", "$dynamicRef")
)
_MAX_PATHS = 1_000


class Sensitivity:
    """The marked fields of one schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._tree = Tree.of(schema)
        self._leads = _leads_to_marks(self._tree)
        self._below = lru_cache(maxsize=4096)(self._look_below)
        self._label = lru_cache(maxsize=4096)(self._look_up)
        self._root = frozenset({""} & self._leads)

    @property
    def empty(self) -> bool:
        return not self._root

    def redact(self, value: Any, shown: frozenset[str] = frozenset()) -> Any:
        """The value with every marked field replaced by its label; itself when nothing can be marked.

        Fields with a label of `shown` are left as they are, but for what in them is marked otherwise.
        """
        return self._redact(self._root, value, shown)

    def label(self, path: Iterable[str | int]) -> str | None:
        """The label of the field at a path, or of one it lies in."""
        places = self._root
        for step in path:
            if found := self._label(places):
                return found
            places = self._below(places, step)
        return self._label(places)

    def paths(self) -> tuple[tuple[str, str], ...]:
        """Each marked field as (JSON Pointer with "*" for any name or index, label).

        A recursive schema is listed to its first repetition; `redact` and `label` follow it all the way.
        """
        found: dict[str, str] = {}
        stack: list[tuple[str, tuple[str, ...], frozenset[str]]] = [("", (), frozenset())]
        while stack and len(found) < _MAX_PATHS:
            place, steps, seen = stack.pop()
            if place not in self._leads or place in seen:
                continue
            if mark := _mark(self._tree.at[place]):
                path = pointer(steps)
                found[path] = max(mark, found.get(path, mark), key=LABELS.index)
                continue
            seen = seen | {place}
            stack.extend((link.target, steps, seen) for link in self._tree.in_place[place])
            stack.extend((c.target, (*steps, _step(c)), seen) for c in self._tree.children[place])
        return tuple(sorted(found.items()))

    def _redact(self, places: frozenset[str], value: Any, shown: frozenset[str]) -> Any:
        if not places:
            return value
        if (label := self._label(places)) and label not in shown:
            return f"[{label}]"
        if isinstance(value, dict):
            return {k: self._redact(self._below(places, k), v, shown) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._redact(self._below(places, i), v, shown) for i, v in enumerate(value)]
        return value

    def _look_up(self, places: frozenset[str]) -> str | None:
        marks = {_mark(self._tree.at[part]) for part in self._parts(places)} - {None}
        return max((m for m in marks if m), key=LABELS.index, default=None)

    def _look_below(self, places: frozenset[str], step: str | int) -> frozenset[str]:
        found: set[str] = set()
        for part in self._parts(places):
            links = self._tree.children[part]
            declared = any(link.keyword == "properties" and link.key == step for link in links)
            found.update(link.target for link in links if _leads_to(link, step, declared))
        return frozenset(found & self._leads)

    def _parts(self, places: frozenset[str]) -> Iterator[str]:
        for place in places:
            yield from self._tree.parts(place, _IN_PLACE)


def sensitive_paths(schema: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return Sensitivity(schema).paths()


def redact(schema: dict[str, Any], value: Any) -> Any:
    """Once, for a schema not worth keeping; hold on to a `Sensitivity` for many."""
    return Sensitivity(schema).redact(value)


def _mark(schema: Any) -> str | None:
    mark = schema.get("x-sensitivity") if isinstance(schema, dict) else None
    return mark if mark in LABELS else None


def _leads_to(link: Link, step: str | int, declared: bool) -> bool:
    match link.keyword:
        case "properties":
            return link.key == step
        case "patternProperties":
            return isinstance(step, str)
        case "additionalProperties" | "unevaluatedProperties":
            return isinstance(step, str) and not declared
        case "prefixItems":
            return link.key == step
        case _:
            return isinstance(step, int)


def _step(link: Link) -> str:
    return str(link.key) if link.keyword in ("properties", "prefixItems") else "*"


def _leads_to_marks(tree: Tree) -> frozenset[str]:
    sources: dict[str, list[str]] = {}
    for links in (tree.in_place, tree.children):
        for place, ways in links.items():
            for link in ways:
                sources.setdefault(link.target, []).append(place)
    queue = [place for place, schema in tree.dicts() if _mark(schema)]
    found = set(queue)
    while queue:
        for source in sources.get(queue.pop(), ()):
            if source not in found:
                found.add(source)
                queue.append(source)
    return frozenset(found)
