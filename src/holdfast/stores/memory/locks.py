"""Is anybody changing the same? As on disk: taken with the claim, all or none; EXE-7."""

from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.model.stage import Lock, Locked
from holdfast.ports import Conflicting
from holdfast.stores.denial import conflicting


class Holder(NamedTuple):
    """The attempt that has a lock."""

    kind: str
    whole: bool
    call_id: str
    nonce: str


@dataclass(slots=True)
class Held:
    """By tenant and name."""

    now: dict[tuple[str, str], Holder] = field(default_factory=dict)
    past: dict[tuple[str, str], Holder] = field(default_factory=dict)
    """Who let go of each last, in the order in which they did."""


def refusal(held: Held, gate: str, stage: Lock, tenant: str, again: str | None) -> Conflicting | None:
    """`again`: the operation that is claimed anew, whose locks are its own."""
    for (owner, name), holder in held.now.items():
        ours = holder.call_id in (again, stage.within or None)
        if owner == tenant and not ours and _meets(stage, name, holder):
            return conflicting(gate, holder.call_id, holder.nonce)
    if stage.seen is not None and changed(held, tenant, stage) != stage.seen:
        return conflicting(gate, "", "")
    return None


def changed(held: Held, tenant: str, lock: Lock) -> str:
    """All who have changed any of it, which no list on disk could hold."""
    found = [
        holder.nonce
        for (owner, name), holder in held.past.items()
        if owner == tenant and _meets(lock, name, holder)
    ]
    return " ".join(found)


def take(held: Held, stage: Lock, tenant: str, call_id: str, nonce: str) -> None:
    for name, holder in list(held.now.items()):
        if name[0] == tenant and holder.call_id == call_id:
            del held.now[name]
    for one in stage.resources:
        held.now.setdefault((tenant, one.name), Holder(one.kind, one.whole, call_id, nonce))


def release(held: Held, tenant: str, call_id: str, nonce: str) -> None:
    for name, holder in list(held.now.items()):
        if name[0] == tenant and (holder.call_id, holder.nonce) == (call_id, nonce):
            del held.now[name]
            held.past.pop(name, None)
            held.past[name] = holder


def _meets(stage: Lock, name: str, holder: Holder) -> bool:
    return any(_overlap(one, name, holder) for one in stage.resources)


def _overlap(one: Locked, name: str, holder: Holder) -> bool:
    return one.name == name or (one.kind == holder.kind and (one.whole or holder.whole))
