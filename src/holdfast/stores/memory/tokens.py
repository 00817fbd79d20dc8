"""Tokens for upstreams, in memory; sealed all the same."""

from dataclasses import dataclass

from holdfast.ports import Secrets

Owner = tuple[str, str]


@dataclass(slots=True)
class _Kept:
    sealed: bytes
    at: float
    busy_until: float = 0.0


class MemoryTokens:
    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._kept: dict[tuple[Owner, str], _Kept] = {}

    async def load(self, owner: Owner, upstream: str) -> bytes | None:
        kept = self._kept.get((owner, upstream))
        return None if kept is None else self._secrets.unseal(owner[0], kept.sealed)

    async def save(self, owner: Owner, upstream: str, value: bytes, at: float, *, new: bool = False) -> bool:
        kept = self._kept.get((owner, upstream))
        if at < kept.at if kept else not new:
            return False
        self._kept[owner, upstream] = _Kept(self._secrets.seal(owner[0], value), at)
        return True

    async def lease(self, owner: Owner, upstream: str, at: float, now: float, until: float) -> bool:
        kept = self._kept.get((owner, upstream))
        if kept is None or kept.at != at or kept.busy_until > now:
            return False
        kept.busy_until = until
        return True

    async def drop(self, owner: Owner, upstream: str) -> bool:
        return self._kept.pop((owner, upstream), None) is not None
