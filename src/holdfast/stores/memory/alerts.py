"""What is wrong now, and was, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.model.people import Alert
from holdfast.ports import Clock
from holdfast.stores.alerts import ended_body, raised_body
from holdfast.stores.memory.shelf import Shelf


class MemoryAlerts:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock
        self._kept: dict[tuple[str, str], Alert] = {}

    async def open(self, tenant: str) -> Sequence[Alert]:
        return [one for one in self._newest(tenant) if one.ended_at is None]

    async def list(self, tenant: str, since: float, limit: int) -> Sequence[Alert]:
        return [one for one in self._newest(tenant) if one.at >= since][:limit]

    async def raise_(self, alert: Alert) -> bool:
        for place, one in self._kept.items():
            if one.ended_at is None and _about(one) == _about(alert):
                if one.seen_at < alert.seen_at:
                    seen = replace(one, text=alert.text, facts=alert.facts, seen_at=alert.seen_at)
                    self._kept[place] = seen
                return False
        self._kept[alert.tenant, alert.id] = alert
        self._shelf.record(alert.tenant, "", "control", alert.at, raised_body(alert))
        return True

    async def end(self, alert: Alert) -> bool:
        one, now = self._kept.get((alert.tenant, alert.id)), self._clock.now()
        if one is None or one.ended_at is not None:
            return False
        self._kept[alert.tenant, alert.id] = replace(one, ended_at=now)
        self._shelf.record(alert.tenant, "", "control", now, ended_body(alert, now))
        return True

    async def forget(self, before: float) -> int:
        gone = [p for p, one in self._kept.items() if one.ended_at is not None and one.ended_at < before]
        for place in gone:
            del self._kept[place]
        return len(gone)

    def _newest(self, tenant: str) -> Sequence[Alert]:
        own = [one for one in self._kept.values() if one.tenant == tenant]
        return sorted(own, key=lambda one: (one.at, one.id), reverse=True)


def _about(alert: Alert) -> tuple[str, str, str]:
    return alert.tenant, alert.kind, alert.subject
