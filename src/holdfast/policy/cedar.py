"""What does a bundle say about a call?

Everything is parsed once. A decision looks only at the policies whose scope can cover the tool, and hands
Cedar only the facts they read. Cedar skips a policy whose condition fails to evaluate, a forbid too: here any
such error is a deny. Permits and forbids are the bundle's; the rule of POL-3 holds on top of it.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from cedarpy import AuthzResult, Entities, PolicySet, is_authorized
from cedarpy import Decision as Said

from holdfast.model import defaults
from holdfast.model.call import Call, Decision
from holdfast.model.contract import Contract
from holdfast.model.derive import ApprovalRule, needs_approval
from holdfast.model.scopes import covers
from holdfast.model.vocabulary import Environment
from holdfast.policy.bundle import Bundle, Policy, Problem
from holdfast.policy.check import check
from holdfast.policy.facts import Facts, Roles, context, facts, lasting, own_roles, principal_entities
from holdfast.policy.index import Index
from holdfast.policy.schema import NOWHERE, Region, Subject, action_entity, subjects, tool_entity
from holdfast.policy.shard import Shard, fitted, shard
from holdfast.policy.standing import Judgement, Key, Standing, key
from holdfast.ports import Catalog, Ids

log = logging.getLogger(__name__)

REMEMBERED = 4096
"""Pairs of a principal and a tool whose entities are kept parsed, standings, and judgements kept at all."""
SHORT = 1024
"""Bytes of context of which a judgement is worth keeping. Cedar looks at nothing but policies, entities and
context, time included, so what is kept under all three cannot be out of date."""


class CedarPolicy:
    """Implements `ports.Policy` over one bundle and what the catalog holds now."""

    def __init__(
        self,
        bundle: Bundle,
        catalog: Catalog,
        ids: Ids,
        *,
        threshold: int = defaults.TRUST_THRESHOLD,
        critical_scopes: Sequence[str] = (),
        region: Region = NOWHERE,
        regions: Mapping[str, Region] | None = None,
        roles: Roles = own_roles,
    ) -> None:
        self.bundle = bundle
        self.version = bundle.version
        self.catalog = catalog
        self._ids = ids
        self.threshold = threshold
        self._critical = tuple(critical_scopes)
        self.region = region
        self.regions = dict(regions or {})
        self._roles = roles
        self.read_catalog()

    def read_catalog(self) -> None:
        """Fit the bundle to the catalog; policies that do not fit shut the tools they cover."""
        self.subjects = subjects(self.catalog.list())
        report = self.report = check(self.bundle, self.subjects)
        self.policies = report.policies
        self._index = Index(report.policies)
        # Without a single tool no policy fits anything, and that is nobody's fault: none was found yet.
        found = [problem for problem in report.problems if self.subjects or not problem.policy]
        self.problems: tuple[Problem, ...] = tuple(found)
        self._broken = frozenset(problem.policy for problem in found if problem.policy)
        self._unreadable = [problem for problem in found if not problem.policy]
        self._shards: dict[str, Shard] = {}
        self._pinned: dict[tuple[str, str], Shard] = {}
        self._entities: dict[tuple[Any, ...], Entities] = {}
        self._standings: dict[Key, Standing] = {}
        self._judged: dict[tuple[tuple[Any, ...], bytes], Judgement] = {}
        for problem in found:
            log.warning("policy %s: %s", self.version, problem)

    # --- the port -------------------------------------------------------------------------

    def asked(self, call: Call) -> Facts:
        """What would be judged of a call."""
        standing = self._standing(call)
        return facts(call, standing.known, standing.arguments)

    def decide(self, call: Call) -> Decision:
        standing = self._standing(call)
        known = facts(call, standing.known, standing.arguments)
        said = standing.said
        if said is None or known["left_out"]:
            said = standing.tell(self.judge(known))
            if standing.steady and not known["left_out"]:
                standing.said = said
        return Decision(
            f"pd_{self._ids.nonce()}",
            said.allow,
            said.reasons,
            standing.rule.floor,
            said.need,
            standing.risk,
            self.version,
            said.policies,
            known,
            said.redact,
            said.verify,
            standing.labelled and call.labels is None,
            said.alert,
        )

    # --- judging --------------------------------------------------------------------------

    def _standing(self, call: Call) -> Standing:
        principal = call.principal
        roles = self._roles(principal)
        if principal.roles:
            roles = roles | principal.roles
        name = key(call, roles)
        found = self._standings.get(name)
        if found is None:
            found = self._made(call, roles)
            if len(self._standings) >= REMEMBERED:
                self._standings.clear()
            self._standings[name] = found
        return found

    def _made(self, call: Call, roles: frozenset[str]) -> Standing:
        contract, trust = call.tool.contract, call.principal.trust
        arguments = self.subject(contract).arguments
        rule = self.rule(contract, trust, call.proposal.environment)
        trusted = trust >= self.threshold
        known = lasting(call, rule, roles=roles, trusted=trusted, region=self.region)
        return Standing(known, rule, arguments, self.shard(contract.tool), contract.effect.value)

    def judge(self, known: Facts) -> Judgement:
        """The same facts are judged the same, whenever and wherever."""
        if self._unreadable:
            return _denied(f"the policies cannot be read ({self._unreadable[0]}); tell the operator")
        own = self.shard(known["tool"], known["digest"])
        if own.broken:
            return _denied(f"policy {own.broken[0]!r} does not fit this tool any more; tell the operator")
        if own.shut:
            text = f"policy {own.shut[0]!r} was written for another contract of {known['tool']!r}"
            return _denied(f"{text}; tell the operator")
        if known["left_out"] and (pointer := own.unseen(known["left_out"])) is not None:
            return _denied(f"a policy looks at argument '{pointer}' and cannot read a value like this one")
        if "labels" in own.names and known.get("labels") is None:
            return _denied("a policy looks at what the caller has seen before, and nobody has looked it up")
        said = context(known, own.names, own.looks_at)
        asked = (_who_and_what(known), orjson.dumps(said, option=orjson.OPT_SORT_KEYS))
        judged = self._judged.get(asked)
        if judged is None:
            judged = self._ask_cedar(known, own, asked[1].decode())
            if len(self._judged) >= REMEMBERED:
                self._judged.clear()
            if len(asked[1]) <= SHORT:
                self._judged[asked] = judged
        return judged

    def evaluate(self, known: Facts, policies: PolicySet, said: str) -> AuthzResult:
        request = {
            "principal": {"type": "Agent", "id": known["principal"]},
            "action": {"type": "Action", "id": known["tool"]},
            "resource": {"type": "Tool", "id": known["tool"]},
            "context": said,
        }
        return is_authorized(request, policies, self._entities_of(known))

    def _ask_cedar(self, known: Facts, own: Shard, context: str) -> Judgement:
        said = self.evaluate(known, own.handle, context)
        found = said.diagnostics
        if found.errors or said.decision is Said.NoDecision:
            return self._failed(found.errors, own)
        policies = tuple(own.policies[id] for id in sorted(found.reasons))
        if said.allowed:
            return Judgement(True, policies, tuple(policy.reason for policy in policies))
        if policies:
            return Judgement(False, policies, tuple(policy.reason for policy in policies))
        if own.unfit:
            return _denied(
                f"no policy permits it; {own.unfit[0]!r} does, for another contract of {known['tool']!r} only"
            )
        return _denied("no policy permits it")

    def shard(self, tool: str, digest: str | None = None) -> Shard:
        """What has a say about a tool; with a digest, about that contract of it."""
        found = self._shards.get(tool)
        if found is None:
            found = self._shards[tool] = shard(self.covering(tool), self._broken)
        return found if digest is None or not found.pinned else self._fitted(tool, digest)

    def covering(self, tool: str) -> list[Policy]:
        return self._index.of(tool, self.subjects[tool].namespace)

    def _fitted(self, tool: str, digest: str) -> Shard:
        found = self._pinned.get((tool, digest))
        if found is None:
            upstream = self.subjects[tool].upstreams.get(digest, "")
            made = fitted(self.covering(tool), self._broken, tool, digest, upstream)
            found = self._pinned[tool, digest] = made
        return found

    def subject(self, contract: Contract) -> Subject:
        found = self.subjects.get(contract.tool)
        if found is None or contract.digest not in found.upstreams:  # the catalog has changed
            self.read_catalog()
            found = self.subjects[contract.tool]
        return found

    def _failed(self, errors: list[str], own: Shard) -> Judgement:
        log.warning("policy %s could not be judged: %s", self.version, "; ".join(errors))
        named = next((id for id in own.policies if any(f"`{id}`" in error for error in errors)), "?")
        return _denied(f"policy {named!r} could not be judged, so it forbids", tuple(errors))

    def _entities_of(self, known: Facts) -> Entities:
        key = _who_and_what(known)
        found = self._entities.get(key)
        if found is None:
            listing = self.catalog.exact(known["tool"], known["version"])
            if listing is None or listing.tool.contract.digest != known["digest"]:
                raise LookupError(f"{known['tool']}@{known['version']} is not in the catalog")
            region = self.regions.get(listing.upstream, NOWHERE)
            tool = tool_entity(listing.tool.contract, listing.upstream, region)
            entities = [*principal_entities(known), action_entity(known["tool"]), tool]
            found = Entities.from_json_str(orjson.dumps(entities).decode())
            if len(self._entities) >= REMEMBERED:
                self._entities.clear()
            self._entities[key] = found
        return found

    def rule(self, contract: Contract, trust: int, environment: Environment) -> ApprovalRule:
        """What POL-3 says, whatever the bundle does."""
        if contract.transactional.composed:
            return ApprovalRule(contract.security.approval_floor, "people are asked about each of its steps")
        return needs_approval(
            contract.effect,
            contract.transactional.undo,
            contract.security.approval_floor,
            trust=trust,
            environment=environment,
            critical_scope=any(covers(self._critical, scope) for scope in contract.security.required_scopes),
            threshold=self.threshold,
        )


def _who_and_what(known: Facts) -> tuple[Any, ...]:
    """Everything that the entities of a request are made from."""
    return (known["digest"], known["principal"], known["tenant"], known["trust"], *known["roles"])


def _denied(reason: str, errors: tuple[str, ...] = ()) -> Judgement:
    return Judgement(False, (), (reason,), errors)
