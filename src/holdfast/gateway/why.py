"""Why can this caller not do that, and what is the smallest change that would let them? POL-7.

The call is led through the gates a preview passes, without acting; a refusal is recorded like any other, so
that whoever is asked can look it up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from holdfast.lifecycle import GATES, admit, receive, recorded, refused
from holdfast.model.approval import needed
from holdfast.model.bounds import UNBOUND
from holdfast.model.call import Call, Proposal
from holdfast.model.errors import Code
from holdfast.model.scopes import covers
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import Floor, SafetyMode
from holdfast.policy import CedarPolicy
from holdfast.policy.bundle import Policy
from holdfast.policy.explain import Why, explain
from holdfast.policy.served import Served
from holdfast.ports import Ports

SCOPE = "holdfast:explain"
ASK = f"somebody with the role 'operator', or who holds the scope '{SCOPE}'; give them this call id"
BLIND = frozenset({"arguments", "semantics", "state"})
"""Gates that have nothing to look at where no arguments are given."""


_OTHER_ARGUMENTS = ("give arguments that it takes",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    tool: str
    allowed: bool
    call_id: str
    """Where the record of this answer is found."""
    decision_id: str | None = None
    ask: str | None = None
    """Whom to ask, where the rest may not be told."""
    gate: str | None = None
    code: Code | None = None
    message: str | None = None
    need: Mapping[str, int] = field(default_factory=dict)
    """Who would have to approve it."""
    policies: tuple[dict[str, Any], ...] = ()
    """Those that decided."""
    closest: dict[str, Any] | None = None
    """The permit that nearly held, and which of its conditions did not."""
    changes: tuple[str, ...] = ()
    """Changes, each of which would allow it: of one thing, and where none would do, of two."""
    unasked: tuple[str, ...] = ()
    """Changes, with each of which nobody would have to approve it."""

    def to_dict(self) -> dict[str, Any]:
        members = {name: getattr(self, name) for name in self.__slots__}
        kept = {"tool", "allowed", "call_id"}
        return {name: value for name, value in members.items() if name in kept or value not in (None, (), {})}


async def why(proposal: Proposal, ports: Ports, *, blind: bool, told: bool) -> Explanation:
    """`blind`: no arguments were given; `told`: the caller may know everything."""
    call = receive(proposal, ports)
    verdict = await _admit(call, ports, blind)
    seen = None
    if isinstance(verdict, Refusal):
        seen = await recorded(call, refused(call, verdict, ports), ports, verdict.private)
    decision = getattr(call, "decision", None)
    if not told:
        return Explanation(
            tool=proposal.tool,
            allowed=verdict is PASS,
            call_id=call.id,
            decision_id=None if decision is None else decision.id,
            ask=None if verdict is PASS else ASK,
        )
    if not isinstance(verdict, Refusal) or seen is None:
        return await _passed(call, ports)
    return await _refused(call, verdict, seen.message, ports, blind)


async def _admit(call: Call, ports: Ports, blind: bool) -> Verdict:
    if not blind:
        return await admit(call, ports, GATES)
    first = tuple(gate for gate in GATES if gate.__name__ in ("resolve", "authorize"))
    verdict = await admit(call, ports, first)
    if verdict is not PASS:
        return verdict
    call.arguments = {}
    seen = {gate.__name__ for gate in first} | BLIND
    return await admit(call, ports, tuple(gate for gate in GATES if gate.__name__ not in seen))


async def _refused(
    call: Call, verdict: Refusal, message: str | None, ports: Ports, blind: bool
) -> Explanation:
    gate = call.verdicts[-1][0]
    decision = getattr(call, "decision", None)
    more: dict[str, Any] = {}
    match gate:
        case "resolve":
            more = {"changes": _other_names(call.proposal.tool, ports)}
        case "authorize" if verdict.private is Code.PERMISSION_DENIED:
            more = await _not_delegated(call, ports, blind)
        case "policy" if decision is not None and not decision.allow:
            more = _by_policy(call, ports)
    told = {"message": message, "gate": gate, "code": verdict.private or verdict.code, **more}
    return Explanation(allowed=False, **_known(call, ports), **told)


async def _passed(call: Call, ports: Ports) -> Explanation:
    contract = call.tool.contract
    known = {**_known(call, ports), "need": needed(contract.security.approval_floor, call.decision)}
    halts = await ports.controls.halts()
    for name in ("all", contract.identity.namespace, contract.tool, call.principal.id):
        if name in halts:
            known |= {"gate": "claim", "code": Code.TOOL_UNAVAILABLE, "changes": (f"resume {name!r}",)}
            return Explanation(allowed=False, message=f"{name!r} is halted {halts[name]}", **known)
    found = _seriously(call, ports)
    if found is not None and not found.judged.allow:
        message = f"policy does not allow this call: {'; '.join(found.judged.reasons)}"
        known |= {"gate": "policy", "code": Code.POLICY_VIOLATION, **_told(found), "need": {}}
        return Explanation(allowed=False, message=message, **known)
    if not known["need"]:
        return Explanation(allowed=True, message="it is allowed", **known)
    floor = contract.security.approval_floor
    unasked = () if found is None or floor is not Floor.NONE else tuple(c.text for c in found.changes)
    return Explanation(allowed=True, message="it is allowed once it is approved", unasked=unasked, **known)


def _seriously(call: Call, ports: Ports) -> Why | None:
    """What policy says of the call itself: here it was only looked at, as a preview is."""
    policy = _cedar(ports)
    if policy is None or call.decision.facts is None or call.proposal.safety_mode is SafetyMode.DRY_RUN:
        return None
    return explain(policy, {**call.decision.facts, "preview": False})


def _known(call: Call, ports: Ports) -> dict[str, Any]:
    known: dict[str, Any] = {"tool": call.proposal.tool, "call_id": call.id}
    decision = getattr(call, "decision", None)
    if decision is not None:
        known |= {"decision_id": decision.id, "policies": _deciding(ports, decision.policies)}
    return known


async def _not_delegated(call: Call, ports: Ports, blind: bool) -> dict[str, Any]:
    """What the caller lacks to see the tool at all, and what else would be in the way then."""
    principal, contract = call.principal, call.tool.contract
    missing = [s for s in contract.security.required_scopes if not covers(principal.scopes, s)]
    lacks, todo = [], []
    if missing:
        listed = ", ".join(map(repr, missing))
        lacks.append(f"the caller does not hold {listed}, so the tool is hidden from them")
        todo.append(f"grant {principal.user!r} {listed}")
    if not principal.bounds.reaches(contract.tool, ()):
        lacks.append("what was delegated to the caller does not reach this tool, so it is hidden from them")
        todo.append(f"delegate again, with the tool {contract.tool!r}")
    given = replace(principal, scopes=principal.scopes | {*missing}, bounds=UNBOUND)
    again = receive(call.proposal._replace(principal=given), ports)
    verdict = await _admit(again, ports, blind)
    told: dict[str, Any] = {"message": "; ".join(lacks), "changes": (", and ".join(todo),)}
    if isinstance(verdict, Refusal):
        gate = again.verdicts[-1][0]
        told["message"] += f"; and then gate {gate!r} would say: {verdict.message}"
        then = _OTHER_ARGUMENTS if gate in ("arguments", "semantics") else ()
        if _denied(again):
            then = _by_policy(again, ports).get("changes", ())
        told["changes"] = tuple(", and ".join((*todo, change)) for change in then)
    return told


def _denied(call: Call) -> bool:
    """Whether policy was asked, and said no."""
    decision = getattr(call, "decision", None)
    return decision is not None and not decision.allow


def _other_names(wanted: str, ports: Ports) -> tuple[str, ...]:
    known = sorted({listing.tool.contract.tool for listing in ports.catalog.list()})
    near = get_close_matches(wanted.partition("@")[0], known, n=1, cutoff=0.6)
    return tuple(f"call {name!r}" for name in near)


def _by_policy(call: Call, ports: Ports) -> dict[str, Any]:
    policy = _cedar(ports)
    if policy is None or call.decision.facts is None:
        return {"changes": ("put policies in force that permit it: 'holdfast policy promote FOLDER'",)}
    found = explain(policy, {**call.decision.facts, "preview": False})
    told = _told(found)
    if found.judged.errors:
        told["message"] = "; ".join((*found.judged.reasons, *found.judged.errors))
        names = sorted({path[0] for path in policy.shard(call.tool.contract.tool).arguments if path})
        if names and not call.arguments:
            told["changes"] = (f"ask with arguments: policies look at {', '.join(map(repr, names))}",)
    return told


def _told(found: Why) -> dict[str, Any]:
    told: dict[str, Any] = {"changes": tuple(change.text for change in found.changes)}
    if found.closest is not None:
        told["closest"] = {**_shown(found.closest.policy), "failing": list(found.closest.failing)}
    return told


def _deciding(ports: Ports, ids: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    policy = _cedar(ports)
    known = {} if policy is None else {p.id: p for p in policy.policies}
    return tuple(_shown(known[id]) for id in ids if id in known)


def _shown(policy: Policy) -> dict[str, Any]:
    return {
        "id": policy.id,
        "effect": policy.tree.effect,
        "reason": policy.reason,
        "place": str(policy.statement.place),
        "text": policy.statement.text,
    }


def _cedar(ports: Ports) -> CedarPolicy | None:
    policy = ports.policy.current if isinstance(ports.policy, Served) else ports.policy
    return policy if isinstance(policy, CedarPolicy) else None
