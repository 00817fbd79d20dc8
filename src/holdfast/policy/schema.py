"""What can a policy speak about? The Cedar schema of this gateway's catalog.

One action per tool, so that `context.args` has the types of that tool's arguments. An agent is in its user, a
user in their roles and tenant, a tool in its namespace.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cedarpy import Schema

from holdfast.model.contract import Contract
from holdfast.policy.arguments import RecordOf, merged, plan, quoted
from holdfast.policy.obligations import Pin
from holdfast.policy.reads import EVERY_TOOL
from holdfast.ports import Listing

ENTITIES = """
entity Tenant;
entity Role;
entity User in [Role, Tenant];
entity Agent in [User] { user: String, agent: String, tenant: String, trust: Long };
entity Namespace;
entity Tool in [Namespace] {
  name: String, namespace: String, version: String, digest: String, upstream: String, owner: String,
  effect: String, effect_rank: Long, undo: String, reach: String, data_class: String, data_rank: Long,
  floor: String, egress: String, tags: Set<String>, scopes: Set<String>,
  residency?: String, jurisdiction?: String
};
"""

CONTEXT: Mapping[str, str] = {
    "environment": "String",
    "at": "datetime",
    "hour": "Long",
    "weekday": "Long",
    "trusted": "Bool",
    "left_to_policy": "Bool",
    "floor": "String",
    "preview": "Bool",
    "safety_mode": "String",
    "has_task": "Bool",
    "has_session": "Bool",
    "labels": "Set<String>",
    "args_complete": "Bool",
    "residency?": "String",
    "jurisdiction?": "String",
}
"""What every call brings beside its arguments."""


@dataclass(frozen=True, slots=True)
class Region:
    """Where data lies and whose law holds; POL-1+."""

    residency: str | None = None
    jurisdiction: str | None = None

    @property
    def facts(self) -> dict[str, str]:
        said = {"residency": self.residency, "jurisdiction": self.jurisdiction}
        return {name: value for name, value in said.items() if value is not None}


NOWHERE = Region()


@dataclass(frozen=True)
class Subject:
    """One tool as policies know it: all its versions under one name."""

    name: str
    namespace: str
    contracts: tuple[Contract, ...]
    upstreams: Mapping[str, str]
    """Where each of its contracts comes from, by digest."""

    @cached_property
    def arguments(self) -> RecordOf:
        """Made when first asked for: of a thousand tools few are asked about."""
        return merged([plan(contract.affordance.input_schema) for contract in self.contracts])

    @property
    def pins(self) -> tuple[Pin, ...]:
        """What a policy can be bound to, the newest version last."""
        return tuple(Pin(upstream, self.name, digest) for digest, upstream in self.upstreams.items())


def subjects(listings: Iterable[Listing]) -> dict[str, Subject]:
    versions: dict[str, list[Contract]] = {}
    upstreams: dict[str, str] = {}
    for listing in listings:
        contract = listing.tool.contract
        versions.setdefault(contract.tool, []).append(contract)
        upstreams[contract.digest] = listing.upstream
    return {
        name: Subject(
            name,
            contracts[0].identity.namespace,
            tuple(contracts),
            {contract.digest: upstreams[contract.digest] for contract in contracts},
        )
        for name, contracts in sorted(versions.items())
    }


def text(tools: Mapping[str, Subject]) -> str:
    """The schema as Cedar writes it."""
    context = ", ".join(f"{name}: {kind}" for name, kind in CONTEXT.items())
    actions = "\n".join(
        f"action {quoted(name)} in [Action::{quoted(EVERY_TOOL)}] appliesTo {{ principal: [Agent], "
        f"resource: [Tool], context: {{ {context}, args: {subject.arguments.cedar} }} }};"
        for name, subject in tools.items()
    )
    return f"{ENTITIES}action {quoted(EVERY_TOOL)};\n{actions}\n"


def schema(tools: Mapping[str, Subject]) -> Schema:
    return Schema.from_str(text(tools))


def action_entity(tool: str) -> dict[str, Any]:
    """Without it `action in Action::"call"` never holds: no schema is there when a call is judged."""
    return {
        "uid": {"type": "Action", "id": tool},
        "attrs": {},
        "parents": [{"type": "Action", "id": EVERY_TOOL}],
    }


def tool_entity(contract: Contract, upstream: str, region: Region) -> dict[str, Any]:
    """A tool version as Cedar's JSON."""
    promise, security, identity = contract.transactional, contract.security, contract.identity
    return {
        "uid": {"type": "Tool", "id": contract.tool},
        "attrs": {
            "name": identity.name,
            "namespace": identity.namespace,
            "version": identity.version,
            "digest": contract.digest,
            "upstream": upstream,
            "owner": identity.owner,
            "effect": promise.effect.value,
            "effect_rank": promise.effect.rank,
            "undo": promise.undo.value,
            "reach": contract.runtime.reach.value,
            "data_class": security.data_class.value,
            "data_rank": security.data_class.rank,
            "floor": security.approval_floor.value,
            "egress": security.egress.value,
            "tags": list(identity.tags),
            "scopes": list(security.required_scopes),
            **region.facts,
        },
        "parents": [{"type": "Namespace", "id": identity.namespace}],
    }
