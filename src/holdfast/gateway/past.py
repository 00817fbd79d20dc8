"""Which decisions do the records tell of?

What policy was asked is sealed in them, tenant by tenant. What sessions had seen by then is in it where a
policy asked for it, and else is found in what the store remembers of their labels.
"""

from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import orjson

from holdfast.gateway.auditing import Auditing
from holdfast.gateway.diff import Wish
from holdfast.gateway.labels import Seen
from holdfast.model import defaults
from holdfast.model.errors import StoreError
from holdfast.model.record import Entry
from holdfast.model.vocabulary import Floor
from holdfast.policy.replay import Past
from holdfast.ports import Ports

PAGE = 1000
"""Records read at once."""
DECIDED = frozenset({"intent", "refusal", "hold", "replay"})


async def decisions(wish: Wish, since: float, auditing: Auditing, ports: Ports) -> AsyncIterator[Past]:
    """Everything that policy decided since a time, each tenant's in the order of time."""
    tenants = [wish.tenant] if wish.tenant is not None else await auditing.tenants()
    for tenant in tenants:
        kept = [] if ports.labels is None else await ports.labels.list(tenant)
        seen = Seen(kept, ports.clock.now() - defaults.LABEL_KEPT_S)
        async for entry in _entries(tenant, since, auditing):
            body = orjson.loads(entry.record.body)
            if not body.get("decision"):
                continue
            past = _read(entry, body, opened(tenant, body["decision"].get("facts"), ports))
            if _wanted(past, body, wish):
                yield past if past.facts is None else past._replace(facts=seen.told(past.facts))


async def _entries(tenant: str, since: float, auditing: Auditing) -> AsyncIterator[Entry]:
    at, leaf = since, -1
    while page := await auditing.since(tenant, at, leaf, PAGE):
        for entry in page:
            if entry.record.kind in DECIDED:
                yield entry
        at, leaf = page[-1].record.at, page[-1].leaf


def _read(entry: Entry, body: Mapping[str, Any], facts: Mapping[str, Any] | None) -> Past:
    decision = body["decision"]
    tool, _, _ = str(body["tool"]).partition("@")
    return Past(
        entry.record.call_id,
        body.get("policy_decision_id"),
        entry.record.kind,
        tool,
        facts,
        decision["allow"],
        Floor(decision["floor"]),
        decision["need"],
        tuple(decision.get("redact", ())),
        tuple(decision.get("verify", ())),
        tuple(decision["policies"]),
        decision["version"],
        body.get("error_code"),
        own="facts" not in decision and (body["caller"], body["agent"]) == ("holdfast", "reader"),
    )


def _wanted(past: Past, body: Mapping[str, Any], wish: Wish) -> bool:
    who = past.facts["principal"] if past.facts is not None else f"{body['caller']}/{body['agent']}"
    return (wish.tool is None or fnmatchcase(past.tool, wish.tool)) and (
        wish.principal is None or fnmatchcase(who, wish.principal)
    )


def opened(tenant: str, sealed: str | None, ports: Ports) -> Mapping[str, Any] | None:
    """The facts of a decision; None where none were kept, or they were erased."""
    if sealed is None:
        return None
    try:
        facts: dict[str, Any] = orjson.loads(ports.secrets.unseal(tenant, b64decode(sealed)))
    except (StoreError, ValueError):  # erased with its tenant's key
        return None
    return facts
