"""Drives a gateway with generated calls, then asks both ways what other policies would have said."""

from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast import Gateway, Principal, testing
from holdfast.gateway.diff import Wish
from holdfast.model.approval import NEEDS, joined
from holdfast.model.defaults import LABEL_KEPT_S
from holdfast.model.vocabulary import Floor
from holdfast.policy import Bundle
from holdfast.testing import ManualClock
from tests.policy.bank import TOOLS
from tests.policy.case import WEDNESDAY, bundle_of, shipped
from tests.policy.oracle import Oracle
from tests.policy.traffic import Traffic

OLGA = Principal(user="olga", agent="local", roles=frozenset({"operator"}))
FOR_EVER_S = 1e9
OTHERWISE = """
@id("reads") permit (principal, action, resource) when { resource.effect == "READ_ONLY" };
@id("exports.office") forbid (principal, action == Action::"bank.export", resource)
when { context.hour < 8 || context.hour >= 18 } unless { principal in Role::"treasury" };
@id("notes") @approval("operator") permit (principal, action == Action::"bank.note", resource)
unless { context.args.account == "acct-666" };
@id("transfers") permit (principal, action == Action::"bank.transfer", resource)
when { context.args.amount.lessThanOrEqual(decimal("500.0")) };
@id("transfers.more") @approval("compliance:1")
permit (principal, action == Action::"bank.transfer", resource)
when { context.args.amount.greaterThan(decimal("100.0")) };
@id("closing") permit (principal in Role::"treasury", action == Action::"bank.close", resource);
@id("keeps-in") forbid (principal, action in Action::"call", resource)
when { resource.effect_rank > 0 && context.labels.contains("confidential") && !(principal.agent like "c*") };
@id("guests") forbid (principal in Tenant::"guests", action, resource)
when { context.has_session && !context.trusted };
"""


@dataclass(frozen=True, slots=True)
class Told:
    decisions: int
    changes: Counter[str]


async def compared(calls: int, seed: int) -> Told:
    """Fails where the time machine and the slow way disagree about any call.

    All of it is within the time for which labels are kept: what is older is not judged.
    """
    clock = ManualClock(WEDNESDAY.timestamp())
    candidate = bundle_of(OTHERWISE, "otherwise")
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock, config=_config()) as gateway:
        traffic = Traffic(clock, seed, (1.0, 60.0, min(3600.0, 2 * LABEL_KEPT_S / calls)))
        labelled = bundle_of(shipped_text() + LABELLED, "labelled")
        await traffic.run(gateway, calls, [shipped(), labelled], OLGA)
        diff = await gateway.history.diff(OLGA, candidate, Wish(since_s=FOR_EVER_S, examples=calls))
        quick = {(flip.past.call_id, flip.change.value) for group in diff.groups for flip in group.examples}
        slow, decisions = await _slowly(gateway, candidate, traffic)
    assert quick == slow
    assert diff.decisions == decisions
    assert diff.flips == len(slow) == sum(group.count for group in diff.groups)
    return Told(decisions, Counter(change for _, change in slow))


LABELLED = """
@id("exports.twice") forbid (principal, action == Action::"bank.export", resource)
when { context.labels.contains("regulated") && context.args has limit && context.args.limit > 1000 };
"""


def shipped_text() -> str:
    return "\n".join(shipped().files.values())


def _config() -> dict[str, Any]:
    people = {
        "olga": {"roles": ["operator"]},
        "carl": {"roles": ["compliance"]},
        "odo": {"roles": ["operator"]},
    }
    return {
        "auth": {"people": people},
        "limits": {"budgets": [{"per": "principal", "kind": "all", "calls": 40, "window_s": 86_400.0}]},
    }


async def _slowly(gateway: Gateway, candidate: Bundle, traffic: Traffic) -> tuple[set[tuple[str, str]], int]:
    """From the records themselves, one by one."""
    ports, oracle = gateway._ports, Oracle(candidate, gateway._ports.catalog)
    flips: set[tuple[str, str]] = set()
    decisions = 0
    for tenant in ("default", "guests"):
        for entry in await gateway._auditing.since(tenant, 0.0, -1, 10**9):
            body = orjson.loads(entry.record.body)
            decision = body.get("decision")
            if not decision:
                continue
            facts = orjson.loads(ports.secrets.unseal(tenant, b64decode(decision["facts"])))
            labels = traffic.labels(facts)
            if "labels" in facts:  # what was asked then is what the rule in words says
                assert facts["labels"] == labels, facts
            decisions += 1
            said = oracle.ask({**facts, "labels": labels})
            listing = ports.catalog.exact(facts["tool"], facts["version"])
            assert listing is not None
            least = NEEDS[listing.tool.contract.security.approval_floor]
            before = joined(least, NEEDS[Floor(decision["floor"])], decision["need"])
            after = joined(least, NEEDS[Floor(facts["floor"])], said.need)
            if decision["allow"] != said.allow:
                flips.add((entry.record.call_id, "deny->allow" if said.allow else "allow->deny"))
            elif said.allow and before != after:
                flips.add((entry.record.call_id, "approval"))
    return flips, decisions
