"""What does a call touch?

A resource is named `KIND/ID`. An argument whose schema is marked `x-resource: KIND` holds the id; in a list
each item is one. What the effect manifest lists beside that is touched as a whole, and so is a kind whose
marked argument was left out: `KIND/**`. Where a contract says nothing, a call may touch anything: `**`.
When in doubt the answer is the larger one, so that bounds hold (AUT-2).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from holdfast.model.contract import Contract

MARK = "x-resource"
ANYTHING = "**"
KIND = re.compile(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)*")
LONGEST = 1024
"""Characters of an id that is looked at."""
_STEPS = frozenset({"", ".", ".."})
"""Words by which a path may lead elsewhere."""


def resources(contract: Contract, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Everything a call with these arguments may touch, to be covered one by one."""
    schema = contract.affordance.input_schema
    found: dict[str, None] = {}
    properties = schema.get("properties")
    marked: set[str] = set()
    for name, said in properties.items() if isinstance(properties, Mapping) else ():
        kind = said.get(MARK) if isinstance(said, Mapping) else None
        if kind is not None:
            kind = _known(kind)
            marked.add(kind)
            found |= dict.fromkeys(named(kind, arguments.get(name)))
    for kind in _deeper(schema):
        marked.add(kind)
        found[_whole(kind)] = None
    for entry in contract.transactional.manifest:
        kind = plain_kind(entry.resource)
        if kind not in marked:
            found[_whole(kind)] = None
    return tuple(found) or (ANYTHING,)


def kind_of(resource: str) -> str:
    """For telling: the id may be marked as sensitive."""
    return resource.partition("/")[0]


def plain_kind(resource: str) -> str:
    """The kind that an entry of an effect manifest speaks of."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", resource).strip("-") or ANYTHING


def _known(kind: object) -> str:
    return kind if isinstance(kind, str) and KIND.fullmatch(kind) else ANYTHING


def _whole(kind: str) -> str:
    return kind if kind == ANYTHING else f"{kind}/{ANYTHING}"


def named(kind: str, value: Any) -> Iterator[str]:
    """The resources of a kind that an argument holds the ids of."""
    if kind == ANYTHING:
        yield ANYTHING
        return
    for one in value if isinstance(value, list) and value else [value]:
        if isinstance(one, bool) or not isinstance(one, str | int):
            yield _whole(kind)
            continue
        text = str(one)
        words = re.split(r"[:/\\]", unquote(text))
        # a `*` in an id is no pattern, and a path that could lead out of its folder leads anywhere
        unsure = len(text) > LONGEST or _STEPS & set(words)
        yield _whole(kind) if unsure else f"{kind}/{quote(text, safe='/:@')}"


def _deeper(schema: Mapping[str, Any]) -> Iterator[str]:
    """Kinds marked where it is not looked for their ids."""
    top = schema.get("properties")
    seen = {id(said) for said in top.values()} if isinstance(top, Mapping) else set()
    left: list[Any] = [schema]
    while left:
        node = left.pop()
        if isinstance(node, Mapping):
            kind = node.get(MARK)
            if kind is not None and id(node) not in seen and not isinstance(kind, Mapping):
                yield _known(kind)
            left += node.values()
        elif isinstance(node, list):
            left += node
