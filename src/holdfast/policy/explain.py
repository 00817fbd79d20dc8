"""Why is this not allowed, and what is the smallest change that would allow it?

A change is one fact: another role, another environment, one argument less, a later hour. Each is tried by
judging the same call with that fact alone changed, so what is told is what would happen.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from cedarpy import PolicySet, pst

from holdfast.model.vocabulary import Environment
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.facts import Facts, context, moment
from holdfast.policy.shard import ALL_FACTS
from holdfast.policy.standing import Judgement

HOURS = 7 * 24
"""How far ahead a moment is looked for at which the call would be allowed."""
SHOWN = 5
_CONDITION = re.compile(r"(when|unless)\s*\{(.*)\}\s*;\s*$", re.DOTALL)
_AROUND_A_NAME = re.compile(r"\((\w+(?:\.\w+)*)\)")
_ANY = pst.ScopeAny()


@dataclass(frozen=True, slots=True)
class Closest:
    """A permit that nearly held, and what of it did not."""

    policy: Policy
    failing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Why:
    judged: Judgement
    closest: Closest | None
    changes: tuple[str, ...]


def explain(policy: CedarPolicy, known: Facts) -> Why:
    judged = policy.judge(known)
    if judged.allow:
        return Why(judged, None, ())
    forbidden = any(not p.permits for p in judged.policies)
    closest = None if forbidden else _closest(policy, known)
    changes = [said for said, other in _changes(policy, known) if policy.judge(other).allow]
    return Why(judged, closest, tuple(changes[:SHOWN]))


# --- which permit was closest ---------------------------------------------------------------


def _closest(policy: CedarPolicy, known: Facts) -> Closest | None:
    near = [
        Closest(permit, _failing(policy, permit, known))
        for permit in policy.shard(known["tool"]).policies.values()
        if permit.permits
    ]
    return min(near, key=lambda one: (len(one.failing), _wide(one.policy.tree), one.policy.id), default=None)


def _wide(tree: pst.Template) -> bool:
    """Whether it is about every tool; one that names this tool was rather meant."""
    return tree.action == _ANY and tree.resource == _ANY


def _failing(policy: CedarPolicy, permit: Policy, known: Facts) -> tuple[str, ...]:
    parts = dict(_parts(permit.tree))
    handle = PolicySet.from_pst(pst.PolicySet({}, {name: tree for name, (tree, _) in parts.items()}, ()))
    said = orjson.dumps(context(known, ALL_FACTS)).decode()
    held = set(policy.evaluate(known, handle, said).diagnostics.reasons)
    return tuple(text for name, (_, text) in parts.items() if name not in held)


def _parts(tree: pst.Template) -> Iterator[tuple[str, tuple[pst.Template, str]]]:
    """Each condition of a policy as a policy of its own, with its text."""
    heads = {"principal": tree.principal, "resource": tree.resource}
    for name, scope in heads.items():
        if scope != _ANY:
            alone = _alone(name, principal=scope) if name == "principal" else _alone(name, resource=scope)
            yield name, (alone, _head(alone, name))
    conditions = [one for clause in tree.clauses for one in _conjuncts(clause)]
    for number, clause in enumerate(conditions):
        name = f"c{number}"
        alone = _alone(name, clauses=(clause,))
        yield name, (alone, _condition(alone))


def _conjuncts(clause: pst.Clause) -> Iterator[pst.Clause]:
    match clause:
        case pst.When(pst.BinaryOp("and", left, right)):
            yield from _conjuncts(pst.When(left))
            yield from _conjuncts(pst.When(right))
        case _:
            yield clause


def _alone(
    id: str,
    *,
    principal: pst.PrincipalOrResourceConstraint = _ANY,
    resource: pst.PrincipalOrResourceConstraint = _ANY,
    clauses: tuple[pst.Clause, ...] = (),
) -> pst.Template:
    return pst.Template(id, "permit", principal, _ANY, resource, clauses, pst.FrozenMap())


def _text(alone: pst.Template) -> str:
    return " ".join(str(PolicySet.from_pst(pst.PolicySet({}, {alone.id: alone}, ()))).split())


def _condition(alone: pst.Template) -> str:
    found = _CONDITION.search(_text(alone))
    if found is None:
        return _text(alone)
    inside, before = found[2].strip(), ""
    while inside != before:
        before, inside = inside, _AROUND_A_NAME.sub(r"\1", inside)
    return inside if found[1] == "when" else f"not ({inside})"


def _head(alone: pst.Template, name: str) -> str:
    found = re.search(rf"({name} (?:==|in|is)[^,)]*(?:\"[^\"]*\")?)\s*[,)]", _text(alone))
    return found[1].strip() if found else name


# --- what would allow it --------------------------------------------------------------------


def _changes(policy: CedarPolicy, known: Facts) -> Iterator[tuple[str, Facts]]:
    yield from _roles(policy, known)
    yield from _standing(policy, known)
    yield from _arguments(policy, known)
    for name, said in (("has_task", "name the task it belongs to"), ("preview", "ask for a preview only")):
        if not known[name]:
            yield said, {**known, name: True}
    yield from _later(policy, known)


def _roles(policy: CedarPolicy, known: Facts) -> Iterator[tuple[str, Facts]]:
    own = policy.shard(known["tool"]).policies.values()
    named = {uid.id for p in own for uid in pst.entity_uids(p.tree) if str(uid.type) == "Role"}
    held = set(known["roles"])
    for role in sorted(named - held):
        yield f"give {known['user']!r} the role {role!r}", {**known, "roles": sorted(held | {role})}
    for role in sorted(named & held):
        yield f"take the role {role!r} from {known['user']!r}", {**known, "roles": sorted(held - {role})}


def _standing(policy: CedarPolicy, known: Facts) -> Iterator[tuple[str, Facts]]:
    for trust in sorted({policy.threshold, 100}):
        if trust > known["trust"]:
            yield f"raise the caller's trust to {trust}", _ruled(policy, {**known, "trust": trust})
    for environment in Environment:
        if environment.value != known["environment"]:
            other = {**known, "environment": environment.value}
            yield f"call it in environment '{environment.value}'", _ruled(policy, other)


def _ruled(policy: CedarPolicy, known: Mapping[str, Any]) -> Facts:
    """With what the built-in rule says of the changed call."""
    listing = policy.catalog.exact(known["tool"], known["version"])
    if listing is None:
        return known
    rule = policy.rule(listing.tool.contract, known["trust"], Environment(known["environment"]))
    return {
        **known,
        "trusted": known["trust"] >= policy.threshold,
        "floor": rule.floor.value,
        "left_to_policy": rule.policy_decides,
    }


def _arguments(policy: CedarPolicy, known: Facts) -> Iterator[tuple[str, Facts]]:
    needed = policy.subjects[known["tool"]].arguments.required
    given = known["arguments"]
    for name in given:
        if name not in needed:
            left = {other: value for other, value in given.items() if other != name}
            yield f"leave out the argument {name!r}", {**known, "arguments": left}


def _later(policy: CedarPolicy, known: Facts) -> Iterator[tuple[str, Facts]]:
    if not policy.shard(known["tool"]).names & {"at", "hour", "weekday"}:
        return
    hour = moment(known["at"]).replace(minute=0, second=0, microsecond=0)
    for ahead in range(1, HOURS + 1):
        then = hour + timedelta(hours=ahead)
        other = {**known, "at": then.timestamp()}
        if policy.judge(other).allow:
            yield f"wait until {then:%Y-%m-%d %H:%M} UTC", other
            return
