"""Why is this not allowed, and what is the smallest change that would allow it?

A change is one fact: another role, another environment, another argument, a later hour; where none alone
would do, two. Each is tried by judging the same call with nothing else changed, so what is told is what would
happen.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from cedarpy import PolicySet, pst

from holdfast.model.vocabulary import Environment, Floor
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.changes import Change, Good, later, smallest
from holdfast.policy.facts import Facts, context
from holdfast.policy.obligations import union
from holdfast.policy.shard import ALL_FACTS
from holdfast.policy.standing import Judgement

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
    changes: tuple[Change, ...]
    """What would allow it; of what is allowed once somebody approves it, what would do without."""


def explain(policy: CedarPolicy, known: Facts) -> Why:
    judged = policy.judge(known)
    if judged.allow:
        return Why(judged, None, _unasked(policy, known, judged))
    forbidden = any(not p.permits for p in judged.policies)
    closest = None if forbidden else _closest(policy, known)
    return Why(judged, closest, _would_do(policy, known, lambda other: policy.judge(other).allow))


def _unasked(policy: CedarPolicy, known: Facts, judged: Judgement) -> tuple[Change, ...]:
    """What would let it run without asking anybody, where policies ask and the built-in rule does not."""
    if not union(p.duties for p in judged.policies).need or known["floor"] != Floor.NONE.value:
        return ()

    def free(other: Facts) -> bool:
        again = policy.judge(other)
        asked = union(p.duties for p in again.policies).need
        return again.allow and not asked and other["floor"] == Floor.NONE.value

    return _would_do(policy, known, free)


# --- which permit was closest ---------------------------------------------------------------


def _closest(policy: CedarPolicy, known: Facts) -> Closest | None:
    near = [
        Closest(permit, _failing(policy, permit, known))
        for permit in policy.shard(known["tool"], known["digest"]).policies.values()
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


def _would_do(policy: CedarPolicy, known: Facts, good: Good) -> tuple[Change, ...]:
    """Single changes; where there is none, two at once."""
    single = [change for change in _single(policy, known) if good(change.known)]
    single += later(policy, known, good)
    told = {change.text for change in single}
    found = [change for change in smallest(policy, known, good) if change.text not in told]
    pairs = [change for change in found if ", and " in change.text]
    single += [change for change in found if change not in pairs]
    return tuple((single or pairs)[:SHOWN])


def _single(policy: CedarPolicy, known: Facts) -> Iterator[Change]:
    yield from _roles(policy, known)
    yield from _standing(policy, known)
    yield from _arguments(policy, known)
    for name, said in (("has_task", "name the task it belongs to"), ("preview", "ask for a preview only")):
        if not known[name]:
            yield Change(said, {**known, name: True})


def _roles(policy: CedarPolicy, known: Facts) -> Iterator[Change]:
    own = policy.shard(known["tool"]).policies.values()
    named = {uid.id for p in own for uid in pst.entity_uids(p.tree) if str(uid.type) == "Role"}
    held = set(known["roles"])
    for role in sorted(named - held):
        yield Change(f"give {known['user']!r} the role {role!r}", {**known, "roles": sorted(held | {role})})
    for role in sorted(named & held):
        left = {**known, "roles": sorted(held - {role})}
        yield Change(f"take the role {role!r} from {known['user']!r}", left)


def _standing(policy: CedarPolicy, known: Facts) -> Iterator[Change]:
    for trust in sorted({policy.threshold, 100}):
        if trust > known["trust"]:
            raised = _ruled(policy, {**known, "trust": trust})
            yield Change(f"raise the caller's trust to {trust}", raised)
    for environment in Environment:
        if environment.value != known["environment"]:
            other = {**known, "environment": environment.value}
            yield Change(f"call it in environment '{environment.value}'", _ruled(policy, other))


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


def _arguments(policy: CedarPolicy, known: Facts) -> Iterator[Change]:
    needed = policy.subjects[known["tool"]].arguments.required
    given = known["arguments"]
    for name in given:
        if name not in needed:
            left = {other: value for other, value in given.items() if other != name}
            yield Change(f"leave out the argument {name!r}", {**known, "arguments": left})
