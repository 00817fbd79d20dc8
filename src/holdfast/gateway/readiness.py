"""Can this process take calls now, and if not, why?

Asked by load balancers every second or so, so an answer never takes longer than `PATIENCE_S`: a store that
hangs is one that cannot be used. The words are a closed set and tell nothing of hosts and paths; what an
operator wants to know is in `detail`, which does not leave the machine.

A trial write is small and may fit where a call does not: on a disk without a byte left, into a page that has
room. So what became of real calls counts too, for a while: then calls are let in again to find out.
"""

import asyncio

from holdfast.model.errors import HoldfastError
from holdfast.model.restored import RESTORED
from holdfast.ports import Ports

PATIENCE_S = 1.0
"""How long the store has to answer: less than the probe of any usual load balancer waits."""

REFUSED_S = 5.0
"""How long after a call that the store did not take others are kept away."""

Store = tuple[str, str]
"""`ok`, `slow`, `unreachable`, `unwritable`, `restored` or `closed`; and what an operator should know."""


class Readiness:
    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._looking: asyncio.Task[Store] | None = None
        self._refused_at = float("-inf")

    def refused(self) -> None:
        """The store did not take what a call wanted written."""
        self._refused_at = self._ports.clock.monotonic()

    async def store(self) -> Store:
        """A look that hangs is waited for by later ones too: a hung store is not asked more and more."""
        if self._looking is None:
            self._looking = asyncio.create_task(_look(self._ports), name="holdfast-ready")
        looking = self._looking
        await asyncio.wait((looking,), timeout=PATIENCE_S)
        if not looking.done():
            return "slow", f"the store has not answered within {PATIENCE_S:g} s"
        self._looking = None
        if looking.cancelled():
            return "closed", ""
        found = looking.result()
        if found[0] == "ok" and self._ports.clock.monotonic() - self._refused_at < REFUSED_S:
            return "unwritable", "the store did not take the record of a call a moment ago"
        return found

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()


async def _look(ports: Ports) -> Store:
    try:
        await ports.ledger.find_call("-", "-")
        halts = await ports.controls.halts()
    except HoldfastError as error:
        return "unreachable", str(error)
    except Exception as error:  # whatever it is, calls would meet it too
        return "unreachable", f"{type(error).__name__}: {error}"
    try:
        await ports.ledger.try_write()  # every call leaves a record: a store that takes none takes no calls
    except HoldfastError as error:
        return "unwritable", str(error)
    if RESTORED in halts:
        return "restored", "the store was restored from a backup; run 'holdfast store recover'"
    return "ok", ""
