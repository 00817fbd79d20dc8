"""Which chains of the folder are tools here now, and what keeps the others from being one? CHN-6."""

import logging
from collections.abc import Iterator
from typing import Any

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.chains.check import Report, check
from holdfast.chains.declared import Chain
from holdfast.chains.reading import load
from holdfast.config import Config
from holdfast.gateway.chain_tools import made_of, offered, plan_of
from holdfast.model.contract import CHAINS, Contract
from holdfast.model.errors import AdmissionError, Code, ConfigError, NoEffect
from holdfast.ports import Catalog, partner

log = logging.getLogger(__name__)


class ChainOffers:
    """The folder is read once, when the gateway opens; what its chains use may change while it is open."""

    def __init__(self, config: Config, catalog: Catalog) -> None:
        self._config = config
        self._catalog = catalog
        self._chains: dict[str, Chain] | None = None
        self.unread: list[str] = []
        """What files are no chains, and why."""
        self._seen = -1
        self.offered: dict[str, Report] = {}
        self.reports: tuple[str, ...] = ()
        """What `doctor` tells about those that are not offered."""

    def read(self) -> dict[str, Chain]:
        """The chains of the folder, by name."""
        if self._chains is None:
            self._chains = dict(self._loaded())
        return self._chains

    def offer(self) -> bool:
        """Bring the catalog up to date; False when nothing has changed since the last time."""
        catalog = self._catalog
        if self._config.chains is None or not isinstance(catalog, MemoryCatalog):
            return False
        if catalog.changes == self._seen:
            return False
        if self._seen >= 0 and self._unchanged():
            self._seen = catalog.changes
            return False
        catalog.replace(CHAINS, [])  # the same version may be another contract now
        before, self.offered = self.reports, {}
        faults = self._offer_all(catalog)
        self.reports = (*self.unread, *(f"chains.{name}: not offered: {why}" for name, why in faults.items()))
        for told in self.reports:
            if told not in before:
                log.warning("%s", told)
        self._seen = catalog.changes
        return True

    def _unchanged(self) -> bool:
        """Whether every chain that is offered, and no other, still is what it was."""
        now = {name: self._checked(chain) for name, chain in self.read().items()}
        before = {name: made_of(report) for name, report in self.offered.items()}
        return before == {name: made_of(report) for name, report in now.items() if report.ok}

    def _offer_all(self, catalog: MemoryCatalog) -> dict[str, str]:
        """Those that can be, in turns, for a chain may be a step of another one; why not, of the others."""
        waiting, refused = dict(self.read()), dict[str, str]()
        while True:
            reports = {name: self._checked(chain) for name, chain in waiting.items()}
            ready = [report for report in reports.values() if report.ok]
            if not ready:
                told = {name: "; ".join(map(str, report.faults)) for name, report in reports.items()}
                return refused | told
            if self._why_not(ready, catalog):  # which of them is it?
                for report in ready:
                    if why := self._why_not([report], catalog):
                        refused[report.chain.name] = why
            waiting = {name: chain for name, chain in waiting.items() if not reports[name].ok}

    def plan(self, name: str, of: str) -> dict[str, Any]:
        """What the chain that is offered under this name would do."""
        report = self.offered.get(name)
        if report is None or made_of(report) != of:
            raise NoEffect(f"the chain {name!r} has changed; look at it again", Code.STALE_STATE)
        return plan_of(report)

    def _why_not(self, reports: list[Report], catalog: MemoryCatalog) -> str:
        """Offer these together; why that cannot be, where it cannot."""
        try:
            catalog.replace(CHAINS, offered([*self.offered.values(), *reports]))
        except AdmissionError as error:
            return "; ".join(error.reasons)
        self.offered |= {report.chain.name: report for report in reports}
        return ""

    def _checked(self, chain: Chain) -> Report:
        listings = self._catalog.list()
        return check(chain, self._contract, partner=lambda *part: partner(listings, *part))

    def _contract(self, tool: str, version: str | None) -> Contract | None:
        listing = self._catalog.find(tool, version)
        return None if listing is None else listing.tool.contract

    def _loaded(self) -> Iterator[tuple[str, Chain]]:
        if self._config.chains is None:
            return
        names: dict[str, str] = {}
        for file in sorted((self._config.folder / self._config.chains).glob("*.y*ml")):
            try:
                chain = load(file)
            except ConfigError as error:
                self.unread.append(str(error))
                continue
            if (other := names.setdefault(chain.name, file.name)) != file.name:
                self.unread.append(f"two chains are called {chain.name!r}: {other}, {file.name}")
                continue
            yield chain.name, chain
