"""Which subschemas does a schema have, and which of them look at the same place of a value?

Built without recursion and bounded while it is built: a hostile schema costs no more than a large one.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from holdfast.model.fields import pointer

MAX_SUBSCHEMAS = 5_000
MAX_PROPERTIES = 1_000
MAX_DEPTH = 32
KEPT = 512
"""Trees of schemas looked at last; the same schema is asked for a dozen times while its tool is admitted."""
_SHORT = 16 << 10
"""Characters of a schema whose tree is kept: a hostile one is large."""

# An in-place keyword looks at the same value as its parent; a child keyword at a member or an item of it.
_IN_PLACE_ONE = ("not", "if", "then", "else")
_IN_PLACE_LIST = ("allOf", "anyOf", "oneOf")
_IN_PLACE_MAP = ("dependentSchemas",)
_CHILD_ONE = ("additionalProperties", "unevaluatedProperties", "items", "contains", "unevaluatedItems")
_CHILD_LIST = ("prefixItems",)
_CHILD_MAP = ("properties", "patternProperties")
_APART_ONE = ("propertyNames", "contentSchema")
_APART_MAP = ("$defs", "definitions")
_CHILD = frozenset((*_CHILD_ONE, *_CHILD_LIST, *_CHILD_MAP))
_IN_PLACE = frozenset((*_IN_PLACE_ONE, *_IN_PLACE_LIST, *_IN_PLACE_MAP))
REFERENCES = ("$ref", "$dynamicRef")


class SchemaError(ValueError):
    """The schema cannot be used."""


@dataclass(frozen=True, slots=True)
class Link:
    keyword: str
    key: str | int | None
    """Property name, pattern or index below the keyword; the text of a reference."""
    target: str


class Tree:
    """Every subschema by its JSON Pointer, with its links; raises SchemaError beyond the limits."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.at: dict[str, Any] = {}
        self.in_place: dict[str, list[Link]] = {}
        self.children: dict[str, list[Link]] = {}
        self.dangling: list[tuple[str, str, str]] = []
        """Keyword, reference and place of what leads nowhere in this document."""
        self._anchors: dict[str, str] = {}
        self._collect(root)
        self._resolve()

    @classmethod
    def of(cls, root: dict[str, Any]) -> "Tree":
        """The tree of an equal schema that was looked at a moment ago, or a new one; nobody changes either.

        Admission, validators, defaults, marks and policies all ask for the tree of the same schema.
        """
        try:
            text = repr(root)  # unlike JSON it tells NaN from null
        except RecursionError:
            return cls(root)
        found = _KEPT.get(text)
        if found is None:
            found = cls(root)
            if len(_KEPT) >= KEPT:
                _KEPT.clear()
            if len(text) <= _SHORT:
                _KEPT[text] = found
        return found

    def parts(self, start: str, keywords: Collection[str]) -> list[str]:
        """The subschema and all that join it in place through these keywords, each once."""
        found, queue = [start], [start]
        seen = {start}
        while queue:
            for link in self.in_place[queue.pop()]:
                if link.keyword in keywords and link.target not in seen:
                    seen.add(link.target)
                    found.append(link.target)
                    queue.append(link.target)
        return found

    def dicts(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for place, schema in self.at.items():
            if isinstance(schema, dict):
                yield place, schema

    def _collect(self, root: dict[str, Any]) -> None:
        stack: list[tuple[str, Any, int]] = [("", root, 1)]
        while stack:
            place, schema, depth = stack.pop()
            if len(self.at) >= MAX_SUBSCHEMAS:
                raise SchemaError(f"more than {MAX_SUBSCHEMAS} subschemas; split the tool")
            if depth > MAX_DEPTH:
                raise SchemaError(f"subschemas nested deeper than {MAX_DEPTH} at '{place}'; use $defs")
            self.at[place] = schema
            self.in_place[place], self.children[place] = [], []
            if not isinstance(schema, dict):
                continue
            for anchor in (schema.get("$anchor"), schema.get("$dynamicAnchor")):
                if isinstance(anchor, str):
                    self._anchors[anchor] = place
            for keyword, key, below in _subschemas(schema, place):
                steps = (keyword,) if key is None else (keyword, key)
                target = place + pointer(steps)
                if keyword in _IN_PLACE:
                    self.in_place[place].append(Link(keyword, key, target))
                elif keyword in _CHILD:
                    self.children[place].append(Link(keyword, key, target))
                stack.append((target, below, depth + 1))

    def _resolve(self) -> None:
        for place, schema in self.dicts():
            for keyword in REFERENCES:
                reference = schema.get(keyword)
                if isinstance(reference, str):
                    target = self._target(reference)
                    if target is None:
                        self.dangling.append((keyword, reference, place))
                    else:
                        self.in_place[place].append(Link(keyword, reference, target))

    def _target(self, reference: str) -> str | None:
        if not reference.startswith("#"):
            return None
        fragment = unquote(reference[1:])
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(fragment)
        return fragment if fragment in self.at else None


_KEPT: dict[str, Tree] = {}


def _subschemas(schema: dict[str, Any], place: str) -> Iterator[tuple[str, str | int | None, Any]]:
    for keyword in (*_IN_PLACE_ONE, *_CHILD_ONE, *_APART_ONE):
        if isinstance(schema.get(keyword), dict | bool):
            yield keyword, None, schema[keyword]
    for keyword in (*_IN_PLACE_LIST, *_CHILD_LIST):
        if isinstance(schema.get(keyword), list):
            for index, below in enumerate(schema[keyword]):
                yield keyword, index, below
    for keyword in (*_IN_PLACE_MAP, *_CHILD_MAP, *_APART_MAP):
        members = schema.get(keyword)
        if isinstance(members, dict):
            if len(members) > MAX_PROPERTIES:
                raise SchemaError(
                    f"more than {MAX_PROPERTIES} entries in '{place}/{keyword}'; nest or split them"
                )
            for name, below in members.items():
                yield keyword, name, below
