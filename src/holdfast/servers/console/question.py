"""What does a question say in five seconds: what will happen, to whom, and can it be undone?

Made of the packet, which was frozen when it was asked. A text that an agent wrote is kept apart as `Words`,
for the templates to mark; what was read by a tool is not the agent's, and is bounded here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.gateway.inbox import Waiting
from holdfast.model.access import ELEVATION
from holdfast.model.approval import Approval
from holdfast.model.quoted import visible
from holdfast.model.standing import PLAN, RULE
from holdfast.servers.console.difference import Difference, difference, fields

LONGEST = 120
"""Characters of one value on a line."""
LONGEST_ARGUMENT = 4000
"""Characters of one argument; the packet keeps fewer, each of them made visible."""
MOST_TARGETS = 3
MOST_PLACES = 8
"""Places named in a warning; the count of the others is told."""
RISKS = {
    "READ_ONLY": ("reads", "read_only"),
    "EPHEMERAL_WRITE": ("low risk", "low"),
    "LOW_RISK_INTERNAL": ("low risk", "low"),
    "MEDIUM_RISK_WRITE": ("medium risk", "medium"),
    "HIGH_RISK_EXTERNAL": ("high risk", "high"),
    "CRITICAL_MUTATION": ("critical", "critical"),
}
UNDO = {
    "exact": ("can be undone", "good"),
    "semantic": ("can be made good", "good"),
    "partial": ("partly undone", "warn"),
    "none": ("cannot be undone", "bad"),
}
MEMBERS = (
    *("action", "arguments", "environment", "floor", "if_rejected", "most", "note", "policy_decision_id"),
    *("policy_version", "step", "task", "trace_id", "until"),
)
"""Members of a packet that not every question has."""
_PEOPLE = ("to", "recipient", "recipients", "customer", "owner", "person", "user", "account", "email", "name")
_THINGS = ("id", "path", "url", "host", "table", "branch", "repo", "order", "ticket", "target", "resource")


@dataclass(frozen=True, slots=True)
class Words:
    """A value with its name. `by` says whose words it is: the agent's, or those of the tool that read it."""

    name: str
    text: str
    by: str = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, ready to be shown."""

    waiting: Waiting
    kind: str
    """`call`, `plan`, `rule` or `elevation`."""
    headline: str
    action: str
    risk: str
    risk_kind: str
    undo: str
    undo_kind: str
    way_back: tuple[str, ...]
    targets: tuple[Words, ...]
    effects: tuple[str, ...]
    cost: str
    user: str
    agent: str
    trust: str
    act: tuple[str, ...]

    @property
    def asked(self) -> Approval:
        return self.waiting.asked

    @property
    def mine(self) -> bool:
        return not self.waiting.why_not


def question(waiting: Waiting) -> Question:
    asked, packet = waiting.asked, waiting.asked.packet
    risk, risk_kind = RISKS.get(str(packet.get("risk_class")), ("risk not known", "critical"))
    undo, undo_kind = _undo(str(packet.get("undo", "none")))
    by = _mapping(packet.get("requested_by"))
    about = targets(packet)
    if asked.ref.tool == ELEVATION:  # the rest of it is the headline
        about = (words for words in about if words.name == "reason")
    return Question(
        waiting=waiting,
        kind=KINDS.get(asked.ref.tool, "call"),
        headline=headline(asked),
        action=cut(packet.get("action", asked.ref.tool), 200),
        risk=risk,
        risk_kind=risk_kind,
        undo=undo,
        undo_kind=undo_kind,
        way_back=tuple(_way_back(_mapping(packet.get("rollback")), list(packet.get("steps", ())))),
        targets=tuple(about)[:MOST_TARGETS],
        effects=tuple(_effect(entry) for entry in list(packet.get("effects", ()))[:20]),
        cost=_cost(_mapping(packet.get("cost"))),
        user=cut(by.get("user", asked.requester)),
        agent=cut(by.get("agent", "")),
        trust=cut(by.get("trust", "")),
        act=tuple(cut(name) for name in list(by.get("act", ()))[:20]),
    )


KINDS = {PLAN: "plan", RULE: "rule", ELEVATION: "elevation"}


def headline(asked: Approval) -> str:
    """What happens on a yes, in one sentence of the contract or of ours."""
    packet = asked.packet
    if asked.ref.tool == PLAN:
        count = len(packet.get("steps", ()))
        return f"{count} calls are made, each once, without asking again"
    if asked.ref.tool == ELEVATION:
        said = _mapping(packet.get("arguments"))
        minutes = float(said.get("for_s", 0)) / 60
        return f"{asked.requester} holds {cut(said.get('scope'))} for {minutes:g} min"
    if asked.ref.tool == RULE:
        most = packet.get("most")
        often = "Any number of calls" if most is None else f"Up to {most} calls"
        return f"{often} like these are made without asking again"
    text = cut(packet.get("consequence") or f"{asked.ref.tool} is called", 300)
    return text[:1].upper() + text[1:]


# --- to whom ------------------------------------------------------------------------------


def targets(packet: Mapping[str, Any]) -> Iterator[Words]:
    """Who or what it is about, as far as names tell: arguments first, then what was read."""
    for step in list(packet.get("steps", ()))[:MOST_TARGETS]:
        first = next(targets({**_mapping(step), "steps": ()}), None)
        if first is not None:
            yield Words(cut(_mapping(step).get("action", ""), 60), first.text)
    arguments = _mapping(packet.get("arguments"))
    plain = {str(name): value for name, value in arguments.items() if isinstance(value, str | int | float)}
    short = [name for name in plain if len(str(plain[name])) <= LONGEST] or list(plain)[:1]
    ranked = sorted(short, key=_rank)
    for name in ranked[:2]:
        yield Words(cut(name, 40), cut(plain[name]))
    for reading in ("before", "after"):
        state = _mapping(_mapping(packet.get(reading)).get("state"))
        for name in _PEOPLE:
            if isinstance(state.get(name), str) and name not in plain:
                yield Words(name, cut(state[name]), "tool")
                return
    for name in ranked[2:]:
        yield Words(cut(name, 40), cut(plain[name]))


def _rank(name: str) -> int:
    """How likely a name tells whom it is about."""
    parts = name.lower().replace("-", "_").split("_")
    if parts[-1] in _PEOPLE or name.lower() in _PEOPLE:
        return 0
    return 1 if parts[-1] in _THINGS else 2


# --- the whole packet ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one tool told, for the approver's eyes."""

    source: str
    rows: tuple[tuple[str, str], ...]
    left_out: int


def readings(packet: Mapping[str, Any]) -> tuple[Reading | None, Reading | None, Difference | None]:
    """Before, after, and what is different; None where nothing was read."""
    before, after = (_mapping(packet.get(name)) for name in ("before", "after"))
    both = bool(before) and bool(after)
    differs = None
    if both:
        same = before.get("source") == after.get("source")
        differs = difference(before.get("state"), after.get("state"), same_source=same)
    return _reading(before), _reading(after), differs


def _reading(said: Mapping[str, Any]) -> Reading | None:
    if not said:
        return None
    rows, left_out = fields(said.get("state"))
    return Reading(source=cut(said.get("source", "")), rows=rows, left_out=left_out)


def arguments(packet: Mapping[str, Any]) -> tuple[tuple[tuple[str, str], ...], int]:
    """All that the agent gave, name by name."""
    return fields(packet.get("arguments") or {}, LONGEST_ARGUMENT)


def exact(packet: Mapping[str, Any]) -> str:
    """The arguments as JSON, as the packet keeps them."""
    try:
        return orjson.dumps(packet.get("arguments"), option=orjson.OPT_INDENT_2, default=str).decode()
    except orjson.JSONEncodeError:
        return "nested too deeply to be written"


def said_of_rule(packet: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a rule asks of arguments, in words."""
    return tuple((cut(name, 80), cut(text, 300)) for name, text in _mapping(packet.get("says")).items())


def places(packet: Mapping[str, Any], name: str) -> tuple[tuple[str, ...], int]:
    """Where something was found, and how many places more."""
    found = list(packet.get(name, ()))
    return tuple(cut(place, 80) for place in found[:MOST_PLACES]), max(0, len(found) - MOST_PLACES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """One call of a plan that is asked about."""

    number: int
    action: str
    headline: str
    risk: str
    risk_kind: str
    undo: str
    undo_kind: str
    arguments: tuple[tuple[str, str], ...]
    evidence: str


def steps(packet: Mapping[str, Any]) -> list[PlanStep]:
    return [_step(_mapping(one)) for one in list(packet.get("steps", ()))[:100]]


def _step(said: Mapping[str, Any]) -> PlanStep:
    risk, risk_kind = RISKS.get(str(said.get("risk_class")), ("risk not known", "critical"))
    undo, undo_kind = _undo(str(said.get("undo", "none")))
    return PlanStep(
        number=int(said.get("number", 0)),
        action=cut(said.get("action", "")),
        headline=cut(said.get("consequence", ""), 300),
        risk=risk,
        risk_kind=risk_kind,
        undo=undo,
        undo_kind=undo_kind,
        arguments=arguments(said)[0],
        evidence=cut(said.get("evidence", ""), 200),
    )


# --- small words --------------------------------------------------------------------------


def cut(value: Any, longest: int = LONGEST) -> str:
    """One short visible text, on one line."""
    said = value if isinstance(value, str) else str(value)
    shown = " ".join(visible(said[:longest]).split())
    return shown if len(said) <= longest else f"{shown}… ({len(said) - longest} more characters)"


def _undo(said: str) -> tuple[str, str]:
    """Of several, the hardest to take back."""
    for word in reversed(UNDO):
        if word in said.split("; "):
            return UNDO[word]
    return UNDO["none"]


def _way_back(back: Mapping[str, Any], planned: Sequence[Any]) -> Iterator[str]:
    if planned:
        lost = sum(_undo(str(_mapping(one).get("undo", "none")))[1] == "bad" for one in planned)
        yield f"{lost} of {len(planned)} calls cannot; see each of them" if lost else "see each call"
    if plan := back.get("plan"):
        yield cut(plan, 300)
    if tool := back.get("compensation"):
        yield f"by {cut(tool)}"


def _effect(entry: Any) -> str:
    said = _mapping(entry)
    verb = str(said.get("operation", "change")).lower()
    return cut(f"{verb} {said.get('resource', '')} ({said.get('scope', '')})")


def _cost(cost: Mapping[str, Any]) -> str:
    amount = cost.get("amount")
    if not isinstance(amount, int | float) or not amount:
        return ""
    return cut(f"{amount:g} {cost.get('currency', '')} per {cost.get('unit', 'call')}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def counted(need: Mapping[str, int]) -> Sequence[str]:
    return [f"{count} x {role}" for role, count in need.items()]
