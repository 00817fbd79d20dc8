"""What time is it, where every process of a machine may think otherwise? (IDM-8)

The first process that opens a store says it, once. From then on time goes on as it does since the machine was
started, which nobody can set, and whoever opens the store later takes it over. What somebody does to a wall
clock is taken up when a process opens the store and no other has it open.
"""

import fcntl
import logging
import os
from pathlib import Path

from holdfast import holding
from holdfast.ports import Clock
from holdfast.stores.boot import Boot
from holdfast.stores.clock import Passing

log = logging.getLogger(__name__)

WORTH_TELLING_S = 2.0


class SharedClock(Passing):
    def __init__(self, machine: Clock, boot: Boot, said: int, ahead: float) -> None:
        super().__init__(machine)
        self._boot = boot
        self._said = said
        self._ahead = ahead
        """Of the time since the machine was started."""

    def now(self) -> float:
        return self._boot.now() + self._ahead

    def close(self) -> None:
        """This process has the store open no more."""
        holding.let_go(self._said)


def agreed(file: Path, machine: Clock, boot: Boot) -> SharedClock:
    """The time that counts for everybody who has the store open; raises OSError.

    Whoever has it open has the file, with the others: who can have it alone is the first, and says it. It is
    read by who has the file: from then on nobody says another.
    """
    said = os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        own = machine.now() - boot.now()
        known = _said(said, boot.id, own)
        if known is None:  # who was to say it was killed
            known = _said(said, boot.id, own)
    except BaseException:
        os.close(said)
        raise
    holding.keep(said)
    ahead = own if known is None else known
    if abs(own - ahead) > WORTH_TELLING_S:
        log.warning(
            "this process's clock is %.0f s ahead of the store's, which counts; stop every process that uses "
            "the store to have the time taken anew",
            own - ahead,
        )
    return SharedClock(machine, boot, said, ahead)


def _said(said: int, boot_id: str, own: float) -> float | None:
    if holding.taken(said, fcntl.LOCK_EX):
        line = f"{boot_id} {own!r}\n".encode()
        os.pwrite(said, line, 0)  # whole, or not at all; what may still stand behind it is not read
        os.ftruncate(said, len(line))
    holding.take(said, fcntl.LOCK_SH)
    return _read(said, boot_id)


def _read(said: int, boot_id: str) -> float | None:
    """What was said since the machine was started, if anything."""
    line, _, _ = os.pread(said, 200, 0).decode(errors="replace").partition("\n")
    boot, _, ahead = line.partition(" ")
    try:
        return float(ahead) if boot == boot_id else None
    except ValueError:
        return None
