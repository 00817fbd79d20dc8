"""Why was a past call decided as it was, and would it be decided the same today? AUD-3.

Everything told comes from the records of the call. What policy judged is sealed in them: it is opened here,
judged again under the bundle of that day and under the one in force now, and compared with what was decided.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from holdfast.gateway.past import opened
from holdfast.model.canonical import canonical
from holdfast.model.record import Entry
from holdfast.policy import Bundle, CedarPolicy, starter
from holdfast.policy.served import Served
from holdfast.ports import Bundles, Ports
from holdfast.records.chain import record_hash

DECIDED = ("intent", "refusal", "hold")
"""Kinds of records that say how a call was decided, the one that counts most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was true then; `same` is None where nobody can tell any more."""

    what: str
    same: bool | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    call_id: str
    steps: tuple[dict[str, Any], ...]
    """The records, in the order of the log."""
    decision: dict[str, Any] | None = None
    """What policy decided, without the sealed facts."""
    facts: Mapping[str, Any] | None = None
    """What it was asked, as long as the tenant's key is kept."""
    checks: tuple[Check, ...] = field(default=())

    @property
    def same(self) -> bool | None:
        """Whether it would come out the same; None where it cannot be told."""
        said = [check.same for check in self.checks]
        if False in said:
            return False
        return True if said and None not in said else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "call_id": self.call_id,
            "records": list(self.steps),
            "decision": self.decision,
            "facts": None if self.facts is None else dict(self.facts),
            "same": self.same,
            "checks": [{"what": c.what, "same": c.same, "text": c.text} for c in self.checks],
        }


async def recall(
    tenant: str, call_id: str, entries: Sequence[Entry], ports: Ports, bundles: Bundles
) -> Recalled:
    bodies = [(entry, orjson.loads(entry.record.body)) for entry in entries]
    decision = _decision(bodies)
    facts = None if decision is None else opened(tenant, decision.pop("facts", None), ports)
    checks = [_intact(entries), _contract(bodies, ports), await _arguments(tenant, call_id, bodies, ports)]
    if decision is not None:
        checks += [
            _judged("policy then", decision, facts, await _under(decision["version"], ports, bundles)),
            _judged("policy now", decision, facts, await _under(ports.policy.version, ports, bundles)),
        ]
    checks.append(_approved(bodies))
    return Recalled(
        call_id=call_id,
        steps=tuple(_step(entry, body) for entry, body in bodies),
        decision=decision,
        facts=facts,
        checks=tuple(check for check in checks if check is not None),
    )


Bodies = Sequence[tuple[Entry, Mapping[str, Any]]]
COVERS = ("rul_", "pln_")
"""How the names of rules and plans begin: their votes are not among the records of one call."""

_UNSAID = frozenset({"timestamp", "caller", "operation", "decision"})


def _decision(bodies: Bodies) -> dict[str, Any] | None:
    for kind in DECIDED:
        for entry, body in reversed(bodies):
            if entry.record.kind == kind and body.get("decision"):
                return dict(body["decision"])
    return None


def _step(entry: Entry, body: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in body.items() if name not in _UNSAID}
    told = {name: value for name, value in said.items() if value not in (None, [], {})}
    return {
        "record": entry.record.id,
        "leaf": entry.leaf,
        "at": body.get("timestamp"),
        "kind": entry.record.kind,
        "by": body.get("caller"),
        "did": body.get("operation"),
        **told,
    }


def _intact(entries: Sequence[Entry]) -> Check:
    bad = [e.record.id for e in entries if record_hash(*e.record[:-1]) != e.record.hash]
    text = f"changed: {', '.join(bad)}" if bad else f"{len(entries)} records hash to what their chain holds"
    return Check(what="records", same=not bad, text=text)


def _contract(bodies: Bodies, ports: Ports) -> Check | None:
    digests = {body["contract_digest"]: body["tool"] for _, body in bodies if body.get("contract_digest")}
    if not digests:
        return None
    digest, named = next(iter(digests.items()))
    tool, _, version = str(named).rpartition("@")
    listing = ports.catalog.exact(tool, version)
    if listing is None:
        return Check(what="contract", same=False, text=f"{named} is not in the catalog any more")
    same = listing.tool.contract.digest == digest
    return Check(
        what="contract", same=same, text=f"{named} {'is unchanged' if same else 'has another contract now'}"
    )


async def _arguments(tenant: str, call_id: str, bodies: Bodies, ports: Ports) -> Check | None:
    said = next((body["input_commitment"] for _, body in bodies if body.get("input_commitment")), None)
    if said is None:
        return None
    found = await ports.ledger.find_call(tenant, call_id)
    if found is None or found.payload is None:
        return Check(what="arguments", same=None, text="they are no longer kept, or were erased")
    kept = canonical(orjson.loads(found.payload)["arguments"])
    same = ports.secrets.commitment(tenant, kept) == said
    text = "what is kept is what was committed to" if same else "what is kept is not what was committed to"
    return Check(what="arguments", same=same, text=text)


async def _under(version: str, ports: Ports, bundles: Bundles) -> CedarPolicy | None:
    """The policies that had this version; None when they are not kept."""
    served = ports.policy
    if not isinstance(served, Served):
        return served if isinstance(served, CedarPolicy) and served.version == version else None
    if isinstance(served.current, CedarPolicy) and served.current.version == version:
        return served.current
    kept = next((one for one in await bundles.list() if one.version == version), None)
    found = Bundle.stored(kept.content) if kept is not None else starter()
    built = served.build(found) if found.version == version else None
    return built if isinstance(built, CedarPolicy) else None


def _judged(
    what: str, decision: Mapping[str, Any], facts: Mapping[str, Any] | None, policy: CedarPolicy | None
) -> Check:
    if policy is None:
        return Check(
            what=what, same=None, text=f"the policies of version {decision['version']} are not kept here"
        )
    if facts is None:
        return Check(what=what, same=None, text="what was judged is not kept, or was erased")
    try:
        again = policy.judge(facts)
    except LookupError as error:
        return Check(what=what, same=None, text=f"cannot be judged: {error.args[0]}")
    ids = sorted(one.id for one in again.policies)
    same = again.allow == decision["allow"] and (
        policy.version != decision["version"] or ids == sorted(decision["policies"])
    )
    verdict = "permits" if again.allow else "forbids"
    by = f" by {', '.join(ids)}" if ids else ""
    return Check(what=what, same=same, text=f"{policy.version} {verdict} it{by}")


def _approved(bodies: Bodies) -> Check | None:
    """Whether the votes in the records amount to the need in the records."""
    used = next((body["approval_id"] for body in _of(bodies, "intent") if body.get("approval_id")), None)
    if used is None:
        return None
    if str(used).startswith(COVERS):
        return Check(what="approval", same=None, text=f"'{used}' stood for more calls than this one")
    need = next((body["need"] for body in _of(bodies, "ask") if body.get("approval_id") == used), None)
    if need is None:
        return Check(what="approval", same=None, text=f"the question '{used}' is not in the records")
    yes = list(_yes(bodies, used))
    missing = [role for role, count in need.items() if sum(role == voted for voted, _ in yes) < count]
    people = ", ".join(sorted(person for _, person in yes))
    text = f"'{used}' lacks {', '.join(missing)}" if missing else f"'{used}' was approved by {people}"
    return Check(what="approval", same=not missing, text=text)


def _yes(bodies: Bodies, approval_id: str) -> Iterator[tuple[str, str]]:
    for body in _of(bodies, "vote"):
        if body.get("approval_id") == approval_id and body.get("approve"):
            yield str(body["role"]), str(body["caller"])


def _of(bodies: Bodies, kind: str) -> Iterator[Mapping[str, Any]]:
    return (body for entry, body in bodies if entry.record.kind == kind)
