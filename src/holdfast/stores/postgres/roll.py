"""Who is at work on this database, on whatever machine? One row and one lock per process.

The lock belongs to a connection: it is gone when the process dies, and stays while the process is merely
stopped, for its kernel keeps the connection. But it is also gone when the server restarts. So nobody is dead
who was heard of a moment ago, and nobody is called dead by somebody who has not been listening that long.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

HEARTBEAT_S = 1.0
GRACE = 5
"""Silent for more heartbeats than this, and without its lock: dead."""
GRACE_S = GRACE * HEARTBEAT_S
FRESH = 3
"""Whoever leads has been heard of within so many."""
LOCKS = int.from_bytes(b"hfwk", "big")

REGISTER = """
INSERT INTO worker
SELECT '*', $1, $2, now, now FROM (SELECT extract(epoch FROM clock_timestamp()) AS now) AS clock
ON CONFLICT (tenant, id) DO UPDATE SET seen_at = excluded.seen_at
"""
LEAVE = "DELETE FROM worker WHERE tenant = '*' AND id = $1"
LOOK = "SELECT id, seen_at FROM worker WHERE tenant = '*'"
HELD = """
SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
  AND classid = $1::bigint::oid
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
FORGET = "DELETE FROM worker WHERE tenant = '*' AND id = ANY ($1)"
KEPT_S = 86_400.0
"""How long the row of a dead worker is kept."""


def lock_of(worker: str) -> int:
    """The number of a worker's lock. It is taken shared: nobody waits for it, not for a connection that the
    server has not missed yet, and two workers with one number are both alive while either is.
    """
    return zlib.crc32(worker.encode()) & 0x7FFFFFFF


class Seen(NamedTuple):
    beat: float
    """The server's time at its last heartbeat: not compared with any other time, but it changes."""
    locked: bool


class _Heard(NamedTuple):
    beat: float
    at: float
    """When we first saw this beat, on our own clock: the server's may be set."""
    locked: bool


class Roll:
    """What this process knows about the others, as of its last look."""

    def __init__(self, own: str, monotonic: Callable[[], float], heartbeat_s: float = HEARTBEAT_S) -> None:
        self.id = own
        self.heartbeat_s = heartbeat_s
        self._grace_s = GRACE * heartbeat_s
        self._monotonic = monotonic
        self._heard: dict[str, _Heard] = {}
        self._looked_at: float | None = None
        self._listening_since: float | None = None
        self._asked: dict[str, float] = {}

    def look(self, seen: Mapping[str, Seen], asked_at: float) -> list[str]:
        """The roll as it was no earlier than `asked_at`; who on it can be forgotten."""
        before, self._looked_at = self._heard, asked_at
        self._heard = {
            name: _Heard(beat, before[name].at, locked)
            if name in before and before[name].beat == beat
            else _Heard(beat, asked_at, locked)
            for name, (beat, locked) in seen.items()
        }
        if self._listening_since is None:
            self._listening_since = asked_at
        self._asked = {worker: at for worker, at in self._asked.items() if worker not in seen}
        return [name for name, it in self._heard.items() if not it.locked and asked_at - it.at > KEPT_S]

    def lost(self) -> None:
        """The server is away: nothing that is not heard now means anything."""
        self._looked_at = self._listening_since = None
        self._heard.clear()
        self._asked.clear()

    def alive(self, worker: str) -> bool:
        """Whether this worker, or the one that this lane belongs to, may still act."""
        name = worker.partition(".")[0]
        if name == self.id:
            return True
        now = self._monotonic()
        if self._listening_since is None or now - self._listening_since < self._grace_s:
            return True
        heard = self._heard.get(name)
        if heard is not None:
            return heard.locked or now - heard.at < self._grace_s
        asked = self._asked.setdefault(name, now)  # it may have come after the last look
        return self._looked_at is None or self._looked_at < asked

    def leads(self) -> bool:
        """The first of those that were heard of; a stopped one hands over by its silence."""
        if self._looked_at is None:
            return False
        fresh = self._looked_at - FRESH * self.heartbeat_s
        return min((name for name, it in self._heard.items() if it.at > fresh), default=self.id) >= self.id
