"""The records in memory as one tree that proves them."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from holdfast.model.record import Entry, Record, Use
from holdfast.ports import Clock
from holdfast.records.body import act_body
from holdfast.records.merkle import Frontier, consistency_proof, inclusion_proof, leaf_hash
from holdfast.stores.halted import EVERYWHERE
from holdfast.stores.keyring import DictTenantKeys, Keyring
from holdfast.stores.memory.shelf import Shelf


class MemoryAudit:
    def __init__(self, shelf: Shelf, secrets: Keyring, keys: DictTenantKeys, clock: Clock) -> None:
        self._shelf = shelf
        self._secrets = secrets
        self._keys = keys
        self._clock = clock
        self._frontier = Frontier()
        self._nodes: dict[tuple[int, int], bytes] = {}
        self._leaves: list[Record] = []
        """One chain, so the order of the tree is the order of the records."""
        self._pruned: dict[str, int] = {}
        self._checkpoints: list[tuple[int, str]] = []

    async def sequence(self, *, others: bool = True) -> int:
        fresh = self._shelf.records[len(self._leaves) :]
        for record in fresh:
            for level, place, made in self._frontier.append(leaf_hash(record.hash)):
                self._nodes[level, place] = made
            self._leaves.append(record)
        return len(fresh)

    async def head(self) -> tuple[int, bytes]:
        return self._frontier.size, self._frontier.root()

    async def inclusion(self, leaf: int, size: int) -> Sequence[bytes]:
        return inclusion_proof(self._node, leaf, size)

    async def consistency(self, first: int, second: int) -> Sequence[bytes]:
        return consistency_proof(self._node, first, second)

    async def of_call(self, tenant: str, call_id: str, after: int, limit: int) -> Sequence[Entry]:
        found = (e for e in self._entries(tenant) if e.record.call_id == call_id and e.leaf > after)
        return list(found)[:limit]

    async def since(self, tenant: str, at: float, after: int, limit: int) -> Sequence[Entry]:
        found = [e for e in self._entries(tenant) if (e.record.at, e.leaf) > (at, after)]
        return sorted(found, key=lambda entry: (entry.record.at, entry.leaf))[:limit]

    async def before(self, tenant: str, at: float, leaf: int, limit: int) -> Sequence[Entry]:
        found = [e for e in self._entries(tenant) if (e.record.at, e.leaf) < (at, leaf)]
        return sorted(found, key=lambda entry: (entry.record.at, entry.leaf), reverse=True)[:limit]

    def after(self, leaf: int, most: int) -> tuple[int, list[Entry]]:
        """The next leaves: the last of them, and the records of those that were not pruned."""
        last = min(leaf + most, len(self._leaves) - 1)
        some = enumerate(self._leaves[leaf + 1 : last + 1], leaf + 1)
        return last, [Entry(at, one) for at, one in some if at > self._pruned.get(one.tenant, -1)]

    async def usage(self, since: float) -> Sequence[Use]:
        found: dict[tuple[str, str, str, str], list[float]] = {}
        for record in self._leaves:
            if record.kind == "intent" and record.at >= since:
                said = orjson.loads(record.body)
                who = (said["tool"], record.tenant, said["caller"], said["agent"])
                found.setdefault(who, []).append(record.at)
        return [Use(*who, len(times), max(times)) for who, times in sorted(found.items())]

    async def find(self, tenant: str, writer: str, seq: int) -> Entry | None:
        wanted = (writer, seq)
        return next((e for e in self._entries(tenant) if (e.record.writer, e.record.seq) == wanted), None)

    async def checkpoint(self, leaf: int) -> str | None:
        behind = [note for size, note in self._checkpoints if size > leaf]
        return behind[-1] if behind else None

    async def keep_checkpoint(self, size: int, note: str) -> None:
        self._checkpoints.append((size, note))

    async def note(self, tenant: str, act: str, by: str, *, about: str = "", **members: Any) -> None:
        now = self._clock.now()
        self._shelf.record(tenant, about, "control", now, act_body(now, act, by, **members))

    async def tenants(self) -> Sequence[str]:
        return sorted({record.tenant for record in self._leaves} - {EVERYWHERE})

    async def prune(self, tenant: str, before: float, anchored: int) -> int:
        start, gone, through = self._pruned.get(tenant, -1), 0, -1
        for leaf, record in enumerate(self._leaves[:anchored]):
            if record.tenant != tenant or leaf <= start:
                continue
            if record.at >= before:
                break
            gone, through = gone + 1, leaf
        if gone:
            self._pruned[tenant] = through
            members: dict[str, Any] = {"through": through, "count": gone, "before": before}
            members["checkpoint"] = anchored
            await self.note(tenant, "prune", "holdfast", **members)
        return gone

    async def erase(self, tenant: str, by: str) -> bool:
        if self._keys.pop(tenant, None) is None:
            return False
        await self.note(tenant, "erase", by)
        await self.notice_erasures()
        return True

    async def notice_erasures(self) -> None:
        self._secrets.forget_but(self._keys)

    def _node(self, level: int, place: int) -> bytes:
        return self._nodes[level, place]

    def _entries(self, tenant: str) -> Iterable[Entry]:
        pruned = self._pruned.get(tenant, -1)
        for leaf, record in enumerate(self._leaves):
            if record.tenant == tenant and leaf > pruned:
                yield Entry(leaf, record)
