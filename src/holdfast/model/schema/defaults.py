"""What does a value become when its author's defaults are filled in?

Defaults are applied before fingerprinting, so that giving them and omitting them is the same call.
They are taken from `properties` and `items`, through local references and `allOf`; never from inside an
alternative (`anyOf`, `oneOf`, `if`), where it is not known which one is meant.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.schema.tree import SchemaError, Tree

_UNCONDITIONAL = ("$ref", "$dynamicRef", "allOf")
_MAX_NESTING = 64
"""Defaults inside defaults; a schema that goes deeper fills itself for ever."""


@dataclass(slots=True, eq=False)
class _Plan:
    """What to fill in at one place of a value."""

    source: str
    default: Any = None
    has_default: bool = False
    members: "dict[str, _Plan]" = field(default_factory=dict)
    items: "_Plan | None" = None
    ends: bool = False
    """There is nothing to fill in below it."""
    flat: bool = False
    """Its default is no container, so it can be handed out as it is."""

    def below(self) -> "Iterator[_Plan]":
        yield from self.members.values()
        if self.items is not None:
            yield self.items


class Defaults:
    """The defaults of one schema, found once."""

    def __init__(self, schema: dict[str, Any]) -> None:
        plans = _plans(Tree.of(schema))
        _prune(plans)
        self._root = plans[0]
        self.empty = not any(self._root.below())

    def apply(self, value: Any) -> Any:
        """The value with its absent defaults; the same object when there is nothing to fill in."""
        return value if self.empty else _fill(self._root, value, 0)

    def filled(self) -> Iterator[tuple[str, Any]]:
        """Each default that can be applied and its schema's place; raises SchemaError if one never ends."""
        queue, seen = [self._root], {id(self._root)}
        while queue:
            plan = queue.pop()
            if plan.has_default:
                yield plan.source, _fill(plan, plan.default, 0)
            for below in plan.below():
                if id(below) not in seen:
                    seen.add(id(below))
                    queue.append(below)


def apply_defaults(schema: dict[str, Any], value: Any) -> Any:
    """Once, for a schema not worth keeping; hold on to a `Defaults` for many."""
    return Defaults(schema).apply(value)


def _fill(plan: _Plan, value: Any, nesting: int) -> Any:
    if nesting > _MAX_NESTING:
        raise SchemaError(f"the default at '{plan.source}' fills itself for ever; give it a finite value")
    if isinstance(value, dict):
        return _fill_members(plan, value, nesting)
    if isinstance(value, list) and plan.items is not None:
        filled = [_fill(plan.items, item, nesting + 1) for item in value]
        return filled if any(a is not b for a, b in zip(filled, value, strict=True)) else value
    return value


def _fill_members(plan: _Plan, value: dict[str, Any], nesting: int) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, member in plan.members.items():
        if name in value:
            if member.ends:
                continue
            filled = _fill(member, value[name], nesting + 1)
            if filled is not value[name]:
                changed[name] = filled
        elif member.flat:
            changed[name] = member.default
        elif member.has_default:
            changed[name] = _fill(member, deepcopy(member.default), nesting + 1)
    return {**value, **changed} if changed else value


def _plans(tree: Tree) -> list[_Plan]:
    """One plan per set of subschemas that describe the same place; the first is the root's."""
    made: dict[frozenset[str], _Plan] = {}
    queue: list[frozenset[str]] = []

    def plan_of(places: frozenset[str]) -> _Plan:
        if places not in made:
            made[places] = _Plan(min(places))
            queue.append(places)
        return made[places]

    plan_of(frozenset({""}))
    while queue:
        places = queue.pop()
        plan = made[places]
        parts = [part for place in sorted(places) for part in tree.parts(place, _UNCONDITIONAL)]
        for part in parts:
            schema = tree.at[part]
            if isinstance(schema, dict) and "default" in schema and not plan.has_default:
                plan.default, plan.has_default, plan.source = schema["default"], True, part
        named: dict[str, set[str]] = {}
        items: set[str] = set()
        for link in (link for part in parts for link in tree.children[part]):
            if link.keyword == "properties":
                named.setdefault(str(link.key), set()).add(link.target)
            elif link.keyword == "items":
                items.add(link.target)
        plan.members = {name: plan_of(frozenset(targets)) for name, targets in named.items()}
        plan.items = plan_of(frozenset(items)) if items else None
    return list(made.values())


def _prune(plans: list[_Plan]) -> None:
    """Drop the ways that lead to no default, so that a call does not walk them."""
    useful = {id(plan) for plan in plans if plan.has_default}
    grew = True
    while grew:
        grew = False
        for plan in plans:
            if id(plan) not in useful and any(id(below) in useful for below in plan.below()):
                useful.add(id(plan))
                grew = True
    for plan in plans:
        plan.members = {name: member for name, member in plan.members.items() if id(member) in useful}
        if plan.items is not None and id(plan.items) not in useful:
            plan.items = None
        plan.ends = not any(plan.below())
        plan.flat = plan.has_default and not isinstance(plan.default, dict | list)
