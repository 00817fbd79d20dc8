"""Which schema can be enforced here for one an upstream wrote, without refusing what the upstream would take?

The upstream's own schema is advertised as it came; this one is checked. The upstream judges its own
arguments, so being laxer than it is safe and being stricter is a fault: what cannot be enforced, or is not
meant as JSON Schema means it, is left out. `format` is left out for that reason, since libraries disagree
about it. Only what would fetch or explode is refused.
"""

from typing import Any

from holdfast.catalog.imports import fillable
from holdfast.catalog.imports.dialect import Reading
from holdfast.model import strict_json
from holdfast.model.schema import SchemaError, examine
from holdfast.model.schema.tree import Tree

_LIMITS = strict_json.Limits(max_bytes=512 << 10, max_depth=80, max_string=64 << 10, max_keys=20_000)
_ROUNDS = 8
"""Dropping a reference that leads nowhere can leave another one so; nobody writes more."""


def enforceable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of arguments to hold callers to; raises SchemaError for one that fetches or explodes."""
    made = _read(schema)
    kinds = made.get("type", "object")
    if kinds != "object" and "object" not in kinds:
        raise SchemaError("it does not take an object; arguments come by name")
    return _examined({**made, "type": "object"})  # arguments always are one


def enforceable_output(schema: dict[str, Any]) -> dict[str, Any]:
    """The same for results, which need not be objects."""
    return _examined(_read(schema))


def _read(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        strict_json.check(schema, _LIMITS)
    except strict_json.ParseError as error:
        raise SchemaError(f"schema at '{error.path}': {error.message}") from None
    lost: set[str] = set()
    for _ in range(_ROUNDS):
        made = _of(schema, lost)
        gone = {reference for _, reference, _ in Tree.of(made).dangling if reference.startswith("#")}
        if not gone:
            return made
        lost |= gone
    raise SchemaError("its references lead nowhere; write them as '#/$defs/...'")


def _of(schema: dict[str, Any], lost: set[str]) -> dict[str, Any]:
    reading = Reading(schema, lost=lost)
    made = reading.schema(schema)
    if reading.laxer and reading.refers:  # what is referred to may be laxer now: read again, knowing it
        made = Reading(schema, lost=lost, suspect=True).schema(schema)
    checked: dict[str, Any] = made
    return checked


def _examined(schema: dict[str, Any]) -> dict[str, Any]:
    bare = fillable.without(schema)
    if reasons := examine(bare):
        raise SchemaError("; ".join(reasons[:5]))
    filled = fillable.without_unfit(schema)
    return bare if filled != bare and examine(filled) else filled
