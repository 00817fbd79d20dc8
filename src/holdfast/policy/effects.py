"""What does each policy change?

Calls at the edges of what policies ask for are judged with all policies and without one of them; where that
makes a difference, it is told with a call that shows it. What no such call shows is not proven to make none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from cedarpy import PolicySet, pst

from holdfast.model.approval import NEEDS, joined
from holdfast.model.vocabulary import Environment, Floor
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.facts import context
from holdfast.policy.obligations import FREE, union
from holdfast.policy.overlap import Group
from holdfast.policy.samples import Sample, samples, words
from holdfast.policy.shard import ALL_FACTS
from holdfast.ports import Listing

REFUSED = "refused"
EXPLAINED = "refused, with its reason"
SHOWN = 3
"""Differences of one policy that are told."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One difference that a policy makes."""

    policy: str
    tools: tuple[str, ...]
    without: str
    with_: str
    example: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "tools": list(self.tools),
            "without": self.without,
            "with": self.with_,
            "example": self.example,
        }


def effects(policy: CedarPolicy, groups: Iterable[Group], env: Environment) -> list[Effect]:
    found: dict[tuple[str, str, str], Effect] = {}
    for group in groups:
        listing = _listing(policy, group)
        if listing is not None:
            for one in _of(policy, group, listing, env):
                name = (one.policy, one.without, one.with_)
                known = found.get(name)
                found[name] = one if known is None else replace(known, tools=(*known.tools, *one.tools))
    order = {one.id: number for number, one in enumerate(policy.policies)}
    told: dict[str, list[Effect]] = {}
    for one in found.values():
        told.setdefault(one.policy, []).append(one)
    return [one for id in sorted(told, key=order.__getitem__) for one in _worth_telling(told[id])[:SHOWN]]


def _worth_telling(found: list[Effect]) -> list[Effect]:
    """What it changes; its words, where it changes nothing else."""
    return [one for one in found if one.with_ != EXPLAINED] or found


def _listing(policy: CedarPolicy, group: Group) -> Listing | None:
    return next((one for one in policy.catalog.list() if one.tool.contract.tool == group.tools[0]), None)


def _of(policy: CedarPolicy, group: Group, listing: Listing, env: Environment) -> Iterable[Effect]:
    seen: dict[tuple[str, str, str], Effect] = {}
    contract = listing.tool.contract
    floor = contract.security.approval_floor
    own = tuple(p for p in group.policies if p.fits(listing.upstream, contract.tool, contract.digest))
    together = _together(own)
    for sample in samples(policy, listing, group.setting, own, env):
        held = _held(policy, together, own, sample)
        now = None if held is None else _outcome(held, sample, floor)
        plain = sum(one.permits and one.duties is FREE for one in held or ())
        for one in held or ():
            if plain > 1 and one.permits and one.duties is FREE:
                continue  # another one does the same
            others = [p for p in held or () if p is not one]
            before = _outcome(others, sample, floor)
            after = EXPLAINED if before == now and _explains(one, others) else now
            if after is not None and before != after:
                made = Effect(one.id, group.tools, before, after, _example(sample))
                seen.setdefault((one.id, before, after), made)
    return seen.values()


def _explains(one: Policy, others: Sequence[Policy]) -> bool:
    """A forbid of what nobody permits changes what the caller is told."""
    return not one.permits and "reason" in one.tree.annotations and all(p.permits for p in others)


def _together(policies: Sequence[Policy]) -> PolicySet:
    """All as permits: Cedar names every permit that holds."""
    plain = {p.id: replace(p.tree, id=p.id, effect="permit") for p in policies}
    return PolicySet.from_pst(pst.PolicySet({}, plain, ()))


def _held(
    policy: CedarPolicy, together: PolicySet, policies: Sequence[Policy], sample: Sample
) -> list[Policy] | None:
    """Those that hold; None where one could not be judged."""
    said = orjson.dumps(context(sample.known, ALL_FACTS)).decode()
    found = policy.evaluate(sample.known, together, said).diagnostics
    if found.errors:
        return None
    held = set(found.reasons)
    return [one for one in policies if one.id in held]


def _outcome(held: Sequence[Policy], sample: Sample, floor: Floor) -> str:
    duties = union(one.duties for one in held)
    alerts = ["alerts"] if duties.alert else []
    if not held or any(not one.permits for one in held):
        return ", ".join([REFUSED, *alerts])
    need: Mapping[str, int] = joined(NEEDS[floor], NEEDS[Floor(sample.known["floor"])], duties.need)
    told = [f"asks {', '.join(f'{count} x {role}' for role, count in need.items())}"] if need else ["allowed"]
    told += [f"without {path}" for path in duties.redact]
    told += [f"verified by {way}" for way in duties.verify]
    return ", ".join([*told, *alerts])


def _example(sample: Sample) -> str:
    return ", ".join(words(path, value) for path, value in sorted(sample.said.items())) or "any call"
