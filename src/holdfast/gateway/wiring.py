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
from holdfast.gateway import limits, policies
from holdfast.gateway.auditing import Auditing
from holdfast.gateway.news import News
from holdfast.gateway.readings import Readings
from holdfast.gateway.retiring import Retiring
from holdfast.gateway.watching import Watching
from holdfast.identity import Identity
from holdfast.identity import build as build_identity
from holdfast.model.strict_json import Limits
from holdfast.ports import (
    Approvals,
    Audit,
    Bundles,
    Clock,
    Controls,
    Ids,
    Ledger,
    Policy,
    Ports,
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
    watching: Watching
    auditing: Auditing
    retiring: Retiring
    discovery: "Discovery | None"
    """What keeps the catalog in step with MCP servers, where there are any."""
    bundles: Bundles
    news: News
    lives: SqlLives | None
    """None where the store ends with the process."""
    reports: tuple[str, ...]


def functions(config: Config) -> dict[str, Upstream]:
    """The upstreams that are Python, loaded; raises ConfigError for what cannot be."""
    return {
        name: FunctionUpstream(load(settings.functions, config.folder), settings.concurrency)
        for name, settings in config.upstreams.items()
        if settings.functions is not None
    }


def connected(
    config: Config, loaded: Mapping[str, Upstream] | None = None, tokens: "TokenStore | None" = None
) -> dict[str, Upstream]:
    """All upstreams a configuration names; MCP servers are not started yet."""
    known = functions(config) if loaded is None else loaded
    return {
        name: known[name] if name in known else _server(name, settings, config, tokens)
        for name, settings in config.upstreams.items()
    }


def _server(name: str, settings: UpstreamSettings, config: Config, tokens: "TokenStore | None") -> Upstream:
    from holdfast.gateway.mcp import mcp_upstream  # MCP takes a second to import

    return mcp_upstream(name, settings, config, tokens)


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
) -> Parts:
    """Put the parts together. No I/O: what needs opening was opened before."""
    offered = function_offers(upstreams)
    catalog = MemoryCatalog(pins=config.pins)
    catalog.register(offered)
    reader = Readings(config.environment)
    who = build_identity(config.auth.model_dump(), now=clock.now)
    served = None
    if policy is None:
        build = policies.builder(config, catalog, ids, who)
        policy = served = policies.served(config, store.bundles, ids, build)
    watching = Watching(config.telemetry, clock, store.secrets)
    ports = Ports(
        catalog=catalog,
        policy=policy,
        promotion=served,
        ledger=store.ledger,
        approvals=store.approvals,
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
    runtime = Runtime(upstreams=upstreams, clock=clock)
    news = News()
    store.listen(news.hear)
    if adapt is not None:
        ports, runtime = adapt(ports, runtime)
    if served is not None:
        served.caches.append(runtime.cache.clear)
    reader.bind(ports, runtime)
    auditing = Auditing(store.audit, notary, clock, store.lives)
    return Parts(
        ports=ports,
        runtime=runtime,
        identity=who,
        watching=watching,
        auditing=auditing,
        retiring=Retiring(catalog, store.audit, clock),
        discovery=discovery(config, upstreams, catalog, clock, auditing.note),
        bundles=store.bundles,
        news=news,
        lives=store.lives,
        reports=(*_unmet(catalog), *_reports(offered)),
    )


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
