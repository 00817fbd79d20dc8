"""Is anybody changing the same? As on disk: taken with the claim, all or none; EXE-7."""

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


Held = dict[tuple[str, str], Holder]
"""By tenant and name."""


def refusal(held: Held, gate: str, stage: Lock, tenant: str, again: str | None) -> Conflicting | None:
    """`again`: the operation that is claimed anew, whose locks are its own."""
    for (owner, name), holder in held.items():
        ours = holder.call_id in (again, stage.within or None)
        if owner == tenant and not ours and _meets(stage, name, holder):
            return conflicting(gate, holder.call_id, holder.nonce)
    return None


def take(held: Held, stage: Lock, tenant: str, call_id: str, nonce: str) -> None:
    for name in [name for name, holder in held.items() if name[0] == tenant and holder.call_id == call_id]:
        del held[name]
    for one in stage.resources:
        held.setdefault((tenant, one.name), Holder(one.kind, one.whole, call_id, nonce))


def release(held: Held, tenant: str, call_id: str, nonce: str) -> None:
    for name, holder in list(held.items()):
        if name[0] == tenant and (holder.call_id, holder.nonce) == (call_id, nonce):
            del held[name]


def _meets(stage: Lock, name: str, holder: Holder) -> bool:
    return any(_overlap(one, name, holder) for one in stage.resources)


def _overlap(one: Locked, name: str, holder: Holder) -> bool:
    return one.name == name or (one.kind == holder.kind and (one.whole or holder.whole))
