"""What happened between a backup and its return, and when may the store write again?

What is left of the lost store is merged; what cannot be found is given up by a person, by name and on record.
Only then is the halt of the restore lifted.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast import settlement
from holdfast.config import Config
from holdfast.gateway.auditing import Auditing
from holdfast.gateway.sources import kept, named
from holdfast.model.errors import HoldfastError, NotFound, StoreError
from holdfast.model.vocabulary import Effect
from holdfast.ports import Ports
from holdfast.records.checkpoint import Checkpoint
from holdfast.stores.backup.life import Life
from holdfast.stores.backup.lives import SqlLives
from holdfast.stores.backup.manifest import moment
from holdfast.stores.backup.merge import Merged

log = logging.getLogger(__name__)

SWEPT = 100
"""Operations one sweep looks at."""


class Undecided(HoldfastError):
    """The operator must say more before writes can go on."""


class Wish(NamedTuple):
    sources: Sequence[str] = ()
    """Where to find what happened; what the restore kept when left out."""
    nothing_left: bool = False
    """Nothing more can be found: what is missing is lost."""
    note: str = ""


@dataclass(slots=True)
class Recovered:
    life: int
    merged: list[Merged] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Sources that could not be read, and why."""
    settled: int = 0
    unknown: int = 0
    """Operations whose outcome is still not known."""
    lost: str | None = None
    """Which stretch of time nobody knows about."""
    unprotected: list[str] = field(default_factory=list)
    """Tools whose lost calls nothing would stop from running again."""
    checkpoints_kept: str | None = None

    @property
    def operations(self) -> int:
        return sum(merged.operations for merged in self.merged)

    @property
    def records(self) -> int:
        return sum(merged.records for merged in self.merged)


class Recovery:
    def __init__(self, config: Config, lives: SqlLives, ports: Ports, auditing: Auditing) -> None:
        self._config = config
        self._lives = lives
        self._ports = ports
        self._auditing = auditing

    async def run(self, by: str, wish: Wish) -> Recovered:
        if not await self._lives.restored():
            raise NotFound("this store was not put back from a backup; there is nothing to recover")
        missed = [life for life in await self._lives.all() if not life.recovered]
        if wish.nothing_left and not wish.note.strip():
            raise Undecided(
                "--nothing-left gives up what cannot be found: say why with --note, for the record"
            )
        done = Recovered(missed[-1].number)
        await self._merge(done, missed, wish)
        behind = await self._auditing.behind()
        if behind is not None and not wish.nothing_left:
            raise Undecided(_not_all(done, *behind))
        await self._settle(done)
        told = self._give_up(done, missed, behind, wish)
        await self._lives.recovered(by, {**_members(done), **told})
        if behind is not None:  # only now: that they are given up is on record
            kept_as = self._auditing.set_aside(done.life)
            done.checkpoints_kept = None if kept_as is None else str(kept_as)
        return done

    async def _merge(self, done: Recovered, missed: list[Life], wish: Wish) -> None:
        left = [await named(self._config, name) for name in wish.sources]
        if not left:
            left = await kept(self._config, missed)
        if not left and not wish.nothing_left:
            raise Undecided(_nothing_kept(missed))
        if not wish.nothing_left and not any(lost.complete for lost in left):
            raise Undecided(f"{_INCOMPLETE}; {_CHOICES}")
        for lost in left:
            try:
                done.merged.append(await lost.merge(self._lives, self._ports.secrets, missed[-1].since))
            except StoreError as error:
                if not wish.nothing_left or wish.sources:
                    raise StoreError(f"{error}; {_CHOICES}") from error
                done.unread.append(str(error))

    async def _settle(self, done: Recovered) -> None:
        """Ask the probes about everything that is unknown, a page at a time."""
        before = await self._lives.unknown()
        for _ in range(before // SWEPT + 2):
            await settlement.sweep(self._ports, SWEPT)
        done.unknown = await self._lives.unknown()
        done.settled = before - done.unknown

    def _give_up(
        self, done: Recovered, missed: list[Life], behind: tuple[Checkpoint, int] | None, wish: Wish
    ) -> dict[str, Any]:
        if not wish.nothing_left:
            return {}
        done.lost = (
            f"the store was {missed[-1].why}: what it did after that, until {moment(missed[-1].since)}"
        )
        done.unprotected = self._unprotected()
        told: dict[str, Any] = {"nothing_left": True, "note": wish.note, "why": missed[-1].why}
        if behind is not None:
            checkpoint, size = behind
            told["restarted"] = {"size": size, "signed": checkpoint.size, "time": checkpoint.time}
        return told

    def _unprotected(self) -> list[str]:
        """Neither a probe nor the upstream's own keys would notice that a lost call had run."""
        tools = {listing.tool.contract.tool: listing.tool for listing in self._ports.catalog.list()}
        return sorted(
            name
            for name, tool in tools.items()
            if tool.contract.effect is not Effect.READ_ONLY
            and tool.probe is None
            and not tool.contract.honours_key
        )


_CHOICES = (
    "give --from with the lost store, a newer backup or an export of its log; if nothing of it is left, say"
    " so with --nothing-left --note WHY: what it did is then unknown here, and its keys may run again"
)


_INCOMPLETE = "a backup and an export end before the lost store did: what it did after that is not in them"


def _nothing_kept(missed: list[Life]) -> str:
    return f"nothing is kept here of what happened after this store was {missed[-1].why}; {_CHOICES}"


def _not_all(done: Recovered, checkpoint: Checkpoint, size: int) -> str:
    faults = "".join(f"; {merged.log_fault}" for merged in done.merged if merged.log_fault)
    return (
        f"the log was signed up to record {checkpoint.size} at {checkpoint.time}, and with what was merged it"
        f" has {size}{faults}: calls may be missing; {_CHOICES}"
    )


def _members(done: Recovered) -> dict[str, Any]:
    sources = [merged.source for merged in done.merged]
    counts = {"operations": done.operations, "records": done.records}
    return {"life": done.life, "sources": sources, **counts, "settled": done.settled, "unknown": done.unknown}
