"""Would these policies do here? Looked at without opening the store: it works while nothing else does."""

from pathlib import Path

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.config import load
from holdfast.gateway import policies
from holdfast.gateway.wiring import connected, discovery, function_offers
from holdfast.policy import Bundle, Report
from holdfast.system import SystemClock


def inspect(config_file: Path, folder: Path | None) -> tuple[Bundle, Report]:
    """A folder of policies, else the configured one, against the configured tools."""
    config = load(config_file)
    bundle = policies.read(policies.folder(config, folder))
    catalog = MemoryCatalog(pins=config.pins)
    upstreams = connected(config)
    catalog.register(function_offers(upstreams))
    if (imported := discovery(config, upstreams, catalog, SystemClock(), _unheard)) is not None:
        imported.read()
    return bundle, policies.examine(bundle, catalog)


async def _unheard(*_: object, **__: object) -> None:
    """Looking leaves no record."""
