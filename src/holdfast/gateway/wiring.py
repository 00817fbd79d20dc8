"""Builds what a configuration describes: upstreams, catalog, policy, identity, ports around a store."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from holdfast.catalog.adapt import offers
from holdfast.catalog.admission import Offer
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.lint import lint
from holdfast.config import Config
from holdfast.config import Upstream as UpstreamSettings
from holdfast.execution.runtime import Runtime
from holdfast.gateway import delegation, issuer, limits, policies, secrets
from holdfast.gateway.access import Access
from holdfast.gateway.auditing import Auditing
from holdfast.gateway.delegation import Delegation
from holdfast.gateway.grants import Grants
from holdfast.gateway.history import History
from holdfast.gateway.keys import Keys
from holdfast.gateway.labels import SessionLabels
from holdfast.gateway.news import News, together
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.plans import PlanDesk
from holdfast.gateway.readings import Readings
from holdfast.gateway.retiring import Retiring
from holdfast.gateway.rules import RuleDesk
from holdfast.gateway.secrets import Proofs
from holdfast.gateway.watching import Watching
from holdfast.identity import Identity
from holdfast.identity import build as build_identity
from holdfast.identity.subject import Subjects
from holdfast.model.strict_json import Limits
from holdfast.ports import Access as KeptAccess
from holdfast.ports import (
    Approvals,
    Audit,
    Bundles,
    Clock,
    Controls,
    Ids,
    Labels,
    Ledger,
    Plans,
    Policy,
    Ports,
    Rules,
    Secrets,
    Upstream,
)
from holdfast.records.checkpoint import Notary
from holdfast.stores.backup.lives import SqlLives
from holdfast.system import TokenIngress
from holdfast.upstreams.function import FunctionUpstream, load

if TYPE_CHECKING:
    from holdfast.gateway.discovery import Discovery, Note
    from holdfast.upstreams.mcp.oauth_grant import TokenStore

log = logging.getLogger(__name__)

Adapt = Callable[[Ports, Runtime], tuple[Ports, Runtime]]
"""Replaces ports before anything runs; for tests and embedders."""


class Store(Protocol):
    """The durable half of the ports, of one store."""

    @property
    def ledger(self) -> Ledger: ...
    @property
    def approvals(self) -> Approvals: ...
    @property
    def controls(self) -> Controls: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def bundles(self) -> Bundles: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def plans(self) -> Plans: ...
    @property
    def access(self) -> KeptAccess: ...
    @property
    def secrets(self) -> Secrets: ...

    def listen(self, hear: Callable[[str], None]) -> None:
        """Tell of what other processes do, where that can be heard."""
        ...

    @property
    def lives(self) -> SqlLives | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a gateway is made of."""

    ports: Ports
    runtime: Runtime
    identity: Identity
    access: Access
    keys: Keys
    grants: Grants
    watching: Watching
    auditing: Auditing
    delegation: Delegation
    egress: Egress
    """Where the gateway may connect to."""
    subjects: Subjects | None
    """What it says of its callers outside."""
    retiring: Retiring
    discovery: "Discovery | None"
    """What keeps the catalog in step with MCP servers, where there are any."""
    bundles: Bundles
    news: News
    rules: RuleDesk
    plans: PlanDesk
    lives: SqlLives | None
    """None where the store ends with the process."""
    history: History
    labels: SessionLabels
    reports: tuple[str, ...]


def functions(config: Config) -> dict[str, Upstream]:
    """The upstreams that are Python, loaded; raises ConfigError for what cannot be."""
    return {
        name: FunctionUpstream(load(settings.functions, config.folder), settings.concurrency)
        for name, settings in config.upstreams.items()
        if settings.functions is not None
    }


def connected(
    config: Config,
    loaded: Mapping[str, Upstream] | None = None,
    tokens: "TokenStore | None" = None,
    egress: Egress | None = None,
    proofs: Proofs | None = None,
) -> dict[str, Upstream]:
    """All upstreams a configuration names; MCP servers are not started yet."""
    known = functions(config) if loaded is None else loaded
    guarding = egress or Egress(config)
    return {
        name: known[name] if name in known else _server(name, settings, config, tokens, guarding, proofs)
        for name, settings in config.upstreams.items()
    }


def _server(
    name: str,
    settings: UpstreamSettings,
    config: Config,
    tokens: "TokenStore | None",
    egress: Egress,
    proofs: Proofs | None,
) -> Upstream:
    from holdfast.gateway.mcp import mcp_upstream  # MCP takes a second to import

    return mcp_upstream(name, settings, config, tokens, egress, proofs)


def assemble(
    config: Config,
    store: Store,
    upstreams: Mapping[str, Upstream],
    *,
    clock: Clock,
    ids: Ids,
    policy: Policy | None = None,
    adapt: Adapt | None = None,
    notary: Notary | None = None,
    egress: Egress | None = None,
    proofs: Proofs | None = None,
) -> Parts:
    """Put the parts together. No I/O: what needs opening was opened before."""
    offered = function_offers(upstreams)
    catalog = MemoryCatalog(pins=config.pins)
    catalog.register(offered)
    reader = Readings(config.environment)
    egress = egress or Egress(config)
    who = build_identity(config.auth.model_dump(), now=clock.now, fetch=issuer.fetcher(config, egress))
    served = None
    if policy is None:
        build = policies.builder(config, catalog, ids, who.roles_of)
        policy = served = policies.served(config, store.bundles, ids, build)
    watching = Watching(config.telemetry, clock, store.secrets)
    ports = Ports(
        catalog=catalog,
        policy=policy,
        promotion=served,
        ledger=store.ledger,
        approvals=store.approvals,
        rules=store.rules,
        plans=store.plans,
        labels=store.labels,
        controls=store.controls,
        reader=reader,
        secrets=store.secrets,
        people=who,
        ingress=TokenIngress(config.limits.ingress.rate, config.limits.ingress.burst),
        clock=clock,
        ids=ids,
        telemetry=watching.watch,
        limits=Limits(
            max_bytes=config.limits.body_bytes,
            max_depth=config.limits.depth,
            max_string=config.limits.string,
            max_keys=config.limits.keys,
        ),
        approval_s=config.approvals.expire_s,
        release=config.approvals.release,
        chain=config.approvals.chain,
        budgets=limits.budgets(config),
        rates=limits.rates(config),
        base_url=config.base_url or "",
    )
    proofs = proofs or secrets.proofs(config, clock, egress, store.secrets)
    runtime = Runtime(upstreams=upstreams, clock=clock, credentials=proofs.wallet)
    news, access = News(), Access(store.access, who, clock)
    store.listen(together(news, access.news))
    if adapt is not None:
        ports, runtime = adapt(ports, runtime)
    if served is not None:
        served.caches.append(runtime.cache.clear)
    reader.bind(ports, runtime)
    auditing = Auditing(store.audit, notary, clock, store.lives)
    found = discovery(config, upstreams, catalog, clock, auditing.note)
    return Parts(
        ports=ports,
        runtime=runtime,
        identity=who,
        access=access,
        keys=Keys(access, who, clock),
        grants=Grants(access, who, ports),
        watching=watching,
        auditing=auditing,
        delegation=delegation.build(who, store.secrets, config.base_url or "", access, auditing, ports),
        egress=egress,
        subjects=proofs.subjects,
        retiring=Retiring(catalog, store.audit, clock),
        discovery=found,
        rules=RuleDesk(store.rules, ports),
        plans=PlanDesk(store.plans, ports, config.environment, None if found is None else found.look_for),
        bundles=store.bundles,
        news=news,
        lives=store.lives,
        history=_history(config, ports, store.bundles, auditing),
        labels=SessionLabels(ports),
        reports=(
            *_unmet(catalog),
            *_reports(offered),
            *secrets.unknown((offer.contract for offer in offered), config),
        ),
    )


def _history(config: Config, ports: Ports, bundles: Bundles, auditing: Auditing) -> History:
    review = config.policy_review
    return History(ports, bundles, auditing, days=review.days if review.required else None)


def discovery(
    config: Config, upstreams: Mapping[str, Upstream], catalog: MemoryCatalog, clock: Clock, note: "Note"
) -> "Discovery | None":
    imported = [name for name, settings in config.upstreams.items() if settings.mcp and name in upstreams]
    if not imported:
        return None
    from holdfast.gateway import mcp

    return mcp.discovery(config, {name: upstreams[name] for name in imported}, catalog, clock, note)


def function_offers(upstreams: Mapping[str, Upstream]) -> list[Offer]:
    return [
        offer
        for namespace, upstream in upstreams.items()
        if isinstance(upstream, FunctionUpstream)
        for offer in offers(namespace, upstream.tools)
    ]


def _unmet(catalog: MemoryCatalog) -> list[str]:
    return [f"no version of {name} answers its pin {spec!r}" for name, spec in catalog.unmet_pins().items()]


def _reports(offered: list[Offer]) -> tuple[str, ...]:
    return tuple(
        f"{offer.contract.tool}: {finding.message} ({finding.rule})"
        for offer in offered
        for finding in lint(offer.contract)
    )
