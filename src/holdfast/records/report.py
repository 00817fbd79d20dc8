"""What did a look at the log find?"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

MOST_FAULTS = 10_000
"""Faults told one by one: a log rewritten from end to end has as many as it has records."""


class Fault(NamedTuple):
    kind: str
    """changed, removed, inserted, moved, truncated, missing, forked, unsigned, unreadable"""
    where: str
    """The record, leaf, checkpoint or line."""
    text: str

    def __str__(self) -> str:
        return f"{self.where} {self.text}"


@dataclass(slots=True)
class Report:
    records: int = 0
    leaves: int = 0
    pruned: int = 0
    """Records whose text was dropped when its time was over; their hashes still prove the rest."""
    waiting: int = 0
    """Records that are not in the tree yet."""
    anchored: int = 0
    """Leaves behind the last good checkpoint from outside."""
    checkpoints: int = 0
    unfinished: int = 0
    """Calls that were begun and have no outcome: running now, or their process died."""
    seconds: float = 0.0
    root: str = ""
    restarts: list[str] = field(default_factory=list)
    """Where the log goes on from a backup and what was signed since is lost, as somebody put on record."""
    faults: list[Fault] = field(default_factory=list)
    more_faults: int = 0

    @property
    def ok(self) -> bool:
        return not self.faults

    @property
    def tail(self) -> int:
        """Records that no checkpoint from outside vouches for."""
        return self.leaves - self.anchored + self.waiting

    def add(self, kind: str, where: str, text: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(kind, where, text))
        else:
            self.more_faults += 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "records": self.records,
            "leaves": self.leaves,
            "root": self.root,
            "pruned": self.pruned,
            "waiting": self.waiting,
            "checkpoints": self.checkpoints,
            "anchored": self.anchored,
            "tail_not_anchored": self.tail,
            "unfinished": self.unfinished,
            "restarts": self.restarts,
            "faults": [fault._asdict() for fault in self.faults],
            "more_faults": self.more_faults,
            "seconds": round(self.seconds, 3),
        }

    def lines(self) -> list[str]:
        """In words, the worst first."""
        said = [f"tampered: {fault}" for fault in self.faults]
        if self.more_faults:
            said.append(f"and {self.more_faults} faults more")
        rate = self.records / self.seconds if self.seconds else 0.0
        verdict = "verified" if self.ok else "not intact"
        said.append(
            f"{verdict}: {self.records} records, {self.leaves} in the tree, {self.checkpoints} checkpoints"
            f" ({rate:,.0f} records/s)"
        )
        said += [f"restarted: {restart}" for restart in self.restarts]
        if self.pruned:
            said.append(f"pruned: {self.pruned} records are past their retention; their hashes are intact")
        if self.unfinished:
            said.append(
                f"unfinished: {self.unfinished} calls have no outcome: running, or their process died"
            )
        if self.tail:
            said.append(
                f"tail not anchored: no checkpoint from outside vouches for the last {self.tail} records"
            )
        return said
