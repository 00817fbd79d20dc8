"""Which policies of a bundle never decide anything, and which speak about the same calls?

What is said here is certain (see `atoms`), and what is not said may be so all the same: arithmetic, two
values compared with each other and conditions with very many alternatives are not looked into.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from holdfast.policy.atoms import Other, Setting, TooMany, Ways, fails, holds
from holdfast.policy.bundle import Policy
from holdfast.policy.contradiction import contradictory, implies, possible
from holdfast.policy.obligations import Duties, union
from holdfast.policy.text import Place

WARNING, NOTE = "warning", "note"
CROWD = 200
"""Policies of one tool that are compared with each other; among more, each is only looked at by itself."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth knowing about a policy that keeps nobody from putting it in force."""

    kind: str
    """`unreachable`, `redundant`, `joined`, `undecided`, `pin`, `verify`, `redact`."""
    place: Place
    text: str
    policy: str
    level: str = WARNING
    with_: str = ""
    """The other policy it is about."""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that the same policies speak about in the same way."""

    setting: Setting
    tools: tuple[str, ...]
    policies: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: str
    by: Policy | None = None


def findings(policies: Sequence[Policy], groups: Iterable[Group]) -> list[Finding]:
    """In the order of the bundle."""
    verdicts: dict[str, list[Verdict | None]] = {policy.id: [] for policy in policies}
    joins: dict[tuple[str, str], Finding] = {}
    undecided: set[str] = set()
    for group in groups:
        seen = _Seen(group)
        for policy in group.policies:
            verdicts[policy.id].append(seen.verdict(policy))
        undecided |= seen.undecided
        for found in seen.joins():
            joins.setdefault((found.policy, found.with_), found)
    told = [one for policy in policies if (one := _told(policy, verdicts[policy.id])) is not None]
    useless = {one.policy for one in told}
    told += [one for pair, one in joins.items() if not useless & set(pair)]
    told += [_undecided(policy) for policy in policies if policy.id in undecided]
    order = {policy.id: number for number, policy in enumerate(policies)}
    return sorted(told, key=lambda one: (order[one.policy], one.kind))


def _told(policy: Policy, verdicts: Sequence[Verdict | None]) -> Finding | None:
    """What holds for all tools it covers."""
    place = policy.statement.place
    if not verdicts:
        return Finding("unreachable", place, f"{policy.id!r} covers no tool that is configured", policy.id)
    known = [one for one in verdicts if one is not None]
    if len(known) < len(verdicts):
        return None
    kinds = {one.kind for one in known}
    names = sorted({one.by.id for one in known if one.by is not None})
    listed, first = ", ".join(map(repr, names)), names[0] if names else ""
    if kinds == {"never"}:
        text = f"{policy.id!r} can never hold: its conditions contradict each other or the contract"
        return Finding("unreachable", place, text, policy.id)
    if "repeats" not in kinds:
        text = f"{policy.id!r} never permits anything: forbid {listed} holds whenever it does"
        return Finding("unreachable", place, text, policy.id, with_=first)
    text = f"{policy.id!r} changes nothing: {_why(policy, known)}"
    return Finding("redundant", place, text, policy.id, with_=first)


def _why(policy: Policy, verdicts: Sequence[Verdict]) -> str:
    others = {one.by.id: one.by for one in verdicts if one.by is not None}
    listed = ", ".join(map(repr, sorted(others)))
    more = union(other.duties for other in others.values())
    if policy.permits and more != policy.duties:
        return f"permit {listed} holds whenever it does and asks for {asked(more)}"
    return f"{policy.tree.effect} {listed} holds whenever it does"


def asked(duties: Duties) -> str:
    parts = [f"{count} x {role}" for role, count in duties.need.items()]
    parts += [f"redaction of {', '.join(duties.redact)}"] if duties.redact else []
    parts += [f"verification by {', '.join(duties.verify)}"] if duties.verify else []
    parts += ["an alert"] if duties.alert else []
    return ", ".join(parts) or "nothing"


def _undecided(policy: Policy) -> Finding:
    text = f"{policy.id!r} has too many alternatives to be compared with others; split it"
    return Finding("undecided", policy.statement.place, text, policy.id, NOTE)


class _Seen:
    """One group, each of its policies taken apart once."""

    def __init__(self, group: Group) -> None:
        self.undecided: set[str] = set()
        self._setting = group.setting
        self._policies = group.policies
        self._holds: dict[str, Ways] = {}
        self._fails: dict[str, Ways] = {}
        for policy in group.policies:
            try:
                self._holds[policy.id] = possible(holds(policy, group.setting), group.setting)
                self._fails[policy.id] = fails(policy, group.setting)
            except TooMany:
                self.undecided.add(policy.id)
        self._compared = [p for p in group.policies if p.id in self._fails and not p.pins]
        if len(self._policies) > CROWD:
            self._compared = []

    def verdict(self, policy: Policy) -> Verdict | None:
        if policy.id not in self._holds:
            return None
        if not self._holds[policy.id]:
            return Verdict("never")
        for other in self._compared:
            if other is policy or not self._covers(other, policy):
                continue
            if other.permits is policy.permits:
                if self._adds_nothing(policy, other):
                    return Verdict("repeats", other)
            elif policy.permits:
                return Verdict("forbidden", other)
        return None

    def _covers(self, wide: Policy, narrow: Policy) -> bool:
        return implies(self._holds[narrow.id], self._fails[wide.id], self._setting)

    def _adds_nothing(self, policy: Policy, other: Policy) -> bool:
        """Of two that are the same, the first counts."""
        if union((policy.duties, other.duties)) != union((other.duties,)):
            return False
        same = not policy.pins and policy.id in self._fails and self._covers(policy, other)
        equal = same and union((policy.duties, other.duties)) == union((policy.duties,))
        return not equal or self._policies.index(other) < self._policies.index(policy)

    def joins(self) -> Iterator[Finding]:
        """Permits that can hold together and ask for different things."""
        permits = [p for p in self._compared if p.permits and self._holds.get(p.id)]
        for one, other in combinations(permits, 2):
            together = union((one.duties, other.duties))
            if union((one.duties,)) == union((other.duties,)) or not self._meet(one, other):
                continue
            text = f"{one.id!r} and {other.id!r} can hold together: then it takes {asked(together)}"
            yield Finding("joined", one.statement.place, text, one.id, NOTE, other.id)

    def _meet(self, one: Policy, other: Policy) -> bool:
        return any(
            not contradictory(mine | theirs, self._setting)
            for mine in self._holds[one.id]
            for theirs in self._holds[other.id]
        )


def grouped(settings: Mapping[str, tuple[Setting, Sequence[Policy]]]) -> list[Group]:
    """Tools of which the same is certain, as far as any of their policies can tell."""
    found: dict[object, list[str]] = {}
    for tool, (setting, policies) in settings.items():
        found.setdefault(_alike(setting, policies), []).append(tool)
    return [
        Group(settings[tools[0]][0], tuple(tools), tuple(settings[tools[0]][1])) for tools in found.values()
    ]


def _alike(setting: Setting, policies: Sequence[Policy]) -> object:
    try:
        ways = tuple((holds(policy, setting), fails(policy, setting)) for policy in policies)
    except TooMany:
        return setting.tool
    demands = {demand for pair in ways for some in pair for way in some for demand in way}
    read = {demand.path for demand in demands if not isinstance(demand, Other)}
    domains = frozenset((path, setting.domains.get(path)) for path in read)
    return tuple(policy.id for policy in policies), ways, domains
