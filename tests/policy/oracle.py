"""What would a bundle say, asked the slow way?

Straight over Cedar: for every decision the whole bundle is asked, with all the facts there are and entities
made anew. Nothing is looked up by tool, no answer is remembered, no fact is left out; so it shares no
shortcut with what it is compared with.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from cedarpy import Decision, Entities, PolicySet, is_authorized, policies_to_json_str

from holdfast.policy.bundle import Bundle, Policy, parsed
from holdfast.policy.facts import context, principal_entities
from holdfast.policy.reads import covers, paths
from holdfast.policy.schema import NOWHERE, action_entity, tool_entity
from holdfast.policy.shard import ALL_FACTS
from holdfast.ports import Catalog


class Said(NamedTuple):
    allow: bool
    need: dict[str, int]
    """What its policies ask for, without any floor."""


class Oracle:
    def __init__(self, bundle: Bundle, catalog: Catalog) -> None:
        self._catalog = catalog
        self._policies = [Policy(t.annotations["id"], s, t) for s in bundle.statements for t in [parsed(s)]]
        trees = {policy.id: _tree(policy) for policy in self._policies}
        whole = {"staticPolicies": trees, "templates": {}, "templateLinks": []}
        self._handle = PolicySet.from_json_str(orjson.dumps(whole).decode())

    def ask(self, facts: dict[str, Any]) -> Said:
        listing = self._catalog.exact(facts["tool"], facts["version"])
        assert listing is not None
        if _unseen(self._policies, facts, listing.tool.contract.identity.namespace):
            return Said(False, {})
        tool = tool_entity(listing.tool.contract, listing.upstream, NOWHERE)
        entities = [*principal_entities(facts), action_entity(facts["tool"]), tool]
        request = {
            "principal": {"type": "Agent", "id": facts["principal"]},
            "action": {"type": "Action", "id": facts["tool"]},
            "resource": {"type": "Tool", "id": facts["tool"]},
            "context": orjson.dumps(context(facts, ALL_FACTS)).decode(),
        }
        said = is_authorized(request, self._handle, Entities.from_json_str(orjson.dumps(entities).decode()))
        if said.diagnostics.errors or said.decision is not Decision.Allow:
            return Said(False, {})
        need: dict[str, int] = {}
        for policy in self._policies:
            if policy.id in said.diagnostics.reasons:
                for role, count in policy.duties.need.items():
                    need[role] = max(need.get(role, 0), count)
        return Said(True, need)


def _unseen(policies: Iterable[Policy], facts: dict[str, Any], namespace: str) -> bool:
    """Whether a policy about this tool reads an argument that could not be told."""
    for pointer in facts["left_out"]:
        steps = tuple(pointer.split("/")[1:])
        for policy in policies:
            if not covers(policy.tree, facts["tool"], namespace):
                continue
            for path in paths(policy.tree):
                read = path[1:] if path[:1] == ("args",) else None if path else ()
                if read is not None and all(a == b for a, b in zip(read, steps, strict=False)):
                    return True
    return False


def _tree(policy: Policy) -> Any:
    [tree] = orjson.loads(policies_to_json_str(policy.statement.text))["staticPolicies"].values()
    return tree
