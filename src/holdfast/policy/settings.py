"""What is certain of every call to a tool, before anybody calls it?

Read off its contract: everything policies know of it as `resource`, which arguments are always there, and
what their schema lets them be.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from holdfast.model.vocabulary import Environment, SafetyMode
from holdfast.policy.arguments import RecordOf, Scalar
from holdfast.policy.atoms import Demand, OneOf, Path, Range, Setting, Value
from holdfast.policy.schema import NOWHERE, Region, Subject, tool_entity
from holdfast.ports import Listing

ARGS: Path = ("context", "args")
ALWAYS: Mapping[Path, Demand] = {
    ("context", "hour"): Range(("context", "hour"), 0, 23),
    ("context", "weekday"): Range(("context", "weekday"), 1, 7),
    ("context", "environment"): OneOf(
        ("context", "environment"), frozenset(one.value for one in Environment)
    ),
    ("context", "safety_mode"): OneOf(("context", "safety_mode"), frozenset(one.value for one in SafetyMode)),
}


def setting(subject: Subject, versions: Iterable[Listing], regions: Mapping[str, Region]) -> Setting:
    listings = list(versions)
    entities = [
        tool_entity(one.tool.contract, one.upstream, regions.get(one.upstream, NOWHERE))["attrs"]
        for one in listings
    ]
    names = set.intersection(*(set(entity) for entity in entities))
    every = set.union(*(set(entity) for entity in entities))
    has = dict(_has(subject.arguments, ARGS))
    has |= {("resource", name): True for name in names}
    has |= {("resource", name): False for name in {"residency", "jurisdiction"} - every}
    return Setting(
        subject.name,
        subject.namespace,
        {n: frozenset(e[n] for e in entities) for n in names if not isinstance(entities[0][n], list)},
        {n: sets.pop() for n in names if len(sets := _sets(n, entities)) == 1},
        has,
        frozenset(subject.arguments.members),
        {**ALWAYS, **dict(_domains(subject, listings))},
    )


def _sets(name: str, entities: list[dict[str, Any]]) -> set[frozenset[Value]]:
    return {frozenset(e[name]) for e in entities if isinstance(e[name], list)}


def _has(record: RecordOf, path: Path) -> Iterable[tuple[Path, bool]]:
    for name, kind in record.members.items():
        here = (*path, name)
        if name in record.required:
            yield here, True
            if isinstance(kind, RecordOf):
                yield from _has(kind, here)


def _domains(subject: Subject, listings: list[Listing]) -> Iterable[tuple[Path, Demand]]:
    """Of arguments that all versions describe alike, at the first level."""
    schemas = [one.tool.contract.affordance.input_schema.get("properties", {}) for one in listings]
    for name, kind in subject.arguments.members.items():
        said = [schema.get(name) for schema in schemas]
        if isinstance(kind, Scalar) and isinstance(said[0], dict) and all(one == said[0] for one in said):
            made = _domain((*ARGS, name), kind.cedar, said[0])
            if made is not None:
                yield (*ARGS, name), made


def _domain(path: Path, cedar: str, schema: Mapping[str, Any]) -> Demand | None:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if cedar == "String" and isinstance(values, list):
        return OneOf(path, frozenset(value for value in values if isinstance(value, str)))
    if cedar not in ("Long", "decimal"):
        return None
    unit = 1 if cedar == "Long" else 10_000
    low, high = (_bound(schema.get(name), unit) for name in ("minimum", "maximum"))
    return None if low is high is None else Range(path, low, high, cedar)


def _bound(said: Any, unit: int) -> int | None:
    """None where the bound is no whole number of units: then it bounds nothing here."""
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    scaled = Decimal(repr(said)) * unit
    return int(scaled) if scaled == scaled.to_integral_value() else None
