"""What calls are worth trying, to see what policies do?

Those at the edges of what they ask for: one that just meets every demand of a policy, and for each demand one
that just misses it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations
from typing import Any
from urllib.parse import quote, unquote

from holdfast.model.contract import Contract
from holdfast.model.vocabulary import Environment
from holdfast.policy.arguments import Kind, RecordOf, Scalar, SetOf
from holdfast.policy.atoms import (
    ROLES,
    Alternative,
    Contains,
    Demand,
    Has,
    Path,
    Setting,
    TooMany,
    Value,
    holds,
    opposite,
)
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.contradiction import contradictory, possible, rooms
from holdfast.ports import Listing

WEDNESDAY = datetime(2026, 3, 4, 12, tzinfo=UTC)
EACH = 12
"""Alternatives of one policy that are tried."""
MOST = 200
"""Calls to one tool that are tried."""
PAIRED = 20
"""Alternatives that are also tried two at once: where there are more, it is no longer read anyway."""


@dataclass(frozen=True, slots=True)
class Sample:
    known: Mapping[str, Any]
    """The facts of a call."""
    said: Mapping[Path, str]
    """What is particular about it, in words."""


def samples(
    policy: CedarPolicy, listing: Listing, setting: Setting, policies: tuple[Policy, ...], env: Environment
) -> list[Sample]:
    base = _Base(policy, listing, setting, env)
    found: dict[Alternative, Sample] = {}
    for wanted in _wanted(policies, setting):
        if len(found) >= MOST:
            break
        if wanted not in found:
            found[wanted] = base.sample(wanted)
    return list(found.values())


def _wanted(policies: tuple[Policy, ...], setting: Setting) -> Iterator[Alternative]:
    yield frozenset()
    ways: list[Alternative] = []
    for policy in policies:
        try:
            ways += possible(holds(policy, setting), setting)[:EACH]
        except TooMany:
            continue
    yield from ways
    for way in ways:
        yield from _missing_one(way, setting)
    for one, other in combinations(ways[:PAIRED], 2):
        if not contradictory(one | other, setting):
            yield one | other


def _missing_one(way: Alternative, setting: Setting) -> Iterator[Alternative]:
    for demand in sorted(way, key=repr):
        for turned in opposite(demand):
            missed = (way - {demand}) | turned
            if not contradictory(missed, setting):
                yield missed


class _Base:
    """A plain call, to be made particular."""

    def __init__(self, policy: CedarPolicy, listing: Listing, setting: Setting, env: Environment) -> None:
        contract = listing.tool.contract
        self._plan = policy.subjects[setting.tool].arguments
        self._changing = Changing(policy, contract, setting)
        self._setting = setting
        self._known: dict[str, Any] = {
            "tenant": "default",
            "user": "somebody",
            "agent": "agent",
            "roles": [],
            "trust": policy.threshold,
            "tool": setting.tool,
            "version": contract.version,
            "digest": contract.digest,
            "environment": env.value,
            "at": WEDNESDAY.timestamp(),
            "preview": False,
            "safety_mode": "normal",
            "has_task": False,
            "has_session": False,
            "labels": [],
            "left_out": [],
            **policy.region.facts,
        }

    def sample(self, wanted: Alternative) -> Sample:
        known = {**self._known, "arguments": _required(self._plan, self._setting)}
        return self._changing.to(known, wanted)


class Changing:
    """How the facts of a call become those of one that meets some demands."""

    def __init__(self, policy: CedarPolicy, contract: Contract, setting: Setting) -> None:
        self._policy, self._contract, self._setting = policy, contract, setting
        self._plan = policy.subjects[setting.tool].arguments

    def to(self, facts: Mapping[str, Any], wanted: Alternative) -> Sample:
        known = {**facts, "arguments": _copied(facts["arguments"])}
        said: dict[Path, str] = {}
        for path, room in rooms(wanted, self._setting).items():
            value = room.some(number(known, path))
            if value is not None:
                self._put(known, path, value, room.unit)
                said[path] = shown(value, room.unit)
        for demand in sorted(wanted, key=repr):
            self._member(known, demand, said)
        known["principal"] = f"{quote(known['user'], safe='@.-')}/{quote(known['agent'], safe='@.-')}"
        rule = self._policy.rule(self._contract, known["trust"], Environment(known["environment"]))
        known["trusted"] = known["trust"] >= self._policy.threshold
        known["floor"], known["left_to_policy"] = rule.floor.value, rule.policy_decides
        return Sample(known, said)

    def _put(self, known: dict[str, Any], path: Path, value: Value, unit: str | None) -> None:
        at = datetime.fromtimestamp(known["at"], UTC)
        match path:
            case ("context", "args", *steps):
                _set(known["arguments"], steps, _cedar(value, unit))
            case ("context", "hour"):
                known["at"] = at.replace(hour=int(value)).timestamp()
            case ("context", "weekday"):
                known["at"] = (at + timedelta(days=int(value) - at.isoweekday())).timestamp()
            case ("context", "at"):
                known["at"] = int(value) / 1000
            case ("context", "trusted"):
                known["trust"] = self._policy.threshold if value else self._policy.threshold - 1
            case ("principal",):
                user, _, agent = str(value).partition("/")
                known["user"], known["agent"] = unquote(user), unquote(agent)
            case ("context" | "principal", name):
                known[name] = value

    def _member(self, known: dict[str, Any], demand: Demand, said: dict[Path, str]) -> None:
        match demand:
            case Contains(path, member, so) if path == ROLES:
                held = {*known["roles"], str(member)} if so else {*known["roles"]} - {member}
                known["roles"] = sorted(held)
                said[(*path, str(member))] = str(member) if so else f"not {member}"
            case Contains(("context", "labels") as path, member, so):
                seen = set(known.get("labels") or ())
                known["labels"] = sorted(seen | {member} if so else seen - {member})
                said[path] = ", ".join(known["labels"]) or "none"
            case Contains(("context", "args", *steps) as path, member, so):
                held_ = _get(known["arguments"], steps)
                kept = [one for one in held_ if one != member] if isinstance(held_, list) else []
                _set(known["arguments"], steps, [*kept, member] if so else kept)
                said[path] = f"with {member}" if so else f"without {member}"
            case Has(("context", "args", *steps) as path, so) if path not in said:
                if not so:
                    _drop(known["arguments"], steps)
                    said[path] = "left out"
                elif _get(known["arguments"], steps) is None:
                    kind = self._plan.look(tuple(steps))
                    if isinstance(kind, Scalar | SetOf | RecordOf):
                        _set(known["arguments"], steps, _any(kind))
                        said[path] = "given"


def number(known: Mapping[str, Any], path: Path) -> int | None:
    """A value as `Range` counts it; None where it is none."""
    at = datetime.fromtimestamp(known["at"], UTC)
    match path:
        case ("context", "hour"):
            return at.hour
        case ("context", "weekday"):
            return at.isoweekday()
        case ("context", "at"):
            return round(float(known["at"]) * 1000)
    value: object = plain(known, path)
    if isinstance(value, dict) and "__extn" in value:
        return int(Decimal(str(value["__extn"]["arg"])) * 10_000)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plain(known: Mapping[str, Any], path: Path) -> Any:
    """What stands at a path; None for nothing."""
    match path:
        case ("context", "args", *steps):
            return _get(known["arguments"], steps)
        case ("principal",):
            return known["principal"]
        case ("context" | "principal", *steps):
            return _get(known, steps)
    return None


def _copied(tree: Any) -> Any:
    return {name: _copied(below) for name, below in tree.items()} if isinstance(tree, dict) else tree


def _required(plan: RecordOf, setting: Setting) -> dict[str, Any]:
    made = {}
    for name, kind in plan.members.items():
        if name in plan.required:
            path = ("context", "args", name)
            room = rooms({known}, setting).get(path) if (known := setting.domains.get(path)) else None
            value = None if room is None else room.some()
            made[name] = _any(kind) if value is None or room is None else _cedar(value, room.unit)
    return made


def _any(kind: Kind) -> Any:
    """Some value of a kind."""
    match kind:
        case Scalar("String"):
            return "x"
        case Scalar("Bool"):
            return False
        case Scalar("Long"):
            return 0
        case Scalar():
            return _cedar(0, "decimal")
        case SetOf():
            return []
        case RecordOf(members, required):
            return {name: _any(below) for name, below in members.items() if name in required}


def _cedar(value: Value, unit: str | None) -> Any:
    if unit != "decimal":
        return value
    return {"__extn": {"fn": "decimal", "arg": f"{Decimal(value) / 10_000:.4f}"}}


def shown(value: Value, unit: str | None) -> str:
    match unit:
        case "decimal":
            return format((Decimal(value) / 10_000).normalize(), "f")
        case "datetime":
            return f"{datetime.fromtimestamp(int(value) / 1000, UTC):%Y-%m-%d %H:%M}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def words(path: Path, value: str) -> str:
    """How a person names it: `amount 50`, `role support`, `hour 8`."""
    match path:
        case ("principal", "roles", _):
            return f"role {value}" if not value.startswith("not ") else f"without role {value[4:]}"
        case ("principal",):
            return f"agent {value}"
        case ("context", "args", *steps) | ("context" | "principal", *steps):
            return f"{'.'.join(steps)} {value}"
    return f"{'.'.join(path)} {value}"


def _get(tree: Any, steps: list[str]) -> Any:
    for step in steps:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _set(tree: dict[str, Any], steps: list[str], value: Any) -> None:
    *above, last = steps
    for step in above:
        below = tree.get(step)
        tree[step] = tree = dict(below) if isinstance(below, dict) else {}
    tree[last] = value


def _drop(tree: dict[str, Any], steps: list[str]) -> None:
    above = _get(tree, steps[:-1])
    if isinstance(above, dict):
        above.pop(steps[-1], None)
