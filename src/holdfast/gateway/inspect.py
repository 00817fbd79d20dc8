"""Would these policies do here? Looked at without opening the store: it works while nothing else does."""

from pathlib import Path
from typing import NamedTuple

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.config import load
from holdfast.gateway import policies
from holdfast.gateway.wiring import connected, discovery, function_offers
from holdfast.policy import Bundle, Report
from holdfast.policy.examine import Examination, examine
from holdfast.policy.facts import own_roles
from holdfast.system import RandomIds, SystemClock


class Inspected(NamedTuple):
    bundle: Bundle
    report: Report
    examination: Examination
    """Empty where something is wrong with the bundle."""


def inspect(config_file: Path, folder: Path | None) -> Inspected:
    """A folder of policies, else the configured one, against the configured tools."""
    config = load(config_file)
    bundle = policies.read(policies.folder(config, folder))
    catalog = MemoryCatalog(pins=config.pins)
    upstreams = connected(config)
    catalog.register(function_offers(upstreams))
    if (imported := discovery(config, upstreams, catalog, SystemClock(), _unheard)) is not None:
        imported.read()
    policy = policies.builder(config, catalog, RandomIds(), own_roles)(bundle)
    seen = examine(policy, config.environment) if policy.report.ok else Examination()
    return Inspected(bundle, policy.report, seen)


async def _unheard(*_: object, **__: object) -> None:
    """Looking leaves no record."""
