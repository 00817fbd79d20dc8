"""Which defaults of an upstream's schema may be filled in without making a fit value unfit?

A default must fit its own schema; and an object whose fitness depends on which members are present
(alternatives, conditions, counts) is left as the caller sent it.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from holdfast.model.schema import Defaults, SchemaError
from holdfast.model.schema.tree import Tree
from holdfast.model.schema.validation import PATTERNS

_COUNTING = frozenset(
    {
        "const",
        "dependentRequired",
        "dependentSchemas",
        "enum",
        "if",
        "maxProperties",
        "not",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
    }
)
_OF_OBJECTS = frozenset({"additionalProperties", "properties", "required", "minProperties"}) | _COUNTING
_ROUNDS = 3


def without_unfit(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the defaults that may be filled in; it must be safe to compile."""
    kept = _without(schema, _unsafe(Tree.of(schema)))
    for _ in range(_ROUNDS):
        try:
            unfit = set(_unfit(kept))
        except SchemaError:  # a default that fills itself for ever
            break
        if not unfit:
            return kept
        kept = _without(kept, unfit)
    return without(schema)


def without(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with no defaults at all."""
    return _without(schema, {place for place, _ in Tree.of(schema).dicts()})


def _unfit(schema: dict[str, Any]) -> Iterator[str]:
    defaults = Defaults(schema)
    if defaults.empty:
        return
    validators = jsonschema_rs.validator_map_for(
        schema, validate_formats=False, offline=True, pattern_options=PATTERNS
    )
    for place, value in defaults.filled():
        validator = validators.get("#" + place)
        if validator is not None and not validator.is_valid(value):
            yield place


def _unsafe(tree: Tree) -> set[str]:
    """Where no default is filled in: in parts, and all below objects that are judged in several places."""
    found = {
        link.target for links in tree.in_place.values() for link in links
    }  # a part need not fit the whole
    queue: list[str] = []
    for together in _groups(tree):
        said = [tree.at[place] for place in together if isinstance(tree.at[place], dict)]
        judges = [schema for schema in said if _OF_OBJECTS & schema.keys()]
        if len(judges) > 1 or any(_COUNTING & schema.keys() for schema in said):
            queue.extend(link.target for place in together for link in tree.children[place])
    seen: set[str] = set()
    while queue:
        place = queue.pop()
        if place not in seen:
            seen.add(place)
            queue.extend(link.target for link in (*tree.children[place], *tree.in_place[place]))
    return found | seen


def _groups(tree: Tree) -> Iterator[set[str]]:
    """Subschemas that may look at the same value."""
    beside: dict[str, set[str]] = {place: set() for place in tree.at}
    for place, links in tree.in_place.items():
        for link in links:
            beside[place].add(link.target)
            beside[link.target].add(place)
    left = set(beside)
    while left:
        together, queue = set[str](), [left.pop()]
        while queue:
            place = queue.pop()
            if place not in together:
                together.add(place)
                queue.extend(beside[place] - together)
        left -= together
        yield together


def _without(schema: dict[str, Any], places: set[str]) -> dict[str, Any]:
    def copy(node: Any, place: str) -> Any:
        if isinstance(node, list):
            return [copy(item, f"{place}/{index}") for index, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        return {
            key: copy(value, f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
            for key, value in node.items()
            if key != "default" or place not in places
        }

    copied: dict[str, Any] = copy(schema, "")
    return copied
