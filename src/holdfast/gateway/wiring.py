"""Builds what a configuration describes: upstreams, catalog, policy, identity, ports around a store."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.catalog.adapt import offers
from holdfast.catalog.admission import Offer
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.lint import lint
from holdfast.config import Config
from holdfast.execution.runtime import Runtime
from holdfast.gateway.readings import Readings
from holdfast.identity import Identity
from holdfast.identity import build as build_identity
from holdfast.model.strict_json import Limits
from holdfast.model.vocabulary import Environment
from holdfast.policy import DenyAll, Starter
from holdfast.ports import Approvals, Clock, Controls, Ids, Ledger, Policy, Ports, Secrets
from holdfast.system import TokenIngress
from holdfast.upstreams.function import FunctionUpstream, load

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
    def secrets(self) -> Secrets: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a gateway is made of."""

    ports: Ports
    runtime: Runtime
    identity: Identity
    reports: tuple[str, ...]


def functions(config: Config) -> dict[str, FunctionUpstream]:
    """The upstreams a configuration names, loaded."""
    return {
        namespace: FunctionUpstream(load(upstream.functions, config.folder), upstream.concurrency)
        for namespace, upstream in config.upstreams.items()
    }


def assemble(
    config: Config,
    store: Store,
    upstreams: Mapping[str, FunctionUpstream],
    *,
    clock: Clock,
    ids: Ids,
    policy: Policy | None = None,
    adapt: Adapt | None = None,
) -> Parts:
    """Put the parts together. No I/O: what needs opening was opened before."""
    offered = [o for namespace, upstream in upstreams.items() for o in offers(namespace, upstream.tools)]
    catalog = MemoryCatalog(pins=config.pins)
    catalog.register(offered)
    reader = Readings(config.environment)
    who = build_identity(config.auth.model_dump())
    ports = Ports(
        catalog=catalog,
        policy=policy or _policy(config, ids),
        ledger=store.ledger,
        approvals=store.approvals,
        controls=store.controls,
        reader=reader,
        secrets=store.secrets,
        people=who,
        ingress=TokenIngress(config.limits.ingress.rate, config.limits.ingress.burst),
        clock=clock,
        ids=ids,
        limits=Limits(
            max_bytes=config.limits.body_bytes,
            max_depth=config.limits.depth,
            max_string=config.limits.string,
            max_keys=config.limits.keys,
        ),
        approval_s=config.approvals.expire_s,
        base_url=config.base_url or "",
    )
    runtime = Runtime(upstreams=upstreams, clock=clock)
    if adapt is not None:
        ports, runtime = adapt(ports, runtime)
    reader.bind(ports, runtime)
    return Parts(ports=ports, runtime=runtime, identity=who, reports=(*_unmet(catalog), *_reports(offered)))


def _policy(config: Config, ids: Ids) -> Policy:
    if config.environment is Environment.DEV and config.auth.mode == "local":
        log.warning("the starter policy is in force: for development on this machine only")
        return Starter(ids, threshold=config.trust_threshold, critical_scopes=config.critical_scopes)
    log.warning("no policy is loaded: every call is refused")
    return DenyAll(ids)


def _unmet(catalog: MemoryCatalog) -> list[str]:
    return [f"no version of {name} answers its pin {spec!r}" for name, spec in catalog.unmet_pins().items()]


def _reports(offered: list[Offer]) -> tuple[str, ...]:
    return tuple(
        f"{offer.contract.tool}: {finding.message} ({finding.rule})"
        for offer in offered
        for finding in lint(offer.contract)
    )
