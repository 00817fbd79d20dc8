"""Which policy is in force in this process?

The bundle that the store says was promoted last; what stands in until one is: the starter, or nothing at all.
A promotion anywhere is followed by every process: when housekeeping looks, and at the latest when a claim is
refused because it was judged under an older bundle (LIF-6).
"""

import logging
from collections.abc import Callable

from holdfast.model.call import Call, Decision
from holdfast.policy.bundle import Bundle
from holdfast.ports import Bundles, Policy

log = logging.getLogger(__name__)


class Served:
    """Implements `ports.Policy` and `ports.Promotion`."""

    def __init__(self, otherwise: Policy, build: Callable[[Bundle], Policy], bundles: Bundles) -> None:
        self._otherwise = otherwise
        self.build = build
        self._bundles = bundles
        self.seen: str | None = None
        self.current = otherwise
        self.caches: list[Callable[[], None]] = []
        """Emptied with every promotion: what was allowed before need not be allowed now."""

    @property
    def version(self) -> str:
        return self.current.version

    def decide(self, call: Call) -> Decision:
        return self.current.decide(call)

    async def follow(self) -> bool:
        """Serve what the store says is in force; whether that is something else than before."""
        if await self._bundles.active_version() == self.seen:
            return False
        found = await self._bundles.active()
        current = self._otherwise if found is None else self.build(Bundle.stored(found.content))
        self.current, self.seen = current, None if found is None else found.version
        for drop in self.caches:
            drop()
        log.warning("policy %s is in force from now on", self.version)
        return True
