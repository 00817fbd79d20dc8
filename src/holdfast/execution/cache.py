"""Has this read been answered recently enough?

Only READ_ONLY tools that declare a time to live; per tenant and fingerprint. What is
past its time is never an answer; it is only kept, while there is room, for who asks for
what was known last and is told so (EXE-4).
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

MAX_ENTRIES = 10_000
"""Bounds memory; the least recently stored goes first."""


class Cached(NamedTuple):
    value: Any
    stored_at: float  # monotonic
    retrieved_at: float  # wall clock
    native: Mapping[str, Any] | None = None


class Cache:
    def __init__(self) -> None:
        self._entries: OrderedDict[tuple[str, str], Cached] = OrderedDict()

    def get(self, tenant: str, fingerprint: str, ttl_s: float, now: float) -> Cached | None:
        found = self._entries.get((tenant, fingerprint))
        return None if found is None or now - found.stored_at >= ttl_s else found

    def last(self, tenant: str, fingerprint: str) -> Cached | None:
        """What was known last, however long ago: to be told as stale."""
        return self._entries.get((tenant, fingerprint))

    def put(self, tenant: str, fingerprint: str, entry: Cached) -> None:
        self._entries[(tenant, fingerprint)] = entry
        self._entries.move_to_end((tenant, fingerprint))
        while len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)

    def clear(self) -> None:
        self._entries.clear()
