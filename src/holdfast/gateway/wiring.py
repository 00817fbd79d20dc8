"""Builds what a configuration describes: upstreams, catalog, policy, identity, ports around a store."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.catalog.adapt import offers
from holdfast.catalog.admission import Offer
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.lint import lint
from holdfast.config import Config
from holdfast.config import Upstream as UpstreamSettings
from holdfast.execution.runtime import Runtime
from holdfast.gateway import delegation, issuer, ladder, limits, policies, secrets
from holdfast.gateway.access import Access
from holdfast.gateway.alerts import AlertDesk
from holdfast.gateway.auditing import Auditing
from holdfast.gateway.chain_upstream import ChainUpstream
from holdfast.gateway.costs import CostDesk
from holdfast.gateway.delegation import Delegation
from holdfast.gateway.fallbacks import Fallbacks
from holdfast.gateway.grants import Grants
from holdfast.gateway.health import HealthDesk
from holdfast.gateway.history import History
from holdfast.gateway.jobs import JobDesk
from holdfast.gateway.keys import Keys
from holdfast.gateway.labels import SessionLabels
from holdfast.gateway.news import News, together
from holdfast.gateway.notices import Notices
from holdfast.gateway.openid import OpenId
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.plans import PlanDesk
from holdfast.gateway.readings import Readings
from holdfast.gateway.retiring import Retiring
from holdfast.gateway.rules import RuleDesk
from holdfast.gateway.secrets import Proofs
from holdfast.gateway.sessions import ConsoleSessions
from holdfast.gateway.upstream_sessions import UpstreamSessionDesk
from holdfast.gateway.upstreams import UpstreamDesk
from holdfast.gateway.views import Views
from holdfast.gateway.watching import Watching
from holdfast.identity import Identity
from holdfast.identity import build as build_identity
from holdfast.identity.subject import Subjects
from holdfast.model.contract import CHAINS
from holdfast.model.limits import micros
from holdfast.model.strict_json import Limits
from holdfast.policy.served import Served
from holdfast.ports import Access as KeptAccess
from holdfast.ports import Alerts as KeptAlerts
from holdfast.ports import (
    Approvals,
    Audit,
    Bundles,
    Capabilities,
    Catalog,
    Clock,
    Controls,
    Ids,
    Jobs,
    Labels,
    Ledger,
    Outbox,
    Plans,
    Policy,
    Ports,
    Rules,
    Runs,
    Secrets,
    Sessions,
    Signs,
    Telemetry,
    Upstream,
    UpstreamSessions,
)
from holdfast.ports import Views as KeptViews
from holdfast.records.checkpoint import Notary
from holdfast.stores.backup.lives import SqlLives
from holdfast.system import TokenIngress
from holdfast.upstreams.function import FunctionUpstream, load

if TYPE_CHECKING:
    from holdfast.chains.engine import Engine
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
    def views(self) -> KeptViews: ...
    @property
    def bundles(self) -> Bundles: ...
    @property
    def capabilities(self) -> Capabilities: ...
    @property
    def labels(self) -> Labels: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def upstream_sessions(self) -> UpstreamSessions: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def plans(self) -> Plans: ...
    @property
    def access(self) -> KeptAccess: ...
    @property
    def alerts(self) -> KeptAlerts: ...
    @property
    def signs(self) -> Signs: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def sessions(self) -> Sessions: ...

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
    fallbacks: Fallbacks
    egress: Egress
    """Where the gateway may connect to."""
    subjects: Subjects | None
    """What it says of its callers outside."""
    retiring: Retiring
    discovery: "Discovery | None"
    """What keeps the catalog in step with MCP servers, where there are any."""
    bundles: Bundles
    news: News
    notices: Notices
    views: Views
    health: HealthDesk
    alerts: AlertDesk
    costs: CostDesk
    runs: Runs
    chain_engine: "Callable[[], Engine]"
    """What drives runs; made when the first chain is."""
    chain_upstream: ChainUpstream
    """Where chains run that are called as tools."""
    rules: RuleDesk
    plans: PlanDesk
    upstreams: UpstreamDesk
    lives: SqlLives | None
    """None where the store ends with the process."""
    history: History
    jobs: JobDesk
    """What goes on at upstreams without a call."""
    labels: SessionLabels
    upstream_sessions: UpstreamSessionDesk
    sessions: ConsoleSessions
    openid: OpenId | None
    """Where people sign in to the console at the issuer."""
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
    engine: "Callable[[], Engine] | None" = None,
) -> Parts:
    """Put the parts together. No I/O: what needs opening was opened before.

    `engine` makes what drives runs, where it is not to be the one that fits the store.
    """
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
    jobs = JobDesk(store.jobs, config.environment)
    ports = _ports(config, store, catalog, policy, served, reader, who, watching.watch, clock, ids, jobs)
    sessions = UpstreamSessionDesk(store.upstream_sessions, config.environment)
    near = frozenset(name for name, one in upstreams.items() if getattr(one, "in_process", False))
    ports = replace(
        ports, upstream_sessions=store.upstream_sessions, session_ending=sessions, in_process=near
    )
    proofs = proofs or secrets.proofs(config, clock, egress, store.secrets)
    chained = ChainUpstream()
    if config.chains is not None:
        upstreams = {**upstreams, CHAINS: chained}
    runtime = Runtime(upstreams=upstreams, clock=clock, credentials=proofs.wallet)
    news, access = News(), Access(store.access, who, clock)
    if adapt is not None:
        ports, runtime = adapt(ports, runtime)
    notices = Notices(config, store.outbox, ports, egress, proofs.wallet)
    store.listen(together(news, access.news, notices.news))
    if served is not None:
        served.caches.append(runtime.cache.clear)
    reader.bind(ports, runtime)
    jobs.bind(ports)
    auditing = Auditing(store.audit, notary, clock, store.lives, store.views)
    views = Views(store.views, store.audit, ports)
    health = HealthDesk(store.views, store.signs, ports, views.fresh)
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
        fallbacks=Fallbacks(
            ladder.ladders(config), store.capabilities, ports, runtime.rests, health.usual_ms
        ),
        egress=egress,
        subjects=proofs.subjects,
        retiring=Retiring(catalog, store.audit, clock),
        discovery=found,
        notices=notices,
        views=views,
        health=health,
        alerts=AlertDesk(
            store.alerts, store.signs, health, ports, config.telemetry.alerts, notices.alert, store.runs
        ),
        costs=CostDesk(store.signs, ports, auditing, views.fresh),
        runs=store.runs,
        chain_engine=engine or partial(chain_engine, config, store),
        chain_upstream=chained,
        rules=RuleDesk(store.rules, ports),
        plans=PlanDesk(store.plans, ports, config.environment, None if found is None else found.look_for),
        upstreams=UpstreamDesk(ports, runtime, auditing),
        bundles=store.bundles,
        news=news,
        lives=store.lives,
        history=_history(config, ports, store.bundles, auditing),
        jobs=jobs,
        labels=SessionLabels(ports),
        upstream_sessions=sessions,
        openid=OpenId(config, egress, who, store.secrets, clock) if config.console.client_id else None,
        sessions=ConsoleSessions(store.sessions, who, store.secrets, clock, config.console),
        reports=(
            *_unmet(catalog),
            *_reports(offered),
            *secrets.unknown((offer.contract for offer in offered), config),
        ),
    )


def _ports(
    config: Config,
    store: Store,
    catalog: Catalog,
    policy: Policy,
    served: Served | None,
    reader: Readings,
    who: Identity,
    telemetry: Telemetry,
    clock: Clock,
    ids: Ids,
    jobs: JobDesk,
) -> Ports:
    """The outside world as the gates of this configuration see it."""
    return Ports(
        catalog=catalog,
        policy=policy,
        promotion=served,
        ledger=store.ledger,
        approvals=store.approvals,
        rules=store.rules,
        plans=store.plans,
        labels=store.labels,
        jobs=jobs,
        controls=store.controls,
        reader=reader,
        secrets=store.secrets,
        people=who,
        ingress=TokenIngress(config.limits.ingress.rate, config.limits.ingress.burst),
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        limits=Limits(
            max_bytes=config.limits.body_bytes,
            max_depth=config.limits.depth,
            max_string=config.limits.string,
            max_keys=config.limits.keys,
        ),
        approval_s=config.approvals.expire_s,
        release=config.approvals.release,
        chain=config.approvals.chain,
        capabilities=ladder.capabilities(config),
        budgets=limits.budgets(config),
        rates=limits.rates(config),
        review_cost=micros(config.approvals.cost_per_decision),
        base_url=config.base_url or "",
        asked_at=f"{config.base_url or ''}{'/approvals' if config.console.enabled else '/v1/approvals'}",
    )


def chain_engine(config: Config, store: Store) -> "Engine":
    """DBOS beside the store; where that ends with its process, so do runs."""
    slots = getattr(store, "slots", None)
    if slots is None:
        from holdfast.chains.engines.local import LocalEngine

        return LocalEngine()
    from holdfast.chains.engines.dbos import DbosEngine

    url = config.store if config.on_postgres else f"sqlite:///{config.beside('.chains')}"
    return DbosEngine(url, slots)


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
