"""What is the least that would have to be different for a call to be allowed?

Every way in which a permit could hold while no forbid does is compared with the call as it is: what lacks are
the changes. Those of one thing are tried before those of two; each is judged with the change applied, and
only what is then allowed is told.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from holdfast.policy.atoms import (
    ROLES,
    Alternative,
    Contains,
    Demand,
    Has,
    Matches,
    OneOf,
    Other,
    Path,
    Range,
    Setting,
    TooMany,
    fails,
    holds,
    matches,
    within,
)
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.contradiction import contradictory, possible
from holdfast.policy.facts import Facts, moment
from holdfast.policy.samples import Changing, number, plain, shown
from holdfast.policy.settings import setting

HOURS = 7 * 24
"""How far ahead a moment is looked for at which the call would be allowed."""
TIMES: frozenset[Path] = frozenset({("context", "at"), ("context", "hour"), ("context", "weekday")})
MOST = 2
"""Things that are changed together; with more, nobody would call it a small change."""
TRIED = 300
"""Combinations that are judged."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something that would do, in words, and the facts of the call with it."""

    text: str
    known: Facts


Good = Callable[[Facts], bool]
"""Whether facts are as they are wished for: allowed, or allowed without asking anybody."""


def smallest(policy: CedarPolicy, known: Facts, good: Good) -> Iterator[Change]:
    """Changes of one thing, then of two; the smaller first."""
    listing = policy.catalog.exact(known["tool"], known["version"])
    if listing is None:
        return
    here = setting(policy.subjects[known["tool"]], [listing], policy.regions)
    changing = Changing(policy, listing.tool.contract, here)
    tried: set[Alternative] = set()
    missing = sorted(_missing(policy, known, here), key=lambda way: (len(way), sorted(map(repr, way))))
    for way in missing[:TRIED]:
        if way in tried or not 0 < len(way) <= MOST:
            continue
        tried.add(way)
        made = _made(policy, known, way, changing, good)
        if made is not None:
            yield made


def _missing(policy: CedarPolicy, known: Facts, here: Setting) -> Iterator[Alternative]:
    """What each way of being allowed asks for that is not so."""
    own = policy.shard(known["tool"], known["digest"]).policies.values()
    forbids = [p for p in own if not p.permits]
    for permit in (p for p in own if p.permits):
        ways = _ways(permit, here, so=True)
        for forbid in forbids:
            ways = _narrowed(ways, _ways(forbid, here, so=False), known)
        for way in ways:
            if not contradictory(way, here):
                yield frozenset(demand for demand in way if not met(demand, known))


def _ways(policy: Policy, here: Setting, *, so: bool) -> list[Alternative]:
    try:
        return list(possible(holds(policy, here) if so else fails(policy, here), here))
    except TooMany:
        return []


def _narrowed(ways: list[Alternative], others: list[Alternative], known: Facts) -> list[Alternative]:
    """Both at once; those that need the least first, and not more than can be tried."""
    both = [one | other for one in ways for other in others]
    both.sort(key=lambda way: sum(not met(demand, known) for demand in way))
    return both[:TRIED]


def met(demand: Demand, known: Facts) -> bool:
    """Whether it is so already; what is not understood counts as if it were, and is judged in the end."""
    match demand:
        case Range(path, low, high):
            at = number(known, path)
            return at is not None and within(at, low, high)
        case OneOf(path, values, so):
            value = plain(known, path)
            return value is not None and (value in values) is so
        case Matches(path, pattern, so):
            text = plain(known, path)
            return isinstance(text, str) and matches(pattern, text) is so
        case Has(path, so):
            return (plain(known, path) is not None) is so
        case Contains(path, member, so) if path == ROLES:
            return (member in known["roles"]) is so
        case Contains(path, member, so):
            held = plain(known, path)
            return (isinstance(held, list) and member in held) is so
        case Other():
            return True


def _made(
    policy: CedarPolicy, known: Facts, way: Alternative, changing: Changing, good: Good
) -> Change | None:
    if any(isinstance(demand, Other) or demand.path[0] == "resource" for demand in way):
        return None
    timed = {demand for demand in way if not isinstance(demand, Other) and demand.path in TIMES}
    rest = _without_implied(way - timed)
    texts = [text for demand in sorted(rest, key=repr) if (text := said(demand, known, policy)) is not None]
    if len(texts) < len(rest):
        return None
    other = changing.to(known, rest).known if rest else known
    if not timed:
        return Change(", and ".join(texts), other) if good(other) else None
    for then in _ahead(other):
        if good(then):
            return Change(", and ".join([*texts, _until(then)]), then)
    return None


def _without_implied(way: Alternative) -> Alternative:
    """To give an argument a value is to give it."""
    given = {demand.path for demand in way if isinstance(demand, Range | OneOf | Matches | Contains)}
    return frozenset(demand for demand in way if not (isinstance(demand, Has) and demand.path in given))


def later(policy: CedarPolicy, known: Facts, good: Good) -> Iterator[Change]:
    """The first hour at which it would do."""
    if policy.shard(known["tool"], known["digest"]).names & {"at", "hour", "weekday"}:
        yield from (Change(_until(then), then) for then in _first(_ahead(known), good))


def _first(facts: Iterator[Facts], good: Good) -> list[Facts]:
    found = next((one for one in facts if good(one)), None)
    return [] if found is None else [found]


def _ahead(known: Facts) -> Iterator[dict[str, Any]]:
    hour = moment(known["at"]).replace(minute=0, second=0, microsecond=0)
    for ahead in range(1, HOURS + 1):
        yield {**known, "at": (hour + timedelta(hours=ahead)).timestamp()}


def _until(known: Mapping[str, Any]) -> str:
    return f"wait until {moment(known['at']):%Y-%m-%d %H:%M} UTC"


def said(demand: Demand, known: Facts, policy: CedarPolicy) -> str | None:
    """A demand as something to do."""
    match demand:
        case Contains(path, role, so) if path == ROLES:
            who = repr(known["user"])
            return f"give {who} the role {role!r}" if so else f"take the role {role!r} from {who}"
        case Contains(("context", "labels"), label, so):
            return None if so else f"call it in a session and task that have not seen {label!r}"
        case Contains(("context", "args", *steps), member, so):
            return f"{'add' if so else 'leave out'} {member!r} {'to' if so else 'from'} '{'.'.join(steps)}'"
        case Has(("context", "args", *steps), so):
            return None if so else f"leave out the argument '{'.'.join(steps)}'"
        case _:
            return _value(demand, known, policy)


def _value(demand: Demand, known: Facts, policy: CedarPolicy) -> str | None:
    match demand:
        case Range(("context", "args", *steps), low, high, unit):
            return f"with '{'.'.join(steps)}' {_between(low, high, unit)}"
        case OneOf(("context", "args", *steps), values, so):
            listed = " or ".join(map(repr, sorted(values, key=str)))
            return f"with '{'.'.join(steps)}' {'' if so else 'other than '}{listed}"
        case Matches(("context", "args", *steps), pattern, so):
            text = "".join("*" if part is None else part for part in pattern)
            return f"with '{'.'.join(steps)}' {'like' if so else 'not like'} {text!r}"
        case Range(("principal", "trust"), low, _):
            return None if low is None else f"raise the caller's trust to {low}"
        case OneOf(("context", "trusted"), values, so) if (True in values) is so:
            return f"raise the caller's trust to {policy.threshold}"
        case OneOf(("context", "environment"), values, True):
            return f"call it in environment {sorted(map(str, values))[0]!r}"
        case OneOf(("context", "has_task"), values, so) if (True in values) is so:
            return "name the task it belongs to"
        case OneOf(("context", "has_session"), values, so) if (True in values) is so:
            return "name the session it belongs to"
        case OneOf(("principal", "user" | "agent" as name), values, True):
            return f"call it as {name} {sorted(map(str, values))[0]!r}"
        case OneOf(("principal",), values, True):
            return f"call it as {sorted(map(str, values))[0]!r}"
    return None


def _between(low: int | None, high: int | None, unit: str) -> str:
    if low is not None and low == high:
        return shown(low, unit)
    if low is None:
        return f"at most {shown(high or 0, unit)}"
    return f"at least {shown(low, unit)}" + ("" if high is None else f" and at most {shown(high, unit)}")
