"""Can the process that took this claim still act?

Each process holds an exclusive lock on a file of its own for as long as it lives. The kernel frees it at
death, kill -9 included, and keeps it while the process is merely stopped: a stopped worker may wake up and
go on, a dead one cannot.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from holdfast import holding
from holdfast.model.errors import StoreError

UNNAMED_S = 60.0
"""A worker's file that has no name for longer than that never gets one: giving it takes no time."""
ASK_AGAIN_S = 0.5
"""A worker found alive is believed for this long; asking costs three system calls."""


class Workers(Protocol):
    @property
    def id(self) -> str:
        """This process, as the owner of its claims."""
        ...

    def alive(self, worker: str) -> bool: ...

    def leads(self) -> bool:
        """Whether this process is the one to sweep; several at once are a waste, and no harm."""
        ...


class LockedWorkers:
    """Workers of one machine that know each other by lock files in one folder."""

    def __init__(self, folder: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.id = f"w_{secrets.token_hex(8)}"
        self.folder = folder
        self._monotonic = monotonic
        self._lock: int | None = None
        self._gate: int | None = None
        self._seen: dict[str, float] = {}
        self._dead: set[str] = set()

    def open(self) -> None:
        self._gate = _gate(self.folder, fcntl.LOCK_SH)
        if self._gate is None:
            raise StoreError("the store is being put back from a backup; start again when that is done")
        holding.keep(self._gate)
        self._sweep()
        # Locked before it gets the name others look for: a file of that name that is free is a dead worker's.
        unnamed = self.folder / f"{self.id}.new"
        self._lock = os.open(unnamed, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        holding.keep(self._lock)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unnamed.rename(self._path(self.id))

    def close(self) -> None:
        if self._lock is not None:
            self._path(self.id).unlink(missing_ok=True)
            holding.let_go(self._lock)
            self._lock = None
        if self._gate is not None:
            holding.let_go(self._gate)
            self._gate = None

    def alive(self, worker: str) -> bool:
        """Whether this worker, or the one whose spool this is, may still act."""
        worker = worker.partition(".")[0]
        if worker == self.id:
            return True
        if worker in self._dead:
            return False
        now = self._monotonic()
        if now - self._seen.get(worker, -ASK_AGAIN_S) < ASK_AGAIN_S:
            return True
        if self._is_free(worker):
            self._seen.pop(worker, None)
            self._dead.add(worker)
            return False
        self._seen[worker] = now
        return True

    def leads(self) -> bool:
        """Always: whoever is stopped could not hand the office on, and a machine has few processes."""
        return True

    def _is_free(self, worker: str) -> bool:
        return _removed(self._path(worker))

    def _sweep(self) -> None:
        """Remove what workers left behind that died without anything running, or before they had a name."""
        for path in self.folder.glob("*.lock"):
            self._is_free(path.stem)
        for path in self.folder.glob("*.new"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > UNNAMED_S:
                    _removed(path)

    def _path(self, worker: str) -> Path:
        return self.folder / f"{worker}.lock"


def _removed(path: Path) -> bool:
    """Whether nobody has it: then it is gone."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        if not holding.taken(lock, fcntl.LOCK_EX):
            return False
        path.unlink(missing_ok=True)  # under the lock: nobody else takes it for a living worker's
    finally:
        os.close(lock)
    return True


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No worker is there, and none comes, until this ends; raises StoreError while there is one."""
    gate = _gate(folder, fcntl.LOCK_EX)
    if gate is None:
        raise StoreError("a gateway has this store open; stop every 'holdfast' process that uses it first")
    try:
        yield
    finally:
        holding.let_go(gate)


def _gate(folder: Path, kind: int) -> int | None:
    """The folder itself: workers hold it together, whoever replaces the store alone; None: it is taken."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    gate = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    if holding.taken(gate, kind):
        return gate
    os.close(gate)
    return None
