"""Would these policies do here? Looked at without opening the store: it works while nothing else does."""

from pathlib import Path

from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.config import load
from holdfast.gateway import policies
from holdfast.gateway.wiring import functions
from holdfast.policy import Bundle, Report


def inspect(config_file: Path, folder: Path | None) -> tuple[Bundle, Report]:
    """A folder of policies, else the configured one, against the configured tools."""
    config = load(config_file)
    bundle = policies.read(policies.folder(config, folder))
    catalog = MemoryCatalog(pins=config.pins)
    catalog.register(
        [o for namespace, upstream in functions(config).items() for o in offers(namespace, upstream.tools)]
    )
    return bundle, policies.examine(bundle, catalog)
