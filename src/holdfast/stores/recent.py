"""What did this process write last? Its newest records, as they were committed.

Whoever puts them into the tree holds what is stored against them: to compare is cheaper than to hash again,
and tells as much.
"""

from collections.abc import Callable, Sequence

from holdfast.records.chain import GENESIS, Mark, Record

MOST = 16_384
"""Records kept, about 20 MB: what a busy gateway writes between two looks of the sequencer."""
MANY = 1024
"""New records after which somebody is called to put them into the tree, so that few wait for it."""


class Recent:
    """Added to in the writer's thread, read on the event loop: no step depends on the one before it."""

    __slots__ = ("_new", "_records", "_tip", "full", "many", "writer")

    def __init__(self, writer: str, many: int = MANY) -> None:
        self.writer, self.many = writer, many
        self.full: Callable[[], None] | None = None
        """To be called when there are many."""
        self._new = 0
        self._records: list[Record] = []  # without a gap, and up to the tip
        self._tip: Mark | None = (0, GENESIS)
        """The last record that was committed; None where that is not known."""

    def add(self, records: Sequence[Record]) -> None:
        """These were committed, in this order."""
        if not records:
            return
        kept = self._records
        if self._tip is None or records[0].prev != self._tip[1]:
            kept.clear()
        kept += records
        self._new += len(records)
        self._tip = records[-1].seq, records[-1].hash
        if len(kept) > MOST:
            del kept[: len(kept) - MOST]

    def call(self) -> None:
        """Call for somebody to take them, where many have come; on the event loop."""
        if self._new >= self.many and self.full is not None:
            self._new = 0
            self.full()

    def forget(self) -> None:
        """Whether something was committed is not known."""
        self._tip = None
        self._records.clear()

    def after(self, head: Mark, most: int) -> list[Record] | None:
        """What follows this record of our chain, which is in the tree; None where that is not known."""
        if head == self._tip:
            self._records.clear()
            return []
        kept = self._records
        for first in kept[:1]:
            del kept[: max(head[0] + 1 - first.seq, 0)]
        found = kept[:most]
        # Should the thread have come in between, this tells: nothing worse happens than a longer way.
        return found if found and found[0].prev == head[1] and found[0].seq == head[0] + 1 else None
