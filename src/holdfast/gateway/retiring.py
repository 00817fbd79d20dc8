"""Ends the life of versions that are past it, unless somebody still uses them; REG-6."""

import logging
from collections.abc import Sequence

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.life import due, has_dates
from holdfast.model.record import Use
from holdfast.model.vocabulary import ToolStatus
from holdfast.ports import Audit, Clock, Listing

log = logging.getLogger(__name__)

DAY_S = 86_400.0
LOOK_S = 60.0
"""Between two looks: the records of a day are counted each time."""


class Retiring:
    def __init__(self, catalog: MemoryCatalog, audit: Audit, clock: Clock) -> None:
        self._catalog = catalog
        self._audit = audit
        self._clock = clock
        self._looked_at = float("-inf")
        self._alerted: dict[str, float] = {}
        self._mortal: list[Listing] = []
        """Versions whose end, or notice of it, has a date."""
        self._read_at = -1  # which change of the catalog that was

    async def tend(self) -> list[str]:
        """Deprecate and retire what is due; the alerts raised because something is still in use."""
        now = self._clock.now()
        waiting = [one for one in self._dated() if self._deprecated(one, now)]
        if not waiting or self._clock.monotonic() - self._looked_at < LOOK_S:
            return []
        self._looked_at = self._clock.monotonic()
        await self._audit.sequence()  # what is not in the tree yet counts too
        uses = await self._audit.usage(now - DAY_S)
        return [said for one in waiting if (said := await self._retire(one, uses, now)) is not None]

    def _dated(self) -> Sequence[Listing]:
        if self._read_at != self._catalog.changes:
            self._read_at = self._catalog.changes
            self._mortal = [one for one in self._catalog.list() if has_dates(one.tool.contract)]
        return self._mortal

    def _deprecated(self, one: Listing, now: float) -> bool:
        """Gives notice where it is due; whether the version is even past its end."""
        contract = one.tool.contract
        wanted = due(contract, one.status, now)
        if wanted is ToolStatus.DEPRECATED:
            self._catalog.set_status(contract.tool, contract.version, wanted)
        return wanted is ToolStatus.SUNSET

    async def _retire(self, one: Listing, uses: Sequence[Use], now: float) -> str | None:
        contract = one.tool.contract
        name = f"{contract.tool}@{contract.version}"
        still = [use for use in uses if use.tool == name]
        if not still:
            self._catalog.set_status(contract.tool, contract.version, ToolStatus.SUNSET)
            await self._audit.note("*", "sunset", "holdfast", tool=name)
            return None
        if one.status is not ToolStatus.DEPRECATED:
            self._catalog.set_status(contract.tool, contract.version, ToolStatus.DEPRECATED)
        if now - self._alerted.get(name, float("-inf")) < DAY_S:
            return None
        self._alerted[name] = now
        calls, users = sum(use.calls for use in still), sorted({use.caller for use in still})
        said = f"{name} should be gone by now, but was called {calls} times in a day by {', '.join(users)}"
        log.warning("%s; it stays until a day passes without a call", said)
        await self._audit.note("*", "sunset_blocked", "holdfast", tool=name, calls=calls, callers=users)
        return said
