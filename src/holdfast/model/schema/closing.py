"""How does a schema read when unknown fields are refused wherever its author left that unsaid?

An object without parts is closed with `additionalProperties: false`. One that is composed (`allOf`, `oneOf`,
a reference beside its own properties) is closed once, around the whole, with `unevaluatedProperties: false`:
its parts must stay open, or no value could satisfy two of them.

Left as written, because closing would change which values are meant: what stands in `not`, `if` or
`contains`; maps, which say `propertyNames` or `minProperties` and no properties; a member that several parts
of an `allOf` describe together; a schema that is whole in one place and a part in another. There the author
has to say it.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any, TypeAlias

from holdfast.model.schema.tree import Link, Tree

_JOINING = ("allOf", "$ref", "$dynamicRef", "dependentSchemas", "anyOf", "oneOf", "then", "else")
_SURELY = ("allOf", "$ref", "$dynamicRef")
_CHOICES = {"anyOf": "anyOf", "oneOf": "oneOf", "then": "if", "else": "if"}
_CONDITIONS = ("not", "if", "contains")
_SAID = ("additionalProperties", "unevaluatedProperties")

Step: TypeAlias = tuple[str, Any]
"""Keyword and key that lead to a member or an item."""
Ways: TypeAlias = dict[Step, set[frozenset[str]]]
"""For each step the sets of subschemas that all apply there; of the subschemas in one set only one does."""


def close(schema: dict[str, Any]) -> dict[str, Any]:
    """A closed copy; raises SchemaError for a schema beyond the limits, so examine it first."""
    closed = deepcopy(schema)
    for place, keyword in _sites(Tree.of(schema)).items():
        _at(closed, place)[keyword] = False
    return closed


def _sites(tree: Tree) -> dict[str, str]:
    objects = _spread((p for p, s in tree.at.items() if _declares(s)), _sources(tree))
    bodies = {place: _bodies(tree, place, objects) for place in tree.at}
    alone, fixed = _whole_places(tree)
    composite = [link for place, found in bodies.items() if len(found) > 1 for link in tree.in_place[place]]
    fixed |= _spread((link.target for link in composite), lambda p: (i.target for i in tree.in_place[p]))
    fixed |= _spread(_conditions(tree), lambda p: (i.target for i in (*tree.in_place[p], *tree.children[p])))
    sites: dict[str, str] = {}
    for place in sorted((alone - fixed) & objects):
        if not _said(tree, place):
            site = _follow(bodies, place)
            site = place if site in fixed else site
            parts = tree.parts(site, _JOINING)
            sites[site] = "unevaluatedProperties" if len(parts) > 1 else "additionalProperties"
    return sites


def _declares(schema: Any) -> bool:
    """Whether it says, by itself, which members an object has."""
    if not isinstance(schema, dict):
        return False
    if "properties" in schema or "patternProperties" in schema:
        return True
    kinds = schema.get("type")
    is_object = kinds == "object" or (isinstance(kinds, list) and "object" in kinds)
    return is_object and "propertyNames" not in schema and not schema.get("minProperties")


def _bodies(tree: Tree, place: str, objects: set[str]) -> list[str]:
    """What says something of an object here: the subschema itself, and what joins it directly."""
    own = [place] if _declares(tree.at[place]) else []
    joining = (link.target for link in tree.in_place[place] if link.keyword in _JOINING)
    return own + [target for target in joining if target in objects and target != place]


def _follow(bodies: dict[str, list[str]], place: str) -> str:
    """Through references and `anyOf: [X, null]` to the one schema that has the properties."""
    seen: set[str] = set()
    while len(bodies[place]) == 1 and place not in seen:
        seen.add(place)
        place = bodies[place][0]
    return place


def _said(tree: Tree, place: str) -> bool:
    parts = (tree.at[part] for part in tree.parts(place, _SURELY))
    return any(keyword in part for part in parts if isinstance(part, dict) for keyword in _SAID)


def _conditions(tree: Tree) -> Iterator[str]:
    for links in (*tree.in_place.values(), *tree.children.values()):
        yield from (link.target for link in links if link.keyword in _CONDITIONS)


def _sources(tree: Tree) -> Callable[[str], Iterable[str]]:
    found: dict[str, list[str]] = {}
    for place, links in tree.in_place.items():
        for link in links:
            if link.keyword in _JOINING:
                found.setdefault(link.target, []).append(place)
    return lambda place: found.get(place, ())


def _spread(start: Iterable[str], onward: Callable[[str], Iterable[str]]) -> set[str]:
    found = set(start)
    queue = list(found)
    while queue:
        for place in onward(queue.pop()):
            if place not in found:
                found.add(place)
                queue.append(place)
    return found


def _whole_places(tree: Tree) -> tuple[set[str], set[str]]:
    """Subschemas that describe a place of the value alone, and those that do so together with others."""
    alone: set[str] = set()
    shared: set[str] = set()
    seen: set[frozenset[str]] = set()
    described: dict[str, Ways] = {}
    queue = [frozenset({""})]
    while queue:
        group = queue.pop()
        if group in seen:
            continue
        seen.add(group)
        (alone if len(group) == 1 else shared).update(group)
        queue.extend(_groups_below(tree, group, described))
    return alone, shared


def _groups_below(tree: Tree, group: frozenset[str], described: dict[str, Ways]) -> Iterator[frozenset[str]]:
    ways: Ways = {}
    for place in group:
        _merge(ways, _describe(tree, place, described))
    _join_overlapping(ways)
    for sets in ways.values():
        if len(sets) > 1:
            yield frozenset().union(*sets)
        else:
            yield from (frozenset({one}) for some in sets for one in some)


def _describe(tree: Tree, place: str, described: dict[str, Ways]) -> Ways:
    if place in described:
        return described[place]
    found: Ways = {}
    described[place] = found  # before it is filled, so that a cycle of references ends here
    for child in tree.children[place]:
        if child.keyword != "contains":
            found.setdefault((child.keyword, child.key), set()).add(frozenset({child.target}))
    choices: dict[str, dict[Step, set[str]]] = {}
    for link in tree.in_place[place]:
        if link.keyword in _CHOICES:
            _add_choice(choices, link, _describe(tree, link.target, described))
        elif link.keyword in _JOINING:
            _merge(found, _describe(tree, link.target, described))
    for one_of in choices.values():
        _merge(found, {step: {frozenset(targets)} for step, targets in one_of.items()})
    return found


def _add_choice(choices: dict[str, dict[Step, set[str]]], link: Link, ways: Ways) -> None:
    one_of = choices.setdefault(_CHOICES[link.keyword], {})
    for step, sets in ways.items():
        one_of.setdefault(step, set()).update(*sets)


def _merge(into: Ways, more: Ways) -> None:
    for step, sets in list(more.items()):
        into.setdefault(step, set()).update(sets)


def _join_overlapping(ways: Ways) -> None:
    """A pattern may match a declared name; `items` of one part may meet `prefixItems` of another."""
    patterns = {one for step, sets in ways.items() if step[0] == "patternProperties" for one in sets}
    arrays = [step for step in ways if step[0] in ("items", "prefixItems", "unevaluatedItems")]
    together = {one for step in arrays for one in ways[step]}
    overlap = any(len(ways[step]) > 1 for step in arrays)
    for step in ways:
        if step[0] == "properties":
            ways[step] = ways[step] | patterns
        elif overlap and step in arrays:
            ways[step] = together


def _at(schema: Any, place: str) -> dict[str, Any]:
    for step in place.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        schema = schema[int(key)] if isinstance(schema, list) else schema[key]
    found: dict[str, Any] = schema
    return found
