"""What sessions have seen, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.model.holders import Holders
from holdfast.model.labels import implied
from holdfast.model.stage import SeenLabels, Stage
from holdfast.ports import Clock, HeldLabel, Relabelled
from holdfast.records.body import act_body
from holdfast.stores.denial import relabelled
from holdfast.stores.labels import Gain
from holdfast.stores.memory.shelf import Shelf


class MemoryLabels:
    def __init__(self, shelf: Shelf, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock

    async def of(self, holders: Holders) -> frozenset[str]:
        return seen(self._shelf, holders)

    async def list(self, tenant: str) -> Sequence[HeldLabel]:
        return sorted((one for one in self._shelf.labels if one.tenant == tenant), key=_order)

    async def lift(self, tenant: str, holder: str, label: str, by: str, note: str) -> int:
        now, lifted = self._clock.now(), 0
        for place, one in enumerate(self._shelf.labels):
            if (one.tenant, one.holder, one.label, one.lifted_at) == (tenant, holder, label, None):
                self._shelf.labels[place] = replace(one, lifted_at=now, lifted_by=by, note=note)
                lifted += 1
        if lifted:
            body = act_body(now, "lift_label", by, holder=holder, label=label, note=note)
            self._shelf.record(tenant, "", "control", now, body)
        return lifted

    async def forget(self, before: float) -> int:
        kept = [one for one in self._shelf.labels if max(one.seen_at, one.lifted_at or 0.0) >= before]
        gone = len(self._shelf.labels) - len(kept)
        self._shelf.labels[:] = kept
        return gone


def gain(shelf: Shelf, gained: Sequence[Gain]) -> None:
    for one in gained:
        for place, held in enumerate(shelf.labels):
            if held.lifted_at is None and _name(held) == one[:4]:
                shelf.labels[place] = replace(held, seen_at=one.at)
                break
        else:
            shelf.labels.append(HeldLabel(**one._asdict(), seen_at=one.at))


def moved(shelf: Shelf, staged: Sequence[tuple[str, Stage]]) -> Relabelled | None:
    for gate, stage in staged:
        if isinstance(stage, SeenLabels) and seen(shelf, stage.holders) != stage.labels:
            return relabelled(gate)
    return None


def seen(shelf: Shelf, holders: Holders) -> frozenset[str]:
    held = [one for one in shelf.labels if one.tenant == holders.tenant and one.lifted_at is None]
    if names := holders.seen:
        return implied(one.label for one in held if one.holder in names)
    return implied(one.label for one in held if one.principal == holders.principal)


def _name(one: HeldLabel) -> tuple[str, str, str, str]:
    return one.tenant, one.holder, one.label, one.principal


def _order(one: HeldLabel) -> tuple[str, str, float, str]:
    return one.holder, one.label, one.at, one.principal
