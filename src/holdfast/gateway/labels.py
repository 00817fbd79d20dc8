"""What have sessions seen, and who may let them forget it? OBS-6."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.gateway.operators import need_operator
from holdfast.model import defaults
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError, NotFound
from holdfast.model.holders import KINDS, SESSION, holders_then
from holdfast.model.labels import implied
from holdfast.ports import HeldLabel, Ports


class SessionLabels:
    """Hung on the gateway as `labels`."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def held(self, by: Principal, name: str | None = None) -> list[HeldLabel]:
        """What is held now in `by`'s tenant, or by one holder, as `session:ana/s-1` or `s-1` names it."""
        need_operator(by, self._ports.people)
        if self._ports.labels is None:
            return []
        kept = await self._ports.labels.list(by.tenant)
        return [one for one in kept if one.lifted_at is None and (name is None or _is(one.holder, name))]

    async def lift(self, by: Principal, name: str, label: str, note: str) -> str:
        """Let a session go on as if it had not seen what a label says; who held it."""
        need_operator(by, self._ports.people)
        if not note.strip():
            raise HoldfastError("say why it may be lifted: give '--note'")
        held = await self.held(by, name)
        holders = sorted({one.holder for one in held if one.label == label})
        if not holders:
            raise NotFound(_not_held(name, label, held))
        if len(holders) > 1:
            raise HoldfastError(f"several hold {label!r}: {', '.join(holders)}; name one of them")
        if self._ports.labels is not None:
            await self._ports.labels.lift(by.tenant, holders[0], label, by.user, note)
        return holders[0]

    async def forget(self) -> int:
        """Drop what nobody has brought again for so long that its session is over."""
        if self._ports.labels is None:
            return 0
        return await self._ports.labels.forget(self._ports.clock.now() - defaults.LABEL_KEPT_S)


class Seen:
    """What each session had seen at a past moment, as far back as labels are kept."""

    def __init__(self, kept: Sequence[HeldLabel], since: float) -> None:
        self._since = since
        self._by_holder: dict[str, list[HeldLabel]] = {}
        self._by_principal: dict[str, list[HeldLabel]] = {}
        for one in kept:
            self._by_holder.setdefault(one.holder, []).append(one)
            self._by_principal.setdefault(one.principal, []).append(one)

    def told(self, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """The facts with the labels of then, unless policy was told them or nobody knows any more."""
        if facts.get("labels") is not None or facts["at"] < self._since:
            return facts
        if not self._by_holder:
            return {**facts, "labels": []}
        who, at = holders_then(facts), facts["at"]
        if names := who.seen:
            rows = [one for name in names for one in self._by_holder.get(name, ())]
        else:
            rows = self._by_principal.get(who.principal, [])
        held = implied(one.label for one in rows if _held_at(one, at))
        return {**facts, "labels": sorted(held)}


def _held_at(one: HeldLabel, at: float) -> bool:
    return one.at <= at and (one.lifted_at is None or one.lifted_at > at)


def _is(holder: str, name: str) -> bool:
    """Whether a person means this holder: its whole name, or a session's own."""
    if name.partition(":")[0] in KINDS:
        return holder == name
    kind, _, owned = holder.partition(":")
    return kind == SESSION and owned.partition("/")[2] == name


def _not_held(name: str, label: str, held: Sequence[HeldLabel]) -> str:
    known = sorted({one.label for one in held})
    if label in implied(known):
        above = ", ".join(repr(one) for one in known if label in implied([one]))
        return f"{name!r} holds {label!r} because it holds {above}; lift that"
    return f"{name!r} does not hold {label!r}; it holds {', '.join(map(repr, known)) or 'nothing'}"
