"""What do past answers say: which rule could stand for them, and are people tired of being asked? APR-9.

A rule is proposed only where it would have admitted calls that people approved and none that they denied. The
proof is the questions themselves, by name.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import orjson

from holdfast.model import defaults
from holdfast.model.approval import Answer, Approval, Need
from holdfast.model.constraint import Constraint, domain_of, misfits
from holdfast.model.standing import PLAN, RULE, named

FEW = 5
"""So many different values are a list; more are a kind."""
DAY_S = 86_400.0
_LABELS = frozenset({"[secret]", "[credential]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a rule would have done with the questions that were asked."""

    approved: tuple[str, ...]
    denied: tuple[str, ...]
    unanswered: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A rule that history suggests."""

    tool: str
    contract_digest: str
    principals: str
    arguments: Mapping[str, Constraint]
    need: Need
    most: int
    proof: Proof


@dataclass(frozen=True, slots=True, kw_only=True)
class Fatigue:
    """How often people are asked, and how closely they look."""

    asked: int
    answered: int
    approved: int
    asks_per_person_and_day: float
    median_answer_s: float | None
    approved_without_note: float | None
    """Of the votes that said yes, the share without a word."""
    answered_quickly: float | None
    """Of all votes, the share that came faster than anybody reads."""


def proposals(history: Sequence[Approval], digests: Mapping[str, str]) -> list[Proposed]:
    """Rules for the tools in `digests`, as their contracts are now; the most useful first."""
    groups: dict[tuple[str, str, str, str], list[Approval]] = defaultdict(list)
    for asked in history:
        tool = asked.ref.tool
        if asked.answer is Answer.APPROVED and digests.get(tool) == asked.contract_digest and _whole(asked):
            need = orjson.dumps(dict(asked.need), option=orjson.OPT_SORT_KEYS).decode()
            groups[tool, asked.contract_digest, asked.ref.principal, need].append(asked)
    found = [_proposed(history, group) for group in groups.values() if len(group) >= defaults.RULE_EVIDENCE]
    useful = [one for one in found if one is not None]
    return sorted(useful, key=lambda one: (-len(one.proof.approved), one.tool, one.principals))


def proof(
    history: Iterable[Approval],
    tool: str,
    contract_digest: str,
    principals: str,
    arguments: Mapping[str, Constraint],
) -> Proof:
    """Which of the questions a rule would have answered."""
    covered: dict[Answer, list[str]] = defaultdict(list)
    for asked in history:
        same = (asked.ref.tool, asked.contract_digest) == (tool, contract_digest)
        if same and named(principals, asked.ref.principal) and not misfits(arguments, _arguments(asked)):
            covered[asked.answer].append(asked.id)
    return Proof(
        approved=tuple(covered[Answer.APPROVED]),
        denied=tuple(covered[Answer.DENIED]),
        unanswered=tuple(covered[Answer.AUTO_DENIED]),
    )


def fatigue(history: Sequence[Approval]) -> Fatigue:
    votes = [(vote, vote.at - asked.created_at) for asked in history for vote in asked.votes]
    yes = [vote for vote, _ in votes if vote.approve]
    days = {(vote.person, vote.at // DAY_S) for vote, _ in votes}
    waits = [wait for _, wait in votes]
    return Fatigue(
        asked=len(history),
        answered=sum(1 for asked in history if asked.votes),
        approved=sum(asked.answer is Answer.APPROVED for asked in history),
        asks_per_person_and_day=round(len(votes) / len(days), 2) if days else 0.0,
        median_answer_s=round(median(waits), 3) if waits else None,
        approved_without_note=_share(sum(not vote.note for vote in yes), len(yes)),
        answered_quickly=_share(sum(wait < defaults.QUICK_ANSWER_S for wait in waits), len(waits)),
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _proposed(history: Sequence[Approval], group: list[Approval]) -> Proposed | None:
    """The widest of two readings of a group that would have admitted nothing people denied."""
    first = group[0]
    for guess in (_kind, _list):
        arguments = _constraints([_arguments(asked) for asked in group], guess)
        if arguments is None:
            continue
        bound = (first.ref.tool, first.contract_digest, first.ref.principal)
        shown = proof(history, *bound, arguments)
        if not shown.denied:
            return Proposed(
                tool=bound[0],
                contract_digest=bound[1],
                principals=bound[2],
                arguments=arguments,
                need=dict(first.need),
                most=2 * len(shown.approved),
                proof=shown,
            )
    return None


def _whole(asked: Approval) -> bool:
    """Whether the packet still says everything that was asked about; a plan or a rule is no call."""
    packet = asked.packet
    cut = [*packet.get("shortened", ()), *packet.get("hidden_characters", ())]
    about_call = asked.ref.tool not in (PLAN, RULE) and isinstance(packet.get("arguments"), Mapping)
    return about_call and not any(place.startswith("/arguments") for place in cut)


def _arguments(asked: Approval) -> Mapping[str, Any]:
    said = asked.packet.get("arguments")
    return said if isinstance(said, Mapping) else {}


def _constraints(every: list[Mapping[str, Any]], guess: Any) -> dict[str, Constraint] | None:
    names = {name for one in every for name in one}
    found: dict[str, Constraint] = {}
    for name in sorted(names):
        given = [one[name] for one in every if name in one]
        constraint = {"any": True} if len(given) < len(every) else guess(given)
        if constraint is None:
            return None
        found[name] = constraint
    return found


def _kind(values: list[Any]) -> Constraint | None:
    """What the values have in common."""
    if any(value in _LABELS for value in values if isinstance(value, str)):
        return {"any": True}  # never shown to anybody who said yes
    if (few := _list(values)) is not None and "equals" in few:
        return few
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return {"at_least": min(values), "at_most": max(values)}
    if all(isinstance(value, list) for value in values):
        items = [item for value in values for item in value]
        inner = _kind(items) if items else None
        longest = max(len(value) for value in values)
        return None if inner is None else {"each": inner, "longest": longest}
    if all(isinstance(value, str) for value in values):
        domains = {domain_of(value) for value in values}
        if None not in domains and len(domains) <= FEW:
            return {"domain": sorted(str(domain) for domain in domains)}
        return few or {"longest": max(len(value) for value in values)}
    return few


def _list(values: list[Any]) -> Constraint | None:
    """The values themselves, where they are few."""
    if any(value in _LABELS for value in values if isinstance(value, str)):
        return {"any": True}
    named_by = {orjson.dumps(value, option=orjson.OPT_SORT_KEYS): value for value in values}
    distinct = [value for _, value in sorted(named_by.items())]
    if len(distinct) == 1:
        return {"equals": distinct[0]}
    return {"one_of": distinct} if len(distinct) <= FEW else None
