"""What does a policy ask, piece by piece, of a call to one tool?

A policy's scope and conditions are taken apart into alternatives, each a set of single demands that all hold
when the policy does. What is always so for the tool (its contract, its namespace) is decided at once. What is
not understood stays a demand of its own: it can only contradict its exact opposite. So whatever is concluded
from this is certain, and much is not concluded.

A policy that cannot be evaluated forbids (`cedar`): where one is said to hold "whenever another does", it may
also fail to evaluate then, with the same result for the caller.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from cedarpy import pst

from holdfast.policy.bundle import Policy
from holdfast.policy.reads import EVERY_TOOL

Path = tuple[str, ...]
"""`("context", "args", "amount")`."""
Value = str | int | bool
MOST = 128
"""Alternatives of one policy that are looked at; with more it is left undecided."""


class TooMany(Exception):
    """More alternatives than anybody could make use of."""


@dataclass(frozen=True, slots=True)
class Range:
    """A number, decimal (in ten-thousandths) or moment (in milliseconds) from `low` to `high`."""

    path: Path
    low: int | None
    high: int | None
    unit: str = "Long"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these values, or none of them."""

    path: Path
    values: frozenset[Value]
    so: bool = True


@dataclass(frozen=True, slots=True)
class Matches:
    path: Path
    pattern: tuple[str | None, ...]
    """Characters; None for any number of them."""
    so: bool = True


@dataclass(frozen=True, slots=True)
class Has:
    path: Path
    so: bool = True


@dataclass(frozen=True, slots=True)
class Contains:
    """A set has this member, or not; of `("principal", "roles")` too."""

    path: Path
    member: Value
    so: bool = True


@dataclass(frozen=True, slots=True)
class Other:
    """Something that is not understood, and is so or not."""

    expr: pst.Expr
    so: bool = True


Demand = Range | OneOf | Matches | Has | Contains | Other
Alternative = frozenset[Demand]
Ways = tuple[Alternative, ...]
"""Any of these will do: none at all never does, an empty one always does."""
ALWAYS: Ways = (frozenset(),)
NEVER: Ways = ()
ROLES: Path = ("principal", "roles")


@dataclass(frozen=True)
class Setting:
    """What is certain of every call to one tool."""

    tool: str
    namespace: str
    attributes: Mapping[str, frozenset[Value]]
    """What `resource.x` can be, over all versions of the tool; for sets, their members are not in it."""
    sets: Mapping[str, frozenset[Value]]
    """The members of `resource.tags` and the like, where all versions agree."""
    has: Mapping[Path, bool]
    """Which arguments and facts are always there, and which never."""
    members: frozenset[str]
    """The arguments there are; no other is ever seen."""
    domains: Mapping[Path, Demand]
    """What a value is at most, by schema."""


def holds(policy: Policy, setting: Setting) -> Ways:
    """When it holds; raises TooMany."""
    return _Reading(setting).policy(policy.tree, True)


def fails(policy: Policy, setting: Setting) -> Ways:
    """When it does not."""
    return _Reading(setting).policy(policy.tree, False)


def opposite(demand: Demand) -> Ways:
    match demand:
        case Range(path, low, high, unit):
            below = () if low is None else (frozenset({Range(path, None, low - 1, unit)}),)
            above = () if high is None else (frozenset({Range(path, high + 1, None, unit)}),)
            return (*below, *above)
        case OneOf(path, values, so):
            return (frozenset({OneOf(path, values, not so)}),)
        case Matches(path, pattern, so):
            return (frozenset({Matches(path, pattern, not so)}),)
        case Has(path, so):
            return (frozenset({Has(path, not so)}),)
        case Contains(path, member, so):
            return (frozenset({Contains(path, member, not so)}),)
        case Other(expr, so):
            return (frozenset({Other(expr, not so)}),)


def both(one: Ways, other: Ways) -> Ways:
    return _limited([left | right for left in one for right in other])


def either(one: Ways, other: Ways) -> Ways:
    return _limited([*one, *other])


def _limited(ways: list[Alternative]) -> Ways:
    kept = tuple(dict.fromkeys(ways))
    if len(kept) > MOST:
        raise TooMany
    return kept


_COMPARED = {
    "less": (None, -1),
    "less_eq": (None, 0),
    "greater": (1, None),
    "greater_eq": (0, None),
    "decimal_less_than": (None, -1),
    "decimal_less_eq": (None, 0),
    "decimal_greater": (1, None),
    "decimal_greater_eq": (0, None),
}
_TURNED = {"less": "greater", "less_eq": "greater_eq", "greater": "less", "greater_eq": "less_eq"}
_TRUE = pst.BoolLit(True)


class _Reading:
    def __init__(self, setting: Setting) -> None:
        self._in = setting

    def policy(self, tree: pst.Template, so: bool) -> Ways:
        parts = [self.expr(part, so) for part in _scope(tree)]
        parts += [self.expr(c.expr, so if isinstance(c, pst.When) else not so) for c in tree.clauses]
        found = ALWAYS if so else NEVER
        for part in parts:
            found = both(found, part) if so else either(found, part)
        return found

    def expr(self, node: pst.Expr, so: bool) -> Ways:
        """When an expression is `so`."""
        match node:
            case pst.BoolLit(value):
                return ALWAYS if value is so else NEVER
            case pst.UnaryOp("not", below):
                return self.expr(below, not so)
            case pst.BinaryOp("and", left, right):
                return (both if so else either)(self.expr(left, so), self.expr(right, so))
            case pst.BinaryOp("or", left, right):
                return (either if so else both)(self.expr(left, so), self.expr(right, so))
            case pst.IfThenElse(cond, then, otherwise):
                return either(
                    both(self.expr(cond, True), self.expr(then, so)),
                    both(self.expr(cond, False), self.expr(otherwise, so)),
                )
        found = self._leaf(node)
        if found is None:
            return (frozenset({Other(node, so)}),)
        return found if so else _none_of(found)

    def _leaf(self, node: pst.Expr) -> Ways | None:
        match node:
            case pst.BinaryOp("not_eq", left, right):
                found = self._equal(left, right)
                return None if found is None else _none_of(found)
            case pst.BinaryOp("eq", left, right):
                return self._equal(left, right)
            case pst.BinaryOp(op, left, right) if op in _COMPARED:
                return self._compared(op, left, right)
            case pst.BinaryOp("contains", pst.Set(elements), value) if (path := path_of(value)) is not None:
                return self._one_of(path, elements)
            case pst.BinaryOp("contains", base, value):
                return self._members(base, (value,), all_=True)
            case pst.BinaryOp("contains_all" | "contains_any" as op, base, pst.Set(elements)):
                return self._members(base, elements, all_=op == "contains_all")
            case pst.BinaryOp("in", pst.Var(name), right):
                return self._inside(name, right)
            case pst.Is(pst.Var(name), kind, within):
                return self._is(name, str(kind), within)
            case pst.Like(base, pattern) if (path := path_of(base)) is not None:
                plain = tuple(part.value if isinstance(part, pst.Char) else None for part in pattern)
                return self._settled(Matches(path, plain))
            case pst.HasAttr(base, attrs) if (path := path_of(base)) is not None:
                demands = [Has((*path, *attrs[: n + 1])) for n in range(len(attrs))]
                return self._all(demands)
            case pst.GetAttr() if (path := path_of(node)) is not None:
                return self._settled(OneOf(path, frozenset({True})))
        return None

    def _equal(self, left: pst.Expr, right: pst.Expr) -> Ways | None:
        if path_of(left) is None:
            left, right = right, left
        path = path_of(left)
        if isinstance(left, pst.Var) and isinstance(right, pst.EntityLit):
            return self._is_entity(left.name, right.value)
        if path is None:
            return None
        value, number = _literal(right), _number(right)
        if value is not None:
            return self._settled(OneOf(path, frozenset({value})))
        if number is not None:
            return self._settled(Range(path, number[0], number[0], number[1]))
        return None

    def _compared(self, op: str, left: pst.Expr, right: pst.Expr) -> Ways | None:
        if path_of(left) is None and op in _TURNED:
            left, right, op = right, left, _TURNED[op]
        path = path_of(left)
        number = _number(right)
        if path is None or number is None:
            return None
        low, high = _COMPARED[op]
        at, unit = number
        made = Range(path, None if low is None else at + low, None if high is None else at + high, unit)
        return self._settled(made)

    def _one_of(self, path: Path, elements: tuple[pst.Expr, ...]) -> Ways | None:
        values = [_literal(element) for element in elements]
        if any(value is None for value in values):
            return None
        return self._settled(OneOf(path, frozenset(value for value in values if value is not None)))

    def _members(self, base: pst.Expr, elements: tuple[pst.Expr, ...], *, all_: bool) -> Ways | None:
        path = path_of(base)
        values = [_literal(element) for element in elements]
        if path is None or any(value is None for value in values):
            return None
        demands = [Contains(path, value) for value in values if value is not None]
        if all_:
            return self._all(demands)
        found = NEVER
        for demand in demands:
            found = either(found, self._settled(demand))
        return found

    def _inside(self, name: str, right: pst.Expr) -> Ways | None:
        targets = right.elements if isinstance(right, pst.Set) else (right,)
        found = NEVER
        for target in targets:
            if not isinstance(target, pst.EntityLit):
                return None
            one = self._in_entity(name, target.value)
            if one is None:
                return None
            found = either(found, one)
        return found

    def _in_entity(self, name: str, uid: pst.EntityUid) -> Ways | None:
        kind, id = str(uid.type), uid.id
        if name == "principal":
            return _principal(kind, id)
        if name == "action":
            return _known(kind == "Action" and id in (self._in.tool, EVERY_TOOL))
        if name == "resource":
            return _known((kind, id) in (("Tool", self._in.tool), ("Namespace", self._in.namespace)))
        return None

    def _is_entity(self, name: str, uid: pst.EntityUid) -> Ways | None:
        kind, id = str(uid.type), uid.id
        match name:
            case "principal":
                found = kind == "Agent"
                return (frozenset({OneOf(("principal",), frozenset({id}))}),) if found else NEVER
            case "action":
                return _known((kind, id) == ("Action", self._in.tool))
            case "resource":
                return _known((kind, id) == ("Tool", self._in.tool))
        return None

    def _is(self, name: str, kind: str, within: pst.Expr | None) -> Ways | None:
        sort = {"principal": "Agent", "action": "Action", "resource": "Tool"}.get(name)
        if sort != kind:
            return NEVER if sort else None
        return ALWAYS if within is None else self._inside(name, within)

    def _all(self, demands: "list[Contains] | list[Has]") -> Ways:
        found = ALWAYS
        for demand in demands:
            found = both(found, self._settled(demand))
        return found

    def _settled(self, demand: Demand) -> Ways:
        """A demand, or what is known of it already."""
        known = self._decided(demand)
        return (frozenset({demand}),) if known is None else _known(known)

    def _decided(self, demand: Demand) -> bool | None:
        match demand:
            case Has(("context", "args", name)) if name not in self._in.members:
                return False
            case Has(path):
                return self._in.has.get(path)
            case Contains(("resource", name), member) if name in self._in.sets:
                return member in self._in.sets[name]
            case OneOf(("resource", name), values) if name in self._in.attributes:
                return _agreed(value in values for value in self._in.attributes[name])
            case Range(("resource", name), low, high) if name in self._in.attributes:
                numbers = self._in.attributes[name]
                return _agreed(within(int(n), low, high) for n in numbers)
            case Matches(("resource", name), pattern) if name in self._in.attributes:
                return _agreed(matches(pattern, str(value)) for value in self._in.attributes[name])
        return None


def _scope(tree: pst.Template) -> Iterator[pst.Expr]:
    """The scope as conditions."""
    for name, scope in (("principal", tree.principal), ("resource", tree.resource)):
        var = pst.Var(name)  # type: ignore[arg-type]  # one of the four there are
        match scope:
            case pst.ScopeEq(pst.EntityUid() as uid):
                yield pst.BinaryOp("eq", var, pst.EntityLit(uid))
            case pst.ScopeIn(pst.EntityUid() as uid):
                yield pst.BinaryOp("in", var, pst.EntityLit(uid))
            case pst.ScopeIs(kind):
                yield pst.Is(var, kind, None)
            case pst.ScopeIsIn(kind, pst.EntityUid() as uid):
                yield pst.Is(var, kind, pst.EntityLit(uid))
    action = pst.Var("action")
    match tree.action:
        case pst.ActionEq(uid):
            yield pst.BinaryOp("eq", action, pst.EntityLit(uid))
        case pst.ActionIn(uids):
            yield pst.BinaryOp("in", action, pst.Set(tuple(pst.EntityLit(uid) for uid in uids)))


def _principal(kind: str, id: str) -> Ways | None:
    match kind:
        case "Role":
            return (frozenset({Contains(ROLES, id)}),)
        case "User":
            return (frozenset({OneOf(("principal", "user"), frozenset({id}))}),)
        case "Tenant":
            return (frozenset({OneOf(("principal", "tenant"), frozenset({id}))}),)
        case "Agent":
            return (frozenset({OneOf(("principal",), frozenset({id}))}),)
    return NEVER


def path_of(node: Any) -> Path | None:
    match node:
        case pst.Var(name):
            return (name,)
        case pst.GetAttr(base, attr):
            above = path_of(base)
            return None if above is None else (*above, attr)
    return None


def _literal(node: pst.Expr) -> Value | None:
    """Text or a truth: what has no order here."""
    match node:
        case pst.StringLit(value) | pst.BoolLit(value):
            return value
    return None


def _number(node: pst.Expr) -> tuple[int, str] | None:
    match node:
        case pst.LongLit(value):
            return value, "Long"
        case pst.UnaryOp("neg", pst.LongLit(value)):
            return -value, "Long"
        case pst.UnaryOp("decimal", pst.StringLit(text)):
            try:
                return int(Decimal(text) * 10_000), "decimal"
            except InvalidOperation:
                return None
        case pst.UnaryOp("datetime", pst.StringLit(text)):
            return _moment(text)
    return None


def _moment(text: str) -> tuple[int, str] | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1000), "datetime"


def _known(so: bool) -> Ways:
    return ALWAYS if so else NEVER


def _agreed(said: Iterator[bool]) -> bool | None:
    found = set(said)
    return found.pop() if len(found) == 1 else None


def _none_of(ways: Ways) -> Ways:
    """When no alternative holds."""
    found = ALWAYS
    for way in ways:
        missed = NEVER
        for demand in way:
            missed = either(missed, opposite(demand))
        found = both(found, missed)
    return found


def within(number: int, low: int | None, high: int | None) -> bool:
    return (low is None or low <= number) and (high is None or number <= high)


def matches(pattern: tuple[str | None, ...], text: "tuple[str | None, ...] | str") -> bool:
    """Whether a pattern takes a text, or all that another pattern takes: its gap fits only into a gap."""
    places = {0}
    parts = tuple(text)
    for element in pattern:
        if element is None:
            first = min(places, default=len(parts) + 1)
            places = set(range(first, len(parts) + 1))
        else:
            places = {at + 1 for at in places if at < len(parts) and parts[at] == element}
    return len(parts) in places
