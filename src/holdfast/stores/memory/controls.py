"""The brakes, in memory."""

from collections.abc import Mapping, Sequence

from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.stores.halted import EVERYWHERE, describe
from holdfast.stores.memory.shelf import Shelf


class MemoryControls:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def halt(self, target: str, by: str, note: str) -> None:
        self._shelf.halts[target] = (by, note)
        self._record("halt", by, target=target, note=note)

    async def resume(self, target: str, by: str) -> bool:
        if self._shelf.halts.pop(target, None) is None:
            return False
        self._record("resume", by, target=target)
        return True

    async def halts(self) -> Mapping[str, str]:
        return {target: describe(*why) for target, why in sorted(self._shelf.halts.items())}

    async def request_cancel(self, tenant: str, call_id: str, by: str) -> None:
        if (tenant, call_id) not in self._shelf.cancels:
            now = self._clock.now()
            self._shelf.cancels[tenant, call_id] = now
            self._shelf.record(tenant, call_id, "control", now, act_body(now, "cancel", by))

    async def cancellations(self) -> Sequence[str]:
        asked = sorted((at, call_id) for (_, call_id), at in self._shelf.cancels.items())
        return [call_id for _, call_id in asked]

    def _record(self, act: str, by: str, **members: str) -> None:
        now = self._clock.now()
        self._shelf.record(EVERYWHERE, "", "control", now, act_body(now, act, by, **members))
